//! What texts may hold.

use std::collections::BTreeMap;

use super::limits::{
    MAX_ENVIRONMENT_BYTES, MAX_LABEL_KEY_CHARS, MAX_LABEL_VALUE_CHARS, MAX_NAME_CHARS, MAX_TEXT_BYTES,
    RESERVED_ENV, TEXT_OVERHEAD_BYTES,
};
use crate::json::JobSubmit;
use crate::strict::{FaultCode, Faults, Pointer};

/// What is wrong with a name, an owner, a pool or a key: 1 to [`MAX_NAME_CHARS`] characters, none of them a control
/// character. They are shown, never used as file names, so anything else goes.
///
/// # Errors
/// Which rule is broken, in words.
pub fn check_name(text: &str) -> Result<(), (FaultCode, String)> {
    within(text, MAX_NAME_CHARS)?;
    if text.is_empty() {
        return Err((FaultCode::Invalid, "must not be empty; leave it out instead".to_owned()));
    }
    Ok(())
}

/// What is wrong with an idempotency key; as [`check_name`].
///
/// # Errors
/// Which rule is broken, in words.
pub fn check_key(text: &str) -> Result<(), (FaultCode, String)> {
    check_name(text)
}

fn within(text: &str, most_chars: usize) -> Result<(), (FaultCode, String)> {
    if text.len() > most_chars && text.chars().count() > most_chars {
        let detail = format!("has {} characters, the most is {most_chars}", text.chars().count());
        return Err((FaultCode::TooLong, detail));
    }
    no_control(text)
}

/// Newlines and NUL break lists, logs and databases; the other control characters break terminals.
fn no_control(text: &str) -> Result<(), (FaultCode, String)> {
    match text.chars().find(|character| character.is_control()) {
        Some(found) => {
            let detail = format!("must not hold control characters, found U+{:04X}", u32::from(found));
            Err((FaultCode::ForbiddenCharacter, detail))
        }
        None => Ok(()),
    }
}

pub(super) fn name(text: &str, at: &Pointer<'_>, faults: &mut Faults) {
    if let Err((code, detail)) = check_name(text) {
        faults.add(at, code, detail);
    }
}

/// Keys hold no `:`, since filters write `label=key:value`.
pub(super) fn labels(labels: &BTreeMap<String, String>, at: &Pointer<'_>, faults: &mut Faults) {
    for (key, value) in labels {
        let here = at.field(key);
        if let Err((code, detail)) = within(key, MAX_LABEL_KEY_CHARS) {
            faults.add(&here, code, format!("the key {detail}"));
        }
        if key.is_empty() || key.contains(':') {
            faults.add(&here, FaultCode::Invalid, "a key must not be empty and must not hold `:`");
        }
        if let Err((code, detail)) = within(value, MAX_LABEL_VALUE_CHARS) {
            faults.add(&here, code, format!("the value {detail}"));
        }
    }
}

/// Arguments and environment: what a kernel can hand to a process, and no more than half of what it takes in all.
pub(super) fn process_texts(job: &JobSubmit, at: &Pointer<'_>, faults: &mut Faults) {
    let command_at = at.field("command");
    let mut total_bytes = 0;
    for (index, argument) in job.command.iter().enumerate() {
        total_bytes += argument.len() + TEXT_OVERHEAD_BYTES;
        process_text(argument, argument.len(), &command_at.item(index), faults);
    }
    let (env_at, secrets_at) = (at.field("env"), at.field("secret_env"));
    total_bytes += variables(&job.env, &env_at, faults);
    total_bytes += variables(&job.secret_env.0, &secrets_at, faults);
    for name in job.secret_env.0.keys() {
        let here = secrets_at.field(name);
        if job.env.contains_key(name) {
            faults.add(&here, FaultCode::NotAllowed, "is in `env` too: a name has one value");
        }
        if name == "PATH" {
            faults.add(&here, FaultCode::NotAllowed, "is what programs are found by: put it into `env`");
        }
    }
    if total_bytes > MAX_ENVIRONMENT_BYTES {
        let detail = format!(
            "command, env and secret_env have {total_bytes} bytes together, the most is {MAX_ENVIRONMENT_BYTES}; put large input into a file"
        );
        faults.add(&env_at, FaultCode::TooLong, detail);
    }
}

/// How many bytes they are for a kernel.
fn variables(variables: &BTreeMap<String, String>, at: &Pointer<'_>, faults: &mut Faults) -> usize {
    let mut total_bytes = 0;
    for (key, value) in variables {
        let here = at.field(key);
        total_bytes += key.len() + 1 + value.len() + TEXT_OVERHEAD_BYTES;
        env_key(key, &here, faults);
        process_text(value, key.len() + 1 + value.len(), &here, faults);
    }
    total_bytes
}

fn process_text(text: &str, entry_bytes: usize, at: &Pointer<'_>, faults: &mut Faults) {
    if text.contains('\0') {
        faults.add(at, FaultCode::ForbiddenCharacter, "must not hold U+0000: a process can't be given it");
    }
    if entry_bytes > MAX_TEXT_BYTES {
        let detail = format!(
            "has {entry_bytes} bytes (an env entry with its name and `=`), the most is {MAX_TEXT_BYTES}; put large input into a file"
        );
        faults.add(at, FaultCode::TooLong, detail);
    }
}

fn env_key(key: &str, at: &Pointer<'_>, faults: &mut Faults) {
    if key.is_empty() {
        faults.add(at, FaultCode::Invalid, "a name must not be empty");
    }
    if key.contains('=') {
        faults.add(at, FaultCode::ForbiddenCharacter, "a name must not hold `=`");
    }
    if let Err((code, detail)) = no_control(key) {
        faults.add(at, code, format!("the name {detail}"));
    }
    if key.starts_with(RESERVED_ENV) {
        let detail =
            "names that begin with `JOBYARD_` are Jobyard's own in every task process; choose another";
        faults.add(at, FaultCode::NotAllowed, detail);
    }
}
