//! A server that a load connects to, with its address, TLS and host name.

use net::Address;

use crate::tls::Connector;

#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) address: Address,
    pub(crate) tls: Option<Connector>,
    /// Name of the server in URLs, by which it gets its cookies; empty for other loads.
    pub(crate) host: String,
}
