//! The API's description, generated from the handlers.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::{
    artifact_batch, artifacts, audit, bulk, events, health, jobs, nodes, pools, schemas, sessions, summary,
    tokens, trees, views,
};
use crate::cookie;
use jobyard_api::json::{ArtifactBatch, Event, StreamStart};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Jobyard",
        description = "Submit executables as jobs, and follow what becomes of them. Errors are RFC 9457 problem documents with a stable `code`.",
        license(name = "Apache-2.0 OR MIT")
    ),
    paths(
        serve, jobs::submit::submit, jobs::submit::submit_batch, jobs::submit::check, jobs::list::list,
        jobs::list::rows, jobs::list::count, jobs::list::values, jobs::read::read, jobs::read::attempts,
        jobs::read::why, jobs::history::history, jobs::logs::logs, jobs::log_search::sizes, jobs::log_search::pieces,
        jobs::log_search::find, jobs::control::cancel, jobs::control::stop,
        jobs::control::retry, artifacts::upload, artifacts::look, artifacts::download, artifacts::missing,
        artifact_batch::upload, trees::upload, trees::look, trees::download, nodes::list, nodes::read, nodes::attempts,
        nodes::preview_drain, nodes::cordon, nodes::uncordon,
        nodes::drain, pools::list, pools::make, tokens::me, tokens::list, tokens::create, tokens::revoke, audit::list,
        schemas::job, sessions::begin, sessions::end, sessions::link,
        bulk::start, bulk::list, bulk::progress, bulk::stop, views::list, views::create, views::change, views::remove,
        summary::read, summary::minutes, summary::failing, summary::waiting, events::follow, health::healthz, health::readyz, health::metrics
    ),
    components(schemas(ArtifactBatch, Event, StreamStart)),
    modifiers(&Rights),
    security(("bearer" = []), ("session" = []))
)]
struct Description;

struct Rights;

impl Modify for Rights {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = openapi.components.get_or_insert_with(Default::default);
        components.add_security_scheme("bearer", SecurityScheme::Http(scheme));
        let cookie = ApiKeyValue::new(cookie::NAME);
        components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    }
}

/// The description as JSON, indented; the same bytes as `docs/openapi.json`.
#[must_use]
pub fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let mut text = Description::openapi().to_pretty_json().unwrap_or_default();
        text.push('\n');
        text
    });
    &TEXT
}

/// Serves this description.
#[utoipa::path(
    get, path = "/api/v1/openapi.json", tag = "openapi",
    responses((status = 200, description = "OpenAPI 3.1", body = Object))
)]
pub(super) async fn serve() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text()).into_response()
}
