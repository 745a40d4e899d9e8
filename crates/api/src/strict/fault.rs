//! What is wrong with a body, and where.

use super::Pointer;

/// Faults beyond this many are counted, not listed: a hostile body must not buy an answer larger than itself.
pub const MAX_FAULTS: usize = 1_000;

macro_rules! fault_codes {
    ($($variant:ident $word:literal $meaning:literal,)*) => {
        /// Which kind of fault. The words are stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum FaultCode {
            $(#[doc = $meaning] $variant,)*
        }

        impl FaultCode {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The word on the wire.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }

            /// What it says, for docs/errors.md.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),* }
            }
        }
    };
}

fault_codes! {
    Syntax "syntax" "Not JSON at all, or nested too deeply.",
    UnknownField "unknown_field" "A field that doesn't exist.",
    DuplicateField "duplicate_field" "A field or key that stands there twice.",
    WrongType "wrong_type" "A text where a number is expected, and so on.",
    Missing "missing" "Something that must be there isn't.",
    OutOfRange "out_of_range" "A number too small or too large.",
    TooLong "too_long" "A text with too many characters or bytes.",
    TooMany "too_many" "Too many entries.",
    ForbiddenCharacter "forbidden_character" "A character that can't stand there.",
    Invalid "invalid" "A text that isn't of the form expected.",
    NotAllowed "not_allowed" "Fields that can't stand together, or a setting forbids it.",
    NotAvailableYet "not_available_yet" "Planned, and not built yet.",
    Unknown "unknown" "Names something that doesn't exist.",
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
