//! Cancel, stop and retry by hand.

use jobyard_model::lifecycle::RefusalKind;
use jobyard_model::{Intent, JobEvent, JobId, JobSpec, ShapeId};
use tokio_postgres::Row;
use uuid::Uuid;

use super::Core;
use super::fault::{Fault, Shared};
use super::load::{self, Columns, end_columns};
use super::query::Query;
use super::session::Session;
use super::{audit, writes};
use crate::encoding::{from_json, policy_of};
use crate::ledger::{Denied, Ledger};
use crate::rows::Seat;
use crate::{Actor, Control, StoreError};

// Two that retry the same job by hand: the second waits, and then finds the round that the first one made.
const LOCK_END: &str = concat!(
    "SELECT ",
    end_columns!(),
    ", job.spec::text, job.owner_id, job.pool_id, job.shape_id
    FROM job_end e JOIN job ON job.id = e.job_id WHERE e.job_id = $1 AND e.current FOR NO KEY UPDATE OF e"
);

// In the order of ids, as every lock.
const LOCK_ENDS: &str = concat!(
    "SELECT ",
    end_columns!(),
    ", job.spec::text, job.owner_id, job.pool_id, job.shape_id
    FROM job_end e JOIN job ON job.id = e.job_id WHERE e.job_id = ANY($1) AND e.current
    ORDER BY e.job_id FOR NO KEY UPDATE OF e"
);

const FIND: &str = "SELECT 1 FROM job WHERE id = $1";

/// Wants the job cancelled.
pub(super) async fn cancel(core: &Core, job_id: JobId, by: &Actor) -> Result<Control, StoreError> {
    let wanted = Wanted { job_id, event: JobEvent::Raise(Intent::Cancel), action: "job.cancel" };
    core.database.change("cancelling a job", |session| control(core, session, &wanted, by)).await
}

/// Wants the service stopped.
pub(super) async fn stop(core: &Core, job_id: JobId, by: &Actor) -> Result<Control, StoreError> {
    let wanted = Wanted { job_id, event: JobEvent::Raise(Intent::Stop), action: "job.stop" };
    core.database.change("stopping a service", |session| control(core, session, &wanted, by)).await
}

/// Starts a new round.
pub(super) async fn retry(
    core: &Core,
    job_id: JobId,
    after_attempt: Option<u32>,
    by: &Actor,
) -> Result<Control, StoreError> {
    let wanted = Wanted { job_id, event: JobEvent::RetryByHand { after_attempt }, action: "job.retry" };
    core.database.change("retrying a job by hand", |session| control(core, session, &wanted, by)).await
}

struct Wanted {
    job_id: JobId,
    event: JobEvent,
    action: &'static str,
}

async fn control(core: &Core, mut session: Session, wanted: &Wanted, by: &Actor) -> Result<Control, Fault> {
    let job_id = wanted.job_id;
    let mut ledger = load::lock_jobs(&mut session, vec![job_id.0], core.leases).await?;
    if ledger.job(job_id).is_none() {
        lock_ended(&mut session, &mut ledger, job_id).await?;
    }
    let refused = match ledger.apply(job_id, wanted.event.clone(), &by.name) {
        Ok(()) => None,
        Err(Denied::NotLoaded) => Some(Control::NotFound),
        Err(Denied::Refused(refusal)) => Some(match refusal.kind {
            RefusalKind::AlreadySo | RefusalKind::NewerAttempt => Control::Nothing,
            RefusalKind::WrongKind => Control::WrongKind,
            RefusalKind::StaleLease | RefusalKind::NotDue | RefusalKind::WrongStatus => {
                Control::Refused(refusal.status)
            }
        }),
    };
    if let Some(refused) = refused {
        session.roll_back().await?;
        return Ok(refused);
    }
    let (mut queries, wakes) = writes::of(ledger)?;
    queries.push(audit::insert(&[audit::Note::new(by, wanted.action, &job_id.to_string(), "")]));
    session.commit(queries).await?;
    core.wakes.bump(wakes);
    Ok(Control::Done)
}

/// Takes in a job that is over.
async fn lock_ended(session: &mut Session, ledger: &mut Ledger, job_id: JobId) -> Result<(), Fault> {
    let [rows, job] =
        session.query([Query::new(LOCK_END).bind(job_id.0), Query::new(FIND).bind(job_id.0)]).await?;
    let Some(row) = rows.first() else {
        return match job.is_empty() {
            true => Ok(()),
            // Another call began it anew, or it ended, between the two looks.
            false => Err(Fault::Again(Shared::new("the job is neither live nor over"))),
        };
    };
    load_ended(ledger, row)
}

/// Takes in all of these that are over.
pub(super) async fn lock_all_ended(
    session: &mut Session,
    ledger: &mut Ledger,
    ids: &[Uuid],
) -> Result<(), Fault> {
    let [rows] = session.query([Query::new(LOCK_ENDS).bind(ids.to_vec())]).await?;
    rows.iter().try_for_each(|row| load_ended(ledger, row))
}

fn load_ended(ledger: &mut Ledger, row: &Row) -> Result<(), Fault> {
    let mut columns = Columns::of(row);
    let end = load::end_row_from(&mut columns)?;
    let spec: String = columns.take()?;
    let spec: JobSpec = from_json("job", end.job_id, &spec)?;
    let seat = Seat {
        owner_id: columns.take()?,
        pool_id: columns.take()?,
        shape_id: ShapeId(columns.take()?),
        priority: spec.priority,
    };
    ledger.load_ended(end.to_job(policy_of(&spec))?, seat);
    Ok(())
}
