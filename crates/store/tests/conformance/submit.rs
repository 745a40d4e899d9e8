//! Accepting jobs.

use std::sync::Arc;

use jobyard_model::{ArtifactHash, BinaryUrl, InputPath, JobSpec, JobState, Status, Timestamp};
use jobyard_store::{JobQuery, NewTree, SubmitError, TreeRecord};

use super::world::{World, ann, new_job, spec, with_key};

pub(crate) async fn a_job_is_accepted_as_it_was_submitted(world: &World) {
    let mut wanted = spec();
    wanted.env.insert("LANG".to_owned(), "ça va \u{1f600}\n".to_owned());
    wanted.labels.insert("run".to_owned(), "7".to_owned());
    wanted.no_retry_exit_codes = vec![3, 250];
    wanted.start_within_ms = Some(60_000);
    let job = new_job(wanted.clone());
    let submitted = world.submit_all(vec![job.clone()]).await;
    assert_eq!((submitted[0].id, submitted[0].created), (job.id, true));

    let record = world.job(job.id).await;
    assert_eq!(record.spec, wanted);
    assert_eq!(record.submitted_by, "ann");
    assert_eq!(record.job.policy.budgets.no_retry_exit_codes, [3, 250]);
    assert_eq!((record.job.status(), record.job.round, record.job.last_attempt), (Status::Waiting, 1, 0));
    assert_eq!(record.job.start_deadline, Some(record.created_at.plus_ms(60_000)));
    assert!(world.store.job(super::world::new_job_id()).await.unwrap().is_none());
}

pub(crate) async fn a_key_gives_the_job_it_made(world: &World) {
    let first = world.submit_all(vec![with_key(spec(), "k", 1)]).await;
    let again = world.submit_all(vec![with_key(spec(), "k", 1)]).await;
    assert_eq!((again[0].id, again[0].created), (first[0].id, false));
    let record = world.job(first[0].id).await;
    assert_eq!(record.idempotency_key.as_deref(), Some("k"));
    assert_eq!(all_jobs(world).await, 1);
}

pub(crate) async fn another_spec_is_a_conflict(world: &World) {
    let first = world.submit_all(vec![with_key(spec(), "k", 1)]).await[0].id;
    let batch = vec![new_job(spec()), with_key(spec(), "k", 2)];
    let refused = world.store.submit(batch, &ann()).await.unwrap_err();
    assert!(matches!(refused, SubmitError::KeyConflict { index: 1, job_id } if job_id == first), "{refused}");
    assert_eq!(all_jobs(world).await, 1);
}

pub(crate) async fn a_key_is_the_owners_own(world: &World) {
    let other = JobSpec { owner: "others".to_owned(), ..spec() };
    let submitted = world.submit_all(vec![with_key(spec(), "k", 1), with_key(other, "k", 2)]).await;
    assert!(submitted.iter().all(|submitted| submitted.created));
    assert_ne!(submitted[0].id, submitted[1].id);
}

pub(crate) async fn keys_within_one_batch(world: &World) {
    let batch = vec![with_key(spec(), "k", 1), with_key(spec(), "k", 1), with_key(spec(), "l", 1)];
    let submitted = world.submit_all(batch).await;
    assert_eq!(submitted.iter().map(|submitted| submitted.created).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(submitted[0].id, submitted[1].id);

    let batch = vec![with_key(spec(), "m", 1), with_key(spec(), "m", 2)];
    let first = batch[0].id;
    let refused = world.store.submit(batch, &ann()).await.unwrap_err();
    assert!(matches!(refused, SubmitError::KeyConflict { index: 1, job_id } if job_id == first), "{refused}");
    assert_eq!(all_jobs(world).await, 2);
}

pub(crate) async fn a_key_used_at_the_same_time_makes_one_job(world: &World) {
    let mut calls = Vec::new();
    for number in 0..16 {
        let store = if number % 2 == 0 { Arc::clone(&world.store) } else { world.dialect.another().await };
        calls.push(tokio::spawn(async move {
            store.submit(vec![with_key(spec(), "k", 1)], &ann()).await.unwrap().remove(0)
        }));
    }
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.unwrap());
    }
    assert!(answers.iter().all(|answer| answer.id == answers[0].id));
    assert_eq!(answers.iter().filter(|answer| answer.created).count(), 1);
    assert_eq!(all_jobs(world).await, 1);
}

pub(crate) async fn an_unknown_commit_may_be_sent_again(world: &World) {
    let batch = vec![new_job(spec()), with_key(spec(), "k", 1)];
    let first = world.submit_all(batch.clone()).await;
    let again = world.submit_all(batch).await;
    assert_eq!(first, again);
    assert_eq!(all_jobs(world).await, 2);
}

