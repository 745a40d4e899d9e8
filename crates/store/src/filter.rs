//! A filter as SQL, the same text in both dialects but for a few words.
//!
//! A page is driven by one ordered source of ids, newest first ([`sources`]); whatever that doesn't settle is a condition on
//! the job's rows ([`Conditions`]). Rows go by these names: `job`, `l` its hot row, `e` its current end, `a` its live
//! attempt, `z` its newest ended one. Numbers of the model are literals, so that partial indexes are seen.

mod sources;

use std::fmt::Write as _;

use jobyard_model::{Any, JobFilter, LabelCondition, Lane, Phase, ReasonWord, TextMatch};
use uuid::Uuid;

pub(crate) use sources::{Source, drivers, settled_by};

/// Which SQL is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    #[cfg(feature = "postgres")]
    Postgres,
    #[cfg(feature = "sqlite")]
    Sqlite,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    Int(i64),
    Id(Uuid),
}

/// A statement that is being put together.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    words: Words,
    pub(crate) values: Vec<Value>,
}

impl Text {
    pub(crate) fn new(words: Words) -> Self {
        Self { words, values: Vec::new() }
    }

    /// The mark of a new parameter.
    pub(crate) fn mark(&mut self, value: Value) -> String {
        self.values.push(value);
        self.nth(self.values.len())
    }

    pub(crate) fn text(&mut self, text: &str) -> String {
        self.mark(Value::Text(text.to_owned()))
    }

    fn nth(&self, number: usize) -> String {
        match self.words {
            #[cfg(feature = "postgres")]
            Words::Postgres => format!("${number}"),
            #[cfg(feature = "sqlite")]
            Words::Sqlite => format!("?{number}"),
        }
    }

    /// Whichever the dialect needs.
    fn either(&self, postgres: impl Into<String>, sqlite: impl Into<String>) -> String {
        match self.words {
            #[cfg(feature = "postgres")]
            Words::Postgres => postgres.into(),
            #[cfg(feature = "sqlite")]
            Words::Sqlite => sqlite.into(),
        }
    }

    fn listed(&mut self, texts: &[String]) -> String {
        texts.iter().map(|text| self.text(text)).collect::<Vec<_>>().join(", ")
    }
}

/// A condition on a job's rows, and which of them it looks at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conditions {
    /// Joined by `AND`; empty when there is none.
    pub(crate) sql: String,
    pub(crate) uses: Uses,
}

/// Which rows beside `job` a statement looks at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Uses {
    pub(crate) hot: bool,
    pub(crate) end: bool,
    pub(crate) live: bool,
    pub(crate) newest: bool,
}

impl Uses {
    /// `LEFT JOIN`s of the rows that are looked at.
    pub(crate) fn joins(self, words: Words) -> String {
        let text = Text::new(words);
        let lateral = |table: &str, condition: &str, name: &str| {
            text.either(
                format!(
                    " LEFT JOIN LATERAL (SELECT * FROM {table} WHERE {condition} OFFSET 0) {name} ON true"
                ),
                format!(
                    " LEFT JOIN {table} {name} ON {}",
                    condition.replace(&format!("{table}."), &format!("{name}."))
                ),
            )
        };
        let mut joins = String::new();
        if self.hot {
            joins += &lateral("job_live", "job_live.id = job.id", "l");
        }
        if self.end {
            joins += &lateral("job_end", "job_end.job_id = job.id AND job_end.current", "e");
        }
        if self.live {
            joins += &lateral("attempt_live", "attempt_live.job_id = job.id", "a");
        }
        if self.newest {
            joins += &text.either(
                " LEFT JOIN LATERAL (SELECT * FROM attempt WHERE attempt.job_id = job.id \
                 ORDER BY number DESC LIMIT 1) z ON true",
                " LEFT JOIN attempt z ON z.job_id = job.id \
                 AND z.number = (SELECT max(number) FROM attempt WHERE job_id = job.id)",
            );
        }
        joins
    }
}

/// The status of a job, from `l` and `e`.
pub(crate) const STATUS: &str = "coalesce(l.status, e.status)";

/// What must hold of a job that the filter passes, its `text` aside. `now` is the datastore's clock as SQL.
pub(crate) fn conditions(filter: &JobFilter, text: &mut Text, now: &str) -> Conditions {
    let mut writer = Writer { text, now, parts: Vec::new(), uses: Uses::default() };
    writer.by_place(filter);
    writer.by_words(filter);
    writer.by_attempt(filter);
    Conditions { sql: writer.parts.join(" AND "), uses: writer.uses }
}

struct Writer<'t> {
    text: &'t mut Text,
    now: &'t str,
    parts: Vec<String>,
    uses: Uses,
}

