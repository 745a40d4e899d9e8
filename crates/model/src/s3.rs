//! Places in S3-compatible stores.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// The longest key of S3, in bytes.
const MAX_KEY_BYTES: usize = 1_024;

/// `s3://<bucket>/<key>`: one object, or, when the key is empty or ends in `/`, all objects below it. Its key has no
/// empty, `.` or `..` parts and no control characters, so it can be a path of files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct S3Url {
    bucket: String,
    key: String,
}

/// Why a text is not such a place.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
#[error("{0}")]
pub struct InvalidS3Url(&'static str);

impl S3Url {
    /// The bucket's name.
    #[must_use]
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The key; empty for the whole bucket.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Whether it means all objects below the key, not one object.
    #[must_use]
    pub fn is_prefix(&self) -> bool {
        self.key.is_empty() || self.key.ends_with('/')
    }

    /// The last part of an object's key; empty for a prefix.
    #[must_use]
    pub fn name(&self) -> &str {
        self.key.rsplit('/').next().unwrap_or_default()
    }

    /// The same place as a prefix, whether or not it was written with a `/` at its end.
    #[must_use]
    pub fn as_prefix(&self) -> Self {
        let slash = if self.is_prefix() { "" } else { "/" };
        Self { bucket: self.bucket.clone(), key: format!("{}{slash}", self.key) }
    }

    /// Whether `other` lies at this place or, when this is a prefix, below it.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let below = if self.is_prefix() { other.key.starts_with(&self.key) } else { other.key == self.key };
        self.bucket == other.bucket && below
    }

    /// A place below this prefix.
    ///
    /// # Errors
    /// What it would come to is not a key.
    pub fn below(&self, path: &str) -> Result<Self, InvalidS3Url> {
        let key = format!("{}{path}", self.as_prefix().key);
        check_key(&key)?;
        Ok(Self { bucket: self.bucket.clone(), key })
    }
}

impl fmt::Display for S3Url {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "s3://{}/{}", self.bucket, self.key)
    }
}

impl FromStr for S3Url {
    type Err = InvalidS3Url;

    fn from_str(text: &str) -> Result<Self, InvalidS3Url> {
        let rest = text.strip_prefix("s3://").ok_or(InvalidS3Url("expected s3://<bucket>/<key>"))?;
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        check_bucket(bucket)?;
        check_key(key)?;
        Ok(Self { bucket: bucket.to_owned(), key: key.to_owned() })
    }
}

fn check_bucket(bucket: &str) -> Result<(), InvalidS3Url> {
    const RULE: &str = "a bucket's name has 3 to 63 lower-case letters, digits, `-` and `.`, and begins and ends \
                        with a letter or digit";
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [bucket.bytes().next(), bucket.bytes().last()];
    let is_valid = (3..=63).contains(&bucket.len())
        && bucket.bytes().all(|byte| plain(byte) || byte == b'-' || byte == b'.')
        && ends.into_iter().all(|end| end.is_some_and(plain))
        && !bucket.contains("..");
    if is_valid { Ok(()) } else { Err(InvalidS3Url(RULE)) }
}

fn check_key(key: &str) -> Result<(), InvalidS3Url> {
    if key.len() > MAX_KEY_BYTES {
        return Err(InvalidS3Url("a key has at most 1,024 bytes"));
    }
    if key.chars().any(char::is_control) {
        return Err(InvalidS3Url("a key with control characters can't be used"));
    }
    let parts = key.strip_suffix('/').unwrap_or(key);
    if !key.is_empty() && parts.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(InvalidS3Url("a key with empty parts (`//`), `.` or `..` can't be used"));
    }
    Ok(())
}

impl Serialize for S3Url {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for S3Url {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> S3Url {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_read_is_written_the_same() {
        for text in ["s3://a-bucket/", "s3://a.b/key", "s3://abc/a/b c/ü", "s3://abc/a/"] {
            assert_eq!(url(text).to_string(), text);
        }
        assert_eq!(url("s3://abc").to_string(), "s3://abc/");
        assert_eq!((url("s3://abc/a/b").name(), url("s3://abc/a/").name()), ("b", ""));
    }

    #[test]
    fn what_could_lead_elsewhere_is_refused() {
        let long = format!("s3://abc/{}", "x".repeat(1_025));
        for text in [
            "",
            "s3:/abc/x",
            "s3://",
            "s3:///x",
            "s3://ab/x",
            "s3://Abc/x",
            "s3://-abc/x",
            "s3://a..b/x",
            "s3://a_b/x",
            "s3://abc//x",
            "s3://abc/x//y",
            "s3://abc/x//",
            "s3://abc//",
            "s3://abc/../x",
            "s3://abc/x/.",
            "s3://abc/./",
            "s3://abc/a\nb",
            "s3://abc/a\u{0}",
            &long,
        ] {
            assert!(text.parse::<S3Url>().is_err(), "{text:?}");
        }
        assert!(url("s3://abc/a/").below("../b").is_err());
        assert!(url("s3://abc/a/").below("/b").is_err());
    }

    #[test]
    fn a_prefix_covers_what_is_below_it_and_an_object_only_itself() {
        let cases = [
            ("s3://abc/", "s3://abc/x", true),
            ("s3://abc/a/", "s3://abc/a/b/c", true),
            ("s3://abc/a/", "s3://abc/a/", true),
            ("s3://abc/a/", "s3://abc/a", false),
            ("s3://abc/a/", "s3://abc/ab", false),
            ("s3://abc/a", "s3://abc/a", true),
            ("s3://abc/a", "s3://abc/a/b", false),
            ("s3://abc/", "s3://abcd/x", false),
        ];
        for (this, other, expected) in cases {
            assert_eq!(url(this).covers(&url(other)), expected, "{this} {other}");
        }
        assert_eq!(url("s3://abc/a").below("b/c").unwrap(), url("s3://abc/a/b/c"));
        assert_eq!(url("s3://abc").below("b").unwrap(), url("s3://abc/b"));
    }
}