pub(crate) async fn all_or_none(world: &World) {
    let bad = JobSpec { pool: "nowhere".to_owned(), owner: "others".to_owned(), ..spec() };
    let mut batch: Vec<_> = (0..99).map(|_| new_job(spec())).collect();
    batch.push(new_job(bad));
    assert!(world.store.submit(batch, &ann()).await.is_err());
    assert_eq!(all_jobs(world).await, 0);
    let audit = world.store.audit(None, 10).await.unwrap();
    assert!(audit.is_empty(), "{audit:?}");
}

pub(crate) async fn an_unknown_pool_says_which_there_are(world: &World) {
    world.store.put_pool("gpu", &ann()).await.unwrap();
    let bad = JobSpec { pool: "nowhere".to_owned(), ..spec() };
    let refused = world.store.submit(vec![new_job(spec()), new_job(bad)], &ann()).await.unwrap_err();
    let SubmitError::UnknownPool { index, pool, known } = refused else { panic!("{refused}") };
    assert_eq!((index, pool.as_str()), (1, "nowhere"));
    assert_eq!(known, ["default", "gpu"]);
}

pub(crate) async fn the_limit_of_an_owner_holds(world: &World) {
    let limit = usize::try_from(world.max_unended_per_owner).unwrap();
    let jobs = world.submit_many(limit, &spec()).await;
    let refused = world.store.submit(vec![new_job(spec())], &ann()).await.unwrap_err();
    assert!(matches!(refused, SubmitError::TooManyJobs { .. }), "{refused}");
    let other = JobSpec { owner: "others".to_owned(), ..spec() };
    world.submit(other).await;
    world.store.cancel(jobs[0], &ann()).await.unwrap();
    world.submit(spec()).await;
    assert!(world.store.submit(vec![new_job(spec())], &ann()).await.is_err());
}

pub(crate) async fn ten_thousand_in_one_call(world: &World) {
    let jobs = world.submit_many(10_000, &spec()).await;
    let counts = world.store.summary().await.unwrap().counts;
    let waiting = counts.iter().find(|count| count.status == Status::Waiting).unwrap();
    assert_eq!((waiting.count, waiting.capped), (10_000, false));
    assert_eq!(world.status(jobs[9_999]).await, Status::Waiting);
}

pub(crate) async fn what_is_outstanding_makes_it_ready(world: &World) {
    let now = world.store.now().await.unwrap();
    let later = JobSpec { run_at: Some(now.plus_ms(3_600_000)), ..spec() };
    let past = JobSpec { run_at: Some(Timestamp(1)), ..spec() };
    let record = world.job(world.submit(later.clone()).await).await;
    assert_eq!(record.job.state, JobState::Ready { due: later.run_at, artifact_missing: false });
    assert_eq!(record.reason(now), "run_at");
    assert_eq!(world.status(world.submit(past).await).await, Status::Waiting);
}

pub(crate) async fn an_artifact_frees_who_waits_for_it(world: &World) {
    let hash = ArtifactHash([9; 32]);
    let wants = JobSpec { binary: Some(BinaryUrl::Artifact(hash)), ..spec() };
    let jobs = world.submit_many(3, &wants).await;
    world.store.cancel(jobs[2], &ann()).await.unwrap();
    let record = world.job(jobs[0]).await;
    assert_eq!(record.job.state, JobState::Ready { due: None, artifact_missing: true });
    assert!(record.job.start_deadline.is_some());
    assert_eq!(world.store.artifact(hash).await.unwrap(), None);

    world.store.add_artifact(hash, 12, &ann()).await.unwrap();
    world.store.add_artifact(hash, 12, &ann()).await.unwrap();
    assert_eq!(world.store.artifact(hash).await.unwrap(), Some(12));
    assert_eq!(world.status(jobs[0]).await, Status::Waiting);
    assert_eq!(world.status(jobs[1]).await, Status::Waiting);
    assert_eq!(world.status(jobs[2]).await, Status::Cancelled);
    assert_eq!(world.job(jobs[0]).await.job.start_deadline, None);
    assert_eq!(world.status(world.submit(wants).await).await, Status::Waiting);
}

