//! JSON Schemas, for editors that complete and check what people type.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::openapi;

const REFERENCE: &str = "#/components/schemas/";

/// Serves the JSON Schema of what `POST /api/v1/jobs` takes.
#[utoipa::path(
    get, path = "/api/v1/schemas/job", tag = "openapi",
    responses((status = 200, description = "JSON Schema 2020-12", body = Object, content_type = "application/schema+json"))
)]
pub(super) async fn job() -> Response {
    static TEXT: LazyLock<String> = LazyLock::new(|| schema_of("JobSubmit", "A Jobyard job").to_string());
    ([(header::CONTENT_TYPE, "application/schema+json")], TEXT.as_str()).into_response()
}

/// The description's schema of this name with all that it refers to. OpenAPI 3.1's schemas are JSON Schema 2020-12.
fn schema_of(name: &str, title: &str) -> Value {
    let description: Value = serde_json::from_str(openapi::text()).unwrap_or_default();
    let known = &description["components"]["schemas"];
    let (mut wanted, mut taken) = (vec![name.to_owned()], BTreeSet::new());
    let mut definitions = Map::new();
    while let Some(next) = wanted.pop() {
        if taken.insert(next.clone()) {
            let mut schema = known[&next].clone();
            refer_to_definitions(&mut schema, &mut wanted);
            definitions.insert(next, schema);
        }
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "$ref": format!("#/$defs/{name}"),
        "$defs": definitions
    })
}

fn refer_to_definitions(schema: &mut Value, wanted: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str().and_then(|text| text.strip_prefix(REFERENCE)) {
                    Some(target) if name == "$ref" => {
                        wanted.push(target.to_owned());
                        *value = json!(format!("#/$defs/{target}"));
                    }
                    _ => refer_to_definitions(value, wanted),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| refer_to_definitions(item, wanted)),
        _ => {}
    }
}
