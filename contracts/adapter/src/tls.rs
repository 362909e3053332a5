//! TLS for local listeners, services and other adapters.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::config::{Identity, TlsSettings};

#[derive(Clone)]
pub(crate) struct Tls {
    /// For local listeners of HTTPS endpoints.
    pub(crate) listen: Option<TlsAcceptor>,
    /// The certificate of these listeners.
    shown: Option<CertificateDer<'static>>,
    /// For listeners for other adapters, which must have a certificate.
    pub(crate) peers: Option<TlsAcceptor>,
    /// For connections to other adapters, with the own certificate.
    pub(crate) to_peers: Option<TlsConnector>,
    pub(crate) upstream: TlsConnector,
}

impl Tls {
    /// Reads the files. Fails with all errors in them.
    pub(crate) fn new(settings: &TlsSettings, needs_roots: bool) -> Result<Self, Vec<String>> {
        let mut wrong = Vec::new();
        let provider = Arc::new(ring::default_provider());
        let listen = settings.listen.as_ref().map(|identity| server(&provider, identity, None));
        let peers = settings.peers.as_ref().map(|(identity, ca)| server(&provider, identity, Some(ca)));
        let to_peers = settings.peers.as_ref().map(|(identity, ca)| to_peers(&provider, identity, ca));
        let upstream = upstream(&provider, settings, needs_roots);
        // A file used for several purposes is reported once.
        fn keep<T>(wrong: &mut Vec<String>, result: Result<T, String>) -> Option<T> {
            let error = match result {
                Ok(value) => return Some(value),
                Err(error) => error,
            };
            if !wrong.contains(&error) {
                wrong.push(error);
            }
            None
        }
        let listen = listen.and_then(|result| keep(&mut wrong, result)).map(TlsAcceptor::from);
        let peers = peers.and_then(|result| keep(&mut wrong, result)).map(TlsAcceptor::from);
        let to_peers = to_peers.and_then(|result| keep(&mut wrong, result)).map(TlsConnector::from);
        let upstream = keep(&mut wrong, upstream).map(TlsConnector::from);
        match upstream {
            Some(upstream) if wrong.is_empty() => {
                let shown =
                    settings.listen.as_ref().and_then(|identity| certificates(&identity.cert).ok()?.into_iter().next());
                Ok(Self { listen, shown, peers, to_peers, upstream })
            }
            _ => Err(wrong),
        }
    }

    /// The acceptor for a client that connects to this host, if the listeners' certificate covers
    /// it.
    pub(crate) fn ends_for(&self, host: &str) -> Option<&TlsAcceptor> {
        let certificate = webpki::EndEntityCert::try_from(self.shown.as_ref()?).ok()?;
        let name = ServerName::try_from(host).ok()?;
        certificate.verify_is_valid_for_subject_name(&name).ok()?;
        self.listen.as_ref()
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TLS, listeners {}, peers {}", self.listen.is_some(), self.peers.is_some())
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let told = |error: String| format!("cannot read certificates from {}: {error}", path.display());
    let all = CertificateDer::pem_file_iter(path).map_err(|error| told(error.to_string()))?;
    let all = all.collect::<Result<Vec<_>, _>>().map_err(|error| told(error.to_string()))?;
    if all.is_empty() { Err(told("no certificate found".to_owned())) } else { Ok(all) }
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| format!("cannot read the key in {}: {error}", path.display()))
}

fn roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(roots)
}

fn server(provider: &Arc<CryptoProvider>, identity: &Identity, ca: Option<&Path>) -> Result<Arc<ServerConfig>, String> {
    let told = |error: String| format!("{}: {error}", identity.cert.display());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| told(error.to_string()))?;
    let builder = match ca {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(ca)?), provider.clone());
            builder.with_client_cert_verifier(verifier.build().map_err(|error| told(error.to_string()))?)
        }
    };
    let config = builder.with_single_cert(certificates(&identity.cert)?, key(&identity.key)?);
    config.map(Arc::new).map_err(|error| told(error.to_string()))
}

fn to_peers(provider: &Arc<CryptoProvider>, identity: &Identity, ca: &Path) -> Result<Arc<ClientConfig>, String> {
    let told = |error: Error| format!("{}: {error}", identity.cert.display());
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let builder = builder.map_err(told)?.with_root_certificates(roots(ca)?);
    let config = builder.with_client_auth_cert(certificates(&identity.cert)?, key(&identity.key)?);
    config.map(Arc::new).map_err(told)
}

fn upstream(
    provider: &Arc<CryptoProvider>,
    settings: &TlsSettings,
    needs_roots: bool,
) -> Result<Arc<ClientConfig>, String> {
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    if !settings.upstream_verify {
        let verifier = Arc::new(Anyone(provider.clone()));
        return Ok(Arc::new(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()));
    }
    let roots = match &settings.upstream_ca {
        Some(path) => roots(path)?,
        None => {
            let mut roots = RootCertStore::empty();
            if needs_roots {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                if roots.is_empty() {
                    return Err("this machine has no root certificates: name a file with `tls.upstream.ca`".to_owned());
                }
            }
            roots
        }
    };
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// Accepts any certificate (`verify = false`), for tests with ad-hoc certificates.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Checks that a certificate's first DNS name is the adapter's label. Otherwise other adapters
/// would reject its metadata. An unreadable file passes; [`Tls::new`] reports it.
pub(crate) fn owner(cert: &Path, label: &str) -> Result<(), String> {
    let Some(certificate) = certificates(cert).ok().and_then(|all| all.into_iter().next()) else { return Ok(()) };
    let (shown, hint) = (cert.display(), format!("use a certificate whose first DNS name is `{label}`"));
    match identity(&certificate) {
        Some(owner) if owner == label => Ok(()),
        Some(owner) => Err(format!(
            "`name` is `{label}`, but the certificate {shown} is for `{owner}`: other adapters reject its metadata\n  \
             hint: `name = \"{owner}\"`, or {hint}"
        )),
        None => {
            Err(format!("the certificate {shown} has no DNS name: other adapters reject its metadata\n  hint: {hint}"))
        }
    }
}

/// The identity in a certificate: its first DNS name. Subject names are ignored (RFC 9525, section
/// 6.1 and appendix A).
pub(crate) fn identity(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    certificate.valid_dns_names().next().map(str::to_owned)
}
