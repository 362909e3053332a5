//! The certificate of a lab, its fingerprint, and the verifier with which a node trusts only that certificate.

use std::io;
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};

/// Name in the certificate. Nodes do not check it, because they compare the fingerprint.
pub(super) const NAME: &str = "quintain";

pub(super) fn make() -> io::Result<(Arc<ServerConfig>, String)> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(io::Error::other)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key))
        .map_err(io::Error::other)?;
    // Without TLS tickets, sessions cannot be resumed, so every node verifies the certificate.
    config.send_tls13_tickets = 0;
    Ok((Arc::new(config), fingerprint(made.cert.der())))
}

pub(super) fn trust(fingerprint: &str) -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = provider();
    let only = Only { fingerprint: fingerprint.to_owned(), provider: Arc::clone(&provider) };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(only))
        .with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

pub(crate) fn fingerprint(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

type Valid = Result<HandshakeSignatureValid, rustls::Error>;

/// Verifier that trusts one certificate. It ignores names and dates, because the lab's clock may be wrong.
#[derive(Debug)]
struct Only {
    fingerprint: String,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Only {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match fingerprint(end_entity) == self.fingerprint {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    /// Fails, because both sides use only TLS 1.3.
    fn verify_tls12_signature(&self, _: &[u8], _: &CertificateDer<'_>, _: &DigitallySignedStruct) -> Valid {
        Err(rustls::Error::General("TLS 1.2 is not used".to_owned()))
    }

    /// Verifies the signature, the only proof that the other side has the key of the public certificate.
    fn verify_tls13_signature(&self, data: &[u8], cert: &CertificateDer<'_>, signed: &DigitallySignedStruct) -> Valid {
        verify_tls13_signature(data, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
