//! Generates the doors' messages and services from `proto/`, without a protoc on the machine.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(["jobyard/v1/doors.proto"], ["proto"])?;
    // Secrets are never printed: src/grpc/mod.rs says how such a message looks instead.
    let secret = ["jobyard.v1.FetchSecretsReply"];
    tonic_prost_build::configure().bytes(".").skip_debug(secret).compile_fds(descriptors)?;
    Ok(())
}
