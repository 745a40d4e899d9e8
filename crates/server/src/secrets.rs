//! The keys that jobs' secrets are kept with.
//!
//! Owns the key file's form, how secrets are sealed and opened, and how a job that has some is known again. What is
//! kept can neither be read nor guessed without a key, and what was sealed for one job opens for no other.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac as _};
use jobyard_model::JobId;
use jobyard_store::SealedSecrets;
use sha2::Sha256;
use thiserror::Error;

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;

/// The keys of a file: the first one seals, all of them open. Clones share them.
#[derive(Clone)]
pub struct SecretKeys {
    keys: Arc<[Key]>,
}

/// What is derived from one key of the file.
struct Key {
    /// Names it, and tells nothing else of it.
    id: String,
    cipher: XChaCha20Poly1305,
    /// Begun with a key of its own.
    fingerprints: Hmac<Sha256>,
}

/// Shows which keys, not the keys.
impl fmt::Debug for SecretKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.keys.iter().map(|key| &key.id)).finish()
    }
}

/// Why a text has no keys for us.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SecretKeyError {
    /// It has none at all.
    #[error("it has no key: head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n'")]
    Empty,
    /// A line is neither empty, nor a comment, nor a key.
    #[error("line {line} is no key: expected 64 hex digits or the base64 of 32 bytes")]
    Malformed {
        /// From 1.
        line: usize,
    },
}

/// Why secrets stay closed.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum OpenError {
    /// The key is not in the file.
    #[error(
        "the job's secrets were sealed with key {0}, which is not in this server's `server.secret_key_file`: \
         every server needs the same file, and a key stays in it as long as jobs have secrets sealed with it"
    )]
    UnknownKey(String),
    /// They are not what was sealed for this job.
    #[error("the job's secrets can't be opened: they are damaged, or were sealed for another job")]
    Damaged,
}

/// Sealing can't fail but for secrets larger than any submission.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("the secrets could not be sealed")]
pub struct SealError;

impl SecretKeys {
    /// Reads the text of a key file: a key a line, in hex or base64; empty lines and those that begin with `#` don't count.
    ///
    /// # Errors
    /// [`SecretKeyError`] says which line is wrong. The text itself is never in an error.
    pub fn parse(text: &str) -> Result<Self, SecretKeyError> {
        let mut keys = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bytes = of_hex(line).or_else(|| of_base64(line));
            keys.push(Key::new(&bytes.ok_or(SecretKeyError::Malformed { line: index + 1 })?));
        }
        if keys.is_empty() { Err(SecretKeyError::Empty) } else { Ok(Self { keys: keys.into() }) }
    }

    /// The text of a file with one new key.
    #[must_use]
    pub fn new_file() -> String {
        let key: [u8; KEY_BYTES] = rand::random();
        format!("{}\n", hex(&key))
    }

    /// Encrypts the secrets of a job with the first key.
    ///
    /// # Errors
    /// See [`SealError`].
    pub fn seal(
        &self,
        job_id: JobId,
        secrets: &BTreeMap<String, String>,
    ) -> Result<SealedSecrets, SealError> {
        let key = self.keys.first().ok_or(SealError)?;
        let text = serde_json::to_vec(secrets).map_err(|_| SealError)?;
        let nonce: [u8; NONCE_BYTES] = rand::random();
        let bound_to = associated(job_id);
        let payload = Payload { msg: &text, aad: &bound_to };
        let ciphertext = key.cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| SealError)?;
        Ok(SealedSecrets { key_id: key.id.clone(), sealed: [nonce.as_slice(), &ciphertext].concat() })
    }

    /// The secrets of a job.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        &self,
        job_id: JobId,
        secrets: &SealedSecrets,
    ) -> Result<BTreeMap<String, String>, OpenError> {
        let key = self.keys.iter().find(|key| key.id == secrets.key_id);
        let key = key.ok_or_else(|| OpenError::UnknownKey(secrets.key_id.clone()))?;
        let (nonce, ciphertext) =
            secrets.sealed.split_first_chunk::<NONCE_BYTES>().ok_or(OpenError::Damaged)?;
        let bound_to = associated(job_id);
        let payload = Payload { msg: ciphertext, aad: &bound_to };
        let text = key.cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| OpenError::Damaged)?;
        serde_json::from_slice(&text).map_err(|_| OpenError::Damaged)
    }

    /// What a job with secrets is known again by, from its canonical form: under the first key, and under each of the
    /// others. Without a key nobody can try out what the secrets are.
    #[must_use]
    pub fn fingerprints(&self, canonical: &[u8]) -> ([u8; 32], Vec<[u8; 32]>) {
        let mut all = self.keys.iter().map(|key| mac(&key.fingerprints, canonical));
        // There is always a first one; without it nothing would ever be known again.
        (all.next().unwrap_or_default(), all.collect())
    }
}

impl Key {
    fn new(bytes: &[u8; KEY_BYTES]) -> Self {
        let derive = |purpose: &str| mac(&keyed(bytes), purpose.as_bytes());
        Self {
            id: hex(&derive("jobyard secret key id")[..8]),
            cipher: XChaCha20Poly1305::new(&derive("jobyard secret_env").into()),
            fingerprints: keyed(&derive("jobyard idempotency")),
        }
    }
}

fn keyed(key: &[u8; KEY_BYTES]) -> Hmac<Sha256> {
    // HMAC fills a short key up with zeros; so it takes this one without a length that could be wrong.
    let mut block = [0; 64];
    block[..KEY_BYTES].copy_from_slice(key);
    Hmac::new(&block.into())
}