impl Writer<'_> {
    /// Adds a condition, or that it doesn't hold.
    fn add(&mut self, condition: &str, negated: bool) {
        self.parts.push(if negated {
            format!("({condition}) IS NOT TRUE")
        } else {
            format!("({condition})")
        });
    }

    fn codes<T: Copy>(&mut self, column: &str, any: &Any<T>, code: impl Fn(T) -> i64) {
        if any.is_empty() {
            return;
        }
        let codes: Vec<String> = any.values.iter().map(|value| code(*value).to_string()).collect();
        self.add(&format!("{column} IN ({})", codes.join(", ")), any.negated);
    }

    fn by_place(&mut self, filter: &JobFilter) {
        if !filter.statuses.is_empty() {
            self.uses.hot = true;
            self.uses.end = true;
        }
        self.codes(STATUS, &filter.statuses, |status| i64::from(status.code()));
        self.codes("job.kind", &filter.kinds, |kind| i64::from(kind.code()));
        self.lanes(&filter.lanes);
        self.reasons(&filter.reasons);
        for (bound, comparison) in [(filter.created_after, ">="), (filter.created_before, "<")] {
            if let Some(bound) = bound {
                let mark = self.text.mark(Value::Int(bound.0));
                self.add(&format!("job.created_ms {comparison} {mark}"), false);
            }
        }
    }

    fn lanes(&mut self, lanes: &Any<Lane>) {
        if lanes.is_empty() {
            return;
        }
        let priority = priority(self.text);
        let band = |lane: &Lane| match i64::from(lane.value()) * 20 {
            80 => format!("{priority} >= 80"),
            from => format!("{priority} BETWEEN {from} AND {}", from + 19),
        };
        let bands: Vec<String> = lanes.values.iter().map(band).collect();
        self.add(&bands.join(" OR "), lanes.negated);
    }

    fn reasons(&mut self, reasons: &Any<ReasonWord>) {
        if reasons.is_empty() {
            return;
        }
        self.uses.hot = true;
        let conditions: Vec<String> = reasons.values.iter().map(|reason| self.reason(*reason)).collect();
        self.add(&conditions.join(" OR "), reasons.negated);
    }

    fn reason(&mut self, reason: ReasonWord) -> String {
        let restarts = self.text.either(
            "a.service::json ->> 'next_start' IS NOT NULL",
            "json_extract(a.service, '$.next_start') IS NOT NULL",
        );
        match reason {
            ReasonWord::Failed(reason) => {
                self.uses.end = true;
                format!("e.reason = '{}'", reason.as_str())
            }
            ReasonWord::Phase(phase) => {
                self.uses.live = true;
                let up = if phase == Phase::Running {
                    format!(" AND ({restarts}) IS NOT TRUE")
                } else {
                    String::new()
                };
                format!("a.phase = {}{up}", phase.code())
            }
            ReasonWord::Restarting => {
                self.uses.live = true;
                format!("a.phase = 2 AND {restarts}")
            }
            ReasonWord::BackingOff => {
                format!("l.status = 4 OR l.status = 2 AND l.wait_since_ms > {}", self.now)
            }
            ReasonWord::ArtifactMissing => "l.status = 1 AND l.artifact_missing".to_owned(),
            ReasonWord::RunAt => "l.status = 1 AND NOT l.artifact_missing".to_owned(),
        }
    }

    fn by_words(&mut self, filter: &JobFilter) {
        for (any, table) in [(&filter.owners, "owner"), (&filter.pools, "pool")] {
            if !any.is_empty() {
                let names = self.text.listed(&any.values);
                let ids = format!("SELECT {table}_id FROM {table} WHERE name IN ({names})");
                self.add(&format!("job.{table}_id IN ({ids})"), any.negated);
            }
        }
        if !filter.submitted_by.is_empty() {
            let names = self.text.listed(&filter.submitted_by.values);
            self.add(&format!("job.submitted_by IN ({names})"), filter.submitted_by.negated);
        }
        if !filter.names.is_empty() {
            let matched = self.matched("job.name", &filter.names.values);
            self.add(&matched, filter.names.negated);
        }
        for label in &filter.labels {
            self.label(label);
        }
        if let Some(key) = &filter.idempotency_key {
            let key = self.text.text(key);
            self.add(&format!("job.idempotency_key = {key}"), false);
        }
        if let Some((kind, id)) = &filter.origin {
            let (kind, id) = (self.text.text(kind), self.text.text(id));
            let field = |name: &str| {
                self.text.either(
                    format!("job.spec -> 'origin' ->> '{name}'"),
                    format!("json_extract(job.spec, '$.origin.{name}')"),
                )
            };
            let condition = format!("{} = {kind} AND {} = {id}", field("kind"), field("id"));
            self.add(&condition, false);
        }
    }

    fn matched(&mut self, column: &str, values: &[TextMatch]) -> String {
        let one = |text: &mut Text, value: &TextMatch| match value {
            TextMatch::Is(wanted) => {
                let mark = text.text(wanted);
                format!("{column} = {mark}")
            }
            TextMatch::Begins(wanted) => {
                let mark = text.text(wanted);
                text.either(
                    format!("starts_with({column}, {mark})"),
                    format!("substr({column}, 1, length({mark})) = {mark}"),
                )
            }
            TextMatch::Holds(wanted) => {
                let mark = text.text(wanted);
                text.either(format!("strpos({column}, {mark}) > 0"), format!("instr({column}, {mark}) > 0"))
            }
        };
        values.iter().map(|value| one(self.text, value)).collect::<Vec<_>>().join(" OR ")
    }

    fn label(&mut self, label: &LabelCondition) {
        let key = self.text.text(&label.key);
        let labels = labels(self.text);
        let value = self.text.either(
            format!("({labels} ->> {key})"),
            format!("(SELECT found.value FROM json_each({labels}) found WHERE found.key = {key})"),
        );
        let condition = match label.value.is_empty() {
            true => format!("{value} IS NOT NULL"),
            false => self.matched(&value, &label.value.values),
        };
        self.add(&condition, label.value.negated);
    }

    fn by_attempt(&mut self, filter: &JobFilter) {
        self.nodes(&filter.nodes);
        let any_exit = !(filter.exit_codes.is_empty() && filter.signals.is_empty());
        self.uses.newest |= any_exit || !filter.outcomes.is_empty();
        self.codes("z.outcome", &filter.outcomes, |outcome| i64::from(outcome.code()));
        let exit_code = exit_field(self.text, "code");
        self.codes(&exit_code, &filter.exit_codes, i64::from);
        let signal = exit_field(self.text, "signal");
        self.codes(&signal, &filter.signals, i64::from);
    }

    fn nodes(&mut self, nodes: &Any<String>) {
        if nodes.is_empty() {
            return;
        }
        self.uses.live = true;
        self.uses.newest = true;
        let names = self.text.listed(&nodes.values);
        let mut condition = format!("{NODE_NAME} IN ({names})");
        for id in nodes.values.iter().filter_map(|text| text.parse::<jobyard_model::NodeId>().ok()) {
            let id = self.text.mark(Value::Id(id.0));
            let _ = write!(condition, " OR coalesce(a.node_id, z.node_id) = {id}");
        }
        self.add(&condition, nodes.negated);
    }
}

