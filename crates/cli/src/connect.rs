//! Which server a command talks to, and as whom.
//!
//! Owns the order: `JOBYARD_URL`/`JOBYARD_TOKEN`, the saved context, the default data directory of `jobyard up`.

use std::time::Duration;

use jobyard_client::{Client, Connection, ConnectionError, Error, RetryPolicy, URL_VARIABLE};

use crate::data_dir::{context_file, default_data_dir};

/// The client for a user's command.
pub(crate) fn client() -> Result<Client, Error> {
    let builder = match find()? {
        Some(connection) => Client::builder().connection(connection),
        None => Client::builder(),
    };
    builder.retry_policy(patience()).build()
}

/// Somebody sits there and waits: a server that isn't there is told soon. One that is busy is worth waiting for, and
/// so is one that goes away while a command waits for a job.
fn patience() -> RetryPolicy {
    RetryPolicy {
        unreachable_for: Duration::from_secs(2),
        busy_for: Duration::from_secs(30),
        ..RetryPolicy::default()
    }
}

/// A variable that is set goes before what is saved. A server that is named alone still gets the token that was saved
/// for it, and no other; a token that is set alone goes to the saved server.
fn find() -> Result<Option<Connection>, ConnectionError> {
    let Some(named) = Connection::from_env()? else { return saved() };
    let url_is_set = std::env::var_os(URL_VARIABLE).is_some_and(|url| !url.is_empty());
    let saved = match (url_is_set, named.token()) {
        (true, Some(_)) => return Ok(Some(named)),
        _ => saved()?,
    };
    Ok(Some(match (saved, named.token().cloned()) {
        (Some(saved), Some(token)) => saved.with_token(token),
        (Some(saved), None) if saved.url() == named.url() => saved,
        _ => named,
    }))
}

fn saved() -> Result<Option<Connection>, ConnectionError> {
    if let Some(file) = context_file()
        && let Some(connection) = Connection::from_context(&file)?
    {
        return Ok(Some(connection));
    }
    match default_data_dir() {
        Some(directory) => Connection::from_data_dir(&directory),
        None => Ok(None),
    }
}
