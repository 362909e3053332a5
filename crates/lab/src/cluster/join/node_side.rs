//! A node that joins its lab.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustls::{CertificateError, ClientConnection, Error};

use super::Join;
use super::certificate::{self, NAME};
use super::encrypted_stream::{Opening, Why};
use crate::json_lines::Channel;
use crate::lab_clocks;
use crate::process_start_and_stop::wait_readable;

const PAUSE: Duration = Duration::from_millis(100);

/// Why a node could not join the lab, in one line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct JoinError(String);

/// Joins the lab as node `rank`. Retries temporary errors, for example under a flood of connections, `within` this time.
pub fn join(
    lab: SocketAddr,
    fingerprint: &str,
    rank: u32,
    ticket: &str,
    within: Duration,
) -> Result<Channel, JoinError> {
    let fingerprint = fingerprint.to_ascii_lowercase();
    if fingerprint.len() != 64 || !fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(JoinError(format!("`{fingerprint}` is not a fingerprint (expected 64 hexadecimal digits)")));
    }
    let tls_failed = |error| JoinError(format!("cannot make a TLS connection to the lab at {lab}: {error}"));
    let is_late = |why: String| JoinError(format!("cannot join the lab at {lab} within {within:?}: {why}"));
    let config = certificate::trust(&fingerprint).map_err(tls_failed)?;
    let deadline = lab_clocks::now() + within;
    let join = Join { rank, ticket: ticket.to_owned() };
    let left = || deadline.saturating_duration_since(lab_clocks::now());
    let attempt = || -> Result<Result<Opening, String>, Why> {
        let stream = TcpStream::connect_timeout(&lab, left())?;
        let name = rustls::pki_types::ServerName::try_from(NAME).map_err(std::io::Error::other)?;
        let mut opening = Opening::new(stream, ClientConnection::new(config.clone(), name)?)?;
        // TLS sends this line only after the handshake, which verifies the lab.
        opening.say(&join)?;
        while !left().is_zero() {
            if let Some(answer) = opening.line::<Result<(), String>>()? {
                return Ok(answer.map(|()| opening));
            }
            wait_readable(&[opening.handle()], left());
        }
        Err(Why::Slow)
    };
    let mut reason = "no time".to_owned();
    while !left().is_zero() {
        match attempt() {
            // If this fails, the lab regards this node as joined and would refuse a second attempt.
            Ok(Ok(opening)) => return opening.channel().map_err(|why| is_late(why.to_string())),
            Ok(Err(reason)) => return Err(JoinError(format!("the lab at {lab} refused this node: {reason}"))),
            Err(Why::Tls(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))) => {
                return Err(JoinError(format!(
                    "the certificate at {lab} does not match this run's `{fingerprint}`: another run listens there, or something intercepts the connection to the lab"
                )));
            }
            Err(Why::Tls(error)) => return Err(tls_failed(error)),
            Err(why) => reason = why.to_string(),
        }
        std::thread::sleep(PAUSE.min(left()));
    }
    Err(is_late(reason))
}
