//! What an informer does, one loop a file.

pub(crate) mod carry_out_bulk;
pub(crate) mod count_minutes;
pub(crate) mod deliver_stops;
pub(crate) mod expire_leases;
pub(crate) mod place;
pub(crate) mod release_due;
pub(crate) mod retention;
pub(crate) mod retire_artifacts;
pub(crate) mod tell_failures;
