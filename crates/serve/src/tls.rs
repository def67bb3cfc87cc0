//! The server's certificate and key.

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sluice_kernel::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The certificate and the key, both in PEM.
#[derive(Debug, Clone)]
pub struct Files {
    /// `--tls-cert`: the certificate, and those between it and the root.
    pub cert: PathBuf,
    /// `--tls-key`: the certificate's private key, without a passphrase.
    pub key: PathBuf,
}

/// The TLS configuration from the two files, if they belong together.
pub fn config(files: &Files) -> Result<Arc<ServerConfig>> {
    let wrong = |option: &str, path: &Path, what: String| {
        Error::input(format!("{option} {}: {what}", path.display())).help(
            "both are PEM files; for a try: openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
             -keyout key.pem -out cert.pem -subj /CN=localhost -addext subjectAltName=DNS:localhost",
        )
    };
    let certificates: Vec<CertificateDer> = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect)
        .map_err(|error| wrong("--tls-cert", &files.cert, format!("no certificate can be read: {error}")))?;
    if certificates.is_empty() {
        return Err(wrong("--tls-cert", &files.cert, "there is no certificate in it".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| wrong("--tls-key", &files.key, format!("no private key can be read: {error}")))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::system(format!("TLS: {error}")))?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                wrong("--tls-key", &files.key, format!("it is not the key of the certificate {}", files.cert.display()))
            }
            other => wrong("--tls-cert", &files.cert, format!("it cannot be used: {other}")),
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
