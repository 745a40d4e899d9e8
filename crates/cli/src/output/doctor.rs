//! What `doctor` found, for people and programs.

use std::fmt::Write as _;

use serde::Serialize;

use super::table::{self, Column, Tint, Value};
use super::{Output, Style};

/// Everything that was looked at.
#[derive(Debug, Serialize)]
pub(crate) struct Diagnosis {
    /// Nothing that a worker needs is missing.
    pub(crate) worker_can_run: bool,
    items: Vec<Check>,
}

impl Diagnosis {
    /// What follows from the answers.
    pub(crate) fn of(items: Vec<Check>) -> Self {
        Self { worker_can_run: !items.iter().any(Check::is_missing), items }
    }
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(crate) struct Check {
    name: &'static str,
    answer: Answer,
    /// A worker can't run without it.
    needed: bool,
    found: String,
    means: String,
    /// What to do about it; absent when nothing has to be done.
    fix: Option<String>,
}

/// How it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// As it should be.
    Yes,
    /// It works, but less well.
    Warn,
    /// It is not there.
    No,
}

impl Answer {
    /// Yes, or else the other.
    pub(crate) fn yes_or(other: Self, is_fine: bool) -> Self {
        if is_fine { Self::Yes } else { other }
    }
}

impl Check {
    /// Something that a worker can do without, with nothing to be done about it.
    pub(crate) fn new(name: &'static str, answer: Answer, found: &str, means: &str) -> Self {
        Self { name, answer, needed: false, found: found.to_owned(), means: means.to_owned(), fix: None }
    }

    /// A worker can't run without it.
    pub(crate) fn needed(self) -> Self {
        Self { needed: true, ..self }
    }

    /// What to do about it, unless it is as it should be.
    pub(crate) fn fix_unless_yes(self, fix: &str) -> Self {
        let fix = (self.answer != Answer::Yes).then(|| fix.to_owned());
        Self { fix, ..self }
    }

    fn is_missing(&self) -> bool {
        self.needed && self.answer == Answer::No
    }

    fn word(&self) -> Value {
        match self.answer {
            Answer::Yes => Value::Word("yes", Tint::Good),
            Answer::Warn => Value::Word("warn", Tint::Odd),
            Answer::No if self.needed => Value::Word("no", Tint::Bad),
            Answer::No => Value::Word("no", Tint::Odd),
        }
    }
}

impl Output for Diagnosis {
    fn table(&self, style: &Style) -> String {
        let columns =
            [Column::Whole(""), Column::Whole("WHAT"), Column::Text("FOUND"), Column::Text("WHAT IT MEANS")];
        let row = |check: &Check| -> [Value; 4] {
            [check.word(), check.name.into(), check.found.clone().into(), check.means.clone().into()]
        };
        let mut text = table::rows(style, columns, self.items.iter().map(row));
        text.push('\n');
        let fixes: Vec<_> =
            self.items.iter().filter_map(|check| Some((check, check.fix.as_ref()?))).collect();
        if !fixes.is_empty() {
            let columns = [Column::Whole(""), Column::Whole("WHAT"), Column::Text("WHAT TO DO")];
            let row = |(check, fix): (&Check, &String)| [check.word(), check.name.into(), fix.clone().into()];
            text.push_str(&table::rows(style, columns, fixes.into_iter().map(row)));
            text.push('\n');
        }
        // Writing to a String can't fail.
        let _ = writeln!(text, "{}", self.verdict());
        text
    }
}

impl Diagnosis {
    fn verdict(&self) -> String {
        if self.worker_can_run {
            return "A worker can run here.".to_owned();
        }
        let missing: Vec<_> =
            self.items.iter().filter(|check| check.is_missing()).map(|check| check.name).collect();
        format!("No worker can run here: {}.", missing.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;
    use crate::output::Colour;

    fn shown(items: Vec<Check>) -> String {
        Diagnosis::of(items).table(&Style { colour: Colour::Plain, width: None, zone: TimeZone::UTC })
    }

    #[test]
    fn only_what_a_worker_needs_keeps_it_from_running() {
        let missing =
            Check::new("kvm", Answer::No, "not there", "virtual machines").fix_unless_yes("modprobe");
        assert!(Diagnosis::of(vec![missing]).worker_can_run);
        let slow = Check::new("disk", Answer::Warn, "slow", "waits").needed().fix_unless_yes("buy one");
        assert!(Diagnosis::of(vec![slow]).worker_can_run);
        let needed =
            Check::new("sidecar", Answer::No, "not there", "beside").needed().fix_unless_yes("build it");
        assert!(!Diagnosis::of(vec![needed]).worker_can_run);
    }

    #[test]
    fn what_is_fine_needs_no_fix_and_what_is_missing_is_named_at_the_end() {
        let fine = || Check::new("users", Answer::Yes, "root", "apart").fix_unless_yes("be root");
        assert_eq!(shown(vec![fine()]).lines().last(), Some("A worker can run here."));
        assert!(!shown(vec![fine()]).contains("be root"));
        let missing =
            Check::new("sidecar", Answer::No, "gone\n", "beside").needed().fix_unless_yes("build it");
        let text = shown(vec![fine(), missing]);
        assert!(text.contains("build it") && text.contains("gone\\n"), "{text}");
        assert_eq!(text.lines().last(), Some("No worker can run here: sidecar."));
    }
}
