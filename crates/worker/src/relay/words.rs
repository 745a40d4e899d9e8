//! What an attempt says besides its end.

use jobyard_model::ServiceRun;

/// What an attempt has to say besides its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    Accepted,
    /// Implies `Accepted`.
    Started,
    /// Implies `Started`.
    Finishing,
    /// How a service stands.
    Service(ServiceRun),
    /// Not implied by the others: said again, those renew nothing.
    Renewed,
}

/// The words of an attempt that wait, at most one of a kind: of a service that restarts while the door is away, the
/// newest count is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Words {
    step: Option<Word>,
    service: Option<ServiceRun>,
    renewed: Option<Word>,
}

impl Words {
    pub(super) fn add(&mut self, word: Word) {
        match word {
            Word::Accepted => self.step = self.step.or(Some(word)),
            Word::Started if self.step != Some(Word::Finishing) => self.step = Some(word),
            Word::Started => {}
            Word::Finishing => self.step = Some(word),
            Word::Service(run) if run.is_after(self.service.as_ref()) => self.service = Some(run),
            Word::Service(_) => {}
            Word::Renewed => self.renewed = Some(word),
        }
    }

    pub(super) fn add_all(&mut self, words: Self) {
        words.in_order().for_each(|word| self.add(word));
    }

    pub(super) fn is_empty(self) -> bool {
        self == Self::default()
    }

    pub(super) fn in_order(self) -> impl Iterator<Item = Word> {
        self.step.into_iter().chain(self.service.map(Word::Service)).chain(self.renewed)
    }
}
