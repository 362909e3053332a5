//! Mocks: services that answer as the benchmark of Whip has them, so that what stands before them can be measured. Evernote by Thrift in HTTPS, chess by SOAP,
//! Twitter by REST in HTTPS. Source: the case studies of "Whip: higher-order contracts for modern services" (ICFP 2017).
//!
//! They are hyper on tokio with rustls: what a proxy is tried with must be right in the corners of HTTP, and a few microseconds do not matter. What they
//! answer is a function of the request and a little state ([`Service`]); everything of the network is in [`serve_mock`].

mod certificate;
mod chess;
mod evernote;
mod http;
mod twitter;

use std::net::SocketAddr;
use std::path::PathBuf;

use stats::Distribution;

pub use self::chess::Chess;
pub use self::evernote::{EvernoteNotes, EvernoteUser, Profile};
pub use self::http::serve_mock;
pub use self::twitter::Twitter;

/// Whether what a mock gives out was ever given out before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Identities {
    /// Never: as the benchmark was published.
    #[default]
    Fresh,
    /// Whoever asks the same again is given the same again.
    Reused,
}

/// A number that follows from a text, a different one for each `kind`.
fn digest(kind: u64, text: &str) -> u64 {
    let mut state = stats::random::mix(kind);
    for chunk in text.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = stats::random::mix(state ^ u64::from_le_bytes(word)).wrapping_add(chunk.len() as u64);
    }
    state
}

/// A request, read as a whole.
#[derive(Debug, Clone, Copy)]
pub struct MockRequest<'r> {
    /// `GET` and so on.
    pub method: &'r str,
    /// Path and query.
    pub target: &'r str,
    /// `Host`, or where we listen.
    pub host: &'r str,
    /// Header fields.
    pub headers: &'r hyper::HeaderMap,
    /// Its body.
    pub body: &'r [u8],
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MockAnswer {
    /// The status.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
    /// Methods that would have been right, with status 405.
    pub allow: Option<&'static str>,
}

impl MockAnswer {
    fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> MockAnswer {
        MockAnswer { status, content_type, body: body.into(), allow: None }
    }

    fn text(status: u16, text: &str) -> MockAnswer {
        MockAnswer::new(status, "text/plain; charset=utf-8", format!("{text}\n"))
    }

    fn only(allow: &'static str) -> MockAnswer {
        MockAnswer { allow: Some(allow), ..MockAnswer::text(405, &format!("only {allow} is allowed here")) }
    }
}

/// What a mock does with requests. It is asked by many threads at once.
pub trait Service: Send + Sync + 'static {
    /// The answer to one request; never a panic, whatever the request.
    fn answer(&self, request: &MockRequest<'_>) -> MockAnswer;
}

/// Where and how mocks are served.
#[derive(Debug, Clone)]
pub struct MockListen {
    /// Threads.
    pub threads: u32,
    /// Connections open at the same time, over all listeners; more wait to be accepted.
    pub connections: usize,
    /// Bytes of a request's body at most; more is answered with 413.
    pub body_bytes: usize,
    /// A connection may stand without a whole head of a request for so long.
    pub idle: std::time::Duration,
    /// A body, and a TLS handshake, may take so long.
    pub patience: std::time::Duration,
    /// After being asked to end, connections may go on for so long.
    pub drain: std::time::Duration,
    /// Each answer waits for a time of this law, ns, to the millisecond as timers of tokio have it.
    pub delay: Option<Distribution>,
    /// Seed of the delays.
    pub seed: u64,
    /// Encrypt, with a certificate made now for these names and addresses; empty: do not.
    pub names: Vec<String>,
    /// Write the root of that certificate here (PEM), for clients to trust.
    pub cert_out: Option<PathBuf>,
}

/// Why mocks could not be served.
#[derive(Debug, thiserror::Error)]
pub enum MockError {
    /// The address is taken, not ours, or not allowed.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The certificate could not be made: a name that can be none.
    #[error("cannot create a certificate for {names}: {reason}")]
    Certificate {
        /// For whom.
        names: String,
        /// Why not.
        reason: String,
    },
    /// The certificate could not be written.
    #[error("cannot write the certificate to `{path}`: {source}")]
    Write {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The kernel refused something else.
    #[error("{what}: {source}")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}
