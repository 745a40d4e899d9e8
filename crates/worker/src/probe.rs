//! Proving that this node can run something: `/bin/true` through a real sidecar, as any attempt would.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use jobyard_handoff::{
    AttemptDirectory, EndedBy, ExecPlan, ExitRecord, FromSidecar, TaskExit, Times, ToSidecar,
};
use jobyard_model::{JobId, LeaseId, Resources};
use jobyard_runtime::Sidecar;
use tokio::time::timeout;
use uuid::Uuid;

use crate::connection::Connection;
use crate::keeper::clear_away;
use crate::launch::{AttemptRef, Executable, Order};
use crate::node::Node;
use crate::table::Rest;

/// A proof that takes longer is none.
const PATIENCE: Duration = Duration::from_secs(30);

/// `Err` says what is wrong with the node.
pub(crate) async fn prove(node: &Arc<Node>) -> Result<(), String> {
    let slot = node.table().take_slot();
    let (proven, rest) = run(node, slot).await;
    if rest == Rest::Nothing {
        node.table().give_back_slot(slot);
    }
    proven
}

async fn run(node: &Arc<Node>, slot: u32) -> (Result<(), String>, Rest) {
    let maker = Arc::clone(node);
    let made = node.blocking(move || make(&maker, slot)).await;
    let Some(made) = made else { return (Err("the worker ends".to_owned()), Rest::Something) };
    let (plan, directory, Sidecar { process, connection }) = match made {
        Ok(made) => made,
        Err(why) => return (Err(why), Rest::Something),
    };
    let proven = match Connection::over(connection) {
        Ok(connection) => match timeout(PATIENCE, end_of(connection)).await {
            Ok(record) => verdict(record.as_deref()),
            Err(_) => Err(format!("/bin/true did not end in {} s", PATIENCE.as_secs())),
        },
        Err(error) => Err(error.to_string()),
    };
    let clearing = Arc::clone(node);
    let clear = move || clear_away(&clearing.runtime, &plan, &directory, Some(process));
    let rest = node.blocking(clear).await;
    (proven, rest.unwrap_or(Rest::Something))
}

fn make(node: &Node, slot: u32) -> Result<(ExecPlan, AttemptDirectory, Sidecar), String> {
    let order = order();
    let prepared = node.prepare(&order, slot).map_err(|error| error.to_string())?;
    let path = node.places.attempt(slot);
    let directory = AttemptDirectory::create(path, &prepared.plan, &prepared.environment)
        .map_err(|error| error.to_string())?;
    let sidecar = node.sidecars.begin(&directory).map_err(|error| error.to_string())?;
    Ok((prepared.plan, directory, sidecar))
}

/// No job's: nil ids.
fn order() -> Order {
    Order {
        attempt: AttemptRef { job_id: JobId(Uuid::nil()), number: 0, lease_id: LeaseId(Uuid::nil()) },
        executable: Executable::Command,
        input: None,
        outputs_in_s3: false,
        command: vec![OsString::from("/bin/true")],
        environment: Vec::new(),
        has_secrets: false,
        resources: Resources::DEFAULT,
        cpu_limit_milli: None,
        times: Times { timeout_ms: 10_000, ..Times::default() },
        exclusive: false,
        restart: None,
    }
}

async fn end_of(mut connection: Connection) -> Option<Box<ExitRecord>> {
    let mut record = None;
    while let Some(frame) = connection.next().await {
        match frame {
            FromSidecar::Ended(ended) => {
                record = Some(ended);
                connection.say(&ToSidecar::AckOutcome).await;
            }
            // It leaves when the connection closes, and with it the proof.
            FromSidecar::Idle => break,
            FromSidecar::Hello(_)
            | FromSidecar::Started { .. }
            | FromSidecar::Heartbeat { .. }
            | FromSidecar::LogGrew { .. }
            | FromSidecar::Service(_) => {}
        }
    }
    record
}

fn verdict(record: Option<&ExitRecord>) -> Result<(), String> {
    match record {
        None => Err("the sidecar died".to_owned()),
        Some(record) if record.ended_by == EndedBy::Itself && record.exit == Some(TaskExit::Code(0)) => {
            Ok(())
        }
        Some(record) => {
            let fault = record.fault.as_ref().map(|fault| fault.message.clone());
            Err(fault.unwrap_or_else(|| format!("/bin/true ended by {}", record.ended_by.name())))
        }
    }
}
