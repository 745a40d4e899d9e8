//! The wire: JSON types of the HTTP API with their OpenAPI, the doors between our own roles, and the conversions
//! to and from the model.
//!
//! Owns the shapes of what crosses a process boundary and the checks of what comes in. Decides nothing and stores
//! nothing.

pub mod doors;
pub mod filter;
pub mod grpc;
pub mod json;
pub mod strict;
pub mod submit;

/// Messages and services generated from `proto/jobyard/v1/doors.proto`.
#[expect(
    missing_docs,
    clippy::allow_attributes,
    clippy::too_many_lines,
    clippy::all,
    reason = "generated; the .proto file has the comments"
)]
pub mod proto {
    tonic::include_proto!("jobyard.v1");
}
