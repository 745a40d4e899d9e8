//! Tokens, the audit trail, retention, and the store itself.

use jobyard_model::ids::TokenId;
use jobyard_model::node::NodeGate;
use jobyard_model::{
    ArtifactHash, AttemptEnd, BinaryUrl, ExitFacts, InputPath, JobSpec, LeaseId, LeaseSettings, Outputs,
    Role, S3Url, Status, Timestamp,
};
use jobyard_store::{Actor, ArtifactCutoffs, Cutoffs, LeasedAttempt, NewToken, NewTree, Retired, StoreError};
use uuid::Uuid;

use super::world::{World, ann, exit, new_job, spec, unique, with_key};

fn token(hash: u8, expires_at: Option<Timestamp>) -> NewToken {
    NewToken {
        id: TokenId(Uuid::from_u128(u128::from(unique()))),
        hash: [hash; 32],
        name: format!("token {hash}"),
        role: Role::Submitter,
        owners: vec!["team".to_owned(), "others".to_owned()],
        expires_at,
    }
}

pub(crate) async fn tokens_count_until_revoked(world: &World) {
    let (first, second) = (token(1, None), token(2, None));
    world.store.add_token(&first, &ann()).await.unwrap();
    world.pass(1_000).await;
    world.store.add_token(&second, &ann()).await.unwrap();
    let found = world.store.token_by_hash([1; 32]).await.unwrap().unwrap();
    assert_eq!((found.id, found.role, &found.owners), (first.id, Role::Submitter, &first.owners));
    assert_eq!((found.name.as_str(), found.revoked_at), ("token 1", None));
    assert!(world.store.token_by_hash([3; 32]).await.unwrap().is_none());
    assert!(world.store.revoke_token(first.id, &ann()).await.unwrap());
    assert!(world.store.revoke_token(first.id, &ann()).await.unwrap());
    assert!(!world.store.revoke_token(TokenId(Uuid::nil()), &ann()).await.unwrap());
    assert!(world.store.token_by_hash([1; 32]).await.unwrap().is_none());
    assert!(world.store.token_by_hash([2; 32]).await.unwrap().is_some());
    let all = world.store.tokens().await.unwrap();
    assert_eq!(all.iter().map(|token| token.id).collect::<Vec<_>>(), [second.id, first.id]);
    assert!(all[1].revoked_at.is_some());
}

pub(crate) async fn a_token_may_end(world: &World) {
    let now = world.store.now().await.unwrap();
    world.store.add_token(&token(1, Some(now.plus_ms(60_000))), &ann()).await.unwrap();
    assert!(world.store.token_by_hash([1; 32]).await.unwrap().is_some());
    world.pass(61_000).await;
    assert!(world.store.token_by_hash([1; 32]).await.unwrap().is_none());
}

pub(crate) async fn changing_calls_are_audited(world: &World) {
    let node = world.node().await;
    let hash = ArtifactHash([4; 32]);
    let jobs = world.submit_many(3, &spec()).await;
    world.store.cancel(jobs[0], &ann()).await.unwrap();
    world.store.cancel(jobs[0], &ann()).await.unwrap();
    world.store.retry(jobs[0], None, &ann()).await.unwrap();
    world.store.add_artifact(hash, 3, &ann()).await.unwrap();
    for gate in [NodeGate::Cordoned, NodeGate::Draining, NodeGate::Open] {
        world.store.set_node_gate(node.id(), gate, &ann()).await.unwrap();
    }
    world.store.put_pool("gpu", &ann()).await.unwrap();
    let token = token(1, None);
    world.store.add_token(&token, &ann()).await.unwrap();
    let bob = Actor { name: "b\0ob".to_owned(), address: "10.0.0.1".to_owned() };
    world.store.revoke_token(token.id, &bob).await.unwrap();

    let trail = world.store.audit(None, 100).await.unwrap();
    let actions: Vec<_> = trail.iter().rev().map(|record| record.action.as_str()).collect();
    assert_eq!(
        actions,
        [
            "job.submit",
            "job.cancel",
            "job.retry",
            "artifact.add",
            "node.cordon",
            "node.drain",
            "node.uncordon",
            "pool.put",
            "token.create",
            "token.revoke",
        ]
    );
    assert_eq!(trail[0].who, "b\u{fffd}ob");
    assert_eq!(
        (trail[0].address.as_str(), trail[0].target.as_str()),
        ("10.0.0.1", token.id.to_string().as_str())
    );
    assert!(trail[9].detail.contains('3'), "{:?}", trail[9]);
    assert_eq!(trail[8].target, jobs[0].to_string());
    assert_eq!(world.store.audit(Some(trail[3].number), 2).await.unwrap(), trail[4..6]);
    let at = async |time| world.store.audit_number_at(time).await.unwrap();
    assert_eq!(at(trail[0].at).await, Some(trail[0].number));
    assert_eq!(at(Timestamp(trail[9].at.0 - 1)).await, None);
}

