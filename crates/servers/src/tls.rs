//! TLS for a handler: an outer handler decrypts received data for an inner handler and encrypts the inner one's output.

#[cfg(test)]
mod tests;

use std::io::{self, BufRead, Write};
use std::sync::Arc;

use net::{Address, Close, Conn, Data, Driver, Event, Listener, Nanos, SendError};
use rustls::{ServerConfig, ServerConnection};

use crate::connections::entry;
use crate::event_loops::Handler;

/// Application protocols of `serve http`, best first, for [`ServerConfig::alpn_protocols`]. The server recognizes the
/// protocol by the first bytes, also without ALPN. Source: RFC 7301.
pub fn http_protocols() -> Vec<Vec<u8>> {
    vec![b"h2".to_vec(), b"http/1.1".to_vec()]
}

/// A handler whose connections use TLS.
#[derive(Debug)]
pub struct Tls<H> {
    handler: H,
    config: Arc<ServerConfig>,
    /// Sessions by connection slot; `None` for free slots and failed sessions.
    sessions: Vec<Option<Session>>,
    plain: Vec<u8>,
    wire: Vec<u8>,
}

#[derive(Debug)]
struct Session {
    connection: ServerConnection,
    /// Whether the client's stream has ended.
    ended: bool,
}

impl<H: Handler> Tls<H> {
    /// Wraps `handler`. `config` has the certificate.
    pub fn new(handler: H, config: Arc<ServerConfig>) -> Self {
        Self { handler, config, sessions: Vec::new(), plain: Vec::new(), wire: Vec::new() }
    }

    /// Returns the inner handler.
    pub fn into_inner(self) -> H {
        self.handler
    }

    /// Calls the inner handler with a driver that encrypts.
    fn with<D: Driver, T>(&mut self, driver: &mut D, call: impl FnOnce(&mut H, &mut Encrypting<'_, D>) -> T) -> T {
        let Self { handler, sessions, plain, wire, .. } = self;
        call(handler, &mut Encrypting { driver, sessions, plain, wire })
    }

    fn start(&mut self, conn: Conn) {
        // A session with a valid configuration can only fail for lack of random bytes.
        let mut connection = ServerConnection::new(Arc::clone(&self.config)).expect("the system has random bytes");
        // All output is taken at once, so the driver limits it.
        connection.set_buffer_limit(None);
        *entry(&mut self.sessions, conn) = Some(Session { connection, ended: false });
    }
}

impl Session {
    /// Appends the decrypted bytes of `wire` to `plain`. The session is unusable after an error.
    fn read(&mut self, mut wire: &[u8], plain: &mut Vec<u8>) -> Result<(), ()> {
        while !wire.is_empty() && !self.ended {
            self.connection.read_tls(&mut wire).map_err(drop)?;
            let state = self.connection.process_new_packets().map_err(drop)?;
            let mut reader = self.connection.reader();
            while let Ok(bytes) = reader.fill_buf()
                && !bytes.is_empty()
            {
                plain.extend_from_slice(bytes);
                let count = bytes.len();
                reader.consume(count);
            }
            self.ended = state.peer_has_closed();
        }
        Ok(())
    }

    fn send<D: Driver>(&mut self, driver: &mut D, conn: Conn, wire: &mut Vec<u8>) -> Result<(), SendError> {
        wire.clear();
        while self.connection.wants_write() {
            // Writing to a vector never fails.
            let _ = self.connection.write_tls(wire);
        }
        if wire.is_empty() { Ok(()) } else { driver.send(conn, wire) }
    }
}

impl<H: Handler> Handler for Tls<H> {
    const DRAINS: bool = H::DRAINS;

    fn accepted<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        self.start(conn);
        self.with(driver, |handler, driver| handler.accepted(driver, conn));
    }

