//! TLS of one connection as a transformation of bytes, by rustls with cryptography from ring. Root certificates come
//! from this machine ([`rustls_native_certs`]), so that quintain trusts whatever curl trusts here; a list in the binary
//! would lack a company's own root. `SSL_CERT_FILE` and `SSL_CERT_DIR` work as in OpenSSL.

mod certificate_verifier;
mod session_tickets;
#[cfg(test)]
mod tests;

use std::io::{BufRead, Write};
use std::ops::RangeInclusive;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{AlertDescription, ClientConfig, ClientConnection, HandshakeKind, PeerMisbehaved, RootCertStore};
use study::spec::{ClientCertificate, Tls};

use self::certificate_verifier::{CertificateVerifier, TrustedRoots};
use self::session_tickets::Tickets;
use crate::worker::escaped_start;

/// The application protocol that a connection offers, always a single one. Source: RFC 7301, section 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alpn {
    id: &'static str,
    name: &'static str,
}

impl Alpn {
    pub(crate) const HTTP1: Alpn = Alpn { id: "http/1.1", name: "HTTP/1.1" };
    pub(crate) const HTTP2: Alpn = Alpn { id: "h2", name: "HTTP/2" };

    /// Explains that the server did not agree to this protocol.
    fn refused(self, how: &str) -> String {
        format!("the server does not agree to {} over TLS (ALPN `{}`){how}", self.name, self.id)
    }

    fn check(self, chosen: Option<&[u8]>) -> Result<(), String> {
        match chosen {
            Some(chosen) if chosen == self.id.as_bytes() => Ok(()),
            Some(_) => Err(self.refused(OTHER_PROTOCOL)),
            // A server without ALPN is assumed to speak HTTP/1.1.
            None if self == Alpn::HTTP1 => Ok(()),
            None => Err(self.refused(": it chose none")),
        }
    }
}

const OTHER_PROTOCOL: &str = ": it chose another protocol";
/// First bytes of valid TLS records. Source: RFC 8446, appendix B.1.
const CONTENT_TYPES: RangeInclusive<u8> = 20..=24;
/// Maximum number of handshake bytes from the server. Real certificate chains take 2 to 10 KiB.
const HANDSHAKE_BYTES_MAX: usize = 256 << 10;

const BEGIN_CERTIFICATE: &str = "`BEGIN CERTIFICATE`";
const HANDSHAKE: &str = "handshake";
const FAILED: &str = "the TLS session has failed or is closed";

#[derive(Clone, Debug)]
pub(crate) struct Connector {
    alpn: Alpn,
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Connector {
    /// Creates a connector and reads the roots. Fails if the settings are invalid or a file cannot be read. Clones of one connector can resume each other's sessions.
    pub(crate) fn over(alpn: Alpn, tls: &Tls) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        // An IPv6 address may have brackets, as in URLs.
        let bare = tls.server_name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let name = ServerName::try_from(bare.unwrap_or(&tls.server_name).to_owned());
        let name = name.map_err(|_| format!("`{}` is neither a host name nor an IP address", tls.server_name))?;
        let trusted = if tls.insecure { None } else { Some(trusted_roots(tls.ca_file.as_deref())?) };
        let verifier = CertificateVerifier { trusted, algorithms: provider.signature_verification_algorithms };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has suites for both versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &tls.client {
            None => config.with_no_client_auth(),
            Some(ClientCertificate { cert_file, key_file }) => {
                let chain = read_pem("client certificate", cert_file, BEGIN_CERTIFICATE, usize::MAX)?;
                let key = read_pem("private key", key_file, "unencrypted `BEGIN PRIVATE KEY`", 1)?.remove(0);
                config.with_client_auth_cert(chain, key).map_err(|error| {
                    format!("the key in `{key_file}` does not fit the certificate in `{cert_file}`: {error}")
                })?
            }
        };
        config.alpn_protocols = vec![alpn.id.into()];
        config.resumption =
            if tls.resume { Resumption::store(Arc::new(Tickets::default())) } else { Resumption::disabled() };
        Ok(Self { alpn, config: Arc::new(config), name })
    }

    /// Starts a session, whose first message is ready in [`Session::take`].
    pub(crate) fn start(&self) -> Session {
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        // The configuration is valid, so a new session can only fail for lack of random bytes.
        let mut connection = connection.expect("a client hello can be written");
        // The caller limits the buffer by writing whole requests and taking the output at once.
        connection.set_buffer_limit(None);
        Session { alpn: self.alpn, connection, handshake_bytes: 0, ended: false, failed: false }
    }
}

fn trusted_roots(ca_file: Option<&str>) -> Result<TrustedRoots, String> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca_file else {
        let found = rustls_native_certs::load_native_certs();
        let (taken, _) = roots.add_parsable_certificates(found.certs);
        if taken == 0 {
            let reason = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
            return Err(format!(
                "this machine has no root certificates{reason}: set `ca_file` (`--cacert`) to a PEM file, or install \
                 `ca-certificates`"
            ));
        }
        return Ok(TrustedRoots { roots, named: Vec::new() });
    };
    let named = read_pem::<CertificateDer<'static>>("root certificates", path, BEGIN_CERTIFICATE, usize::MAX)?;
    for (index, certificate) in named.iter().enumerate() {
        let added = roots.add(certificate.clone());
        added.map_err(|error| {
            format!("cannot read the root certificates in `{path}`: certificate {} is invalid: {error}", index + 1)
        })?;
    }
    Ok(TrustedRoots { roots, named })
}

