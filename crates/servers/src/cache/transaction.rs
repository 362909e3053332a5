//! What a connection keeps for `MULTI` and `EXEC`, and the turns of threads.
//!
//! What is between `MULTI` and `EXEC` is carried out as one step: threads hold their turn while they take the requests of a connection, and `EXEC`
//! takes the turns of all. No request of another connection, in whatever protocol, is carried out meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wire::resp::{Name, Request, compose_array, compose_error};

/// Bytes of the requests that one connection may have queued.
const QUEUE_BYTES_MAX: usize = 8 << 20;
/// What is left to be done when the turn of the thread is given up.
pub(super) type Turn = Arc<Mutex<()>>;

/// Waits for a turn. Nothing panics within one, and it guards nothing of its own.
pub(super) fn wait(turn: &Turn) -> MutexGuard<'_, ()> {
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Requests that wait for `EXEC`.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    /// As arrays of their arguments.
    pub(super) queued: Vec<u8>,
    pub(super) count: usize,
    /// One of them could not be queued: none will be carried out.
    pub(super) failed: bool,
}

/// A key as it was when `WATCH` named it.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) key: Box<[u8]>,
    /// Version and expiry; `None` where there was no item.
    pub(super) was: Option<(u64, u64)>,
}

/// What a connection keeps for transactions.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    /// Between `MULTI` and `EXEC`.
    pub(super) open: Option<Box<Transaction>>,
    /// Behind `EXEC`, which is to be carried out as soon as the thread's turn is over.
    pub(super) due: Option<Box<Transaction>>,
    pub(super) watched: Vec<Watched>,
}

impl Transactions {
    /// What `DISCARD` does.
    pub(super) fn forget(&mut self) {
        self.open = None;
        self.watched = Vec::new();
    }

    /// A request was refused: where a transaction is open, it will not be carried out.
    pub(super) fn fail(&mut self) {
        if let Some(open) = &mut self.open {
            open.failed = true;
            open.queued = Vec::new();
        }
    }
}

impl Transaction {
    fn queue(&mut self, request: &Request<'_, '_>, out: &mut Vec<u8>) {
        let bytes: usize = request.arguments().map(|argument| argument.len() + 32).sum();
        if !self.failed {
            if self.queued.len() + bytes > QUEUE_BYTES_MAX {
                self.failed = true;
                self.queued = Vec::new();
                return compose_error(out, &format!("ERR a transaction over the limit of {QUEUE_BYTES_MAX} bytes"));
            }
            compose_array(&mut self.queued, request.count());
            request.arguments().for_each(|argument| wire::resp::compose_bulk(&mut self.queued, argument));
            self.count += 1;
        }
        out.extend_from_slice(b"+QUEUED\r\n");
    }
}

/// Whether a command is carried out between `MULTI` and `EXEC`, where all others are queued.
fn is_done_at_once(name: Name) -> bool {
    matches!(name, Name::Multi | Name::Exec | Name::Discard | Name::Watch | Name::Quit | Name::Reset)
}

/// Queues a request where a transaction is open; whether that was done.
pub(super) fn is_queued(
    transactions: &mut Transactions,
    name: Name,
    request: &Request<'_, '_>,
    out: &mut Vec<u8>,
) -> bool {
    match &mut transactions.open {
        Some(open) if !is_done_at_once(name) => {
            open.queue(request, out);
            true
        }
        _ => false,
    }
}
