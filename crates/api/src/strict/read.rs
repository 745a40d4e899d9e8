//! From a part of the tree to a value, or a fault that says what was expected.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::{FaultCode, Faults, Object, Pointer, Tree};
use crate::json::units;

fn wrong_type(tree: &Tree<'_>, expected: &str, at: &Pointer<'_>, faults: &mut Faults) {
    faults.add(at, FaultCode::WrongType, format!("expected {expected}, found {}", tree.kind()));
}

/// Reads an object; `what` says what it would be.
pub fn object<'t, 'p>(
    tree: &'t Tree<'t>,
    what: &str,
    at: &'p Pointer<'p>,
    faults: &mut Faults,
) -> Option<Object<'t, 'p>> {
    match tree {
        Tree::Object(fields) => Some(Object::new(fields, at)),
        other => {
            wrong_type(other, what, at, faults);
            None
        }
    }
}

/// Reads a text.
pub fn text<'t>(tree: &'t Tree<'_>, at: &Pointer<'_>, faults: &mut Faults) -> Option<&'t str> {
    match tree {
        Tree::Text(text) => Some(text),
        other => {
            wrong_type(other, "a text", at, faults);
            None
        }
    }
}

/// Reads `true` or `false`.
pub fn flag(tree: &Tree<'_>, at: &Pointer<'_>, faults: &mut Faults) -> Option<bool> {
    match tree {
        Tree::Flag(flag) => Some(*flag),
        other => {
            wrong_type(other, "true or false", at, faults);
            None
        }
    }
}

/// Reads a list; `what` says what it would be a list of.
pub fn items<'t>(
    tree: &'t Tree<'t>,
    what: &str,
    at: &Pointer<'_>,
    faults: &mut Faults,
) -> Option<&'t [Tree<'t>]> {
    match tree {
        Tree::List(items) => Some(items),
        other => {
            wrong_type(other, what, at, faults);
            None
        }
    }
}

/// Reads a list of texts; items of another kind are faults and left out.
pub fn texts(tree: &Tree<'_>, what: &str, at: &Pointer<'_>, faults: &mut Faults) -> Vec<String> {
    let items = items(tree, what, at, faults).unwrap_or_default();
    let read = |(index, item)| text(item, &at.item(index), faults).map(ToOwned::to_owned);
    items.iter().enumerate().filter_map(read).collect()
}

/// Reads an object whose keys are free and whose values are texts. More than `most` entries are one fault, not many.
pub fn text_map(
    tree: &Tree<'_>,
    most: usize,
    at: &Pointer<'_>,
    faults: &mut Faults,
) -> BTreeMap<String, String> {
    let Tree::Object(fields) = tree else {
        wrong_type(tree, "an object of texts", at, faults);
        return BTreeMap::new();
    };
    if fields.len() > most {
        let detail = format!("has {} entries, the most is {most}", fields.len());
        faults.add(at, FaultCode::TooMany, detail);
        return BTreeMap::new();
    }
    let mut map = BTreeMap::new();
    for (key, value) in fields {
        let here = at.field(key);
        let Some(value) = text(value, &here, faults) else { continue };
        if map.insert(key.clone().into_owned(), value.to_owned()).is_some() {
            faults.add(&here, FaultCode::DuplicateField, "this key stands there more than once");
        }
    }
    map
}

/// Which numbers are accepted, and what they count, for the error.
#[derive(Debug, Clone)]
pub struct Range {
    /// From the smallest to the largest.
    pub of: RangeInclusive<i64>,
    /// Such as `a priority`.
    pub what: &'static str,
}

/// Reads a whole number. `3.0` is one; `"3"` and `3.5` are not.
pub fn whole(tree: &Tree<'_>, range: &Range, at: &Pointer<'_>, faults: &mut Faults) -> Option<i64> {
    let (least, most) = (*range.of.start(), *range.of.end());
    let expected = format!("{} is a whole number from {least} to {most}", range.what);
    let number = match tree {
        Tree::Whole(number) => Some(*number),
        Tree::Float(number) if number.fract() == 0.0 => Some(*number as i128),
        Tree::Float(_) => None,
        other => {
            wrong_type(other, "a whole number", at, faults);
            return None;
        }
    };
    let within =
        number.and_then(|number| i64::try_from(number).ok()).filter(|number| range.of.contains(number));
    if within.is_none() {
        faults.add(at, FaultCode::OutOfRange, expected);
    }
    within
}

/// An amount with a unit: what is accepted, and how it is read and shown.
#[derive(Debug, Clone, Copy)]
pub struct Amount {
    /// The smallest that is accepted, in parts.
    pub least: u64,
    /// The largest that is accepted, in parts.
    pub most: u64,
    /// The bounds in words, such as `from 1 ms to 60 s`.
    pub bounds: &'static str,
    /// How many parts make what a bare number counts: 1,000 for milliseconds of seconds.
    pub parts: u64,
    /// Reads a text.
    pub parse: fn(&str) -> Result<u64, String>,
}

impl Amount {
    /// Reads the amount, in parts.
    pub fn read(&self, tree: &Tree<'_>, at: &Pointer<'_>, faults: &mut Faults) -> Option<u64> {
        let parsed = match tree {
            Tree::Whole(number) => {
                u64::try_from(*number).ok().and_then(|number| number.checked_mul(self.parts)).ok_or(None)
            }
            Tree::Float(number) => units::scale(*number, self.parts).ok_or(None),
            Tree::Text(text) => (self.parse)(text).map_err(Some),
            other => {
                wrong_type(other, "a number or a text with a unit", at, faults);
                return None;
            }
        };
        match parsed {
            Ok(parts) if (self.least..=self.most).contains(&parts) => Some(parts),
            Err(Some(detail)) => {
                faults.add(at, FaultCode::Invalid, detail);
                None
            }
            Ok(_) | Err(None) => {
                faults.add(at, FaultCode::OutOfRange, format!("must be {}", self.bounds));
                None
            }
        }
    }
}