/// The name of the newest attempt's node, from `a` and `z`; a live attempt's node may have another name by now.
pub(crate) const NODE_NAME: &str = "CASE WHEN a.job_id IS NULL THEN z.node_name \
    ELSE (SELECT node.name FROM node WHERE node.node_id = a.node_id) END";

/// The code or the signal in the end of `z`.
pub(crate) fn exit_field(text: &Text, field: &str) -> String {
    text.either(
        format!("(z.\"end\"::json #>> '{{Exited,exit,{field}}}')::int"),
        format!("json_extract(z.\"end\", '$.Exited.exit.{field}')"),
    )
}

/// A job's priority. Rows from before the column have it in their spec.
pub(crate) fn priority(text: &Text) -> String {
    text.either(
        "coalesce(job.priority, (job.spec ->> 'priority')::int)",
        "coalesce(job.priority, json_extract(job.spec, '$.priority'))",
    )
}

/// How many retries its own failures may cost a job; as [`priority`].
pub(crate) fn max_retries(text: &Text) -> String {
    text.either(
        "coalesce(job.max_retries, (job.spec ->> 'max_retries')::int)",
        "coalesce(job.max_retries, json_extract(job.spec, '$.max_retries'))",
    )
}

/// A job's labels as JSON; as [`priority`].
pub(crate) fn labels(text: &Text) -> String {
    text.either(
        "coalesce(job.labels, job.spec -> 'labels')",
        "coalesce(job.labels, json_extract(job.spec, '$.labels'))",
    )
}

/// The program and its arguments as a JSON array.
pub(crate) fn command(text: &Text) -> String {
    text.either("(job.spec -> 'command')::text", "json_extract(job.spec, '$.command')")
}

/// The labels as a text, and whether `a` is of a service that waits for its next start.
pub(crate) fn as_text_and_restarting(text: &Text, labels: &str) -> (String, String) {
    let restarting = text.either(
        "a.phase = 2 AND a.service::json ->> 'next_start' IS NOT NULL",
        "a.phase = 2 AND json_extract(a.service, '$.next_start') IS NOT NULL",
    );
    (text.either(format!("({labels})::text"), labels), restarting)
}
