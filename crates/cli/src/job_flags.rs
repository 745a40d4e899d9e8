//! From flags and a job file to what is submitted.
//!
//! Owns the flags for every field of a job. Checks only what can't be written down (a text that is no duration); what
//! a job may be is the server's to say, and it names every fault.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use jobyard_client::json::units::{parse_bytes, parse_cores_milli, parse_duration_ms, parse_time};
use jobyard_client::json::{Bytes, Cores, JobOrigin, JobSubmit, ResourcesSubmit, Seconds, SecretEnv, Time};
use jobyard_model::{IoClass, JobKind};
use serde_json::{Map, Value};

use crate::error::CommandError;
use crate::job_document::Document;

/// A job file larger than this is a mistake; the server takes less.
const LARGEST_FILE_BYTES: u64 = 8 << 20;

/// The flags that describe a job.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct JobFlags {
    /// Take the job from a YAML or JSON file, `-` for standard input; flags go before what it says
    #[arg(short, long, value_name = "FILE", help_heading = "Job")]
    pub(crate) file: Option<PathBuf>,
    /// For people; the program's name unless given
    #[arg(long, short, help_heading = "Job")]
    pub(crate) name: Option<String>,
    /// task, which ends by itself, or service, which is meant to stay up and is started again when it leaves
    #[arg(long, value_parser = kind, help_heading = "Job")]
    pub(crate) kind: Option<JobKind>,
    /// The team that is accounted for; the token's first owner unless given
    #[arg(long, help_heading = "Job")]
    pub(crate) owner: Option<String>,
    /// Environment of the task process; NAME alone takes the value it has here; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE", help_heading = "Job")]
    pub(crate) env: Vec<Variable>,
    /// A secret for the task process, with the value that NAME has here: on a command line everybody could see it; may be
    /// repeated
    #[arg(long, value_name = "NAME", value_parser = secret_here, help_heading = "Job")]
    pub(crate) secret_env: Vec<SecretVariable>,
    /// A secret for the task process, whose value is what is in the file, without one line end at its end; may be repeated
    #[arg(long, value_name = "NAME=PATH", value_parser = secret_in_file, help_heading = "Job")]
    pub(crate) secret_env_file: Vec<SecretVariable>,
    /// For people and filters; may be repeated
    #[arg(long, short, value_name = "KEY=VALUE", help_heading = "Job")]
    pub(crate) label: Vec<Pair>,
    /// The executable: sha256:<hex> in the artifact store, or s3://… or file:///… where the server allows it
    #[arg(long, value_name = "URL", help_heading = "Job")]
    pub(crate) binary: Option<String>,
    /// Upload the program although it is named by an absolute path
    #[arg(long, conflicts_with = "binary", help_heading = "Job")]
    pub(crate) upload: bool,
    /// What the job reads: a folder or file of this machine, which is uploaded, or sha256:<hex>, or s3://… where the
    /// server allows it; the job finds it in the folder JOBYARD_INPUT, a single uploaded file there as `artifact`
    #[arg(long, value_name = "PATH", help_heading = "Job")]
    pub(crate) input: Option<String>,
    /// Where in S3 its outputs go, s3://…, where the server allows it; else they go to the server
    #[arg(long, value_name = "URL", help_heading = "Job")]
    pub(crate) output_to: Option<String>,
    /// The same key with the same job gives the same job again
    #[arg(long, value_name = "KEY", help_heading = "Job")]
    pub(crate) idempotency_key: Option<String>,
    /// What made the job, when it is no person
    #[arg(long, value_name = "KIND:ID:KEY", value_parser = origin, help_heading = "Job")]
    pub(crate) origin: Option<JobOrigin>,

    /// How many retries its own failures may cost
    #[arg(long, value_name = "NUMBER", help_heading = "When it fails")]
    pub(crate) max_retries: Option<u32>,
    /// Delay before the first retry, or restart of a service; doubles with each
    #[arg(long, value_name = "DURATION", value_parser = seconds, help_heading = "When it fails")]
    pub(crate) backoff: Option<Seconds>,
    /// Exit codes after which another attempt is pointless, such as 2,64
    #[arg(long, value_name = "CODES", value_delimiter = ',', help_heading = "When it fails")]
    pub(crate) no_retry_exit_codes: Vec<i32>,

    /// Not before this instant, such as 2026-05-01T09:30:00Z
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Time")]
    pub(crate) run_at: Option<Time>,
    /// Expire when it was not running after this long
    #[arg(long, value_name = "DURATION", value_parser = seconds, help_heading = "Time")]
    pub(crate) start_within: Option<Seconds>,
    /// The most time an attempt gets, such as 1h30m
    #[arg(long, value_name = "DURATION", value_parser = seconds, help_heading = "Time")]
    pub(crate) timeout: Option<Seconds>,
    /// Between TERM and KILL
    #[arg(long, value_name = "DURATION", value_parser = seconds, help_heading = "Time")]
    pub(crate) stop_grace: Option<Seconds>,

    /// Cores, such as 0.5: a weight between neighbours
    #[arg(long, value_name = "CORES", value_parser = cores, help_heading = "Place")]
    pub(crate) cpu: Option<Cores>,
    /// A hard cap in cores
    #[arg(long, value_name = "CORES", value_parser = cores, help_heading = "Place")]
    pub(crate) cpu_limit: Option<Cores>,
    /// Memory, such as 256MiB
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "Place")]
    pub(crate) memory: Option<Bytes>,
    /// Where its time goes
    #[arg(long, value_name = "CLASS", value_parser = io_class, help_heading = "Place")]
    pub(crate) io_class: Option<IoClass>,
    /// 0 to 100, more is more urgent
    #[arg(long, value_name = "NUMBER", help_heading = "Place")]
    pub(crate) priority: Option<u8>,
    /// More urgent jobs may take its place
    #[arg(long, help_heading = "Place")]
    pub(crate) preemptible: bool,
    /// At most one live attempt, ever
    #[arg(long, help_heading = "Place")]
    pub(crate) exclusive: bool,
    /// The pool to wait in
    #[arg(long, help_heading = "Place")]
    pub(crate) pool: Option<String>,
    /// What its node must be labelled with; may be repeated
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Place")]
    pub(crate) node_label: Vec<Pair>,

    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// `KEY=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) key: String,
    pub(crate) value: String,
}

