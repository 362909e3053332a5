//! `MULTI`, `EXEC` and what belongs to them, carried out. Source: Redis 7.0.15, `multi.c`.

use std::sync::Arc;

use wire::resp::{Name, Read, Refusal, Request, RequestReader, Version, compose_array, compose_error};

use super::connection::{CloseState, Connection, Speech};
use super::executor::Executor;
use super::resp::{After, OK, State};
use super::transaction::{Transactions, Watched, wait};

/// Bytes of the answers of one `EXEC`; a connection that asks for more is closed, as Redis does at the limit of its output buffer.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Keys that one connection may watch.
const WATCHED_MAX: usize = 1024;

impl Executor {
    /// `MULTI`, `EXEC`, `DISCARD`, `WATCH` and `UNWATCH`.
    pub(super) fn redis_transaction(
        &mut self,
        name: Name,
        request: &Request<'_, '_>,
        transactions: &mut Transactions,
    ) -> After {
        let line: &[u8] = match (name, &mut transactions.open) {
            (Name::Multi, Some(_)) => b"-ERR MULTI calls can not be nested\r\n",
            (Name::Multi, open) => {
                *open = Some(Box::default());
                OK
            }
            (Name::Exec, None) => b"-ERR EXEC without MULTI\r\n",
            (Name::Exec, open) => {
                transactions.due = open.take();
                return After::Exec;
            }
            (Name::Discard, None) => b"-ERR DISCARD without MULTI\r\n",
            (Name::Discard, Some(_)) => {
                transactions.forget();
                OK
            }
            (Name::Watch, Some(_)) => b"-ERR WATCH inside MULTI is not allowed\r\n",
            (Name::Watch, None) => self.watch(request, &mut transactions.watched),
            // `UNWATCH`.
            _ => {
                transactions.watched = Vec::new();
                OK
            }
        };
        self.out.extend_from_slice(line);
        After::Next
    }

    fn watch(&self, request: &Request<'_, '_>, watched: &mut Vec<Watched>) -> &'static [u8] {
        if !self.shared.config.versions {
            return b"-ERR WATCH needs versions of items, which `--cas on` keeps\r\n";
        }
        for key in request.arguments().skip(1) {
            if watched.iter().any(|other| *other.key == *key) {
                continue;
            }
            if watched.len() == WATCHED_MAX {
                return b"-ERR WATCH of more than 1024 keys\r\n";
            }
            watched.push(Watched { key: key.into(), was: self.state_of(key) });
        }
        OK
    }

    /// What tells one item of a key from another.
    fn state_of(&self, key: &[u8]) -> Option<(u64, u64)> {
        let cache = &self.shared.cache;
        cache.peek(key, cache.hash(key), self.now_ms, |item| (item.version, item.expires_ms))
    }

    /// Carries out the transaction that is due; whether there was one.
    pub(super) fn execute(&mut self, connection: &mut Connection) -> bool {
        let Speech::Redis(redis) = &mut connection.speech else { return false };
        let Some(transaction) = redis.transactions.due.take() else { return false };
        let watched = std::mem::take(&mut redis.transactions.watched);
        if transaction.failed {
            let text = b"-EXECABORT Transaction discarded because of previous errors.\r\n";
            self.out.extend_from_slice(text);
            return true;
        }
        let shared = Arc::clone(&self.shared);
        // In their order, and with no turn of one's own: nobody waits for whoever waits.
        let _turns: Vec<_> = shared.turns.iter().map(wait).collect();
        if watched.iter().any(|watched| self.state_of(&watched.key) != watched.was) {
            self.out.extend_from_slice(match redis.version {
                Version::Two => b"*-1\r\n",
                Version::Three => b"_\r\n",
            });
            return true;
        }
        let start = self.out.len();
        compose_array(&mut self.out, transaction.count);
        let id = connection.conn.map_or(0, |conn| conn.index() as u64 + 1);
        let mut reader = RequestReader::new(shared.redis);
        let mut at = 0;
        while at < transaction.queued.len() {
            match reader.read(&transaction.queued[at..]) {
                Read::Request { used, request } => {
                    at += used;
                    let redis = &mut **redis;
                    let state = State {
                        version: &mut redis.version,
                        name: &mut redis.name,
                        transactions: &mut redis.transactions,
                        id,
                    };
                    match request.command() {
                        Ok(name) => {
                            let version = *state.version;
                            if let After::PendingMultiGet(mut rest) = self.redis_command(name, &request, state) {
                                while self.out.len() - start <= ANSWER_BYTES_MAX
                                    && let Some(key) = rest.next()
                                {
                                    self.redis_value(key, version);
                                }
                            }
                        }
                        Err(refusal) => refusal.compose(&mut self.out),
                    }
                }
                // What was read once is read again, within the same limits.
                Read::Refused { used, refusal } => {
                    at += used;
                    Refusal::compose(refusal, &mut self.out);
                }
                Read::Need { .. } => break,
            }
            if self.out.len() - start > ANSWER_BYTES_MAX {
                self.out.truncate(start);
                let text = format!("ERR answers of a transaction over the limit of {ANSWER_BYTES_MAX} bytes");
                compose_error(&mut self.out, &text);
                connection.over = CloseState::Answered { linger: true };
                break;
            }
        }
        true
    }
}