pub(crate) async fn old_things_are_removed_a_batch_at_a_time(world: &World) {
    let node = world.node().await;
    let keyed = world.submit_all(vec![with_key(spec(), "old", 1)]).await[0].id;
    let claimed = world.claim(&[keyed], &node).await.remove(0);
    world.end(&claimed, exit(0)).await;
    let mut old = vec![keyed];
    for _ in 0..4 {
        old.push(world.ended(spec(), &node).await);
    }
    let live = world.submit_all(vec![with_key(spec(), "live", 1)]).await[0].id;
    world.pass(100_000).await;
    let young = world.submit_all(vec![with_key(spec(), "young", 1)]).await[0].id;
    world.store.cancel(young, &ann()).await.unwrap();
    let cutoff = Timestamp(world.store.now().await.unwrap().0 - 50_000);
    let cutoffs = Cutoffs { jobs: cutoff, keys: cutoff, audit: cutoff };

    let first = world.store.remove_old(cutoffs, 3).await.unwrap();
    assert_eq!((first.jobs, first.keys, first.audit), (3, 1, 3));
    let mut audit = first.audit;
    let second = world.store.remove_old(cutoffs, 3).await.unwrap();
    assert_eq!((second.jobs, second.keys), (2, 0));
    audit += second.audit + world.store.remove_old(cutoffs, 100).await.unwrap().audit;
    assert_eq!(audit, 6);
    for job_id in old {
        assert!(world.store.job(job_id).await.unwrap().is_none());
        assert!(world.store.attempts(job_id).await.unwrap().is_empty());
    }
    assert!(world.store.job(live).await.unwrap().is_some());
    assert!(world.store.job(young).await.unwrap().is_some());
    assert!(!world.submit_all(vec![with_key(spec(), "live", 1)]).await[0].created);
    assert!(!world.submit_all(vec![with_key(spec(), "young", 1)]).await[0].created);
    assert!(world.submit_all(vec![with_key(spec(), "old", 9)]).await[0].created);
}

pub(crate) async fn a_lease_may_fetch_what_its_attempt_needs(world: &World) {
    let node = world.node().await;
    let [program, manifest, file, other] = [[5; 32], [6; 32], [7; 32], [8; 32]].map(ArtifactHash);
    for hash in [program, file, other] {
        world.store.add_artifact(hash, 10, &ann()).await.unwrap();
    }
    let tree =
        NewTree { hash: manifest, manifest_bytes: 90, artifacts: vec![file], files: 1, size_bytes: 10 };
    assert!(world.store.add_tree(tree, &ann()).await.unwrap());
    let with = JobSpec {
        binary: Some(BinaryUrl::Artifact(program)),
        input_path: Some(InputPath::Stored(manifest)),
        ..spec()
    };
    let with = world.placed(with, &node).await;
    let without = world.placed(spec(), &node).await;
    let may = async |lease_id, hash| world.store.lease_may_fetch(lease_id, hash).await.unwrap();
    for hash in [program, manifest, file] {
        assert!(may(with.lease_id, hash).await);
        assert!(!may(without.lease_id, hash).await);
        assert!(!may(LeaseId(Uuid::nil()), hash).await);
    }
    assert!(!may(with.lease_id, other).await);
    world.end(&with, exit(0)).await;
    assert!(!may(with.lease_id, program).await);
}

pub(crate) async fn a_lease_says_what_its_job_says(world: &World) {
    let node = world.node().await;
    let place = |text: &str| text.parse::<S3Url>().unwrap();
    let names_s3 = JobSpec {
        binary: Some(BinaryUrl::S3(place("s3://bucket/program"))),
        input_path: Some(InputPath::S3(place("s3://bucket/in/"))),
        output_path: Some(place("s3://bucket/out")),
        ..spec()
    };
    let first = world.placed(names_s3.clone(), &node).await;
    let other = world.placed(spec(), &node).await;
    let leased = async |lease_id| world.store.leased_attempt(lease_id).await.unwrap();
    let found = leased(first.lease_id).await.unwrap();
    assert_eq!(found, LeasedAttempt { job_id: first.job_id, attempt: 1, spec: names_s3 });
    assert_eq!(leased(other.lease_id).await.unwrap().job_id, other.job_id);
    assert_eq!(leased(LeaseId(Uuid::nil())).await, None);
    let shown = "SELECT binary_url || ' ' || input_path || ' ' || output_path FROM job_table \
        WHERE input_path IS NOT NULL";
    assert_eq!(world.dialect.ask(shown).await, ["s3://bucket/program s3://bucket/in/ s3://bucket/out"]);
    world.end(&first, exit(0)).await;
    assert_eq!(leased(first.lease_id).await, None);
}

/// A pass for what was not used for a minute, and was doomed a minute ago.
async fn retire(world: &World) -> Retired {
    let minute_ago = Timestamp(world.store.now().await.unwrap().0 - 60_000);
    let cutoffs = ArtifactCutoffs { unused: minute_ago, doomed: minute_ago };
    world.store.retire_artifacts(cutoffs, 100).await.unwrap()
}

