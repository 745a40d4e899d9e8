//! JSON as it was written: doubled fields are kept, whole numbers stay whole.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{Fault, FaultCode};

/// A JSON value; an object is a list of fields in the order written, doubles included.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree<'a> {
    /// `null`; counts as left out.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A number without a fraction, within 64 bits of either sign.
    Whole(i128),
    /// Any other number.
    Float(f64),
    /// A string.
    Text(Cow<'a, str>),
    /// An array.
    List(Vec<Tree<'a>>),
    /// An object.
    Object(Vec<(Cow<'a, str>, Tree<'a>)>),
}

impl Tree<'_> {
    /// What it is, for an error that says what was expected instead.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Flag(_) => "a boolean",
            Self::Whole(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

/// Reads a body. Nesting is bounded by serde_json's limit of 128.
///
/// # Errors
/// One fault that says where reading stopped and why: not JSON, not UTF-8, a lone surrogate, a number that no
/// computer keeps, nested too deeply.
pub fn parse(body: &[u8]) -> Result<Tree<'_>, Fault> {
    serde_json::from_slice(body).map_err(|error| {
        let mut detail = format!("the body is not JSON that can be read: {error}");
        if detail.contains("hex escape") {
            detail.push_str("; a surrogate (\\uD800 to \\uDFFF) stands for a character only in a pair");
        }
        Fault { pointer: String::new(), code: FaultCode::Syntax, detail }
    })
}

impl<'de: 'a, 'a> Deserialize<'de> for Tree<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor).map(Key)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a field name")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Tree<'de>, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Tree<'de>, E> {
        Ok(Tree::Flag(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Tree<'de>, E> {
        Ok(Tree::Whole(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Tree<'de>, E> {
        Ok(Tree::Whole(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Tree<'de>, E> {
        Ok(Tree::Float(number))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Tree<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Tree<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some((Key(name), value)) = access.next_entry()? {
            fields.push((name, value));
        }
        Ok(Tree::Object(fields))
    }
}
