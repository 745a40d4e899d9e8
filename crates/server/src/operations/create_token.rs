//! Making a token: over the API, or straight on the store for the first one.

use jobyard_api::json::{Time, Token, TokenCreate, TokenCreated};
use jobyard_model::Timestamp;
use jobyard_model::ids::TokenId;
use jobyard_store::{Actor, NewToken, Store, StoreError};
use uuid::Uuid;

use crate::authentication::{SecretKind, new_secret, token_hash};

/// Makes a token. The answer is the only place where its secret ever is.
///
/// # Errors
/// The datastore's.
pub async fn create_token(
    store: &dyn Store,
    wanted: &TokenCreate,
    now: Timestamp,
    by: &Actor,
) -> Result<TokenCreated, StoreError> {
    let secret = new_secret(SecretKind::Token);
    let token = NewToken {
        id: TokenId(Uuid::new_v4()),
        hash: token_hash(&secret),
        name: wanted.name.clone(),
        role: wanted.role,
        owners: wanted.owners.clone(),
        expires_at: wanted.expires_in.map(|within| now.plus_ms(within.ms)),
    };
    store.add_token(&token, by).await?;
    let shown = Token {
        id: token.id,
        name: token.name,
        role: token.role,
        owners: token.owners,
        created_time: Time(now),
        expires_time: token.expires_at.map(Time),
        revoked_time: None,
    };
    Ok(TokenCreated { secret, token: shown })
}
