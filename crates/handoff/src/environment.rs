//! The complete environment of a task process. It has a file of its own because it may hold secrets: the
//! sidecar removes that file as soon as the task may start, and the plan stays.

use std::ffi::OsString;
use std::fmt;

use crate::codec::{DecodeError, FieldReader, FieldWriter};
use crate::envelope::{Magic, seal, unseal};

const MAGIC: Magic = *b"JYENV\n";
const NAME: u16 = 1;
const VALUE: u16 = 2;
const SECRET: u16 = 3;

/// Names and values in the order they are handed to the task process; nothing else is.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Environment {
    /// Name and value. Neither may hold a NUL, and a name no `=`; the launch fails otherwise.
    pub variables: Vec<(OsString, OsString)>,
    /// Secrets are among them: whoever holds them leaves them to nobody, be it in a core file.
    pub secret: bool,
}

/// Overwrites bytes that may be secret, before their memory is somebody else's.
pub fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    // So that the writing isn't left out as useless.
    std::hint::black_box(bytes);
}

impl Environment {
    /// The bytes of the file `environment`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = FieldWriter::default();
        if self.secret {
            fields.number(SECRET, 1);
        }
        for (name, value) in &self.variables {
            fields.os(NAME, name);
            fields.os(VALUE, value);
        }
        seal(MAGIC, &fields.finish())
    }

    /// The inverse of [`Environment::encode`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut environment = Self::default();
        let mut name = None;
        for field in FieldReader::new(unseal(MAGIC, bytes)?) {
            let field = field?;
            match field.tag {
                NAME => name = Some(field.os()),
                VALUE => {
                    let name = name.take().ok_or(DecodeError::MissingField(NAME))?;
                    environment.variables.push((name, field.os()));
                }
                SECRET => environment.secret = field.flag()?,
                _ => {}
            }
        }
        if name.is_some() {
            return Err(DecodeError::MissingField(VALUE));
        }
        Ok(environment)
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        for (_, value) in self.variables.drain(..) {
            wipe(&mut value.into_encoded_bytes());
        }
    }
}

/// Names only: values may be secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.variables.iter().map(|(name, _)| name)).finish()
    }
}
