//! A claimed attempt as a worker is told of it.

use jobyard_api::proto;
use jobyard_model::{BinaryUrl, InputPath, JobKind};
use jobyard_store::Claimed;

/// Everything the worker needs; nothing of it is looked up again.
pub(crate) fn launch_message(claimed: &Claimed) -> proto::Launch {
    let spec = &claimed.spec;
    let (artifact, file, executable_url) = match &spec.binary {
        Some(BinaryUrl::Artifact(hash)) => (hash.0.to_vec(), String::new(), String::new()),
        Some(BinaryUrl::File(path)) => (Vec::new(), path.clone(), String::new()),
        Some(BinaryUrl::S3(place)) => (Vec::new(), String::new(), place.to_string()),
        None => (Vec::new(), String::new(), String::new()),
    };
    let input_url = match &spec.input_path {
        Some(InputPath::S3(place)) => place.to_string(),
        Some(InputPath::Stored(_)) | None => String::new(),
    };
    proto::Launch {
        job_id: claimed.job_id.0.as_bytes().to_vec().into(),
        attempt: claimed.attempt,
        lease_id: claimed.lease_id.0.as_bytes().to_vec().into(),
        artifact: artifact.into(),
        file,
        command: spec.command.clone(),
        env: spec.env.clone().into_iter().collect(),
        timeout_ms: spec.timeout_ms.unwrap_or(0),
        stop_grace_ms: spec.stop_grace_ms,
        cpu_milli: spec.resources.cpu_milli,
        cpu_limit_milli: spec.cpu_limit_milli.unwrap_or(0),
        memory_bytes: spec.resources.memory_bytes,
        exclusive: spec.exclusive,
        runtime: spec.runtime.as_str().to_owned(),
        input: spec.input().map_or_else(Vec::new, |hash| hash.0.to_vec()).into(),
        secrets: spec.has_secret_env,
        restarts: (spec.kind == JobKind::Service).then(|| proto::Restarts {
            backoff_ms: spec.backoff_ms,
            final_exit_codes: spec.no_retry_exit_codes.clone(),
        }),
        executable_url,
        input_url,
        output_url: spec.output_path.as_ref().map_or_else(String::new, ToString::to_string),
    }
}
