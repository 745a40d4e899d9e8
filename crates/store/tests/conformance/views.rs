//! Saved views: whose they are, who sees them, who changed them last.

use jobyard_store::{Actor, NewView, ViewChange, ViewRecord};
use uuid::Uuid;

use super::world::{World, ann, unique};

fn new(name: &str, shared: bool) -> NewView {
    let id = Uuid::from_u128(u128::from(unique()));
    NewView { id, name: name.to_owned(), filter: "status=running".to_owned(), shared }
}

fn bob() -> Actor {
    Actor { name: "bob".to_owned(), ..ann() }
}

fn done(change: ViewChange) -> ViewRecord {
    match change {
        ViewChange::Done(record) => record,
        refused => panic!("{refused:?}"),
    }
}

async fn names(world: &World, principal: &str) -> Vec<String> {
    world.store.views(principal).await.unwrap().into_iter().map(|record| record.view.name).collect()
}

pub(crate) async fn views_are_private_or_shared(world: &World) {
    let store = &world.store;
    let own = done(store.add_view(&new("mine", false), &ann()).await.unwrap());
    assert_eq!(
        (own.version, own.created_by.as_str(), own.view.filter.as_str()),
        (1, "ann", "status=running")
    );
    done(store.add_view(&new("all", true), &ann()).await.unwrap());
    done(store.add_view(&new("mine", false), &bob()).await.unwrap());
    assert_eq!(names(world, "ann").await, ["all", "mine"]);
    assert_eq!(names(world, "bob").await, ["all", "mine"]);
    assert_eq!(names(world, "cid").await, ["all"]);
    assert_eq!(store.add_view(&new("mine", true), &ann()).await.unwrap(), ViewChange::NameTaken);
    assert_eq!(store.view(own.view.id).await.unwrap(), Some(own));
    assert_eq!(store.view(Uuid::nil()).await.unwrap(), None);
}

pub(crate) async fn a_change_names_what_it_changes(world: &World) {
    let store = &world.store;
    let first = done(store.add_view(&new("mine", false), &ann()).await.unwrap());
    done(store.add_view(&new("other", false), &ann()).await.unwrap());
    world.pass(1_000).await;
    let wanted = NewView { filter: "status=retry".to_owned(), shared: true, ..first.view.clone() };
    let changed = done(store.change_view(&wanted, Some(1), &ann()).await.unwrap());
    assert_eq!((changed.version, &changed.view), (2, &wanted));
    assert!(changed.changed_at > first.changed_at && changed.created_at == first.created_at);
    assert_eq!(store.change_view(&first.view, Some(1), &ann()).await.unwrap(), ViewChange::ChangedMeanwhile);
    assert_eq!(
        store.remove_view(first.view.id, Some(1), &ann()).await.unwrap(),
        ViewChange::ChangedMeanwhile
    );
    assert_eq!(store.view(first.view.id).await.unwrap(), Some(changed));
    let taken = NewView { name: "other".to_owned(), ..first.view.clone() };
    assert_eq!(store.change_view(&taken, None, &ann()).await.unwrap(), ViewChange::NameTaken);
    assert_eq!(done(store.change_view(&first.view, None, &ann()).await.unwrap()).version, 3);
    done(store.remove_view(first.view.id, None, &ann()).await.unwrap());
    for gone in [
        store.remove_view(first.view.id, None, &ann()).await.unwrap(),
        store.change_view(&first.view, None, &ann()).await.unwrap(),
    ] {
        assert_eq!(gone, ViewChange::NotFound);
    }
    let audit = store.audit(None, 100).await.unwrap();
    let actions: Vec<_> =
        audit.iter().map(|row| row.action.as_str()).filter(|action| action.starts_with("view")).collect();
    assert_eq!(actions, ["view.delete", "view.change", "view.change", "view.create", "view.create"]);
}
