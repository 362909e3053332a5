//! Makes a certificate for a mock with TLS.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::MockError;

/// Creates a certificate for `names` and a TLS configuration with it, for HTTP/1.1. Writes its root (PEM) to `cert_out`.
pub fn tls_config(names: &[String], cert_out: Option<&Path>) -> Result<ServerConfig, MockError> {
    let made = make(names);
    let (config, root_pem) = made.map_err(|error| MockError::Certificate(names.join(", "), error.to_string()))?;
    if let Some(path) = cert_out {
        std::fs::write(path, root_pem).map_err(|source| MockError::Write(path.to_owned(), source))?;
    }
    Ok(config)
}

fn make(names: &[String]) -> Result<(ServerConfig, String), Box<dyn Error>> {
    let mut root = CertificateParams::new(Vec::new())?;
    root.distinguished_name.push(DnType::CommonName, "quintain mock root");
    root.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    root.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let root_key = KeyPair::generate()?;
    let root_certificate = root.self_signed(&root_key)?;
    let issuer = Issuer::new(root, root_key);
    let mut leaf = CertificateParams::new(names.to_vec())?;
    leaf.distinguished_name.push(DnType::CommonName, "quintain mock");
    leaf.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = leaf.signed_by(&key, &issuer)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((config, root_certificate.pem()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_certified() {
        let (_, root_pem) = make(&["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        assert!(root_pem.starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(make(&["é".to_owned()]).is_err());
    }
}
