//! Where the ids of a page come from, and which sources a filter allows.

use jobyard_model::{Any, JobFilter, Outcome, Status, TextMatch};

use super::Text;

/// Where ids come from, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// Every job.
    All,
    /// Jobs of this owner.
    Owner(String),
    /// Jobs of exactly this name.
    Name(String),
    /// Jobs with exactly this label.
    Label(String, String),
    /// Jobs with this key.
    Key(String),
    /// Everything that is not over.
    Hot,
    /// Jobs of this status; not `waiting`, of which no index is in this order.
    Status(Status),
    /// Jobs with an attempt that ended otherwise than well.
    Troubled,
}

impl Source {
    /// `SELECT <id> … ORDER BY <id> DESC`, below the id whose mark is given.
    pub(crate) fn sql(&self, text: &mut Text, below: &str) -> String {
        let of_job =
            |condition: String| format!("SELECT id FROM job WHERE {condition}id < {below} ORDER BY id DESC");
        match self {
            Self::All => of_job(String::new()),
            Self::Owner(name) => {
                let name = text.text(name);
                of_job(format!("owner_id = (SELECT owner_id FROM owner WHERE name = {name}) AND "))
            }
            Self::Name(name) => {
                let collated = text.either("name COLLATE \"C\"", "name");
                let name = text.text(name);
                of_job(format!("{collated} = {name} AND "))
            }
            Self::Key(key) => {
                let key = text.text(key);
                of_job(format!("idempotency_key = {key} AND "))
            }
            Self::Label(key, value) => {
                let (key, value) = (text.text(key), text.text(value));
                format!(
                    "SELECT job_id AS id FROM job_label WHERE key = {key} AND value = {value} AND job_id < {below} ORDER BY job_id DESC"
                )
            }
            Self::Hot => format!("SELECT id FROM job_live WHERE id < {below} ORDER BY id DESC"),
            Self::Status(Status::Running) => {
                format!("SELECT job_id AS id FROM attempt_live WHERE job_id < {below} ORDER BY job_id DESC")
            }
            Self::Status(status) if is_over(*status) => {
                let code = status.code();
                format!(
                    "SELECT job_id AS id FROM job_end WHERE current AND status = {code} AND job_id < {below} ORDER BY job_id DESC"
                )
            }
            Self::Status(status) => {
                let code = status.code();
                format!("SELECT id FROM job_live WHERE status = {code} AND id < {below} ORDER BY id DESC")
            }
            // A job may have several such attempts.
            Self::Troubled => {
                let distinct = "SELECT DISTINCT job_id AS id FROM attempt WHERE outcome <> 0";
                format!("{distinct} AND job_id < {below} ORDER BY job_id DESC")
            }
        }
    }
}

/// Sources whose union has every job that the filter passes. Which of several is the narrowest only the datastore knows.
pub(crate) fn drivers(filter: &JobFilter) -> Vec<Vec<Source>> {
    let mut drivers = Vec::new();
    if let Some(key) = &filter.idempotency_key {
        return vec![vec![Source::Key(key.clone())]];
    }
    for label in &filter.labels {
        let exact = label.value.wanted().and_then(exactly);
        drivers.extend(exact.map(|values| each(values, |value| Source::Label(label.key.clone(), value))));
    }
    let names = filter.names.wanted().and_then(exactly);
    drivers.extend(names.map(|names| each(names, Source::Name)));
    if !filter.statuses.is_empty() {
        drivers.push(of_statuses(&filter.statuses));
    }
    let is_troubled = filter.signals.wanted().is_some()
        || filter.exit_codes.wanted().is_some_and(|codes| !codes.contains(&0))
        || filter.outcomes.wanted().is_some_and(|outcomes| !outcomes.contains(&Outcome::Succeeded));
    if is_troubled {
        drivers.push(vec![Source::Troubled]);
    }
    drivers.extend(filter.owners.wanted().map(|owners| each(owners.to_vec(), Source::Owner)));
    drivers
}

fn of_statuses(statuses: &Any<Status>) -> Vec<Source> {
    let passes = |status: &Status| statuses.values.contains(status) != statuses.negated;
    let wanted: Vec<Status> = Status::ALL.into_iter().filter(passes).collect();
    let is_hot = wanted.contains(&Status::Waiting);
    let own = wanted.into_iter().filter(|status| !is_hot || is_over(*status)).map(Source::Status);
    is_hot.then_some(Source::Hot).into_iter().chain(own).collect()
}

fn is_over(status: Status) -> bool {
    matches!(status, Status::Success | Status::FinalFailed | Status::Cancelled)
}

fn each<T>(values: Vec<T>, source: impl Fn(T) -> Source) -> Vec<Source> {
    let mut sources: Vec<Source> = Vec::new();
    for source in values.into_iter().map(source) {
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    sources
}

fn exactly(matches: &[TextMatch]) -> Option<Vec<String>> {
    let exact = |wanted: &TextMatch| match wanted {
        TextMatch::Is(text) => Some(text.clone()),
        TextMatch::Begins(_) | TextMatch::Holds(_) => None,
    };
    matches.iter().map(exact).collect()
}

/// What the sources that drive a page settle already.
#[must_use]
pub(crate) fn settled_by(filter: &JobFilter, driver: &[Source]) -> JobFilter {
    let mut rest = filter.clone();
    match driver.first() {
        Some(Source::Owner(_)) => rest.owners = Any::default(),
        Some(Source::Name(_)) => rest.names = Any::default(),
        Some(Source::Key(_)) => rest.idempotency_key = None,
        Some(Source::Label(key, _)) => {
            let place = rest.labels.iter().position(|label| {
                label.key == *key
                    && label
                        .value
                        .wanted()
                        .and_then(exactly)
                        .is_some_and(|values| values.len() >= driver.len())
            });
            if let Some(place) = place {
                let values = rest.labels[place].value.wanted().and_then(exactly).unwrap_or_default();
                let all =
                    |source: &Source| matches!(source, Source::Label(_, value) if values.contains(value));
                if driver.iter().all(all) {
                    rest.labels.remove(place);
                }
            }
        }
        Some(Source::Status(_)) if !driver.contains(&Source::Hot) => rest.statuses = Any::default(),
        Some(Source::All | Source::Hot | Source::Troubled | Source::Status(_)) | None => {}
    }
    rest
}
