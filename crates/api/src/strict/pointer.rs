//! Where in a body: a JSON pointer (RFC 6901), written out only when something is wrong there.

use std::fmt;

/// A place in a body.
#[derive(Debug, Clone, Copy)]
pub enum Pointer<'a> {
    /// All of it.
    Root,
    /// A field of an object.
    Field(&'a Pointer<'a>, &'a str),
    /// An item of a list.
    Item(&'a Pointer<'a>, usize),
}

/// Keys longer than this are cut in pointers: they may be megabytes of somebody's mistake.
const MAX_KEY_CHARS: usize = 100;

impl<'a> Pointer<'a> {
    /// The field `name` of the object here.
    #[must_use]
    pub fn field(&'a self, name: &'a str) -> Self {
        Self::Field(self, name)
    }

    /// The item `index` of the list here.
    #[must_use]
    pub fn item(&'a self, index: usize) -> Self {
        Self::Item(self, index)
    }
}

impl fmt::Display for Pointer<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Item(parent, index) => write!(formatter, "{parent}/{index}"),
            Self::Field(parent, name) => {
                let mut shown: String = name.chars().take(MAX_KEY_CHARS).collect();
                if shown.len() < name.len() {
                    shown.push('…');
                }
                write!(formatter, "{parent}/{}", shown.replace('~', "~0").replace('/', "~1"))
            }
        }
    }
}
