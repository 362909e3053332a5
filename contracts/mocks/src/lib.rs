//! Mocks: a shop for trying journeys, and the services in Whip's benchmark, for measuring proxies. Evernote uses Thrift
//! over HTTPS, chess uses SOAP, and Twitter uses REST over HTTPS. Source: the case studies of "Whip: higher-order
//! contracts for modern services" (ICFP 2017). The mocks use hyper on tokio with rustls, because a proxy's test partner
//! must implement the corner cases of HTTP; a few microseconds do not matter.

mod certificate;
mod chess;
mod evernote;
mod http;
mod shop;
mod twitter;

use std::path::PathBuf;

use hyper::Response;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue};
use servers::ServeError;
use stats::Distribution;

pub use self::certificate::tls_config;
pub use self::chess::Chess;
pub use self::evernote::{Evernote, Profile};
pub use self::http::serve_mock;
pub use self::shop::Shop;
pub use self::twitter::Twitter;

/// Whether repeated requests get new identities, such as ids and keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Identities {
    /// Every request gets new identities, as in the published benchmark.
    #[default]
    Fresh,
    /// A repeated request gets the same identities again.
    Reused,
}

/// A number derived from a string, different for each `kind`.
fn digest(kind: u64, text: &str) -> u64 {
    let mut state = stats::random::mix(kind);
    for chunk in text.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = stats::random::mix(state ^ u64::from_le_bytes(word)).wrapping_add(chunk.len() as u64);
    }
    state
}

/// A complete request to a mock. `Host` is the listening address if the client sent none.
pub type MockRequest = hyper::Request<Bytes>;

/// A complete response of a mock.
pub type MockAnswer = hyper::Response<Bytes>;

fn respond(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> MockAnswer {
    let response = Response::builder().status(status).header(CONTENT_TYPE, content_type);
    response.body(body.into()).expect("mocks use valid statuses and types")
}

fn respond_text(status: u16, text: &str) -> MockAnswer {
    respond(status, "text/plain; charset=utf-8", format!("{text}\n"))
}

fn respond_only(allow: &str) -> MockAnswer {
    with_field(respond_text(405, &format!("only {allow} is allowed here")), ALLOW, allow)
}

fn with_field(mut answer: MockAnswer, name: HeaderName, value: &str) -> MockAnswer {
    answer.headers_mut().insert(name, HeaderValue::from_str(value).expect("mocks send only visible ASCII"));
    answer
}

/// The behavior of a mock. Many threads call it concurrently.
pub trait Service: Send + Sync + 'static {
    /// Returns the response to a request. Must not panic for any request.
    fn answer(&self, request: &MockRequest) -> MockAnswer;
}

/// Settings for [`serve_mock`]: threads, limits, timeouts, delay and certificate.
#[derive(Debug, Clone)]
pub struct MockListen {
    /// Number of threads; 0 counts as 1.
    pub threads: u32,
    /// Maximum number of open connections across all listeners; further ones wait to be accepted.
    pub connections: usize,
    /// Maximum size of a request body in bytes; a larger one gets 413.
    pub body_bytes: usize,
    /// Timeout for a complete request head, including the time that a connection is idle.
    pub idle: std::time::Duration,
    /// Timeout for a body, and for a TLS handshake.
    pub patience: std::time::Duration,
    /// Time for which connections may continue after the shutdown begins.
    pub drain: std::time::Duration,
    /// Distribution of the delay of each response in ns; `None` for no delay. Tokio's timers round to milliseconds.
    pub delay: Option<Distribution>,
    /// Seed of the random delays.
    pub seed: u64,
    /// Names and addresses for a new certificate. Without any, connections are not encrypted.
    pub names: Vec<String>,
    /// File that receives the root of the new certificate (PEM), for clients to trust.
    pub cert_out: Option<PathBuf>,
}

/// Why mocks could not be served.
#[derive(Debug, thiserror::Error)]
pub enum MockError {
    /// The system refused a listener or a thread.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The certificate could not be created because of an invalid name. The fields are the names and the reason.
    #[error("cannot create a certificate for {0}: {1}")]
    Certificate(String, String),
    /// The certificate could not be written to this file.
    #[error("cannot write the certificate to `{0}`: {1}")]
    Write(PathBuf, #[source] std::io::Error),
}
