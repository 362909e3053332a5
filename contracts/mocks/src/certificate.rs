//! Creates a root certificate for clients to trust, and a leaf signed by it.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

pub(super) struct Made {
    pub(super) config: Arc<ServerConfig>,
    pub(super) root_pem: String,
}

/// Creates a certificate for names and addresses. Fails with a message for the user.
pub(super) fn make(names: &[String]) -> Result<Made, String> {
    let words = |error: rcgen::Error| error.to_string();
    let mut root = CertificateParams::new(Vec::new()).map_err(words)?;
    root.distinguished_name.push(DnType::CommonName, "quintain mock root");
    root.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    root.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let root_key = KeyPair::generate().map_err(words)?;
    let root_certificate = root.self_signed(&root_key).map_err(words)?;
    let issuer = Issuer::new(root, root_key);
    let mut leaf = CertificateParams::new(names.to_vec()).map_err(words)?;
    leaf.distinguished_name.push(DnType::CommonName, "quintain mock");
    leaf.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate().map_err(words)?;
    let certificate = leaf.signed_by(&key, &issuer).map_err(words)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key);
    let mut config = config.map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Made { config: Arc::new(config), root_pem: root_certificate.pem() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_certified() {
        let made = make(&["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap_or_else(|why| panic!("{why}"));
        assert!(made.root_pem.starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(make(&["é".to_owned()]).is_err());
    }
}
