//! The description is the committed one, and describes what is served.

use std::path::Path;

use serde_json::Value;

use crate::support::TestServer;

/// Run with `UPDATE_GOLDEN=1` to write it anew.
#[test]
fn docs_openapi_json_is_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, jobyard_server::openapi::text()).expect("written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == jobyard_server::openapi::text(),
        "docs/openapi.json is not what the handlers say: run this test with UPDATE_GOLDEN=1 and look at the difference"
    );
}

#[tokio::test]
async fn it_is_served() {
    let server = TestServer::start().await;
    let served = server.submitter().await.get("/api/v1/openapi.json").await.ok();
    let own: Value = serde_json::from_str(jobyard_server::openapi::text()).expect("JSON");
    assert_eq!(served, own);
    server.stop().await;
}

#[test]
fn every_reference_in_it_leads_somewhere() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str).map(ToOwned::to_owned));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let description: Value = serde_json::from_str(jobyard_server::openapi::text()).expect("JSON");
    let mut found = Vec::new();
    references(&description, &mut found);
    assert!(found.len() > 50, "{found:?}");
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("a reference within the document");
        assert!(description.pointer(pointer).is_some(), "{reference}");
    }
}
