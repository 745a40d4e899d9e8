//! The file that a datastore moves in: lines of JSON.
//!
//! The first line says what it is: `{"jobyard_export":1,"schema":14,"from":"sqlite"}`. Before the rows of a table stands
//! `{"table":"job","columns":[…]}`; a row is an array of its cells: numbers, `true` and `false`, texts, ids as texts,
//! bytes as hex digits, `null`. The last line has how many rows there are and the SHA-256 of all bytes before it:
//! `{"rows":812,"sha256":"…"}`. Without that line, or with another hash, nothing of the file is to be kept.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use thiserror::Error;
use uuid::Uuid;

use super::{Cell, Gathered, Kind, Part, TABLES, Table};

/// Of the form described above.
const FORMAT: u32 = 1;
/// The schema whose tables and columns these are, as PostgreSQL counts.
const SCHEMA: i32 = 14;
/// No row of ours is as long.
const LONGEST_LINE_BYTES: u64 = 64 << 20;

/// What is wrong with an export file.
#[derive(Debug, Error)]
pub enum FileError {
    /// It could not be read or written.
    #[error("could not {doing} {path}")]
    Io {
        /// What we were doing.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// It is something else.
    #[error("{0} is not a file that `jobyard export` wrote")]
    NotOurs(PathBuf),
    /// Another version wrote it.
    #[error(
        "{path} has format {format} of schema {schema}, this jobyard reads format {FORMAT} of schema {SCHEMA}: \
         export and import with the same version, then upgrade"
    )]
    OtherVersion {
        /// Which file.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// Its schema.
        schema: i32,
    },
    /// Its end is missing.
    #[error("{0} is cut off: its last line is missing; copy it again, or export again")]
    Cut(PathBuf),
    /// It is not what was written.
    #[error("{0} was changed after it was written: its checksum is another; copy it again, or export again")]
    Changed(PathBuf),
    /// A line makes no sense to us.
    #[error("line {line} of {path} makes no sense")]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// From 1.
        line: u64,
    },
    /// The datastore ended before all of it was there, or took no more.
    #[error("it was cut off on the datastore's side")]
    Interrupted,
}

#[derive(Serialize, Deserialize)]
struct Head {
    jobyard_export: u32,
    schema: i32,
    from: String,
}

#[derive(Serialize, Deserialize)]
struct TableLine {
    table: String,
    columns: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Foot {
    rows: u64,
    sha256: String,
}

fn failed<'a>(doing: &'static str, path: &'a Path) -> impl Fn(io::Error) -> FileError + 'a {
    move |source| FileError::Io { doing, path: path.to_owned(), source }
}

/// Writes what comes into a new file, which has its name only when it is whole and durable. Returns how many rows there
/// are. Blocks.
///
/// # Errors
/// [`FileError::Io`], also when there is such a file; [`FileError::Interrupted`] when no end comes. Nothing is left then.
pub fn write(path: &Path, from: &str, parts: impl Iterator<Item = Part>) -> Result<u64, FileError> {
    if path.exists() {
        return Err(failed("write", path)(io::ErrorKind::AlreadyExists.into()));
    }
    let mut part_path = path.as_os_str().to_owned();
    part_path.push(".part");
    let draft = PathBuf::from(part_path);
    let written = write_draft(&draft, from, parts).and_then(|rows| {
        fs::rename(&draft, path).map_err(failed("give its name to", path))?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent).and_then(|folder| folder.sync_all()).map_err(failed("sync", parent))?;
        Ok(rows)
    });
    if written.is_err() {
        // It may never have been made.
        let _ = fs::remove_file(&draft);
    }
    written
}

fn write_draft(draft: &Path, from: &str, parts: impl Iterator<Item = Part>) -> Result<u64, FileError> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(draft);
    let mut lines = Lines {
        out: BufWriter::new(file.map_err(failed("make", draft))?),
        hash: Sha256::new(),
        table: None,
        rows: 0,
    };
    let failed = failed("write to", draft);
    lines.say(&Head { jobyard_export: FORMAT, schema: SCHEMA, from: from.to_owned() }).map_err(&failed)?;
    for part in parts {
        match part {
            Part::Rows { table, rows } => lines.rows(table, &rows).map_err(&failed)?,
            Part::End => {
                let sha256 = hex(&lines.hash.clone().finalize());
                let rows = lines.rows;
                lines.say(&Foot { rows, sha256 }).map_err(&failed)?;
                let file = lines.out.into_inner().map_err(|error| failed(error.into_error()))?;
                file.sync_all().map_err(&failed)?;
                return Ok(rows);
            }
        }
    }
    Err(FileError::Interrupted)
}

struct Lines {
    out: BufWriter<File>,
    hash: Sha256,
    table: Option<usize>,
    rows: u64,
}

impl Lines {
    fn say(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.hash.update(&text);
        self.out.write_all(&text)
    }

