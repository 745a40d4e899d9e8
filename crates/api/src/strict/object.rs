//! An object with a fixed set of fields: each is taken once, what is left over is a fault.

use std::borrow::Cow;

use super::{FaultCode, Faults, Pointer, Tree};

/// The fields of an object while they are read.
#[derive(Debug)]
pub struct Object<'t, 'p> {
    fields: &'t [(Cow<'t, str>, Tree<'t>)],
    at: &'p Pointer<'p>,
    known: Vec<&'static str>,
}

impl<'t, 'p> Object<'t, 'p> {
    pub(super) fn new(fields: &'t [(Cow<'t, str>, Tree<'t>)], at: &'p Pointer<'p>) -> Self {
        Self { fields, at, known: Vec::with_capacity(32) }
    }

    /// Where the object stands.
    #[must_use]
    pub fn at(&self) -> &'p Pointer<'p> {
        self.at
    }

    /// The value of a field; `None` when it is left out or null. A doubled field is a fault, wherever it stands.
    pub fn take(&mut self, name: &'static str, faults: &mut Faults) -> Option<&'t Tree<'t>> {
        self.known.push(name);
        let mut found = self.fields.iter().filter(|(field, _)| field == name);
        let (_, value) = found.next()?;
        if found.next().is_some() {
            faults.add(
                &self.at.field(name),
                FaultCode::DuplicateField,
                "this field stands there more than once",
            );
        }
        (*value != Tree::Null).then_some(value)
    }

    /// The text of a field that must be there.
    pub fn needed_text(&mut self, name: &'static str, faults: &mut Faults) -> Option<String> {
        let at = self.at.field(name);
        match self.take(name, faults) {
            Some(value) => super::text(value, &at, faults).map(str::to_owned),
            None => {
                faults.add(&at, FaultCode::Missing, "must be there");
                None
            }
        }
    }

    /// Reports every field that was never taken.
    pub fn finish(self, faults: &mut Faults) {
        for (name, _) in self.fields {
            if self.known.iter().any(|known| known == name) {
                continue;
            }
            let detail = match closest(name, &self.known) {
                Some(known) => format!("there is no such field; did you mean `{known}`?"),
                None => "there is no such field".to_owned(),
            };
            faults.add(&self.at.field(name), FaultCode::UnknownField, detail);
        }
    }
}

/// The known name that is at most two letters away.
fn closest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    if name.len() > 40 {
        return None;
    }
    let near = |known: &&'static str| (edits(name, known), *known);
    known.iter().map(near).filter(|(edits, _)| *edits <= 2).min().map(|(_, known)| known)
}

/// How many letters have to be put in, taken out or changed (Levenshtein).
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for column in 0..other.len() {
            let changed = diagonal + usize::from(letter != other[column]);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}
