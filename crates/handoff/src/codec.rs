//! Fields as `[u16 tag][u32 length][bytes]`, little endian. A reader skips tags it doesn't know, so that a field
//! can be added without a new version; a tag is never given a second meaning.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Why bytes are not what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// The first bytes are those of something else.
    NotOurs,
    /// Written by a release whose format this one doesn't read.
    UnsupportedVersion(u16),
    /// It ends in the middle.
    Truncated,
    /// The checksum doesn't fit: half written, or damaged.
    Checksum,
    /// The field with this tag holds what it can't hold.
    BadField(u16),
    /// The field with this tag is not there.
    MissingField(u16),
    /// Larger than anything we write.
    TooLarge,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOurs => f.write_str("not a jobyard record"),
            Self::UnsupportedVersion(version) => write!(f, "format version {version} is not supported"),
            Self::Truncated => f.write_str("the record ends in the middle"),
            Self::Checksum => f.write_str("the checksum does not fit"),
            Self::BadField(tag) => write!(f, "field {tag} is malformed"),
            Self::MissingField(tag) => write!(f, "field {tag} is missing"),
            Self::TooLarge => f.write_str("the record is too large"),
        }
    }
}

impl std::error::Error for DecodeError {}

#[derive(Default)]
pub(crate) struct FieldWriter {
    bytes: Vec<u8>,
}

impl FieldWriter {
    pub(crate) fn bytes(&mut self, tag: u16, value: &[u8]) {
        // Longer than 4 GiB cannot be: plans are refused above MAX_PLAN_BYTES before they are written.
        let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&tag.to_le_bytes());
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(value);
    }

    pub(crate) fn number(&mut self, tag: u16, value: u64) {
        self.bytes(tag, &value.to_le_bytes());
    }

    pub(crate) fn optional_number(&mut self, tag: u16, value: Option<u64>) {
        if let Some(value) = value {
            self.number(tag, value);
        }
    }

    pub(crate) fn path(&mut self, tag: u16, value: &Path) {
        self.bytes(tag, value.as_os_str().as_bytes());
    }

    pub(crate) fn optional_path(&mut self, tag: u16, value: Option<&Path>) {
        if let Some(value) = value {
            self.path(tag, value);
        }
    }

    pub(crate) fn os(&mut self, tag: u16, value: &OsStr) {
        self.bytes(tag, value.as_bytes());
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// One field: its tag and its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    pub(crate) tag: u16,
    pub(crate) value: &'a [u8],
}

impl Field<'_> {
    pub(crate) fn number(self) -> Result<u64, DecodeError> {
        self.value.try_into().map(u64::from_le_bytes).map_err(|_| DecodeError::BadField(self.tag))
    }

    pub(crate) fn small(self) -> Result<u32, DecodeError> {
        u32::try_from(self.number()?).map_err(|_| DecodeError::BadField(self.tag))
    }

    pub(crate) fn flag(self) -> Result<bool, DecodeError> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::BadField(self.tag)),
        }
    }

    pub(crate) fn text(self) -> Result<String, DecodeError> {
        std::str::from_utf8(self.value).map(str::to_owned).map_err(|_| DecodeError::BadField(self.tag))
    }

    pub(crate) fn os(self) -> OsString {
        OsString::from_vec(self.value.to_vec())
    }

    pub(crate) fn path(self) -> PathBuf {
        PathBuf::from(self.os())
    }
}

pub(crate) struct FieldReader<'a> {
    rest: &'a [u8],
}

impl<'a> FieldReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for FieldReader<'a> {
    type Item = Result<Field<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = split_field(self.rest);
        self.rest = field.map_or(&[], |(_, rest)| rest);
        Some(field.map(|(field, _)| field).ok_or(DecodeError::Truncated))
    }
}

fn split_field(bytes: &[u8]) -> Option<(Field<'_>, &[u8])> {
    let (tag, bytes) = bytes.split_first_chunk::<2>()?;
    let (length, bytes) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (value, rest) = bytes.split_at_checked(length)?;
    Some((Field { tag: u16::from_le_bytes(*tag), value }, rest))
}