fn mac(begun: &Hmac<Sha256>, text: &[u8]) -> [u8; 32] {
    begun.clone().chain_update(text).finalize().into_bytes().into()
}

/// What the ciphertext is bound to.
fn associated(job_id: JobId) -> Vec<u8> {
    [b"jobyard secret_env 1 ".as_slice(), job_id.0.as_bytes()].concat()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn of_hex(text: &str) -> Option<[u8; KEY_BYTES]> {
    if text.len() != 2 * KEY_BYTES || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut key = [0; KEY_BYTES];
    for (index, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(key)
}

fn of_base64(text: &str) -> Option<[u8; KEY_BYTES]> {
    BASE64_STANDARD.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use jobyard_model::JobId;

    use super::*;

    const ONE: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    /// Of the same bytes.
    const ONE_IN_BASE64: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const OTHER: &str = "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    fn job_id(number: u128) -> JobId {
        JobId(uuid::Uuid::from_u128(number))
    }

    fn keys(text: &str) -> SecretKeys {
        SecretKeys::parse(text).unwrap()
    }

    fn secrets() -> BTreeMap<String, String> {
        BTreeMap::from([("TOKEN".to_owned(), "hunter2".to_owned())])
    }

    #[test]
    fn what_was_sealed_opens_for_its_job_alone() {
        let keys = keys(ONE);
        let sealed = keys.seal(job_id(1), &secrets()).unwrap();
        assert_eq!(keys.open(job_id(1), &sealed), Ok(secrets()));
        assert_eq!(keys.open(job_id(2), &sealed), Err(OpenError::Damaged), "swapped between jobs");
        for place in 0..sealed.sealed.len() {
            let mut bytes = sealed.sealed.clone();
            bytes[place] ^= 1;
            let changed = SealedSecrets { sealed: bytes, ..sealed.clone() };
            assert_eq!(keys.open(job_id(1), &changed), Err(OpenError::Damaged));
        }
        for length in [0, NONCE_BYTES - 1, NONCE_BYTES, sealed.sealed.len() - 1] {
            let cut = SealedSecrets { sealed: sealed.sealed[..length].to_vec(), ..sealed.clone() };
            assert_eq!(keys.open(job_id(1), &cut), Err(OpenError::Damaged));
        }
        let again = keys.seal(job_id(1), &secrets()).unwrap();
        assert_ne!(sealed.sealed, again.sealed, "a nonce of its own");
        let text = String::from_utf8_lossy(&sealed.sealed);
        assert!(!text.contains("hunter2") && !text.contains("TOKEN"));
    }

    #[test]
    fn a_new_key_seals_and_the_old_one_still_opens() {
        let old = keys(ONE);
        let both = keys(&format!("# since May\n{OTHER}\n\n{ONE_IN_BASE64}\n"));
        let sealed = old.seal(job_id(1), &secrets()).unwrap();
        assert_eq!(both.open(job_id(1), &sealed), Ok(secrets()));
        let sealed = both.seal(job_id(1), &secrets()).unwrap();
        let unknown = old.open(job_id(1), &sealed).unwrap_err();
        assert_eq!(unknown, OpenError::UnknownKey(sealed.key_id.clone()));
        assert!(unknown.to_string().contains("server.secret_key_file"), "{unknown}");
        assert_eq!(keys(OTHER).open(job_id(1), &sealed), Ok(secrets()));
        // The right name for the wrong key.
        let lied = SealedSecrets { key_id: format!("{old:?}")[2..18].to_owned(), ..sealed };
        assert_eq!(old.open(job_id(1), &lied), Err(OpenError::Damaged));
    }

    #[test]
    fn a_job_is_known_again_under_every_key_and_by_nobody_without_one() {
        let (old, none) = keys(ONE).fingerprints(b"job");
        assert_eq!(none, [] as [[u8; 32]; 0]);
        let (new, earlier) = keys(&format!("{OTHER}\n{ONE}")).fingerprints(b"job");
        assert_eq!(earlier, [old]);
        assert_ne!(new, old);
        assert_ne!(old, keys(ONE).fingerprints(b"jab").0);
        use sha2::Digest as _;
        assert_ne!(old.as_slice(), Sha256::digest(b"job").as_slice());
    }

    #[test]
    fn keys_are_read_from_hex_and_base64_and_from_nothing_else() {
        assert_eq!(format!("{:?}", keys(ONE)), format!("{:?}", keys(ONE_IN_BASE64)));
        assert_eq!(format!("{:?}", keys(&ONE.to_uppercase())), format!("{:?}", keys(ONE)));
        let made = SecretKeys::new_file();
        assert_ne!(made, SecretKeys::new_file());
        assert!(!format!("{:?}", keys(&made)).contains(made.trim()));
        assert_eq!(SecretKeys::parse(" \n# nothing\n").unwrap_err(), SecretKeyError::Empty);
        let cut = &ONE[2..];
        for bad in [cut, "zz", "é", &format!("{ONE}0"), &ONE_IN_BASE64[1..], "AAECAwQFBgcICQ==", "0x00"] {
            let refused = SecretKeys::parse(&format!("\n{bad}")).unwrap_err();
            assert_eq!(refused, SecretKeyError::Malformed { line: 2 });
            assert!(!refused.to_string().contains(bad));
        }
    }
}
