//! A job's fields, one after the other.

use std::collections::BTreeMap;

use jobyard_model::{InputPath, IoClass, JobKind, Runtime, S3Url};

use super::limits::{
    BACKOFF, CPU, EXIT_CODE, MAX_ARGUMENTS, MAX_ENV_ENTRIES, MAX_LABELS, MAX_RETRIES, MEMORY, PRIORITY,
    START_WITHIN, STOP_GRACE, TIMEOUT,
};
use super::{FileUrls, SecretEnvs, SubmitSettings, rules};
use crate::json::units::parse_time;
use crate::json::{Bytes, Cores, JobOrigin, JobSubmit, ResourcesSubmit, Seconds, SecretEnv, Time};
use crate::strict::{self, Amount, FaultCode, Faults, Object, Pointer, Range, Tree};

/// `stop_grace` when a job says nothing.
pub(super) const STOP_GRACE_DEFAULT_MS: u64 = 10_000;

/// Reads one job; `None` or faults when something is wrong.
pub(super) fn read_job(
    tree: &Tree<'_>,
    settings: &SubmitSettings,
    at: &Pointer<'_>,
    faults: &mut Faults,
) -> Option<JobSubmit> {
    let object = strict::object(tree, "an object that describes a job", at, faults)?;
    let mut fields = Fields { object, faults };
    let mut job = JobSubmit {
        owner_id: fields.name("owner_id"),
        name: fields.name("name"),
        kind: fields.kind(),
        binary_url: fields.binary_url(settings.file_urls),
        command: fields.command(),
        env: fields.map("env", MAX_ENV_ENTRIES),
        run_at: fields.time("run_at"),
        start_within: fields.seconds("start_within", &START_WITHIN),
        max_retries: fields.whole("max_retries", &MAX_RETRIES),
        backoff: fields.seconds("backoff", &BACKOFF),
        no_retry_exit_codes: fields.exit_codes(),
        timeout: fields.seconds("timeout", &TIMEOUT),
        stop_grace: fields.seconds("stop_grace", &STOP_GRACE),
        resources: fields.resources(),
        io_class: fields.io_class(),
        runtime: fields.runtime(),
        priority: fields.whole("priority", &PRIORITY),
        preemptible: fields.flag("preemptible"),
        exclusive: fields.flag("exclusive"),
        pool: fields.name("pool"),
        node_labels: fields.labels("node_labels"),
        labels: fields.labels("labels"),
        origin: fields.origin(),
        idempotency_key: fields.name("idempotency_key"),
        input_path: fields.input_path(),
        secret_env: fields.secret_env(settings.secret_envs),
        output_path: fields.output_path(),
    };
    fields.object.finish(fields.faults);
    job.no_retry_exit_codes.sort_unstable();
    job.no_retry_exit_codes.dedup();
    check_together(&job, tree, settings, at, faults);
    Some(job)
}

/// What goes together.
fn check_together(
    job: &JobSubmit,
    tree: &Tree<'_>,
    settings: &SubmitSettings,
    at: &Pointer<'_>,
    faults: &mut Faults,
) {
    rules::process_texts(job, at, faults);
    let given = |name: &str| match tree {
        Tree::Object(fields) => fields.iter().any(|(field, value)| field == name && *value != Tree::Null),
        _ => false,
    };
    if !given("binary_url") {
        let program = job.command.first();
        if program.is_some_and(String::is_empty) {
            faults.add(&at.field("command").item(0), FaultCode::Invalid, "the program's name is empty");
        } else if program.is_none() && !has_other_kind(tree) {
            let detail = "name a program in `command`, such as [\"echo\", \"hello\"], or give a `binary_url`";
            faults.add(&at.field("command"), FaultCode::Missing, detail);
        }
    }
    let grace_ms = job.stop_grace.map_or(STOP_GRACE_DEFAULT_MS, |grace| grace.ms);
    if job.exclusive == Some(true) && grace_ms > settings.lease_ms / 3 {
        let detail = format!(
            "an exclusive job must be stopped before its lease ends: at most {} s, a third of the lease",
            settings.lease_ms / 3_000
        );
        faults.add(&at.field("stop_grace"), FaultCode::NotAllowed, detail);
    }
    if job.kind == Some(JobKind::Service) && job.timeout.is_some() {
        let detail =
            "a service has no run-time limit: it is meant to stay up; leave `timeout` out, or make it a task";
        faults.add(&at.field("timeout"), FaultCode::NotAllowed, detail);
    }
}

/// Whether `command` is there and is no list of texts: that was said already, don't call it missing too.
fn has_other_kind(tree: &Tree<'_>) -> bool {
    let Tree::Object(fields) = tree else { return false };
    let command = fields.iter().find(|(name, _)| name == "command");
    command.is_some_and(|(_, value)| !matches!(value, Tree::Null) && *value != Tree::List(Vec::new()))
}

struct Fields<'t, 'p, 'f> {
    object: Object<'t, 'p>,
    faults: &'f mut Faults,
}