    fn rows(&mut self, table: usize, rows: &[Vec<Cell>]) -> io::Result<()> {
        if self.table != Some(table) {
            self.table = Some(table);
            self.say(&table_line(&TABLES[table]))?;
        }
        for row in rows {
            self.say(&row.iter().map(to_json).collect::<Vec<_>>())?;
        }
        self.rows += rows.len() as u64;
        Ok(())
    }
}

fn table_line(table: &Table) -> TableLine {
    let columns = table.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    TableLine { table: table.name.to_owned(), columns }
}

fn to_json(cell: &Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Int(number) => Value::from(*number),
        Cell::Flag(flag) => Value::from(*flag),
        Cell::Text(text) => Value::from(text.as_str()),
        Cell::Bytes(bytes) => Value::from(hex(bytes)),
        Cell::Id(id) => Value::from(id.to_string()),
    }
}

/// Reads a file that was [`write`]n and hands out its parts, the end only when the checksum is right. Returns how many
/// rows there are. Blocks.
///
/// # Errors
/// What is wrong with it; [`FileError::Interrupted`] when `take` takes no more.
pub fn read(path: &Path, mut take: impl FnMut(Part) -> bool) -> Result<u64, FileError> {
    let file = File::open(path).map_err(failed("open", path))?;
    let mut reader = Reader { path, file: BufReader::new(file), hash: Sha256::new(), line: 0 };
    reader.head()?;
    let (mut table, mut rows, mut gathered) = (None, 0, Gathered::default());
    loop {
        let before = reader.hash.clone();
        let text = reader.next()?.ok_or_else(|| FileError::Cut(path.to_owned()))?;
        let malformed = || FileError::Malformed { path: path.to_owned(), line: reader.line };
        if let (Some(place), true) = (table, text.starts_with(b"[")) {
            rows += 1;
            let row = row(&TABLES[place], &text).ok_or_else(malformed)?;
            if let Some(rows) = gathered.push(row) {
                give(&mut take, Part::Rows { table: place, rows })?;
            }
            continue;
        }
        if let Some(place) = table {
            give(&mut take, Part::Rows { table: place, rows: gathered.take() })?;
        }
        if let Ok(foot) = serde_json::from_slice::<Foot>(&text) {
            if foot.sha256 != hex(&before.finalize()) || foot.rows != rows || reader.next()?.is_some() {
                return Err(FileError::Changed(path.to_owned()));
            }
            give(&mut take, Part::End)?;
            return Ok(rows);
        }
        let named: TableLine = serde_json::from_slice(&text).map_err(|_| malformed())?;
        let known = TABLES.iter().position(|table| table.name == named.table);
        let known = known.filter(|place| table.is_none_or(|before| before < *place)).ok_or_else(malformed)?;
        if named.columns != table_line(&TABLES[known]).columns {
            return Err(malformed());
        }
        table = Some(known);
    }
}

/// Looks whether a file is whole and as it was written, before anything is done with it. Blocks.
///
/// # Errors
/// As [`read`].
pub fn verify(path: &Path) -> Result<u64, FileError> {
    let file = File::open(path).map_err(failed("open", path))?;
    let mut reader = Reader { path, file: BufReader::new(file), hash: Sha256::new(), line: 0 };
    reader.head()?;
    let (mut last, mut before, mut rows) = (Vec::new(), reader.hash.clone(), 0);
    loop {
        let earlier = reader.hash.clone();
        let Some(text) = reader.next()? else { break };
        rows += u64::from(text.starts_with(b"["));
        (last, before) = (text, earlier);
    }
    let foot: Foot = serde_json::from_slice(&last).map_err(|_| FileError::Cut(path.to_owned()))?;
    match foot.sha256 == hex(&before.finalize()) && foot.rows == rows {
        true => Ok(foot.rows),
        false => Err(FileError::Changed(path.to_owned())),
    }
}

fn give(take: &mut impl FnMut(Part) -> bool, part: Part) -> Result<(), FileError> {
    if take(part) { Ok(()) } else { Err(FileError::Interrupted) }
}

struct Reader<'p> {
    path: &'p Path,
    file: BufReader<File>,
    hash: Sha256,
    line: u64,
}

impl Reader<'_> {
    fn head(&mut self) -> Result<(), FileError> {
        let not_ours = || FileError::NotOurs(self.path.to_owned());
        let path = self.path.to_owned();
        let first = match self.next() {
            Ok(Some(first)) => first,
            Ok(None) | Err(FileError::Cut(_) | FileError::Malformed { .. }) => {
                return Err(FileError::NotOurs(path));
            }
            Err(error) => return Err(error),
        };
        let head: Head = serde_json::from_slice(&first).map_err(|_| not_ours())?;
        if (head.jobyard_export, head.schema) != (FORMAT, SCHEMA) {
            return Err(FileError::OtherVersion { path, format: head.jobyard_export, schema: head.schema });
        }
        Ok(())
    }

    /// The next line without its end; a last line without one is cut off.
    fn next(&mut self) -> Result<Option<Vec<u8>>, FileError> {
        let mut text = Vec::new();
        let mut bounded = (&mut self.file).take(LONGEST_LINE_BYTES);
        bounded.read_until(b'\n', &mut text).map_err(failed("read", self.path))?;
        if text.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        self.hash.update(&text);
        match text.pop() {
            Some(b'\n') => Ok(Some(text)),
            _ if text.len() as u64 + 1 == LONGEST_LINE_BYTES => {
                Err(FileError::Malformed { path: self.path.to_owned(), line: self.line })
            }
            _ => Err(FileError::Cut(self.path.to_owned())),
        }
    }
}

