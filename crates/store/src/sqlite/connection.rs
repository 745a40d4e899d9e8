//! Opening the database file: our lock beside it, and the settings of each connection.
//!
//! Invariant: whoever holds a [`Lock`] is the only process with the database open, so there is one writer.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::fault::Fault;
use crate::StoreError;

/// SQLite before 3.51.3 can corrupt a database in WAL mode that more than one connection has open.
const OLDEST_SQLITE: i32 = 3_051_003;
const OPENING: &str = "opening the database";
/// More than all statements that we have, so that none is prepared twice.
const CACHED_STATEMENTS: usize = 256;

/// The right to the database of this path, until dropped. Ends with the process, however that ends.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// Takes the lock file beside the database.
///
/// # Errors
/// [`StoreError::Locked`] when another process (or another store of this one) has it.
pub(super) fn lock(path: &Path) -> Result<Lock, StoreError> {
    let unavailable = |error| StoreError::Unavailable { doing: OPENING, source: Box::new(error) };
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    let file = private(&PathBuf::from(beside)).map_err(unavailable)?;
    match try_lock(&file) {
        Ok(()) => Ok(Lock { _file: file }),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked { path: path.display().to_string() }),
        Err(TryLockError::Error(error)) => Err(unavailable(error)),
    }
}

/// A process that is killed while it starts another leaves a child that holds the lock until it runs its program: a
/// lock that is taken is tried for a second.
fn try_lock(file: &File) -> Result<(), TryLockError> {
    for _ in 0..50 {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(std::time::Duration::from_millis(20)),
            done => return done,
        }
    }
    file.try_lock()
}

/// The connection that writes. The database is made, readable by its owner only, when there is none.
///
/// # Errors
/// [`StoreError::Unavailable`] when the file can't be opened or isn't ours; [`StoreError::Statement`] for an
/// SQLite that is too old.
pub(super) fn open_writer(path: &Path, max_pages: Option<i64>) -> Result<Connection, StoreError> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        let found = format!("SQLite {} is too old: 3.51.3 is needed", rusqlite::version());
        return Err(StoreError::Statement { doing: OPENING, source: found.into() });
    }
    private(path).map_err(|error| StoreError::Unavailable { doing: OPENING, source: Box::new(error) })?;
    prepare_writer(path, max_pages).map_err(|error| Fault::from(error).during(OPENING))
}

fn prepare_writer(path: &Path, max_pages: Option<i64>) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | FLAGS)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))?;
    // An acknowledged call survives a power cut; group commit pays for it.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -32_768)?;
    connection.pragma_update_and_check(None, "journal_size_limit", 64 << 20, |row| row.get::<_, i64>(0))?;
    if let Some(max_pages) = max_pages {
        connection.pragma_update_and_check(None, "max_page_count", max_pages, |row| row.get::<_, i64>(0))?;
    }
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    Ok(connection)
}

/// A connection that can't write.
///
/// # Errors
/// As [`open_writer`].
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let open = || {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | FLAGS)?;
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        connection.pragma_update(None, "query_only", true)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.pragma_update(None, "cache_size", -8_192)?;
        connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
        Ok(connection)
    };
    open().map_err(|error: rusqlite::Error| Fault::from(error).during(OPENING))
}

/// A connection that could not write if it wanted to, for those who hold no [`Lock`].
///
/// # Errors
/// [`StoreError::Unavailable`] when the file can't be opened.
pub(super) fn open_read_only(path: &Path) -> Result<Connection, StoreError> {
    let open = || {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | FLAGS)?;
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        Ok(connection)
    };
    open().map_err(|error: rusqlite::Error| Fault::from(error).during(OPENING))
}

/// Each connection belongs to one thread.
const FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_NO_MUTEX;

fn private(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path)
}
