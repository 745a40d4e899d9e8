//! The event stream over HTTP.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use jobyard_api::json::{Event, Problem};
use jobyard_api::strict::FaultCode;
use jobyard_model::Role;
use jobyard_store::{EventCursor, EventFilter};

use super::query::QueryReader;
use crate::authentication::Caller;
use crate::error::ApiError;
use crate::events::Follower;
use crate::server::Server;

const CURSOR_HEADER: &str = "Last-Event-ID";

/// Follows what changes, as server-sent events.
///
/// The first event is of the type `start` and says where the stream begins; then one of the type `change` a change.
/// Each `id` is a cursor to resume from with `Last-Event-ID`.
#[utoipa::path(
    get, path = "/api/v1/events", tag = "events",
    params(
        ("job" = Option<String>, Query, description = "Of one job"),
        ("label" = Option<String>, Query, description = "Of jobs with this label: `key:value`"),
        ("origin" = Option<String>, Query, description = "Of jobs with this origin: `kind:id`"),
        ("cursor" = Option<String>, Query, description = "Only what came after; `Last-Event-ID` counts before it"),
        ("Last-Event-ID" = Option<String>, Header, description = "Only what came after; from now on without either")
    ),
    responses(
        (status = 200, description = "A stream without end", body = Event, content_type = "text/event-stream"),
        (status = 400, description = "A bad cursor or filter", body = Problem),
        (status = 410, description = "The cursor is older than the events that are kept, or beyond the newest one", body = Problem)
    )
)]
pub(super) async fn follow(
    State(server): State<Server>,
    caller: Caller,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    caller.require(Role::Viewer)?;
    let mut reader = QueryReader::new(&uri);
    let filter = EventFilter {
        job_id: reader.parsed("job"),
        label: reader.pair("label", "`key:value`"),
        origin: reader.pair("origin", "`kind:id`"),
        to: None,
    };
    let cursor = reader.parsed("cursor");
    reader.finish()?;
    let cursor = header_cursor(&headers)?.or(cursor);
    let pass = server.doors().stream.enter().await?;
    let follower = Follower::start(server, filter, cursor, (pass, caller.right())).await?;
    let pieces = stream::unfold(follower, |mut follower| async move {
        let piece = follower.next().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), follower))
    });
    let kind = HeaderValue::from_static("text/event-stream");
    Ok(([(header::CONTENT_TYPE, kind)], Body::from_stream(pieces)).into_response())
}

fn header_cursor(headers: &HeaderMap) -> Result<Option<EventCursor>, ApiError> {
    let Some(value) = headers.get(CURSOR_HEADER).filter(|value| !value.is_empty()) else { return Ok(None) };
    let cursor = value.to_str().map_err(|_| "must be plain ASCII").and_then(str::parse);
    cursor.map(Some).map_err(|detail| ApiError::fault(CURSOR_HEADER, FaultCode::Invalid, detail))
}
