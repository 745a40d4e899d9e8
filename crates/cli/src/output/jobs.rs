//! Jobs, attempts and events for people.

use std::collections::BTreeMap;

use jobyard_client::json::{Attempt, Event, Job, Page, ServiceExit, Time, Usage, Why};
use jobyard_model::{EndedBy, JobKind, Outcome};
use serde::{Serialize, Serializer};

use super::table::{self, Column, Tint, Value};
use super::times::duration;
use super::{Output, Style};

/// A list of jobs, as `ps` shows it.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct JobList(pub(crate) Page<Job>);

impl Output for JobList {
    fn table(&self, style: &Style) -> String {
        let columns = [
            Column::Whole("ID"),
            Column::Whole("STATUS"),
            Column::Text("NAME"),
            Column::Number("ATTEMPT"),
            Column::Whole("CREATED"),
            Column::Number("RAN"),
            Column::Text("RESULT"),
        ];
        let row = |job: &Job| -> [Value; 7] {
            [
                job.id.to_string().into(),
                table::status(job.status),
                job.name.clone().into(),
                job.attempt.map_or_else(String::new, |number| number.to_string()).into(),
                style.time(job.created_time.0).into(),
                ran(job.started_time, job.finished_time).into(),
                standing(job).into(),
            ]
        };
        table::rows(style, columns, self.0.items.iter().map(row))
    }
}

/// Jobs that a command did something to, one line each.
pub(crate) struct JobOutcomes(pub(crate) Vec<Job>);

/// One job is shown as the job itself, several as a list: the API's own documents.
impl Serialize for JobOutcomes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [job] => job.serialize(serializer),
            jobs => Page { items: jobs.iter().collect(), next_cursor: None }.serialize(serializer),
        }
    }
}

impl Output for JobOutcomes {
    fn table(&self, style: &Style) -> String {
        let columns = [Column::Whole("ID"), Column::Whole("STATUS"), Column::Text("RESULT")];
        let row = |job: &Job| -> [Value; 3] {
            [job.id.to_string().into(), table::status(job.status), standing(job).into()]
        };
        table::rows(style, columns, self.0.iter().map(row))
    }
}

/// A job and its attempts; as a document the job alone.
pub(crate) struct JobDetail {
    /// The job.
    pub(crate) job: Job,
    /// Its attempts.
    pub(crate) attempts: Vec<Attempt>,
}

impl Serialize for JobDetail {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.job.serialize(serializer)
    }
}

impl Output for JobDetail {
    fn table(&self, style: &Style) -> String {
        let mut text = table::pairs(style, describe(&self.job, style));
        if !self.attempts.is_empty() {
            text.push('\n');
            text.push_str(&attempt_rows(&self.attempts, style));
        }
        text
    }
}

fn describe(job: &Job, style: &Style) -> Vec<(&'static str, Value)> {
    let time =
        |time: Option<Time>| -> Value { time.map_or_else(String::new, |time| style.time(time.0)).into() };
    let result = job.result.as_ref();
    vec![
        ("id", job.id.to_string().into()),
        ("name", job.name.clone().into()),
        ("kind", if job.kind == JobKind::Service { job.kind.as_str() } else { "" }.to_owned().into()),
        ("status", table::status(job.status)),
        ("reason", job.reason.clone().into()),
        ("restarts", restarts(job.restarts, job.last_exit.as_ref()).into()),
        ("next start", time(job.next_start)),
        ("result", ended_with(job).into()),
        ("message", result.map_or_else(String::new, |result| result.message.clone()).into()),
        ("output", result.and_then(|result| result.output.clone()).unwrap_or_default().into()),
        ("used", result.and_then(|result| result.usage.as_ref()).map_or_else(String::new, used).into()),
        ("owner", job.owner_id.clone().into()),
        ("submitted by", job.submitted_by.clone().into()),
        ("binary", job.binary_url.clone().unwrap_or_default().into()),
        ("command", command_line(&job.command).into()),
        ("input", job.input_path.clone().unwrap_or_default().into()),
        ("outputs to", job.output_path.clone().unwrap_or_default().into()),
        ("created", style.time(job.created_time.0).into()),
        ("run at", time(job.run_at)),
        ("started", time(job.started_time)),
        ("finished", time(job.finished_time)),
        ("pool", job.pool.clone().into()),
        ("priority", job.priority.to_string().into()),
        ("resources", resources(job).into()),
        ("timeout", job.timeout.map_or_else(String::new, |timeout| duration(timeout.ms)).into()),
        ("retries", format!("{} of {}", job.retry_count, job.max_retries).into()),
        ("platform", counted(job.platform_failures, "failures").into()),
        ("evictions", counted(job.evictions, "in this round").into()),
        ("round", job.round.to_string().into()),
        ("labels", joined(&job.labels).into()),
        ("node labels", joined(&job.node_labels).into()),
        ("env", job.env.as_ref().map(joined).unwrap_or_default().into()),
        ("key", job.idempotency_key.clone().unwrap_or_default().into()),
    ]
}

