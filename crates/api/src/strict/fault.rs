//! What is wrong with a body, and where.

use super::Pointer;

/// Faults beyond this many are counted, not listed: a hostile body must not buy an answer larger than itself.
pub const MAX_FAULTS: usize = 1_000;

/// Which kind of fault. The words are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultCode {
    /// Not JSON at all, or nested too deeply.
    Syntax,
    /// A field that doesn't exist.
    UnknownField,
    /// A field or key that stands there twice.
    DuplicateField,
    /// A text where a number is expected, and so on.
    WrongType,
    /// Something that must be there isn't.
    Missing,
    /// A number too small or too large.
    OutOfRange,
    /// A text with too many characters or bytes.
    TooLong,
    /// Too many entries.
    TooMany,
    /// A character that can't stand there.
    ForbiddenCharacter,
    /// A text that isn't of the form expected.
    Invalid,
    /// Fields that can't stand together, or a setting forbids it.
    NotAllowed,
    /// Planned, and not built yet.
    NotAvailableYet,
    /// Names something that doesn't exist.
    Unknown,
}

impl FaultCode {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::UnknownField => "unknown_field",
            Self::DuplicateField => "duplicate_field",
            Self::WrongType => "wrong_type",
            Self::Missing => "missing",
            Self::OutOfRange => "out_of_range",
            Self::TooLong => "too_long",
            Self::TooMany => "too_many",
            Self::ForbiddenCharacter => "forbidden_character",
            Self::Invalid => "invalid",
            Self::NotAllowed => "not_allowed",
            Self::NotAvailableYet => "not_available_yet",
            Self::Unknown => "unknown",
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// A JSON pointer into the body; empty for all of it. `?name` for a query parameter.
    pub pointer: String,
    /// Which kind.
    pub code: FaultCode,
    /// What is wrong and what is expected.
    pub detail: String,
}

/// All that is wrong with one body; collected while it is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Faults {
    listed: Vec<Fault>,
    left_out: usize,
}

impl Faults {
    /// Notes a fault.
    pub fn add(&mut self, at: &Pointer<'_>, code: FaultCode, detail: impl Into<String>) {
        if self.listed.len() < MAX_FAULTS {
            self.listed.push(Fault { pointer: at.to_string(), code, detail: detail.into() });
        } else {
            self.left_out += 1;
        }
    }

    /// Notes a fault that stands outside of a body: in a query, a path or a header.
    pub fn push(&mut self, fault: Fault) {
        if self.listed.len() < MAX_FAULTS {
            self.listed.push(fault);
        } else {
            self.left_out += 1;
        }
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// The faults, the first [`MAX_FAULTS`] of them.
    #[must_use]
    pub fn listed(&self) -> &[Fault] {
        &self.listed
    }

    /// How many there are besides.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Self { listed: vec![fault], left_out: 0 }
    }
}
