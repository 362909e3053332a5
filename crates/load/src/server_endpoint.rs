//! A server that a load connects to, with its address, TLS and host name.

use net::Address;

use crate::tls::Connector;

#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) address: Address,
    /// Server as `host:port`, to which the HTTP proxy at `address` opens a tunnel; `None` without a proxy.
    pub(crate) tunnel_to: Option<Box<str>>,
    pub(crate) tls: Option<Connector>,
    /// Name of the server in URLs, which decides which cookies it gets; empty for loads without journeys.
    pub(crate) host: String,
}
