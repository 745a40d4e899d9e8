//! What jobs have to hide: kept as it was sealed, told to the lease of an attempt that is about to start.

use jobyard_model::JobSpec;
use jobyard_store::{Cutoffs, NewJob, NewSecrets, SealedSecrets, SubmitError};

use super::World;
use super::world::{ann, exit, new_job, spec, with_key};
use jobyard_store::Report;

fn sealed(bytes: &[u8]) -> SealedSecrets {
    SealedSecrets { key_id: "one".to_owned(), sealed: bytes.to_vec() }
}

fn hiding(job: NewJob, bytes: &[u8], earlier_hashes: Vec<[u8; 32]>) -> NewJob {
    let spec = JobSpec { has_secret_env: true, ..job.spec };
    NewJob { spec, secrets: Some(NewSecrets { sealed: sealed(bytes), earlier_hashes }), ..job }
}

pub(crate) async fn secrets_are_told_to_an_attempt_about_to_start(world: &World) {
    let node = world.node().await;
    let hidden = b"\0\xffsealed".as_slice();
    let job = hiding(new_job(spec()), hidden, Vec::new());
    let job_id = job.id;
    world.submit_all(vec![new_job(spec()), job, hiding(new_job(spec()), b"other", Vec::new())]).await;
    assert!(world.job(job_id).await.spec.has_secret_env);
    let claimed = world.claim(&[job_id], &node).await.remove(0);
    assert!(claimed.spec.has_secret_env);
    let ask = async |lease_id| world.store.secrets_of_lease(lease_id).await.unwrap();
    assert_eq!(ask(claimed.lease_id).await, None, "it was not accepted");
    world.report(&claimed, Report::Accepted).await;
    for _ in 0..2 {
        assert_eq!(ask(claimed.lease_id).await, Some((job_id, sealed(hidden))));
    }
    world.report(&claimed, Report::Started).await;
    assert_eq!(ask(claimed.lease_id).await, None, "it has them");
    world.end(&claimed, exit(1)).await;
    assert_eq!(ask(claimed.lease_id).await, None);
    // The next attempt gets them, also that of a round begun by hand.
    world.store.cancel(job_id, &ann()).await.unwrap();
    world.store.retry(job_id, None, &ann()).await.unwrap();
    let again = world.claim(&[job_id], &node).await.remove(0);
    world.report(&again, Report::Accepted).await;
    assert_eq!(ask(again.lease_id).await, Some((job_id, sealed(hidden))));

    let without = world.placed(spec(), &node).await;
    world.report(&without, Report::Accepted).await;
    assert_eq!(ask(without.lease_id).await, None);
}

pub(crate) async fn secrets_go_with_their_job(world: &World) {
    let node = world.node().await;
    let job = hiding(new_job(spec()), b"sealed", Vec::new());
    let job_id = job.id;
    world.submit_all(vec![job]).await;
    let claimed = world.claim(&[job_id], &node).await.remove(0);
    world.end(&claimed, exit(0)).await;
    let kept = "SELECT cast(count(*) AS text) FROM job_secret";
    assert_eq!(world.dialect.ask(kept).await, ["1"]);
    world.pass(10_000).await;
    let now = world.store.now().await.unwrap();
    let cutoffs = Cutoffs { jobs: now, keys: now, audit: now };
    assert_eq!(world.store.remove_old(cutoffs, 10).await.unwrap().jobs, 1);
    assert_eq!(world.dialect.ask(kept).await, ["0"]);
}

pub(crate) async fn a_job_is_known_again_by_an_earlier_key_of_the_server(world: &World) {
    let first = hiding(with_key(spec(), "k", 1), b"first", Vec::new());
    let first_id = first.id;
    world.submit_all(vec![first]).await;
    // The same spec under a new key, which knows what it was under the one before.
    let again = || hiding(with_key(spec(), "k", 2), b"again", vec![[9; 32], [1; 32]]);
    let known = world.submit_all(vec![again(), again()]).await;
    assert!(known.iter().all(|submitted| submitted.id == first_id && !submitted.created));
    let other = hiding(with_key(spec(), "k", 3), b"other", vec![[9; 32]]);
    let refused = world.store.submit(vec![other], &ann()).await.unwrap_err();
    assert!(matches!(refused, SubmitError::KeyConflict { index: 0, job_id } if job_id == first_id));
    assert_eq!(world.dialect.ask("SELECT cast(count(*) AS text) FROM job_secret").await, ["1"]);
}