/// A job's attempts, as a table.
#[derive(Serialize)]
pub(crate) struct AttemptList {
    /// By number.
    pub(crate) items: Vec<Attempt>,
}

impl Output for AttemptList {
    fn table(&self, style: &Style) -> String {
        attempt_rows(&self.items, style)
    }
}

fn attempt_rows(attempts: &[Attempt], style: &Style) -> String {
    let columns = [
        Column::Number("ATTEMPT"),
        Column::Number("ROUND"),
        Column::Whole("STATE"),
        Column::Whole("NODE"),
        Column::Whole("PLACED"),
        Column::Number("RAN"),
        Column::Text("RESULT"),
        Column::Text("USED"),
    ];
    let row = |attempt: &Attempt| -> [Value; 8] {
        let exit = exit_words(attempt.exit_code, attempt.signal);
        let restarts = restarts(attempt.restarts, attempt.last_exit.as_ref());
        let parts = [exit.as_str(), attempt.message.as_str(), restarts.as_str()];
        [
            attempt.number.to_string().into(),
            attempt.round.to_string().into(),
            attempt_state(attempt),
            attempt.node_name.clone().into(),
            style.time(attempt.placed_time.0).into(),
            ran(attempt.started_time, attempt.finished_time).into(),
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ").into(),
            attempt.usage.as_ref().map_or_else(String::new, used).into(),
        ]
    };
    table::rows(style, columns, attempts.iter().map(row))
}

fn attempt_state(attempt: &Attempt) -> Value {
    match (attempt.outcome, attempt.phase) {
        (Some(outcome), _) => Value::Word(outcome.as_str(), outcome_tint(outcome)),
        (None, Some(_)) if attempt.next_start.is_some() => Value::Word("restarting", Tint::Odd),
        (None, Some(phase)) => Value::Word(phase.as_str(), Tint::Active),
        (None, None) => String::new().into(),
    }
}

fn outcome_tint(outcome: Outcome) -> Tint {
    match outcome {
        Outcome::Succeeded | Outcome::Stopped => Tint::Good,
        Outcome::Failed | Outcome::TimedOut | Outcome::OomKilled => Tint::Bad,
        Outcome::Lost | Outcome::LaunchFailed | Outcome::NotStarted | Outcome::Evicted => Tint::Odd,
        Outcome::Cancelled => Tint::Quiet,
    }
}

/// A job's history, as a table.
#[derive(Serialize)]
pub(crate) struct EventList {
    /// Oldest first.
    pub(crate) items: Vec<Event>,
}

impl Output for EventList {
    fn table(&self, style: &Style) -> String {
        let columns = [
            Column::Whole("TIME"),
            Column::Number("ATTEMPT"),
            Column::Whole("WHO"),
            Column::Whole("FROM"),
            Column::Whole("TO"),
            Column::Text("WHY"),
        ];
        let row = |event: &Event| -> [Value; 6] {
            [
                style.time(event.time.0).into(),
                event.attempt.map_or_else(String::new, |number| number.to_string()).into(),
                event.who.clone().into(),
                event.from.clone().into(),
                event.to.clone().into(),
                event.why.clone().into(),
            ]
        };
        table::rows(style, columns, self.items.iter().map(row))
    }
}

impl Output for Why {
    fn table(&self, style: &Style) -> String {
        let mut text = table::pairs(
            style,
            [
                ("status", table::status(self.status)),
                ("reason", self.reason.clone().into()),
                ("why", self.summary.clone().into()),
                ("what would help", self.remedy.clone().into()),
            ],
        );
        let gates = self.gates.iter().map(|gate| -> [Value; 4] {
            let open =
                if gate.open { Value::Word("open", Tint::Good) } else { Value::Word("shut", Tint::Odd) };
            let opens = gate.opens_time.map_or_else(String::new, |time| style.time(time.0));
            [gate.gate.clone().into(), open, opens.into(), gate.detail.clone().into()]
        });
        let columns =
            [Column::Whole("GATE"), Column::Whole("IS"), Column::Whole("OPENS"), Column::Text("DETAIL")];
        if !self.gates.is_empty() {
            text.push('\n');
            text.push_str(&table::rows(style, columns, gates));
        }
        let nodes = self.nodes.iter().map(|node| -> [Value; 3] {
            let fits = match (node.fits, node.lasting) {
                (true, _) => Value::Word("yes", Tint::Good),
                (false, false) => Value::Word("not now", Tint::Odd),
                (false, true) => Value::Word("no", Tint::Bad),
            };
            [node.name.clone().into(), fits, node.obstacle.clone().into()]
        });
        if !self.nodes.is_empty() {
            text.push('\n');
            let columns = [Column::Whole("NODE"), Column::Whole("FITS"), Column::Text("OBSTACLE")];
            text.push_str(&table::rows(style, columns, nodes));
        }
        text
    }
}

