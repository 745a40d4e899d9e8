//! Who decides and who lives.

use jobyard_handoff::{AttemptDirectory, Decision, Situation};

use crate::samples;

#[test]
fn a_directory_holds_what_was_put_into_it_until_it_is_removed() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a");
    let (plan, environment) = (samples::plan(), samples::environment());
    let directory = AttemptDirectory::create(&path, &plan, &environment).unwrap();
    assert!(AttemptDirectory::create(&path, &plan, &environment).is_err(), "one attempt a directory");
    assert_eq!(directory.plan().unwrap(), plan);
    assert_eq!(directory.environment().unwrap(), environment);
    directory.remove_environment().unwrap();
    directory.remove_environment().unwrap();
    assert!(directory.environment().is_err());
    assert_eq!(directory.exit_record().unwrap(), None);
    directory.write_exit_record(&samples::record()).unwrap();
    assert_eq!(directory.exit_record().unwrap(), Some(samples::record()));
    directory.remove().unwrap();
    directory.remove().unwrap();
    assert!(!path.exists());
}

#[test]
fn the_first_decision_stands() {
    let root = tempfile::tempdir().unwrap();
    for (first, second) in
        [(Decision::Started, Decision::NotStarted), (Decision::NotStarted, Decision::Started)]
    {
        let path = root.path().join(format!("{first:?}"));
        let directory = AttemptDirectory::create(path, &samples::plan(), &samples::environment()).unwrap();
        assert_eq!(directory.decision().unwrap(), None);
        assert_eq!(directory.decide(first).unwrap(), first);
        assert_eq!(directory.decide(second).unwrap(), first);
        assert_eq!(directory.decision().unwrap(), Some(first));
    }
}

#[test]
fn each_situation_is_told_apart() {
    let root = tempfile::tempdir().unwrap();
    let plan = samples::plan();
    let make = |name: &str| {
        AttemptDirectory::create(root.path().join(name), &plan, &samples::environment()).unwrap()
    };
    let boot = plan.boot_id.as_str();

    let held = make("held");
    let lock = held.try_lock().unwrap().unwrap();
    assert!(held.try_lock().unwrap().is_none());
    assert_eq!(held.situation(&plan, boot).unwrap(), Situation::Alive);
    held.decide(Decision::Started).unwrap();
    drop(lock);
    assert_eq!(held.situation(&plan, boot).unwrap(), Situation::Died);
    held.write_exit_record(&samples::record()).unwrap();
    let ended = Situation::Ended(Box::new(samples::record()));
    assert_eq!(held.situation(&plan, boot).unwrap(), ended);
    assert_eq!(held.situation(&plan, "another").unwrap(), ended, "the truth outlives the boot");

    let fresh = make("fresh");
    assert_eq!(fresh.situation(&plan, boot).unwrap(), Situation::NotStarted);
    assert_eq!(fresh.decide(Decision::Started).unwrap(), Decision::NotStarted);
    assert_eq!(make("old").situation(&plan, "another").unwrap(), Situation::OtherBoot);
}
