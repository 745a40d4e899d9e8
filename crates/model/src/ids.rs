//! Typed ids: a lease can't be passed where a job is wanted.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

/// The text is not an id of the wanted kind.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("`{text}` is not a {kind}: expected {expected}")]
pub struct InvalidId {
    kind: &'static str,
    expected: &'static str,
    text: String,
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            /// Reads the hyphenated form only, in lower or upper case.
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let refuse = || InvalidId {
                    kind: $kind,
                    expected: "a UUID such as 01890a5d-ac96-774b-bcce-b302099a8057",
                    text: text.chars().take(80).collect(),
                };
                if text.len() != 36 {
                    return Err(refuse());
                }
                Uuid::try_parse(text).map(Self).map_err(|_| refuse())
            }
        }
    };
}

uuid_id!(
    /// A job. UUIDv7, made before the insert, so that an unknown commit can be retried with the same id.
    JobId, "job id"
);
uuid_id!(
    /// One worker's right to one attempt; random and new for each claim. The fence of every later write.
    LeaseId, "lease id"
);
uuid_id!(
    /// A machine; made once in the worker's data directory.
    NodeId, "node id"
);
uuid_id!(
    /// One start of a worker. The newest session of a node wins.
    SessionId, "session id"
);
uuid_id!(
    /// One token; not the secret itself.
    TokenId, "token id"
);

/// SHA-256 of an artifact's bytes; its name in the artifact store. Shown as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactHash(pub [u8; 32]);

impl fmt::Display for ArtifactHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for ArtifactHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ArtifactHash({self})")
    }
}

impl FromStr for ArtifactHash {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let refuse = || InvalidId {
            kind: "artifact hash",
            expected: "64 lower-case hex digits",
            text: text.chars().take(80).collect(),
        };
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(refuse());
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = hex_digit(pair[0])
                .zip(hex_digit(pair[1]))
                .map(|(high, low)| high << 4 | low)
                .ok_or_else(refuse)?;
        }
        Ok(Self(hash))
    }
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_hash_reads_back_what_it_shows() {
        let hash = ArtifactHash([0xa5; 32]);
        assert_eq!(hash.to_string().parse(), Ok(hash));
    }

    #[test]
    fn upper_case_short_and_foreign_digits_are_refused() {
        for text in ["", "ab", &"A".repeat(64), &"g".repeat(64), &"é".repeat(32)] {
            assert!(text.parse::<ArtifactHash>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_the_hyphenated_form_is_a_job_id() {
        let id = JobId(Uuid::from_u128(7));
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(id.0.simple().to_string().parse::<JobId>().is_err());
        assert!("".parse::<JobId>().is_err());
    }
}