    fn refused<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        self.start(conn);
        self.with(driver, |handler, driver| handler.refused(driver, conn));
    }

    fn data<D: Driver>(&mut self, driver: &mut D, conn: Conn, data: Data) {
        let slot = conn.index();
        let Some(session) = self.sessions[slot].as_mut().filter(|session| !session.ended) else { return };
        self.plain.clear();
        let read = session.read(driver.bytes(data), &mut self.plain);
        let ended = session.ended;
        // Send the next handshake message or, if reading failed, an alert. If sending fails, the connection closes.
        let sent = session.send(driver, conn, &mut self.wire);
        if read.is_err() || sent.is_err() {
            self.sessions[slot] = None;
            return driver.close(conn, Close::Graceful);
        }
        if !self.plain.is_empty() {
            self.with(driver, |handler, driver| handler.data(driver, conn, data));
        }
        if ended {
            self.with(driver, |handler, driver| handler.end_of_stream(driver, conn));
        }
    }

    fn is_terminated(&self) -> bool {
        self.handler.is_terminated()
    }

    fn closed(&mut self, conn: Conn) {
        self.sessions[conn.index()] = None;
        self.handler.closed(conn);
    }

    fn end_of_stream<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        let has_ended = |session: &mut Session| std::mem::replace(&mut session.ended, true);
        if !self.sessions[conn.index()].as_mut().is_some_and(has_ended) {
            self.with(driver, |handler, driver| handler.end_of_stream(driver, conn));
        }
    }

    fn sent<D: Driver>(&mut self, driver: &mut D, conn: Conn) {
        self.with(driver, |handler, driver| handler.sent(driver, conn));
    }

    fn turning<D: Driver>(&mut self, driver: &mut D) {
        self.with(driver, |handler, driver| handler.turning(driver));
    }

    fn turned<D: Driver>(&mut self, driver: &mut D) -> Option<Nanos> {
        self.with(driver, |handler, driver| handler.turned(driver))
    }

    fn end<D: Driver>(&mut self, driver: &mut D) {
        self.with(driver, |handler, driver| handler.end(driver));
    }

    fn is_done(&self) -> bool {
        self.handler.is_done()
    }
}

/// A driver that encrypts what the inner handler sends, and returns decrypted bytes.
struct Encrypting<'a, D> {
    driver: &'a mut D,
    sessions: &'a mut [Option<Session>],
    plain: &'a [u8],
    wire: &'a mut Vec<u8>,
}

impl<D: Driver> Encrypting<'_, D> {
    /// Tells the client that no more data follows, if the session still works.
    fn notify_close(&mut self, conn: Conn) {
        if let Some(session) = self.sessions[conn.index()].as_mut() {
            session.connection.send_close_notify();
            // If sending fails, the connection ends without `close_notify`.
            let _ = session.send(self.driver, conn, self.wire);
        }
    }
}

impl<D: Driver> Driver for Encrypting<'_, D> {
    fn now(&self) -> Nanos {
        self.driver.now()
    }

    fn listen(&mut self, address: &Address, backlog: u32) -> io::Result<(Listener, Address)> {
        self.driver.listen(address, backlog)
    }

    fn stop_listening(&mut self, listener: Listener) {
        self.driver.stop_listening(listener);
    }

    fn connect(&mut self, address: &Address) -> io::Result<Conn> {
        self.driver.connect(address)
    }

    fn send(&mut self, conn: Conn, bytes: &[u8]) -> Result<(), SendError> {
        let session = self.sessions[conn.index()].as_mut().ok_or(SendError::Closed)?;
        // Without a buffer limit, the session takes all bytes.
        session.connection.writer().write_all(bytes).map_err(|_| SendError::Closed)?;
        session.send(self.driver, conn, self.wire)
    }

    fn notify_when_sent(&mut self, conn: Conn) {
        self.driver.notify_when_sent(conn);
    }

    fn pause_reads(&mut self, conn: Conn, paused: bool) {
        self.driver.pause_reads(conn, paused);
    }

    fn end_stream(&mut self, conn: Conn) {
        self.notify_close(conn);
        self.driver.end_stream(conn);
    }

    fn close(&mut self, conn: Conn, how: Close) {
        if how != Close::Reset {
            self.notify_close(conn);
        }
        self.driver.close(conn, how);
    }

    fn turn(&mut self, until: Option<Nanos>) -> io::Result<()> {
        self.driver.turn(until)
    }

    fn next_event(&mut self) -> Option<Event> {
        self.driver.next_event()
    }

    fn bytes(&self, _: Data) -> &[u8] {
        self.plain
    }
}
