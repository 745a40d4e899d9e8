//! The envelope of every file of ours in the attempt directory:
//! `[6 bytes magic][u16 version][u32 length of the body][u32 CRC-32 of the body][body]`.

use crate::checksum::crc32;
use crate::codec::DecodeError;

pub(crate) const HEADER_BYTES: usize = 16;

/// The version written. It goes up when an old reader would misunderstand, not when a field is added.
pub(crate) const VERSION: u16 = 1;
/// The oldest version read: that of the minor release before the last one.
const OLDEST_VERSION: u16 = 1;

pub(crate) type Magic = [u8; 6];

pub(crate) fn seal(magic: Magic, body: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(HEADER_BYTES + body.len());
    sealed.extend_from_slice(&magic);
    sealed.extend_from_slice(&VERSION.to_le_bytes());
    sealed.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    sealed.extend_from_slice(&crc32(body).to_le_bytes());
    sealed.extend_from_slice(body);
    sealed
}

/// The body; bytes after it are ignored (the exit file is larger than its record).
pub(crate) fn unseal(magic: Magic, bytes: &[u8]) -> Result<&[u8], DecodeError> {
    let (found, bytes) = bytes.split_first_chunk::<6>().ok_or(DecodeError::Truncated)?;
    let (version, bytes) = bytes.split_first_chunk::<2>().ok_or(DecodeError::Truncated)?;
    let (length, bytes) = bytes.split_first_chunk::<4>().ok_or(DecodeError::Truncated)?;
    let (checksum, bytes) = bytes.split_first_chunk::<4>().ok_or(DecodeError::Truncated)?;
    if *found != magic {
        return Err(DecodeError::NotOurs);
    }
    let version = u16::from_le_bytes(*version);
    if !(OLDEST_VERSION..=VERSION).contains(&version) {
        return Err(DecodeError::UnsupportedVersion(version));
    }
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| DecodeError::TooLarge)?;
    let body = bytes.get(..length).ok_or(DecodeError::Truncated)?;
    if crc32(body) != u32::from_le_bytes(*checksum) {
        return Err(DecodeError::Checksum);
    }
    Ok(body)
}