impl FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => {
                Ok(Self { key: key.to_owned(), value: value.to_owned() })
            }
            _ => Err("expected KEY=VALUE".to_owned()),
        }
    }
}

/// `NAME=VALUE`, or `NAME` for a variable that is set here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable(Pair);

impl FromStr for Variable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('=') {
            return text.parse().map(Self);
        }
        let value = std::env::var(text).map_err(|_| format!("{text} is not set here; write {text}=VALUE"))?;
        Ok(Self(Pair { key: text.to_owned(), value }))
    }
}

/// A name and a value that is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretVariable(Pair);

impl fmt::Debug for SecretVariable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.key)
    }
}

/// What is to be submitted, and the file that has to go up first.
#[derive(Debug, PartialEq)]
pub(crate) struct Draft {
    /// The job as a document.
    pub(crate) document: Document,
    /// The program of this machine; its hash becomes the document's `binary_url`.
    pub(crate) upload: Option<PathBuf>,
    /// The folder or file of this machine whose hash becomes the document's `input_path`.
    pub(crate) input: Option<PathBuf>,
}

impl JobFlags {
    /// The job that the flags alone describe.
    pub(crate) fn to_job(&self) -> JobSubmit {
        let resources = ResourcesSubmit { cpu: self.cpu, memory: self.memory, cpu_limit: self.cpu_limit };
        JobSubmit {
            owner_id: self.owner.clone(),
            name: self.name.clone(),
            kind: self.kind,
            binary_url: self.binary.clone(),
            command: self.command.clone(),
            env: map(self.env.iter().map(|variable| &variable.0)),
            run_at: self.run_at,
            start_within: self.start_within,
            max_retries: self.max_retries,
            backoff: self.backoff,
            no_retry_exit_codes: self.no_retry_exit_codes.clone(),
            timeout: self.timeout,
            stop_grace: self.stop_grace,
            resources: (resources != ResourcesSubmit::default()).then_some(resources),
            io_class: self.io_class,
            runtime: None,
            priority: self.priority,
            preemptible: self.preemptible.then_some(true),
            exclusive: self.exclusive.then_some(true),
            pool: self.pool.clone(),
            node_labels: map(self.node_label.iter()),
            labels: map(self.label.iter()),
            origin: self.origin.clone(),
            idempotency_key: self.idempotency_key.clone(),
            input_path: self.input.clone().filter(|input| is_url(input)),
            output_path: self.output_to.clone(),
            secret_env: SecretEnv(map(self
                .secret_env
                .iter()
                .chain(&self.secret_env_file)
                .map(|variable| &variable.0))),
        }
    }

    /// The job of the file with the flags laid over it, and what has to go up.
    pub(crate) fn draft(&self) -> Result<Draft, CommandError> {
        let mut document = match &self.file {
            Some(path) => read_file(path)?,
            None => Map::new(),
        };
        lay_over(&mut document, to_object(&self.to_job())?);
        let upload = self.take_upload(&mut document);
        if document.get("command").is_none() && document.get("binary_url").is_none() && upload.is_none() {
            let message = "what is to be run? For example: jobyard run -- echo hello (or -f job.yaml)";
            return Err(CommandError::Usage(message.to_owned()));
        }
        let input = self.input.as_ref().filter(|input| !is_url(input)).map(PathBuf::from);
        Ok(Draft { document: Document::new(document), upload, input })
    }