impl<'t, 'p> Fields<'t, 'p, '_> {
    fn take(&mut self, name: &'static str) -> Option<(&'t Tree<'t>, Pointer<'p>)> {
        let value = self.object.take(name, self.faults)?;
        Some((value, self.object.at().field(name)))
    }

    fn text(&mut self, name: &'static str) -> Option<(&'t str, Pointer<'p>)> {
        let (tree, at) = self.take(name)?;
        Some((strict::text(tree, &at, self.faults)?, at))
    }

    fn name(&mut self, name: &'static str) -> Option<String> {
        let (text, at) = self.text(name)?;
        rules::name(text, &at, self.faults);
        Some(text.to_owned())
    }

    fn flag(&mut self, name: &'static str) -> Option<bool> {
        let (tree, at) = self.take(name)?;
        strict::flag(tree, &at, self.faults)
    }

    fn whole<T: TryFrom<i64>>(&mut self, name: &'static str, range: &Range) -> Option<T> {
        let (tree, at) = self.take(name)?;
        strict::whole(tree, range, &at, self.faults).and_then(|number| number.try_into().ok())
    }

    fn seconds(&mut self, name: &'static str, amount: &Amount) -> Option<Seconds> {
        let (tree, at) = self.take(name)?;
        amount.read(tree, &at, self.faults).map(|ms| Seconds { ms })
    }

    fn map(&mut self, name: &'static str, most: usize) -> BTreeMap<String, String> {
        let Some((tree, at)) = self.take(name) else { return BTreeMap::new() };
        strict::text_map(tree, most, &at, self.faults)
    }

    fn labels(&mut self, name: &'static str) -> BTreeMap<String, String> {
        let labels = self.map(name, MAX_LABELS);
        rules::labels(&labels, &self.object.at().field(name), self.faults);
        labels
    }

    fn time(&mut self, name: &'static str) -> Option<Time> {
        let (text, at) = self.text(name)?;
        match parse_time(text) {
            Ok(time) => Some(Time(time)),
            Err(detail) => {
                self.faults.add(&at, FaultCode::Invalid, detail);
                None
            }
        }
    }

    fn kind(&mut self) -> Option<JobKind> {
        let (text, at) = self.text("kind")?;
        match text {
            "task" => Some(JobKind::Task),
            "service" => Some(JobKind::Service),
            _ => {
                let detail =
                    "there is no such kind; a job is a `task`, which ends, or a `service`, which stays up";
                self.faults.add(&at, FaultCode::Invalid, detail);
                None
            }
        }
    }

    fn io_class(&mut self) -> Option<IoClass> {
        let (text, at) = self.text("io_class")?;
        match text {
            "cpu" => Some(IoClass::Cpu),
            "io" => Some(IoClass::Io),
            "mixed" => Some(IoClass::Mixed),
            _ => {
                self.faults.add(&at, FaultCode::Invalid, "is one of `cpu`, `io`, `mixed`");
                None
            }
        }
    }

    fn runtime(&mut self) -> Option<Runtime> {
        let (text, at) = self.text("runtime")?;
        match text {
            "process" => Some(Runtime::Process),
            "sandbox" | "container" | "gvisor" | "microvm" => {
                let detail = format!("the runtime `{text}` is not available yet; there is `process`");
                self.faults.add(&at, FaultCode::NotAvailableYet, detail);
                None
            }
            _ => {
                self.faults.add(&at, FaultCode::Invalid, "there is no such runtime; there is `process`");
                None
            }
        }
    }

    fn command(&mut self) -> Vec<String> {
        let Some((tree, at)) = self.take("command") else { return Vec::new() };
        if let Tree::List(items) = tree
            && items.len() > MAX_ARGUMENTS
        {
            let detail = format!("has {} arguments, the most is {MAX_ARGUMENTS}", items.len());
            self.faults.add(&at, FaultCode::TooMany, detail);
            return Vec::new();
        }
        strict::texts(tree, "a list of texts, such as [\"echo\", \"hello\"]", &at, self.faults)
    }

    fn binary_url(&mut self, file_urls: FileUrls) -> Option<String> {
        const EXPECTED: &str = "expected `sha256:` and the 64 lower-case hex digits of an artifact's hash, or s3://<bucket>/<key>";
        let (text, at) = self.text("binary_url")?;
        let fault = if let Some(hash) = text.strip_prefix("sha256:") {
            let is_hash = hash.parse::<jobyard_model::ArtifactHash>().is_ok();
            (!is_hash).then(|| (FaultCode::Invalid, EXPECTED.to_owned()))
        } else if text.starts_with("s3://") {
            object_fault(text)
        } else if let Some(path) = text.strip_prefix("file://") {
            file_fault(path, file_urls)
        } else {
            Some((FaultCode::Invalid, EXPECTED.to_owned()))
        };
        if let Some((code, detail)) = fault {
            self.faults.add(&at, code, detail);
        }
        Some(text.to_owned())
    }

    fn input_path(&mut self) -> Option<String> {
        let (text, at) = self.text("input_path")?;
        if let Err(error) = text.parse::<InputPath>() {
            self.faults.add(&at, FaultCode::Invalid, error.to_string());
        }
        Some(text.to_owned())
    }

    fn output_path(&mut self) -> Option<String> {
        let (text, at) = self.text("output_path")?;
        if let Err(error) = text.parse::<S3Url>() {
            self.faults.add(&at, FaultCode::Invalid, error.to_string());
        }
        Some(text.to_owned())
    }

    fn secret_env(&mut self, accepted: SecretEnvs) -> SecretEnv {
        let secrets = SecretEnv(self.map("secret_env", MAX_ENV_ENTRIES));
        if accepted == SecretEnvs::Refused && !secrets.is_empty() {
            let detail = "this server has no key to keep secrets with: set `server.secret_key_file`, the same file \
                          for every server of the installation";
            self.faults.add(&self.object.at().field("secret_env"), FaultCode::NotAllowed, detail);
        }
        secrets
    }

    fn exit_codes(&mut self) -> Vec<i32> {
        let Some((tree, at)) = self.take("no_retry_exit_codes") else { return Vec::new() };
        let items = strict::items(tree, "a list of exit codes", &at, self.faults).unwrap_or_default();
        if items.len() > 255 {
            self.faults.add(&at, FaultCode::TooMany, "there are only 255 exit codes that mean failure");
            return Vec::new();
        }
        let mut codes = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let code = strict::whole(item, &EXIT_CODE, &at.item(index), self.faults);
            codes.extend(code.and_then(|code| i32::try_from(code).ok()));
        }
        codes
    }

    fn resources(&mut self) -> Option<ResourcesSubmit> {
        let (tree, at) = self.take("resources")?;
        let object = strict::object(
            tree,
            "an object such as {\"cpu\": 0.5, \"memory\": \"256MiB\"}",
            &at,
            self.faults,
        )?;
        let mut fields = Fields { object, faults: self.faults };
        let mut amount = |name: &'static str, amount: &Amount| {
            let (tree, at) = fields.take(name)?;
            amount.read(tree, &at, fields.faults)
        };
        let resources = ResourcesSubmit {
            cpu: amount("cpu", &CPU).map(|milli| Cores { milli }),
            memory: amount("memory", &MEMORY).map(Bytes),
            cpu_limit: amount("cpu_limit", &CPU).map(|milli| Cores { milli }),
        };
        for name in ["disk", "gpu"] {
            if let Some((_, at)) = fields.take(name) {
                let detail = "this resource is not available yet; there are `cpu` and `memory`";
                fields.faults.add(&at, FaultCode::NotAvailableYet, detail);
            }
        }
        fields.object.finish(fields.faults);
        Some(resources)
    }

    fn origin(&mut self) -> Option<JobOrigin> {
        let (tree, at) = self.take("origin")?;
        let object = strict::object(tree, "an object with `kind`, `id` and `key`", &at, self.faults)?;
        let mut fields = Fields { object, faults: self.faults };
        let (kind, id, key) = (fields.name("kind"), fields.name("id"), fields.name("key"));
        for (name, value) in [("kind", &kind), ("id", &id), ("key", &key)] {
            if value.is_none() {
                fields.faults.add(
                    &at.field(name),
                    FaultCode::Missing,
                    "an origin has `kind`, `id` and `key`, all texts",
                );
            }
        }
        if kind.as_ref().is_some_and(|kind| kind.contains(':')) {
            fields.faults.add(&at.field("kind"), FaultCode::ForbiddenCharacter, "a kind must not hold `:`");
        }
        fields.object.finish(fields.faults);
        Some(JobOrigin { kind: kind?, id: id?, key: key? })
    }
}

fn object_fault(text: &str) -> Option<(FaultCode, String)> {
    match text.parse::<S3Url>() {
        Ok(place) if place.is_prefix() => Some((
            FaultCode::Invalid,
            "an executable is one object: its key has no `/` at its end".to_owned(),
        )),
        Ok(_) => None,
        Err(error) => Some((FaultCode::Invalid, error.to_string())),
    }
}

fn file_fault(path: &str, file_urls: FileUrls) -> Option<(FaultCode, String)> {
    let refuse = |code, detail: &str| Some((code, detail.to_owned()));
    if file_urls == FileUrls::Refused {
        let detail = "this server does not accept file:// executables; push the file as an artifact, or name a program of the node in `command`";
        return refuse(FaultCode::NotAllowed, detail);
    }
    if !path.starts_with('/') || path.ends_with('/') {
        return refuse(FaultCode::Invalid, "a file:// executable is an absolute path: file:///usr/bin/env");
    }
    if path.contains(char::is_control) {
        return refuse(FaultCode::ForbiddenCharacter, "a path must not hold control characters");
    }
    if path.len() > 4_095 {
        return refuse(FaultCode::TooLong, "a path has at most 4095 bytes");
    }
    None
}