async fn is_known(world: &World, hash: ArtifactHash) -> bool {
    world.store.artifact(hash).await.unwrap().is_some()
}

pub(crate) async fn artifacts_go_when_nobody_needs_them(world: &World) {
    let node = world.node().await;
    let [program, manifest, file, loose, output] =
        [[1; 32], [2; 32], [3; 32], [4; 32], [5; 32]].map(ArtifactHash);
    for hash in [program, file, loose] {
        world.store.add_artifact(hash, 10, &ann()).await.unwrap();
    }
    for hash in [manifest, output] {
        let tree = NewTree { hash, manifest_bytes: 90, artifacts: vec![file], files: 1, size_bytes: 10 };
        assert!(world.store.add_tree(tree, &ann()).await.unwrap());
    }
    let wants = JobSpec {
        binary: Some(BinaryUrl::Artifact(program)),
        input_path: Some(InputPath::Stored(manifest)),
        ..spec()
    };
    let claimed = world.running(wants, &node).await;
    let AttemptEnd::Exited(facts) = exit(0) else { panic!() };
    let end = AttemptEnd::Exited(ExitFacts { outputs: Outputs::Kept(output), ..facts });
    world.end(&claimed, end).await;
    assert_eq!(retire(world).await, Retired::default(), "all were just used");

    world.pass(100_000).await;
    assert_eq!(retire(world).await, Retired { doomed: 1, removed: 0, needed: 4 });
    assert!(is_known(world, loose).await, "and there for whoever has seen it");
    world.pass(100_000).await;
    let pass = retire(world).await;
    assert_eq!((pass.doomed, pass.removed), (0, 1));
    assert!(!is_known(world, loose).await);
    let leftovers = world.store.leftover_artifacts(10).await.unwrap();
    assert_eq!(leftovers.iter().map(|leftover| leftover.hash).collect::<Vec<_>>(), [loose]);
    assert!(world.store.now().await.unwrap().ms_since(leftovers[0].since) < 60_000);
    world.store.forget_leftover(loose).await.unwrap();
    assert!(world.store.leftover_artifacts(10).await.unwrap().is_empty());

    // The job goes, then its trees, then what was in them.
    world.pass(100_000).await;
    let now = world.store.now().await.unwrap();
    let cutoffs = Cutoffs { jobs: now, keys: now, audit: Timestamp(0) };
    assert_eq!(world.store.remove_old(cutoffs, 10).await.unwrap().jobs, 1);
    let mut removed = 0;
    for _ in 0..6 {
        removed += retire(world).await.removed;
        world.pass(100_000).await;
    }
    assert_eq!(removed, 4);
    assert_eq!(world.store.tree(manifest).await.unwrap(), None);
    for hash in [program, manifest, file, output] {
        assert!(!is_known(world, hash).await);
    }
}

pub(crate) async fn a_submit_that_names_a_doomed_artifact_spares_it(world: &World) {
    let [asked, named, pushed, gone] = [[1; 32], [2; 32], [3; 32], [4; 32]].map(ArtifactHash);
    for hash in [asked, named, pushed, gone] {
        world.store.add_artifact(hash, 10, &ann()).await.unwrap();
    }
    world.pass(100_000).await;
    assert_eq!(retire(world).await.doomed, 4);
    let wants = |hash| JobSpec { binary: Some(BinaryUrl::Artifact(hash)), ..spec() };
    assert_eq!(world.store.artifact_sizes(vec![asked]).await.unwrap(), [Some(10)]);
    assert_eq!(world.status(world.submit(wants(named)).await).await, Status::Waiting);
    world.store.add_artifact(pushed, 10, &ann()).await.unwrap();
    world.pass(61_000).await;
    assert_eq!(retire(world).await.removed, 1);
    for hash in [asked, named, pushed] {
        assert!(is_known(world, hash).await);
    }
    let late = world.submit(wants(gone)).await;
    assert_eq!(world.status(late).await, Status::Ready);
    world.store.add_artifact(gone, 10, &ann()).await.unwrap();
    assert_eq!(world.status(late).await, Status::Waiting);
}

pub(crate) async fn leases_and_now_are_known(world: &World) {
    assert_eq!(world.store.lease_settings(), LeaseSettings::default());
    assert_eq!(world.store.kind(), world.dialect.kind());
    let record = world.job(world.submit(spec()).await).await;
    let now = world.store.now().await.unwrap();
    assert!(now.ms_since(record.created_at) < 60_000 && record.created_at.ms_since(now) < 1_000);
}

pub(crate) async fn a_closed_store_says_so(world: &World) {
    let job_id = world.submit(spec()).await;
    world.store.close().await;
    world.store.close().await;
    let read = world.store.job(job_id).await.unwrap_err();
    assert!(matches!(read, StoreError::Unavailable { .. }), "{read}");
    let written = world.store.submit(vec![new_job(spec())], &ann()).await.unwrap_err();
    assert!(written.to_string().contains("could not be reached"), "{written}");
}
