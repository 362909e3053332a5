//! TLS for listeners, for connections to other adapters and for upstream connections.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::config::{Identity, TlsSettings};

pub(crate) struct Tls {
    /// Accepts TLS at local listeners for HTTPS endpoints; `None` for plain text.
    pub(crate) listen: Option<TlsAcceptor>,
    /// The certificate that [`Tls::listen`] presents.
    shown: Option<CertificateDer<'static>>,
    /// Accepts TLS from other adapters, which must have a certificate, and connects to them with the adapter's own
    /// certificate; `None` for plain text.
    pub(crate) peers: Option<(TlsAcceptor, TlsConnector)>,
    pub(crate) upstream: TlsConnector,
}

impl Tls {
    /// Reads the certificate, key and root files. Adds all errors in them to `wrong`.
    pub(crate) fn new(settings: &TlsSettings, needs_roots: bool, wrong: &mut Vec<String>) -> Option<Self> {
        // This fails only if the provider is already set; it is then the same provider.
        let _ = ring::default_provider().install_default();
        let mut add_error = |error: String| {
            if !wrong.contains(&error) {
                wrong.push(error);
            }
        };
        let listen = settings.listen.as_ref().map(listen).transpose().map_err(&mut add_error);
        let peers = settings.peers.as_ref().map(|(identity, ca)| peers(identity, ca));
        let peers = peers.transpose().map_err(&mut add_error);
        let upstream = upstream(settings, needs_roots).map_err(&mut add_error);
        let (listen, shown) = listen.ok()?.unzip();
        Some(Self { listen, shown, peers: peers.ok()?, upstream: upstream.ok()? })
    }

    /// Returns the acceptor for clients of `host`, or `None` if the listeners' certificate does not cover the host.
    pub(crate) fn ends_for(&self, host: &str) -> Option<&TlsAcceptor> {
        let certificate = webpki::EndEntityCert::try_from(self.shown.as_ref()?).ok()?;
        let name = ServerName::try_from(host).ok()?;
        certificate.verify_is_valid_for_subject_name(&name).ok()?;
        self.listen.as_ref()
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
    let added = certificates(path)?.into_iter().try_for_each(|certificate| roots.add(certificate));
    added.map(|()| roots).map_err(|error| format!("{}: {error}", path.display()))
}

/// Creates the acceptor of local listeners, and returns the certificate that it presents.
fn listen(identity: &Identity) -> Result<(TlsAcceptor, CertificateDer<'static>), String> {
    let (chain, key) = (certificates(&identity.cert)?, key(&identity.key)?);
    let shown = chain[0].clone();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
    let config = config.map_err(|error| format!("{}: {error}", identity.cert.display()))?;
    Ok((Arc::new(config).into(), shown))
}

fn peers(identity: &Identity, ca: &Path) -> Result<(TlsAcceptor, TlsConnector), String> {
    let failed = |error: Error| format!("{}: {error}", identity.cert.display());
    let roots = Arc::new(roots(ca)?);
    let (chain, key) = (certificates(&identity.cert)?, key(&identity.key)?);
    let verifier = WebPkiClientVerifier::builder(roots.clone()).build().expect("the file has roots");
    let server = ServerConfig::builder().with_client_cert_verifier(verifier);
    let server = server.with_single_cert(chain.clone(), key.clone_key()).map_err(failed)?;
    let client = ClientConfig::builder().with_root_certificates(roots).with_client_auth_cert(chain, key);
    Ok((Arc::new(server).into(), Arc::new(client.map_err(failed)?).into()))
}

fn upstream(settings: &TlsSettings, needs_roots: bool) -> Result<TlsConnector, String> {
    let builder = ClientConfig::builder();
    let builder = match &settings.upstream_ca {
        _ if !settings.upstream_verify => {
            let verifier = Anyone(ring::default_provider().signature_verification_algorithms);
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
        }
        Some(path) => builder.with_root_certificates(roots(path)?),
        None => {
            let mut roots = RootCertStore::empty();
            if needs_roots {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                if roots.is_empty() {
                    return Err("this machine has no root certificates: name a file with `tls.upstream.ca`".to_owned());
                }
            }
            builder.with_root_certificates(roots)
        }
    };
    Ok(Arc::new(builder.with_no_client_auth()).into())
}

/// Accepts any certificate (`verify = false`), for tests with ad-hoc certificates.
#[derive(Debug)]
struct Anyone(WebPkiSupportedAlgorithms);

type Signed = Result<HandshakeSignatureValid, Error>;

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

    fn verify_tls12_signature(&self, of: &[u8], by: &CertificateDer<'_>, signed: &DigitallySignedStruct) -> Signed {
        verify_tls12_signature(of, by, signed, &self.0)
    }

    fn verify_tls13_signature(&self, of: &[u8], by: &CertificateDer<'_>, signed: &DigitallySignedStruct) -> Signed {
        verify_tls13_signature(of, by, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// Checks that a certificate's first DNS name is `label`, as other adapters do. [`Tls::new`] reports unreadable files.
pub(crate) fn owner(cert: &Path, label: &str) -> Result<(), String> {
    let Some(certificate) = certificates(cert).ok().and_then(|all| all.into_iter().next()) else { return Ok(()) };
    let (shown, hint) = (cert.display(), format!("use a certificate whose first DNS name is `{label}`"));
    match identity(&certificate) {
        Some(owner) if owner == label => Ok(()),
        Some(owner) => Err(format!(
            "`name` is `{label}`, but the certificate {shown} is for `{owner}`: other adapters reject its metadata\n  \
             = help: `name = \"{owner}\"`, or {hint}"
        )),
        None => Err(format!(
            "the certificate {shown} has no DNS name: other adapters reject its metadata\n  = help: {hint}"
        )),
    }
}

/// The identity in a certificate: its first DNS name. Subject names are ignored (RFC 9525, section 6.1 and appendix A).
pub(crate) fn identity(certificate: &CertificateDer<'_>) -> Option<String> {
    webpki::EndEntityCert::try_from(certificate).ok()?.valid_dns_names().next().map(str::to_owned)
}
