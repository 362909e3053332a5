//! A node that joins its lab.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::event::poll;
use rustls::{CertificateError, ClientConnection, Error};

use super::certificate::{self, NAME};
use super::handshake_and_first_line::{Opening, Why};
use super::{Join, Pipes};
use crate::lab_clocks;

const PAUSE: Duration = Duration::from_millis(100);

/// Why a node could not join the lab at an address.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The fingerprint is malformed.
    #[error("`{0}` is not a fingerprint (expected 64 hexadecimal digits)")]
    Fingerprint(String),
    /// The certificate does not have this fingerprint, so it is not the lab's.
    #[error(
        "the certificate at {0} does not match this run's `{1}`: another run listens there, or something intercepts the connection to the lab"
    )]
    OtherLab(SocketAddr, String),
    /// The TLS handshake failed.
    #[error("cannot make a TLS connection to the lab at {0}: {1}")]
    Tls(SocketAddr, rustls::Error),
    /// The lab refused the node, for this reason.
    #[error("the lab at {0} refused this node: {1}")]
    Refused(SocketAddr, String),
    /// No attempt succeeded within this time; the last one failed for this reason.
    #[error("cannot join the lab at {0} within {1:?}: {2}")]
    Late(SocketAddr, Duration, String),
}

/// Joins the lab as node `rank`. Retries temporary errors, for example under a flood of connections, `within` this time.
pub fn join(lab: SocketAddr, fingerprint: &str, rank: u32, ticket: &str, within: Duration) -> Result<Pipes, JoinError> {
    let fingerprint = fingerprint.to_ascii_lowercase();
    if fingerprint.len() != 64 || !fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(JoinError::Fingerprint(fingerprint));
    }
    let config = certificate::trust(&fingerprint).map_err(|error| JoinError::Tls(lab, error))?;
    let deadline = lab_clocks::now() + within;
    let join = Join { rank, ticket: ticket.to_owned() };
    let attempt = || -> Result<Result<Opening, String>, Why> {
        let left = deadline.saturating_duration_since(lab_clocks::now()).max(Duration::from_millis(1));
        let stream = TcpStream::connect_timeout(&lab, left)?;
        let name = rustls::pki_types::ServerName::try_from(NAME).map_err(std::io::Error::other)?;
        let mut opening = Opening::new(stream, ClientConnection::new(config.clone(), name)?)?;
        // TLS sends this line only after the handshake, which verifies the lab.
        opening.say(&join)?;
        loop {
            if let Some(answer) = opening.line::<Result<(), String>>()? {
                return Ok(answer.map(|()| opening));
            }
            if lab_clocks::now() >= deadline {
                return Err(Why::Slow);
            }
            let _ = poll(&mut [opening.interest()], Some(&lab_clocks::left(deadline)));
        }
    };
    let mut reason = "no time".to_owned();
    loop {
        let left = deadline.saturating_duration_since(lab_clocks::now());
        if left.is_zero() {
            return Err(JoinError::Late(lab, within, reason));
        }
        match attempt() {
            // If this fails, the lab regards this node as joined and would refuse a second attempt.
            Ok(Ok(opening)) => return opening.pipes().map_err(|why| JoinError::Late(lab, within, why.to_string())),
            Ok(Err(reason)) => return Err(JoinError::Refused(lab, reason)),
            Err(Why::Tls(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))) => {
                return Err(JoinError::OtherLab(lab, fingerprint));
            }
            Err(Why::Tls(error)) => return Err(JoinError::Tls(lab, error)),
            Err(why) => reason = why.to_string(),
        }
        std::thread::sleep(PAUSE.min(deadline.saturating_duration_since(lab_clocks::now())));
    }
}
