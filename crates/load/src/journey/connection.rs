//! A blocking socket, optionally with TLS, and one response at a time.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use wire::http1::{Limits, Memo, RequestMethod, Response, ResponseReader};

use crate::protocol::http_fault;
use crate::recorder::{Fault, OrFault};
use crate::run::RECEIVE_BYTES;
use crate::tls::{Connector, Session};

/// Longest blocking wait, after which the client checks whether the load has ended.
pub(crate) const SLICE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) enum Piece {
    More,
    Done(Response),
}

#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    tls: Option<Box<Session>>,
    reader: ResponseReader,
    memo: Memo,
    inbox: Vec<u8>,
    buffer: Vec<u8>,
    wire: Vec<u8>,
    /// Duration of the handshake, ns, and whether it resumed a session.
    pub(crate) handshake: Option<(u64, bool)>,
    pub(crate) connect_ns: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr, tls: Option<&Connector>, patience: Duration) -> OrFault<Connection> {
        let began = net::thread::monotonic_ns();
        let stream = TcpStream::connect_timeout(&address, patience).map_err(|error| {
            let fault = match error.kind() {
                ErrorKind::ConnectionRefused => Fault::Refused,
                ErrorKind::TimedOut | ErrorKind::WouldBlock => Fault::ConnectTimeout,
                _ => Fault::Os,
            };
            (fault, format!("{address}: {error}"))
        })?;
        let connected = net::thread::monotonic_ns();
        let set = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(SLICE)));
        set.and_then(|()| stream.set_write_timeout(Some(patience))).map_err(|error| lost(&error))?;
        let mut connection = Connection {
            stream,
            tls: tls.map(|connector| Box::new(connector.start())),
            reader: ResponseReader::new(Limits::DEFAULT),
            memo: Memo::new(),
            inbox: Vec::new(),
            buffer: vec![0; RECEIVE_BYTES],
            wire: Vec::new(),
            handshake: None,
            connect_ns: connected - began,
            sent_bytes: 0,
            received_bytes: 0,
        };
        let until = connected + patience.as_nanos() as u64;
        loop {
            connection.flush()?;
            if connection.tls.as_ref().is_none_or(|session| !session.is_handshaking()) {
                break;
            }
            if connection.fill()? == Some(0) {
                return Err((Fault::Tls, "the server closed the connection during the TLS handshake".to_owned()));
            }
            if net::thread::monotonic_ns() > until {
                return Err((Fault::ConnectTimeout, "TLS handshake timed out".to_owned()));
            }
        }
        let took = net::thread::monotonic_ns() - connected;
        connection.handshake = connection.tls.as_ref().map(|session| (took, session.resumed()));
        Ok(connection)
    }

    pub(crate) fn send(&mut self, request: &[u8]) -> OrFault<()> {
        match &mut self.tls {
            Some(session) => {
                session.write(request).map_err(|error| (Fault::Tls, error))?;
                self.flush()
            }
            None => {
                self.sent_bytes += request.len() as u64;
                self.stream.write_all(request).map_err(|error| lost(&error))
            }
        }
    }

    /// Parses more of a response; waits [`SLICE`] at most.
    pub(crate) fn receive(&mut self, asked: RequestMethod, body: &mut Vec<u8>, limit: usize) -> OrFault<Piece> {
        if self.inbox.is_empty() {
            match self.fill()? {
                None => return Ok(Piece::More),
                Some(0) => return self.ended(),
                Some(_) => {}
            }
        }
        let progress = self.reader.read(&mut self.memo, asked, &self.inbox, |piece| body.extend_from_slice(piece));
        if body.len() > limit {
            return Err((Fault::Body, format!("the body exceeds {limit} bytes")));
        }
        match progress.map_err(framing)? {
            None => {
                self.inbox.clear();
                Ok(Piece::More)
            }
            Some((used, response)) => {
                self.inbox.drain(..used);
                Ok(Piece::Done(response))
            }
        }
    }

    fn ended(&mut self) -> OrFault<Piece> {
        match self.reader.end().map_err(framing)? {
            Some(response) => Ok(Piece::Done(response)),
            None => Err((Fault::Closed, "the server closed the connection before responding".to_owned())),
        }
    }

    pub(crate) fn has_more(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// `None`: nothing arrived within [`SLICE`]. 0: end of stream.
    fn fill(&mut self) -> OrFault<Option<usize>> {
        let count = match self.stream.read(&mut self.buffer) {
            Ok(count) => count,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(lost(&error)),
        };
        self.received_bytes += count as u64;
        let bytes = &self.buffer[..count];
        let Some(session) = &mut self.tls else {
            self.inbox.extend_from_slice(bytes);
            return Ok(Some(count));
        };
        let read = session.read(bytes, &mut self.inbox);
        let has_ended = session.ended();
        // An alert may be pending, even after an error.
        let flushed = self.flush();
        read.map_err(|error| (Fault::Tls, error))?;
        flushed?;
        match (self.inbox.is_empty(), count, has_ended) {
            (true, 0, _) | (true, _, true) => Ok(Some(0)),
            (true, ..) => Ok(None), // Only TLS records without application data.
            (false, ..) => Ok(Some(self.inbox.len())),
        }
    }

    fn flush(&mut self) -> OrFault<()> {
        let Some(session) = &mut self.tls else { return Ok(()) };
        self.wire.clear();
        session.take(&mut self.wire);
        self.sent_bytes += self.wire.len() as u64;
        self.stream.write_all(&self.wire).map_err(|error| lost(&error))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(session) = &mut self.tls {
            self.wire.clear();
            session.close(&mut self.wire);
            let _ = self.stream.write_all(&self.wire); // A lost connection needs no close_notify.
        }
    }
}

fn lost(error: &std::io::Error) -> (Fault, String) {
    let fault = match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => Fault::Reset,
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Fault::Timeout,
        _ => Fault::Os,
    };
    (fault, error.to_string())
}

fn framing(error: wire::http1::ResponseError) -> (Fault, String) {
    (http_fault(&error), error.to_string())
}