fn row(table: &Table, text: &[u8]) -> Option<Vec<Cell>> {
    let values: Vec<Value> = serde_json::from_slice(text).ok()?;
    if values.len() != table.columns.len() {
        return None;
    }
    table.columns.iter().zip(values).map(|((_, kind), value)| of_json(*kind, value)).collect()
}

fn of_json(kind: Kind, value: Value) -> Option<Cell> {
    match (kind, value) {
        (_, Value::Null) => Some(Cell::Null),
        (Kind::Int, Value::Number(number)) => number.as_i64().map(Cell::Int),
        (Kind::Flag, Value::Bool(flag)) => Some(Cell::Flag(flag)),
        (Kind::Text | Kind::Owner | Kind::Pool, Value::String(text)) => Some(Cell::Text(text)),
        (Kind::Bytes | Kind::Shape, Value::String(digits)) => of_hex(&digits).map(Cell::Bytes),
        (Kind::Id, Value::String(text)) => text.parse::<Uuid>().ok().map(Cell::Id),
        _ => None,
    }
}

/// Hex digits of bytes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits =
        bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    digits.map(char::from).collect()
}

/// Bytes of hex digits.
pub(crate) fn of_hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    if rest.is_empty() { bytes.collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> Vec<Part> {
        let owner = |name: &str| vec![Cell::Text(name.to_owned())];
        let pool = vec![Cell::Text("default".to_owned()), Cell::Int(7)];
        vec![
            Part::Rows { table: 0, rows: vec![owner("a\nb\"\\"), owner("ünï")] },
            Part::Rows { table: 0, rows: vec![owner("c")] },
            Part::Rows { table: 1, rows: vec![pool] },
            Part::End,
        ]
    }

    fn written() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("export");
        assert_eq!(write(&path, "sqlite", parts().into_iter()).unwrap(), 4);
        (directory, path)
    }

    fn names(path: &Path) -> Result<Vec<Cell>, FileError> {
        let mut names = Vec::new();
        let mut ended = false;
        read(path, |part| {
            match part {
                Part::Rows { rows, .. } => names.extend(rows.into_iter().map(|mut row| row.swap_remove(0))),
                Part::End => ended = true,
            }
            true
        })?;
        assert!(ended);
        Ok(names)
    }

    #[test]
    fn what_was_written_is_read() {
        let (_directory, path) = written();
        assert_eq!(verify(&path).unwrap(), 4);
        let wanted = ["a\nb\"\\", "ünï", "c", "default"].map(|name| Cell::Text(name.to_owned()));
        assert_eq!(names(&path).unwrap(), wanted);
    }

    #[test]
    fn a_cut_or_changed_file_is_refused_wherever_it_is() {
        let (directory, path) = written();
        let whole = fs::read(&path).unwrap();
        let other = directory.path().join("other");
        let refused = |bytes: &[u8]| {
            fs::write(&other, bytes).unwrap();
            assert!(verify(&other).is_err(), "{}", String::from_utf8_lossy(bytes));
            assert!(names(&other).is_err(), "{}", String::from_utf8_lossy(bytes));
        };
        for place in 0..whole.len() {
            refused(&whole[..place]);
            let mut changed = whole.clone();
            changed[place] ^= 1;
            refused(&changed);
        }
        refused(&[&whole[..], b"more\n"].concat());
        let message = |bytes: &[u8]| {
            fs::write(&other, bytes).unwrap();
            verify(&other).unwrap_err().to_string()
        };
        assert!(message(&whole[..whole.len() - 60]).contains("cut off"));
        assert!(message(b"{\"jobs\":[]}\n").contains("not a file that `jobyard export` wrote"));
        assert!(message(b"").contains("not a file that `jobyard export` wrote"));
        let newer = b"{\"jobyard_export\":1,\"schema\":99,\"from\":\"sqlite\"}\n";
        assert!(message(newer).contains("schema 99"), "{}", message(newer));
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_whole_and_never_replaces_another() {
        let (directory, path) = written();
        let before = fs::read(&path).unwrap();
        assert!(write(&path, "sqlite", parts().into_iter()).is_err());
        assert_eq!(fs::read(&path).unwrap(), before);
        let other = directory.path().join("other");
        let cut = write(&other, "sqlite", parts().into_iter().take(3));
        assert!(matches!(cut, Err(FileError::Interrupted)), "{cut:?}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left of it");
    }

    /// Whoever changes the schema looks at what moves, and raises the number that files carry.
    #[test]
    fn the_number_in_the_file_is_the_schema_s() {
        #[cfg(feature = "postgres")]
        assert_eq!(crate::postgres::own_version(), SCHEMA);
    }
}
