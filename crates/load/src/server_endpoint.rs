//! A server that a load connects to: address, TLS and host name.

use net::Address;

use crate::tls::Connector;

#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) address: Address,
    pub(crate) tls: Option<Connector>,
    /// Its name in URLs, whose cookies it gets; otherwise empty.
    pub(crate) host: String,
}