/// Reads up to `most` items of a PEM file, which errors call `what`. Fails if there are none or one is invalid.
fn read_pem<T: PemObject>(what: &str, path: &str, begin: &str, most: usize) -> Result<Vec<T>, String> {
    let failed = |reason: String| format!("cannot read the {what} in `{path}`: {reason}");
    let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let items = T::pem_slice_iter(&bytes).take(most).collect::<Result<Vec<_>, _>>();
    let items = items.map_err(|error| failed(format!("invalid PEM: {error}")))?;
    if items.is_empty() { Err(failed(format!("no {begin} found, expected PEM"))) } else { Ok(items) }
}

#[derive(Debug)]
pub(crate) struct Session {
    alpn: Alpn,
    connection: ClientConnection,
    handshake_bytes: usize,
    ended: bool,
    failed: bool,
}

impl Session {
    /// Appends decrypted data to `plain`, even before an error, which makes the session unusable. After every call,
    /// even a failed one, [`Session::take`] may return bytes to send.
    pub(crate) fn read(&mut self, wire: &[u8], plain: &mut Vec<u8>) -> Result<(), String> {
        if self.failed {
            return Err(FAILED.to_owned());
        }
        let result = self.take_in(wire, plain);
        self.failed = result.is_err();
        result
    }

    fn take_in(&mut self, mut wire: &[u8], plain: &mut Vec<u8>) -> Result<(), String> {
        if self.handshake_bytes == 0
            && let Some(&first) = wire.first()
            && !CONTENT_TYPES.contains(&first)
        {
            let line = escaped_start(wire.split(|&byte| byte == b'\r' || byte == b'\n').next().unwrap_or_default());
            return Err(format!("the server does not speak TLS: its first bytes are `{line}`"));
        }
        while !wire.is_empty() && !self.ended {
            let before = wire.len();
            let during = self.during();
            let taken = self.connection.read_tls(&mut wire);
            taken.map_err(|error| protocol_error(during, &error))?;
            if during == HANDSHAKE {
                self.handshake_bytes += before - wire.len();
                if self.handshake_bytes > HANDSHAKE_BYTES_MAX {
                    return Err(format!("the server sent more than {HANDSHAKE_BYTES_MAX} bytes in the TLS handshake"));
                }
            }
            let processed = self.connection.process_new_packets();
            // `fill_buf` returns an empty slice after the peer has closed, and `WouldBlock` before that.
            let mut reader = self.connection.reader();
            while let Ok(bytes) = reader.fill_buf()
                && !bytes.is_empty()
            {
                plain.extend_from_slice(bytes);
                let count = bytes.len();
                reader.consume(count);
            }
            let state = processed.map_err(|error| explain(error, during, self.alpn))?;
            if during == HANDSHAKE && !self.connection.is_handshaking() {
                self.alpn.check(self.connection.alpn_protocol())?;
            }
            self.ended = state.peer_has_closed();
        }
        Ok(())
    }

    fn during(&self) -> &'static str {
        if self.connection.is_handshaking() { HANDSHAKE } else { "connection" }
    }

    /// Encrypts `plain` for [`Session::take`], or buffers it until the handshake completes. Ignored after a failure.
    pub(crate) fn write(&mut self, plain: &[u8]) {
        if !self.failed {
            let _ = self.connection.writer().write_all(plain); // The buffer has no limit.
        }
    }

    pub(crate) fn take(&mut self, out: &mut Vec<u8>) {
        while self.connection.wants_write() {
            if self.connection.write_tls(out).is_err() {
                return; // Writing to a vector never fails.
            }
        }
    }

    /// Appends `close_notify` to `out`, unless the session has failed.
    pub(crate) fn close(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.failed, true) {
            self.connection.send_close_notify();
            self.take(out);
        }
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    pub(crate) fn resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Whether the server has sent `close_notify`, after which bytes are ignored. If a stream ends without
    /// `close_notify`, an attacker may have truncated it (RFC 8446, section 6.1).
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }
}

fn protocol_error(during: &str, error: &dyn std::error::Error) -> String {
    format!("TLS protocol error of the server in the {during}: {error}")
}

fn explain(error: rustls::Error, during: &str, alpn: Alpn) -> String {
    match error {
        rustls::Error::InvalidCertificate(error) => certificate_verifier::explain(error),
        rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => alpn.refused(""),
        rustls::Error::PeerMisbehaved(PeerMisbehaved::SelectedUnofferedApplicationProtocol) => {
            alpn.refused(OTHER_PROTOCOL)
        }
        rustls::Error::AlertReceived(alert) => {
            let hint = match alert {
                AlertDescription::HandshakeFailure => {
                    ": no cipher suite, key exchange or certificate in common, or no client certificate (`--cert`)"
                }
                AlertDescription::ProtocolVersion => ": it supports neither TLS 1.2 nor 1.3",
                AlertDescription::UnrecognisedName => ": it serves no site by that name",
                AlertDescription::CertificateRequired => {
                    ": it requires a client certificate, set `cert_file` (`--cert`)"
                }
                _ => "",
            };
            let name = alert.as_str().map_or_else(|| u8::from(alert).to_string(), snake);
            format!("the server ended the TLS {during} with the alert `{name}`{hint}")
        }
        other => protocol_error(during, &other),
    }
}

/// Converts the name of an alert to the style of RFC 8446: `HandshakeFailure` becomes `handshake_failure`.
fn snake(name: &str) -> String {
    let split =
        |letter: char| letter.is_ascii_uppercase().then_some('_').into_iter().chain([letter.to_ascii_lowercase()]);
    name.chars().flat_map(split).collect::<String>().trim_start_matches('_').to_owned()
}
