//! The kinds of server that the suite knows.

use super::cases::Case;
use super::{cache, http, pingpong};

/// What a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Words plus one.
    #[default]
    PingPong,
    /// HTTP/1.1.
    Http,
    /// The protocols of caches.
    Cache,
}

impl Kind {
    pub(super) const ALL: [Kind; 3] = [Kind::PingPong, Kind::Http, Kind::Cache];

    /// As `--kind` and the contract call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::PingPong => "ping-pong",
            Kind::Http => "http",
            Kind::Cache => "cache",
        }
    }

    /// What the subject in this folder speaks.
    pub(super) fn of_folder(name: &str) -> Kind {
        if name.starts_with("http-") { Kind::Http } else { Kind::PingPong }
    }

    /// What it promises.
    pub(super) fn cases(self) -> &'static [Case] {
        match self {
            Kind::PingPong => &pingpong::CASES,
            Kind::Http => &http::CASES,
            Kind::Cache => &cache::CASES,
        }
    }

    /// A question that every server of this kind answers. The numbers (from 1) tell questions apart where the protocol can.
    pub(super) fn question(self, number: u32) -> Vec<u8> {
        match self {
            Kind::PingPong => number.to_be_bytes().to_vec(),
            Kind::Http => http::TEST.request(),
            Kind::Cache => cache::question(number),
        }
    }

    /// The beginning of a question.
    pub(super) fn begun(self) -> &'static [u8] {
        match self {
            Kind::PingPong => &[1, 2],
            Kind::Http => b"GET / HTTP/1.1\r\nHo",
            Kind::Cache => b"get nothi",
        }
    }
}
