//! Verifies server certificates and explains why a certificate is not trusted.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme,
    client::verify_server_cert_signed_by_trust_anchor, client::verify_server_name,
};
use time::{Date, UtcDateTime};
use webpki::EndEntityCert;

const NAMES_SHOWN: usize = 3;
const CA_FILE: &str = "`ca_file` (`--cacert`)";
const INSECURE: &str = "`insecure` (`--insecure`)";

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct BadCertificate(String);

pub(super) fn explain(error: CertificateError) -> String {
    match &error {
        CertificateError::Other(OtherError(inner)) if inner.is::<BadCertificate>() => inner.to_string(),
        // This is the signature of the handshake; `judge` handles bad signatures in the chain.
        CertificateError::BadSignature => {
            "the server does not have the key of its certificate: invalid handshake signature".to_owned()
        }
        other => format!("the certificate is not valid: {other}"),
    }
}

/// The UTC day of a time, capped at the last day of the year 9999.
fn date_of(time: UnixTime) -> Date {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    UtcDateTime::from_unix_timestamp(seconds).map_or(Date::MAX, UtcDateTime::date)
}

#[derive(Debug)]
pub(super) struct TrustedRoots {
    pub(super) roots: RootCertStore,
    /// Certificates named by the user. Each may also be a server's own certificate.
    pub(super) named: Vec<CertificateDer<'static>>,
}