/// What there is to say beside the status: while it goes on the reason, then how it ended.
fn standing(job: &Job) -> String {
    let ended = if job.status.is_end() { ended_with(job) } else { String::new() };
    if ended.is_empty() { job.reason.clone() } else { ended }
}

/// How it ended, in a few words; empty while it goes on and nothing ended yet.
pub(crate) fn ended_with(job: &Job) -> String {
    let Some(result) = &job.result else { return String::new() };
    let exit = exit_words(result.exit_code, result.signal);
    match result.outcome {
        Outcome::Succeeded => result.outcome.as_str().to_owned(),
        outcome if exit.is_empty() => outcome.as_str().to_owned(),
        outcome => format!("{}, {exit}", outcome.as_str()),
    }
}

/// What a service went through; empty for a task, and while its first process runs.
fn restarts(restarts: u32, last_exit: Option<&ServiceExit>) -> String {
    let Some(last) = last_exit else { return String::new() };
    let exit = exit_words(last.exit_code, last.signal);
    let memory = if last.ended_by == EndedBy::Memory { ", over its memory limit" } else { "" };
    let times = if restarts == 1 { "restart" } else { "restarts" };
    format!("{restarts} {times}, the last process left with {exit}{memory}")
}

fn exit_words(exit_code: Option<i32>, signal: Option<i32>) -> String {
    match (exit_code, signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => String::new(),
    }
}

fn ran(started: Option<Time>, finished: Option<Time>) -> String {
    match (started, finished) {
        (Some(started), Some(finished)) => duration(finished.0.ms_since(started.0)),
        _ => String::new(),
    }
}

fn used(usage: &Usage) -> String {
    let cpu_ms = usage.cpu_user.ms + usage.cpu_system.ms;
    let memory = memory(usage.peak_memory_bytes);
    format!("{} wall, {} cpu, {memory} peak", duration(usage.wall.ms), duration(cpu_ms))
}

fn resources(job: &Job) -> String {
    let limit =
        job.resources.cpu_limit.map_or_else(String::new, |limit| format!(" (at most {})", limit.as_f64()));
    format!("{} cpu{limit}, {}", job.resources.cpu.as_f64(), memory(job.resources.memory.0))
}

/// Bytes in the largest binary unit that keeps a whole number, or with one digit behind the point.
pub(crate) fn memory(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (0..4).rev().find(|power| bytes >> (10 * (power + 1)) > 0).map_or(0, |power| power + 1);
    let unit = 1_u64 << (10 * power);
    let tenths = bytes % unit * 10 / unit;
    let whole = bytes / unit;
    let name = UNITS.get(power).copied().unwrap_or("B");
    if tenths == 0 { format!("{whole} {name}") } else { format!("{whole}.{tenths} {name}") }
}

fn joined(map: &BTreeMap<String, String>) -> String {
    map.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

fn counted(number: u32, of: &str) -> String {
    if number == 0 { String::new() } else { format!("{number} {of}") }
}

/// As a shell would need it, so that it can be told apart and pasted.
fn command_line(words: &[String]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=,+@%".contains(&byte);
    let quoted = words.iter().map(|word| {
        if !word.is_empty() && word.bytes().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_shown_in_its_largest_unit() {
        for (bytes, shown) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1 KiB"),
            (1_536, "1.5 KiB"),
            (128 << 20, "128 MiB"),
            (u64::MAX, "16777215.9 TiB"),
        ] {
            assert_eq!(memory(bytes), shown);
        }
    }

    #[test]
    fn a_command_line_can_be_pasted_into_a_shell() {
        let words = ["sh", "-c", "echo 'a b'", ""].map(str::to_owned);
        assert_eq!(command_line(&words), "sh -c 'echo '\\''a b'\\''' ''");
    }
}