pub(crate) async fn many_artifacts_in_one_call_free_who_waits_for_them(world: &World) {
    let hash = |number: u16| {
        let mut bytes = [3; 32];
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        ArtifactHash(bytes)
    };
    let wants = JobSpec {
        binary: Some(BinaryUrl::Artifact(hash(1))),
        input_path: Some(InputPath::Stored(hash(449))),
        ..spec()
    };
    let jobs = world.submit_many(2, &wants).await;
    let other = JobSpec { input_path: Some(InputPath::Stored(hash(999))), ..wants };
    let other = world.submit(other).await;
    world.store.add_artifact(hash(7), 7, &ann()).await.unwrap();
    let mut artifacts: Vec<_> = (0..450).map(|number| (hash(number), u64::from(number))).collect();
    artifacts.push((hash(3), 3));
    world.store.add_artifacts(artifacts.clone(), &ann()).await.unwrap();
    world.store.add_artifacts(artifacts.clone(), &ann()).await.unwrap();
    world.store.add_artifacts(Vec::new(), &ann()).await.unwrap();

    let hashes = artifacts.iter().map(|(hash, _)| *hash).collect();
    let sizes = world.store.artifact_sizes(hashes).await.unwrap();
    assert!(sizes.iter().zip(&artifacts).all(|(found, (_, size))| *found == Some(*size)), "{sizes:?}");
    for job_id in jobs {
        assert_eq!(world.status(job_id).await, Status::Waiting);
    }
    assert_eq!(world.status(other).await, Status::Ready);
    let audit = world.store.audit(None, 1_000).await.unwrap();
    let mut added: Vec<_> = audit.iter().filter(|row| row.action == "artifact.add").collect();
    added.sort_by(|one, other| one.target.cmp(&other.target));
    assert_eq!(added.len(), 450, "each is noted once");
    assert_eq!((&*added[3].target, &*added[3].detail), (&*hash(3).to_string(), "3 bytes"));
}

pub(crate) async fn a_job_waits_for_all_its_artifacts(world: &World) {
    let [program, input] = [[5; 32], [6; 32]].map(ArtifactHash);
    let wants = JobSpec {
        binary: Some(BinaryUrl::Artifact(program)),
        input_path: Some(InputPath::Stored(input)),
        ..spec()
    };
    let job_id = world.submit(wants.clone()).await;
    world.store.add_artifact(program, 1, &ann()).await.unwrap();
    assert_eq!(world.status(job_id).await, Status::Ready);
    let second = world.submit(wants.clone()).await;
    let same = world.submit(JobSpec { input_path: Some(InputPath::Stored(program)), ..wants }).await;
    assert_eq!(world.status(same).await, Status::Waiting);
    world.store.add_artifact(input, 1, &ann()).await.unwrap();
    for job_id in [job_id, second] {
        assert_eq!(world.status(job_id).await, Status::Waiting);
        assert_eq!(world.job(job_id).await.spec.input(), Some(input));
    }
}

pub(crate) async fn a_tree_is_known_with_all_its_files_or_not_at_all(world: &World) {
    let [hash, first, second] = [[1; 32], [2; 32], [3; 32]].map(ArtifactHash);
    let tree =
        NewTree { hash, manifest_bytes: 300, artifacts: vec![first, second], files: 3, size_bytes: 25 };
    let waits = JobSpec { binary: Some(BinaryUrl::Artifact(hash)), ..spec() };
    let job_id = world.submit(waits).await;
    world.store.add_artifact(first, 10, &ann()).await.unwrap();
    assert!(!world.store.add_tree(tree.clone(), &ann()).await.unwrap());
    assert_eq!(world.store.tree(hash).await.unwrap(), None);
    assert_eq!(world.store.artifact(hash).await.unwrap(), None);

    world.store.add_artifact(second, 5, &ann()).await.unwrap();
    for _ in 0..2 {
        assert!(world.store.add_tree(tree.clone(), &ann()).await.unwrap());
    }
    assert_eq!(world.store.tree(hash).await.unwrap(), Some(TreeRecord { files: 3, size_bytes: 25 }));
    assert_eq!(world.status(job_id).await, Status::Waiting);
    let unknown = ArtifactHash([4; 32]);
    let sizes = world.store.artifact_sizes(vec![second, unknown, hash, first]).await.unwrap();
    assert_eq!(sizes, [Some(5), None, Some(300), Some(10)]);
    let audit = world.store.audit(None, 10).await.unwrap();
    assert_eq!(audit.iter().filter(|record| record.action == "tree.add").count(), 1);

    let empty = NewTree { hash: unknown, artifacts: Vec::new(), files: 0, size_bytes: 0, ..tree };
    assert!(world.store.add_tree(empty, &ann()).await.unwrap());
}

async fn all_jobs(world: &World) -> usize {
    let query = JobQuery { limit: 500, ..JobQuery::default() };
    world.store.jobs(&query).await.unwrap().items.len()
}
