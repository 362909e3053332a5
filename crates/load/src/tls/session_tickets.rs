//! A store of TLS tickets, to resume sessions on new connections.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// Maximum number of TLS 1.3 tickets, four times the number of connections that a worker opens at once.
const TICKETS_MAX: usize = 256;

/// Tickets of a server, each for one use. Of 64 connections opened at once, 56 would find none in rustls's store of 8.
#[derive(Debug, Default)]
pub(super) struct Tickets(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    group: Option<NamedGroup>,
    session: Option<Tls12ClientSessionValue>,
    /// Tickets in order of arrival, of which the newest is used first.
    tickets: VecDeque<Tls13ClientSessionValue>,
}

impl Tickets {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names are ignored, because a connector has only one server.
impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.kept().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.kept().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.kept().session = Some(session);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.kept().session.clone()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.kept().session = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut kept = self.kept();
        if kept.tickets.len() == TICKETS_MAX {
            kept.tickets.pop_front();
        }
        kept.tickets.push_back(ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.kept().tickets.pop_back()
    }
}
