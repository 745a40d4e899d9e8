//! A certificate of the server's own, which nobody trusts who is not told to.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;

/// For `localhost`, and for the bucket's name before it. The certificate goes into a file for those who are to trust it.
pub(crate) fn identity(bucket: &str, certificate: &Path) -> io::Result<Arc<ServerConfig>> {
    let names = ["localhost".to_owned(), format!("{bucket}.localhost")];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).map_err(io::Error::other)?;
    fs::write(certificate, cert.pem())?;
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(vec![cert.der().clone()], key));
    config.map(Arc::new).map_err(io::Error::other)
}
