//! The hop of a call, with its side, endpoint, upstream address and caller, and the kinds of listeners.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::dial_allowed_endpoint::Whom;
use crate::endpoint::Scheme;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server { peers: bool },
}

#[derive(Clone, Debug)]
pub(crate) enum Caller {
    /// The adapter's own party, which needs no identification.
    Nobody,
    /// The owner of a certificate, by the certificate's first DNS name.
    Certified(String),
    /// A caller without a certificate, by its address.
    Unproved(SocketAddr),
}

#[derive(Clone, Debug)]
pub(crate) enum ListenerKind {
    /// A listener for a service: for Thrift if its endpoint has no scheme, otherwise for HTTP.
    Service(Hop),
    Proxy,
    Admin,
}

#[derive(Clone, Debug)]
pub(crate) struct Hop {
    pub(crate) side: Side,
    pub(crate) scheme: Scheme,
    /// The endpoint as named in the contract. For a listener over HTTP, the authority of its endpoints.
    pub(crate) endpoint: Arc<str>,
    pub(crate) forward: String,
    pub(crate) caller: Caller,
}

impl Hop {
    /// The hop for calls of the adapter's party to services at the address `forward`.
    pub(crate) fn from_party(scheme: Scheme, endpoint: &str, forward: &str) -> Self {
        let (side, caller) = (Side::Client, Caller::Nobody);
        Self { side, scheme, endpoint: endpoint.into(), forward: forward.to_owned(), caller }
    }

    pub(crate) fn whom(&self) -> Whom {
        if self.scheme == Scheme::Https { Whom::Tls } else { Whom::Plain }
    }

    pub(crate) fn accepts_adapters(&self) -> bool {
        self.side == Side::Server { peers: true }
    }
}
