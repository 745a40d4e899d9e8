//! Making a login code: over the API, or straight on the store for the one that `up` prints.

use jobyard_api::json::{Login, Time};
use jobyard_model::Timestamp;
use jobyard_model::ids::TokenId;
use jobyard_store::{Actor, NewLogin, Store, StoreError};

use crate::authentication::{SecretKind, new_secret, token_hash};

/// How long a login code can be used.
const LOGIN_LASTS_MS: u64 = 15 * 60 * 1_000;

/// Makes a code that begins one session of this token. The answer is the only place where it ever is.
///
/// # Errors
/// The datastore's.
pub async fn create_login(
    store: &dyn Store,
    token_id: TokenId,
    now: Timestamp,
    by: &Actor,
) -> Result<Login, StoreError> {
    let login = new_secret(SecretKind::Login);
    let new = NewLogin { hash: token_hash(&login), token_id, lasts_ms: LOGIN_LASTS_MS };
    store.add_login(new, by).await?;
    Ok(Login { login, expires_time: Time(now.plus_ms(LOGIN_LASTS_MS)) })
}