#[derive(Debug)]
pub(super) struct CertificateVerifier {
    /// Roots to trust; `None` accepts any certificate.
    pub(super) trusted: Option<TrustedRoots>,
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

fn is_authority(error: &CertificateError) -> bool {
    let CertificateError::Other(OtherError(inner)) = error else { return false };
    inner.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(TrustedRoots { roots, named }) = &self.trusted else { return Ok(ServerCertVerified::assertion()) };
        let check = || {
            let (parsed, all) = (ParsedCertificate::try_from(end_entity)?, self.algorithms.all);
            match verify_server_cert_signed_by_trust_anchor(&parsed, roots, intermediates, now, all) {
                // `openssl req -x509` marks certificates as authorities. Accept a server that presents exactly the
                // certificate named by the user; its dates have already been checked.
                Err(rustls::Error::InvalidCertificate(error)) if is_authority(&error) && named.contains(end_entity) => {
                }
                other => other?,
            }
            verify_server_name(&parsed, server_name)
        };
        check().map(|()| ServerCertVerified::assertion()).map_err(|error| match error {
            rustls::Error::InvalidCertificate(error) => {
                let bad = judge(&error, end_entity, intermediates);
                CertificateError::Other(OtherError(Arc::new(BadCertificate(bad)))).into()
            }
            other => other,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn judge(error: &CertificateError, end_entity: &CertificateDer<'_>, intermediates: &[CertificateDer<'_>]) -> String {
    let parsed = EndEntityCert::try_from(end_entity).ok();
    let subject = parsed.as_ref().map(subject).unwrap_or_default();
    match error {
        CertificateError::ExpiredContext { not_after, .. } => {
            let date = date_of(*not_after);
            format!("the certificate of `{subject}` expired on {date}: renew it, or use {INSECURE}")
        }
        CertificateError::NotValidYetContext { not_before, .. } => {
            let date = date_of(*not_before);
            format!("the certificate of `{subject}` is not valid before {date}: is the clock of this machine right?")
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let presented = presented.iter().map(|name| bare(name)).collect::<Vec<_>>();
            let (presented, wanted) = (listed(&presented), expected.to_str());
            format!(
                "the certificate is for {presented}, not for `{wanted}`: connect by a name it covers, or use {INSECURE}"
            )
        }
        error
            if (*error == CertificateError::UnknownIssuer || is_authority(error))
                && parsed.as_ref().is_some_and(|cert| cert.issuer() == cert.subject()) =>
        {
            format!("the certificate of `{subject}` is self-signed: add it with {CA_FILE}, or use {INSECURE}")
        }
        CertificateError::UnknownIssuer => {
            let issuer = parsed.map(|cert| title(cert.issuer())).unwrap_or_default();
            let hint =
                if intermediates.is_empty() { ", and the server did not send its issuer's certificate" } else { "" };
            format!(
                "the certificate of `{subject}` is from `{issuer}`, which is not trusted{hint}: add its root with \
                 {CA_FILE}, or use {INSECURE}"
            )
        }
        CertificateError::BadSignature => format!(
            "the certificate of `{subject}` leads to an issuer with the right name but another key: is the root in \
             {CA_FILE} outdated?"
        ),
        other => {
            let subject = if subject.is_empty() { subject } else { format!(" of `{subject}`") };
            format!("the certificate{subject} is not valid: {other}")
        }
    }
}

fn subject(certificate: &EndEntityCert<'_>) -> String {
    certificate.valid_dns_names().next().map_or_else(|| title(certificate.subject()), str::to_owned)
}

/// Reduces a name such as `DnsName("example.org")` to `example.org`.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
    inner.trim_matches('"')
}

fn listed(names: &[&str]) -> String {
    let shown = names.iter().take(NAMES_SHOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 if names.is_empty() => "no name at all (no subjectAltName)".to_owned(),
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The common name or organization of an `RDNSequence` (RFC 5280, section 4.1.2.4 and appendix A.1, ITU-T X.690 8.1).
fn title(name: &[u8]) -> String {
    /// Object identifiers of the common name (2.5.4.3) and the organization (2.5.4.10).
    const WANTED: [&[u8]; 2] = [&[0x55, 4, 3], &[0x55, 4, 10]];
    let mut found = [None, None];
    let mut sets = name;
    while let Some((0x31, mut attributes)) = element(&mut sets) {
        while let Some((0x30, mut attribute)) = element(&mut attributes) {
            let (Some((0x06, kind)), Some((_, value))) = (element(&mut attribute), element(&mut attribute)) else {
                continue;
            };
            if let Some(index) = WANTED.iter().position(|wanted| *wanted == kind) {
                // Nearly all names are ASCII or UTF-8. Only the readable characters of other names are kept.
                let text: String =
                    String::from_utf8_lossy(value).chars().filter(|c| !c.is_control()).take(64).collect();
                found[index] = Some(text);
            }
        }
    }
    let [common, organisation] = found;
    common.or(organisation).unwrap_or_else(|| "a certificate without a name".to_owned())
}

fn element<'a>(bytes: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut len = usize::from(first);
    if first >= 0x80 {
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 {
            return None;
        }
        let digits = rest.get(..count)?;
        rest = &rest[count..];
        len = digits.iter().fold(0, |len, &digit| len << 8 | usize::from(digit));
    }
    let content = rest.get(..len)?;
    *bytes = &rest[len..];
    Some((tag, content))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn converts_seconds_to_calendar_days() {
        let date = |seconds| date_of(UnixTime::since_unix_epoch(Duration::from_secs(seconds))).to_string();
        // The expected dates come from `date -u -d @SECONDS +%F`.
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(951_782_400), "2000-02-29");
        assert_eq!(date(951_868_800), "2000-03-01");
        assert_eq!(date(1_735_689_599), "2024-12-31");
        assert_eq!(date(4_107_542_400), "2100-03-01");
        assert_eq!(date(253_402_300_799), "9999-12-31");
    }

    #[test]
    fn title_is_common_name_or_organization() {
        // The name is C=BR, O=Crab, CN=Ünder.
        let country = [0x31, 11, 0x30, 9, 6, 3, 0x55, 4, 6, 0x13, 2, b'B', b'R'];
        let organisation = [0x31, 13, 0x30, 11, 6, 3, 0x55, 4, 10, 0x0c, 4, b'C', b'r', b'a', b'b'];
        let common = [0x31, 15, 0x30, 13, 6, 3, 0x55, 4, 3, 0x0c, 6, 0xc3, 0x9c, b'n', b'd', b'e', b'r'];
        assert_eq!(title(&[&country[..], &organisation, &common].concat()), "Ünder");
        assert_eq!(title(&[&country[..], &organisation].concat()), "Crab");
        assert_eq!(title(&country), "a certificate without a name");
        assert_eq!(title(b""), "a certificate without a name");
    }

    #[test]
    fn malformed_names_do_not_panic() {
        let good = [0x31, 13, 0x30, 11, 6, 3, 0x55, 4, 10, 0x0c, 4, b'C', b'r', b'a', b'b'];
        for cut in 0..good.len() {
            title(&good[..cut]);
            for value in 0..=255 {
                let mut bad = good;
                bad[cut] = value;
                title(&bad);
            }
        }
        title(&[0x31, 0x84, 0xff, 0xff, 0xff, 0xff, 1]);
        title(&[0x31, 0x80, 0, 0]);
        title(&[0x31, 0x81]);
    }

    #[test]
    fn shows_few_names_without_wrappers() {
        assert_eq!(bare("DnsName(\"a.example\")"), "a.example");
        assert_eq!(bare("IpAddress(127.0.0.1)"), "127.0.0.1");
        assert_eq!(bare("odd"), "odd");
        assert_eq!(listed(&["a", "b"]), "`a`, `b`");
        assert_eq!(listed(&["a", "b", "c", "d", "e"]), "`a`, `b`, `c` and 2 more");
        assert_eq!(listed(&[]), "no name at all (no subjectAltName)");
    }
}
