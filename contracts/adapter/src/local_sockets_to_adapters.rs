//! Tracks the local addresses of connections to other adapters.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) type OwnSockets = Arc<Mutex<HashSet<SocketAddr>>>;

pub(crate) struct OwnSocket {
    address: SocketAddr,
    all: OwnSockets,
}

impl OwnSocket {
    pub(crate) fn new(address: SocketAddr, all: &OwnSockets) -> Self {
        all.lock().unwrap_or_else(PoisonError::into_inner).insert(address);
        Self { address, all: all.clone() }
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.address);
    }
}
