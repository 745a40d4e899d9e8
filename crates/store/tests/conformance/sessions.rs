//! Sessions of people in browsers.

use jobyard_model::Role;
use jobyard_model::ids::TokenId;
use jobyard_store::{NewLogin, NewSession, NewToken, SessionKey, SessionRecord};
use uuid::Uuid;

use super::world::{World, ann, unique};

const HOUR_MS: u64 = 3_600_000;

/// A token that ends after so many milliseconds, in the datastore.
async fn token(world: &World, hash: u8, lasts_ms: Option<u64>) -> NewToken {
    let now = world.store.now().await.unwrap();
    let token = NewToken {
        id: TokenId(Uuid::from_u128(u128::from(unique()))),
        hash: [hash; 32],
        name: format!("token {hash}"),
        role: Role::Operator,
        owners: vec!["team".to_owned()],
        expires_at: lasts_ms.map(|lasts_ms| now.plus_ms(lasts_ms)),
    };
    world.store.add_token(&token, &ann()).await.unwrap();
    token
}

async fn begin(world: &World, key: SessionKey, hash: u8) -> Option<SessionRecord> {
    let session = NewSession { hash: [hash; 32], lasts_ms: HOUR_MS };
    world.store.begin_session(key, session, "10.0.0.1").await.unwrap()
}

async fn found(world: &World, hash: u8) -> Option<SessionRecord> {
    world.store.session_by_hash([hash; 32]).await.unwrap()
}

async fn login(world: &World, hash: u8, token: &NewToken) {
    let login = NewLogin { hash: [hash; 32], token_id: token.id, lasts_ms: 60_000 };
    world.store.add_login(login, &ann()).await.unwrap();
}

pub(crate) async fn a_token_begins_sessions_that_end(world: &World) {
    let token = token(world, 1, None).await;
    let key = SessionKey::Token([1; 32]);
    let begun = begin(world, key, 11).await.unwrap();
    assert_eq!((begun.token.id, begun.token.role), (token.id, Role::Operator));
    assert!(begin(world, key, 12).await.is_some());
    assert!(begin(world, SessionKey::Token([9; 32]), 13).await.is_none());
    assert!(found(world, 13).await.is_none());
    assert_eq!(found(world, 11).await, Some(begun));

    assert!(world.store.end_session([11; 32], &ann()).await.unwrap());
    assert!(!world.store.end_session([11; 32], &ann()).await.unwrap());
    assert!(found(world, 11).await.is_none());
    world.pass(3_599_000).await;
    assert!(found(world, 12).await.is_some());
    world.pass(2_000).await;
    assert!(found(world, 12).await.is_none(), "past its end");

    let trail = world.store.audit(None, 10).await.unwrap();
    let said: Vec<_> = trail.iter().map(|record| (record.action.as_str(), record.who.as_str())).collect();
    assert_eq!(
        said,
        [
            ("session.end", "ann"),
            ("session.begin", "token 1"),
            ("session.begin", "token 1"),
            ("token.create", "ann")
        ]
    );
    assert_eq!((trail[1].target.clone(), trail[1].address.as_str()), (token.id.to_string(), "10.0.0.1"));
}

pub(crate) async fn a_login_code_begins_one_session(world: &World) {
    let token = token(world, 1, None).await;
    login(world, 21, &token).await;
    assert!(begin(world, SessionKey::Token([21; 32]), 11).await.is_none(), "no token");
    assert!(begin(world, SessionKey::Login([1; 32]), 11).await.is_none(), "no code");
    let key = SessionKey::Login([21; 32]);
    let two = tokio::join!(begin(world, key, 11), begin(world, key, 12));
    assert_eq!(usize::from(two.0.is_some()) + usize::from(two.1.is_some()), 1, "{two:?}");
    assert!(begin(world, key, 13).await.is_none(), "used");

    login(world, 22, &token).await;
    world.pass(60_001).await;
    assert!(begin(world, SessionKey::Login([22; 32]), 14).await.is_none(), "past its end");
}

pub(crate) async fn a_session_goes_with_its_token(world: &World) {
    let (revoked, short) = (token(world, 1, None).await, token(world, 2, Some(30_000)).await);
    login(world, 21, &revoked).await;
    assert!(begin(world, SessionKey::Token([1; 32]), 11).await.is_some());
    let begun = begin(world, SessionKey::Token([2; 32]), 12).await.unwrap();
    assert_eq!(Some(begun.expires_at), short.expires_at);
    world.store.revoke_token(revoked.id, &ann()).await.unwrap();
    assert!(found(world, 11).await.is_none(), "its token is revoked");
    assert!(begin(world, SessionKey::Login([21; 32]), 13).await.is_none());
    assert!(begin(world, SessionKey::Token([1; 32]), 13).await.is_none());
    world.pass(30_001).await;
    assert!(found(world, 12).await.is_none(), "its token is past its end");
}

pub(crate) async fn sessions_hold_on_every_server(world: &World) {
    token(world, 1, None).await;
    let begun = begin(world, SessionKey::Token([1; 32]), 11).await;
    let other = world.dialect.another().await;
    assert_eq!(other.session_by_hash([11; 32]).await.unwrap(), begun);
    assert!(other.end_session([11; 32], &ann()).await.unwrap());
    assert!(found(world, 11).await.is_none());
}

pub(crate) async fn what_is_past_its_end_is_swept(world: &World) {
    let token = token(world, 1, None).await;
    begin(world, SessionKey::Token([1; 32]), 11).await;
    login(world, 21, &token).await;
    world.pass(3_600_001).await;
    begin(world, SessionKey::Token([1; 32]), 12).await;
    login(world, 22, &token).await;
    for table in ["session", "login"] {
        let kept = world.dialect.ask(&format!("SELECT CAST(count(*) AS text) FROM {table}")).await;
        assert_eq!(kept, ["1"], "{table}");
    }
}