    /// A relative path with a slash can't name anything on the node, whose working directory is private: it is a file
    /// of this machine. Takes it out of the command, whose rest are then its arguments.
    fn take_upload(&self, document: &mut Map<String, Value>) -> Option<PathBuf> {
        if document.contains_key("binary_url") {
            return None;
        }
        let command = document.get_mut("command")?.as_array_mut()?;
        let program = command.first()?.as_str()?;
        let is_here = program.contains('/') && !program.starts_with('/');
        if !is_here && !self.upload {
            return None;
        }
        let program = PathBuf::from(program);
        command.remove(0);
        if command.is_empty() {
            document.remove("command");
        }
        if let (false, Some(name)) = (document.contains_key("name"), program.file_name()) {
            document.insert("name".to_owned(), Value::from(name.to_string_lossy()));
        }
        Some(program)
    }
}

/// It names something that the server can reach.
fn is_url(input: &str) -> bool {
    ["sha256:", "s3://"].iter().any(|scheme| input.starts_with(scheme))
}

fn map<'a>(pairs: impl Iterator<Item = &'a Pair>) -> BTreeMap<String, String> {
    pairs.map(|pair| (pair.key.clone(), pair.value.clone())).collect()
}

fn to_object(job: &JobSubmit) -> Result<Map<String, Value>, CommandError> {
    match serde_json::to_value(job) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Ok(Map::new()),
        Err(error) => Err(CommandError::Usage(error.to_string())),
    }
}

/// Fields of `over` replace those of `below`; maps (`env`, `labels`, `resources`) are joined entry by entry.
fn lay_over(below: &mut Map<String, Value>, over: Map<String, Value>) {
    for (name, value) in over {
        match (below.get_mut(&name), value) {
            (Some(Value::Object(below)), Value::Object(over)) => lay_over(below, over),
            (_, value) => {
                below.insert(name, value);
            }
        }
    }
}

fn read_file(path: &Path) -> Result<Map<String, Value>, CommandError> {
    let unreadable = |source| CommandError::File { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(path).map_err(unreadable)?)
    };
    source.take(LARGEST_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let refuse = |why: &str| CommandError::Usage(format!("{} is not a job: {why}", path.display()));
    if bytes.len() as u64 > LARGEST_FILE_BYTES {
        return Err(refuse("it is larger than 8 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| refuse("it is not UTF-8 text"))?;
    // JSON is YAML too, and this reader refuses doubled fields, with their line. `no` is a word, not a truth value.
    // An error shows no lines of the file, which may have secrets.
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    match serde_saphyr::from_str_with_options(&text, options).map_err(|error| refuse(&error.to_string()))? {
        Value::Object(document) => Ok(document),
        _ => Err(refuse("expected fields such as `command: [echo, hello]`")),
    }
}

fn seconds(text: &str) -> Result<Seconds, String> {
    parse_duration_ms(text).map(|ms| Seconds { ms })
}

fn time(text: &str) -> Result<Time, String> {
    parse_time(text).map(Time)
}

fn cores(text: &str) -> Result<Cores, String> {
    parse_cores_milli(text).map(|milli| Cores { milli })
}

fn bytes(text: &str) -> Result<Bytes, String> {
    parse_bytes(text).map(Bytes)
}

fn kind(text: &str) -> Result<JobKind, String> {
    let kinds = [JobKind::Task, JobKind::Service];
    let known = kinds.into_iter().find(|kind| kind.as_str() == text);
    known.ok_or_else(|| "the kinds are task and service".to_owned())
}

fn io_class(text: &str) -> Result<IoClass, String> {
    match text {
        "cpu" => Ok(IoClass::Cpu),
        "io" => Ok(IoClass::Io),
        "mixed" => Ok(IoClass::Mixed),
        _ => Err("the classes are cpu, io and mixed".to_owned()),
    }
}

fn secret_here(name: &str) -> Result<SecretVariable, String> {
    if name.contains('=') {
        let why = "give the name alone: a value on a command line can be seen by everybody on this machine";
        return Err(why.to_owned());
    }
    let value = std::env::var(name).map_err(|_| format!("{name} is not set here, or is no UTF-8 text"))?;
    Ok(SecretVariable(Pair { key: name.to_owned(), value }))
}

fn secret_in_file(text: &str) -> Result<SecretVariable, String> {
    let Pair { key, value: path } = text.parse().map_err(|_| "expected NAME=PATH".to_owned())?;
    let mut value =
        std::fs::read_to_string(&path).map_err(|error| format!("{path} could not be read: {error}"))?;
    if value.ends_with('\n') {
        value.pop();
    }
    Ok(SecretVariable(Pair { key, value }))
}

fn origin(text: &str) -> Result<JobOrigin, String> {
    let mut parts = text.splitn(3, ':').map(str::to_owned);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(kind), Some(id), Some(key)) if !kind.is_empty() && !id.is_empty() => {
            Ok(JobOrigin { kind, id, key })
        }
        _ => Err("expected KIND:ID:KEY".to_owned()),
    }
}

#[cfg(test)]
mod tests;
