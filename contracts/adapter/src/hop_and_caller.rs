//! The hop of a call, with its caller, endpoint and upstream address, and the kinds of listeners.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::endpoint::Scheme;

/// The party that sends the calls of a hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// The adapter's own party, which needs no identification.
    Party,
    /// A client without an adapter, whose metadata is ignored.
    Client,
    /// Another adapter that has not been identified yet.
    Adapter,
    /// An adapter with a certificate, by the certificate's first DNS name.
    Certified(String),
    /// An adapter without a certificate, by its address.
    Unproved(SocketAddr),
}

/// The receiver of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Whom {
    Plain,
    Tls,
    /// An adapter, over TLS if `tls.peers` is configured.
    Peer,
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
    pub(crate) caller: Caller,
    pub(crate) scheme: Scheme,
    /// The endpoint as named in the contract. For a listener over HTTP, the authority of its endpoints.
    pub(crate) endpoint: Arc<str>,
    pub(crate) forward: String,
}

impl Hop {
    /// The hop for calls of the adapter's party to services at the address `forward`.
    pub(crate) fn from_party(scheme: Scheme, endpoint: &str, forward: &str) -> Self {
        Self { caller: Caller::Party, scheme, endpoint: endpoint.into(), forward: forward.to_owned() }
    }

    pub(crate) fn whom(&self) -> Whom {
        if self.scheme == Scheme::Https { Whom::Tls } else { Whom::Plain }
    }

    pub(crate) fn accepts_adapters(&self) -> bool {
        !matches!(self.caller, Caller::Party | Caller::Client)
    }
}
