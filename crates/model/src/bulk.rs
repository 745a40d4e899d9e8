//! An action on every job that a filter passes.

use crate::{Any, JobFilter, Status, Timestamp};

/// What is done to each job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BulkAction {
    /// As a cancel of each.
    Cancel,
    /// As a retry by hand of each.
    Retry,
}

impl BulkAction {
    /// Every action.
    pub const ALL: [Self; 2] = [Self::Cancel, Self::Retry];

    /// The word on the wire and in the datastore.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Retry => "retry",
        }
    }

    /// The action with this word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == word)
    }

    /// Where a job is that this action does something to.
    fn statuses(self) -> &'static [Status] {
        match self {
            Self::Cancel => &[Status::Ready, Status::Waiting, Status::Running, Status::Retry],
            Self::Retry => &[Status::FinalFailed, Status::Cancelled],
        }
    }
}

/// The jobs that are acted on: those that the filter passes, that were created before an instant, that the action does
/// something to, and that belong to these owners (`None`: any). `None` when there can't be any.
#[must_use]
pub fn acted_on(
    filter: &JobFilter,
    action: BulkAction,
    owners: Option<&[String]>,
    before: Timestamp,
) -> Option<JobFilter> {
    let mut narrowed = filter.clone();
    narrowed.statuses = within(&filter.statuses, action.statuses())?;
    if let Some(owners) = owners {
        narrowed.owners = within(&filter.owners, owners)?;
    }
    narrowed.created_before = Some(filter.created_before.map_or(before, |own| own.min(before)));
    Some(narrowed)
}

/// Those of `allowed` that the condition passes.
fn within<T: Clone + PartialEq>(condition: &Any<T>, allowed: &[T]) -> Option<Any<T>> {
    let passes = |value: &&T| condition.is_empty() || condition.values.contains(value) != condition.negated;
    let values: Vec<T> = allowed.iter().filter(passes).cloned().collect();
    (!values.is_empty()).then(|| Any::of(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_acted_on_is_never_more_than_the_filter_the_action_and_the_owners_allow() {
        let owners = |owners: &[&str]| owners.iter().map(|owner| (*owner).to_owned()).collect::<Vec<_>>();
        let narrowed = |filter: JobFilter, allowed: Option<&[&str]>| {
            let allowed = allowed.map(owners);
            acted_on(&filter, BulkAction::Cancel, allowed.as_deref(), Timestamp(10))
        };
        let filter = JobFilter::default;
        let all = narrowed(filter(), None).unwrap();
        assert_eq!(all.statuses.values, BulkAction::Cancel.statuses());
        assert_eq!((all.created_before, all.owners.is_empty()), (Some(Timestamp(10)), true));
        let running = narrowed(JobFilter::of_statuses([Status::Running, Status::Success]), None).unwrap();
        assert_eq!(running.statuses, Any::of([Status::Running]));
        assert_eq!(narrowed(JobFilter::of_statuses([Status::Success]), None), None);
        let own = narrowed(filter(), Some(&["a", "b"])).unwrap();
        assert_eq!(own.owners.values, owners(&["a", "b"]));
        let not_a = JobFilter { owners: Any::none_of(owners(&["a"])), ..filter() };
        assert_eq!(narrowed(not_a, Some(&["a", "b"])).unwrap().owners.values, owners(&["b"]));
        let foreign = JobFilter { owners: Any::of(owners(&["c"])), ..filter() };
        assert_eq!(narrowed(foreign, Some(&["a", "b"])), None);
        assert_eq!(narrowed(filter(), Some(&[])), None, "a token that acts for nobody acts on nothing");
        let earlier = JobFilter { created_before: Some(Timestamp(3)), ..filter() };
        assert_eq!(narrowed(earlier, None).unwrap().created_before, Some(Timestamp(3)));
    }
}
