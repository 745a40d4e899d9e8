//! Query strings, read as strictly as bodies: every fault is named, unknown parameters are refused.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use axum::extract::Query;
use axum::http::Uri;
use jobyard_api::filter;
use jobyard_api::json::units::parse_time;
use jobyard_api::strict::{Fault, FaultCode, Faults};
use jobyard_model::{JobFilter, Timestamp};

use crate::error::ApiError;

/// The parameters of a call while they are read.
pub(crate) struct QueryReader {
    pairs: Vec<(String, String)>,
    known: Vec<&'static str>,
    faults: Faults,
}

impl QueryReader {
    pub(crate) fn new(uri: &Uri) -> Self {
        let mut faults = Faults::default();
        let pairs = match Query::<Vec<(String, String)>>::try_from_uri(uri) {
            Ok(Query(pairs)) => pairs,
            Err(_) => {
                faults.push(fault("", FaultCode::Syntax, "the query string can't be read"));
                Vec::new()
            }
        };
        Self { pairs, known: Vec::new(), faults }
    }

    /// The value of a parameter that may stand there once. An empty value counts as left out.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        let mut values = self.all(name);
        if values.len() > 1 {
            self.refuse(name, FaultCode::DuplicateField, "this parameter stands there more than once");
        }
        values.pop()
    }

    /// The values of a parameter that may stand there several times.
    pub(crate) fn all(&mut self, name: &'static str) -> Vec<String> {
        self.known.push(name);
        let values = self.pairs.iter().filter(|(found, value)| found == name && !value.is_empty());
        values.map(|(_, value)| value.clone()).collect()
    }

    /// A value of a type that can be read from text.
    pub(crate) fn parsed<T: FromStr<Err: Display>>(&mut self, name: &'static str) -> Option<T> {
        let text = self.text(name)?;
        text.parse().map_err(|error| self.refuse(name, FaultCode::Invalid, format!("{error}"))).ok()
    }

    /// A whole number within a range.
    pub(crate) fn whole(&mut self, name: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let text = self.text(name)?;
        let number = text.parse().ok().filter(|number| range.contains(number));
        if number.is_none() {
            let detail = format!("is a whole number from {} to {}", range.start(), range.end());
            self.refuse(name, FaultCode::OutOfRange, detail);
        }
        number
    }

    pub(crate) fn time(&mut self, name: &'static str) -> Option<Timestamp> {
        let text = self.text(name)?;
        parse_time(&text).map_err(|detail| self.refuse(name, FaultCode::Invalid, detail)).ok()
    }

    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        let text = self.text(name)?;
        match text.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                self.refuse(name, FaultCode::Invalid, "is `true` or `false`");
                None
            }
        }
    }

    /// Two texts joined by `:`.
    pub(crate) fn pairs(&mut self, name: &'static str, expected: &str) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        for text in self.all(name) {
            match text.split_once(':') {
                Some((first, second)) if !first.is_empty() => {
                    pairs.push((first.to_owned(), second.to_owned()));
                }
                _ => self.refuse(name, FaultCode::Invalid, format!("expected {expected}")),
            }
        }
        pairs
    }

    /// Like [`pairs`](Self::pairs), for a parameter that may stand there once.
    pub(crate) fn pair(&mut self, name: &'static str, expected: &str) -> Option<(String, String)> {
        let mut pairs = self.pairs(name, expected);
        if pairs.len() > 1 {
            self.refuse(name, FaultCode::DuplicateField, "this parameter stands there more than once");
        }
        pairs.pop()
    }

    /// The conditions of a filter of jobs.
    pub(crate) fn filter(&mut self) -> JobFilter {
        self.known.extend(filter::PARAMETERS);
        filter::read(&self.pairs, |name| format!("?{name}"), &mut self.faults)
    }

    /// Notes a fault of a parameter.
    pub(crate) fn refuse(&mut self, name: &str, code: FaultCode, detail: impl Into<String>) {
        self.faults.push(fault(name, code, detail));
    }

    /// Ends the reading.
    pub(crate) fn finish(mut self) -> Result<(), ApiError> {
        let known = self.known.join("`, `");
        for (name, _) in std::mem::take(&mut self.pairs) {
            if !self.known.iter().any(|known| *known == name) {
                let shown: String = name.chars().take(100).collect();
                let detail = match self.known.is_empty() {
                    true => "this call takes no parameters".to_owned(),
                    false => format!("there is no such parameter; there are `{known}`"),
                };
                self.refuse(&shown, FaultCode::UnknownField, detail);
            }
        }
        if self.faults.is_empty() { Ok(()) } else { Err(self.faults.into()) }
    }
}

fn fault(name: &str, code: FaultCode, detail: impl Into<String>) -> Fault {
    Fault { pointer: format!("?{name}"), code, detail: detail.into() }
}
