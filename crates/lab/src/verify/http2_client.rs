//! The client's side of HTTP/2 connections.

use std::io::{self, ErrorKind, Read};

use wire::http1::RequestMethod;
use wire::http2::{
    ErrorCode, FrameKind, PREFACE, Settings, WINDOW_MAX, flags, push_headers, push_settings, push_window_update,
};

use super::client::{Client, reason};
use super::http_response_parser::Response;
use super::http2_session::{Frame, PING, block, frame};

impl Client {
    /// Sends the preface and the client's settings; with [`GENEROUS`], also a credit for the connection.
    pub(super) fn start_http2(&mut self, own: &Settings) -> Result<(), String> {
        let bytes = self.opening(own);
        self.send(&bytes)
    }

    /// The first bytes of a connection with these settings.
    pub(super) fn opening(&mut self, own: &Settings) -> Vec<u8> {
        let mut out = PREFACE.to_vec();
        push_settings(&mut out, own);
        self.session.own = *own;
        if own.initial_window_size == WINDOW_MAX {
            let credit = WINDOW_MAX - Settings::DEFAULT.initial_window_size;
            push_window_update(&mut out, 0, credit);
            self.session.window += i64::from(credit);
        }
        out
    }

    /// Composes a GET on a new stream, whose number it returns.
    pub(super) fn get_request(&mut self, path: &str) -> (u32, Vec<u8>) {
        let stream = self.session.open(RequestMethod::Get);
        let mut out = Vec::new();
        push_headers(&mut out, stream, &block("GET", path, &[]), true, self.session.peer().max_frame_size);
        (stream, out)
    }

    /// Sends a GET and reads its response.
    pub(super) fn get_response(&mut self, path: &str) -> Result<Response, String> {
        let (stream, bytes) = self.get_request(path);
        self.send(&bytes)?;
        self.stream_response(stream)
    }

    /// Sends credit for a stream, or for the connection if `stream` is 0.
    pub(super) fn grant(&mut self, stream: u32, bytes: u32) -> Result<(), String> {
        let reply = self.session.replies.get_mut(&stream);
        *reply.map_or(&mut self.session.window, |reply| &mut reply.window) += i64::from(bytes);
        self.send(&frame(FrameKind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes()))
    }

    /// Reads the next frame. Acknowledges SETTINGS and PING.
    pub(super) fn next_frame(&mut self) -> Result<Frame, String> {
        loop {
            let mut out = Vec::new();
            let (used, frame) = self.session.read(&self.received, &mut out).map_err(|fault| fault.to_string())?;
            self.received.drain(..used);
            if !out.is_empty() {
                let _ = self.send(&out); // If the connection has ended, reading shows it.
            }
            if let Some(frame) = frame {
                self.is_closing |= matches!(frame, Frame::GoAway(_, ErrorCode::NO_ERROR));
                return Ok(frame);
            }
            let mut bytes = [0; 16 * 1024];
            match self.read(&mut bytes) {
                Ok(0) => return Ok(Frame::End),
                Ok(got) => self.received.extend_from_slice(&bytes[..got]),
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                    return Ok(Frame::End);
                }
                Err(error) => return Err(reason(&error)),
            }
        }
    }

    /// Reads until a frame for which `is_last` holds. Fails at any other end of the connection.
    pub(super) fn frames_until(&mut self, is_last: impl Fn(Frame) -> bool) -> Result<Frame, String> {
        loop {
            match self.next_frame()? {
                frame if is_last(frame) => return Ok(frame),
                Frame::End => return Err("the connection was closed".to_owned()),
                _ => {}
            }
        }
    }

    pub(super) fn ping(&mut self) -> Result<(), String> {
        self.send(&frame(FrameKind::PING, 0, 0, &PING))
    }

    /// Sends a PING and reads frames until its acknowledgement.
    pub(super) fn ping_pong(&mut self) -> Result<(), String> {
        self.ping()?;
        let ack = self.frames_until(|frame| frame == Frame::PingAck);
        ack.map(drop).map_err(|why| format!("a PING was not acknowledged: {why}"))
    }

    /// Sends a body on an open stream as the server grants credit. Stops if the server ends the stream.
    pub(super) fn send_body(&mut self, stream: u32, body: &[u8]) -> Result<(), String> {
        let mut rest = body;
        while !rest.is_empty() && !self.session.is_ended(stream) {
            let granted = self.session.take_credit(stream, rest.len());
            if granted == 0 {
                let sent = body.len() - rest.len();
                let frame =
                    self.next_frame().map_err(|why| format!("no credit after {sent} bytes of a body: {why}"))?;
                if frame == Frame::End {
                    return Err(format!("the connection was closed after {sent} bytes of a body"));
                }
                continue;
            }
            let (piece, after) = rest.split_at(granted);
            let flags = if after.is_empty() { flags::END_STREAM } else { 0 };
            self.send(&frame(FrameKind::DATA, flags, stream, piece))?;
            rest = after;
        }
        Ok(())
    }

    /// Sends the field block of a request.
    pub(super) fn send_head(&mut self, stream: u32, block: &[u8], ends: bool) -> Result<(), String> {
        let mut out = Vec::new();
        push_headers(&mut out, stream, block, ends, self.session.peer().max_frame_size);
        self.send(&out)
    }

    /// Reads frames until the stream ends, with its response or with a reset.
    pub(super) fn await_end(&mut self, stream: u32) -> Result<(), String> {
        while !self.session.is_ended(stream) {
            match self.next_frame().map_err(|why| format!("no valid response: {why}"))? {
                Frame::End => return Err("no response: the connection was closed".to_owned()),
                Frame::GoAway(last, code) if last < stream || code != ErrorCode::NO_ERROR => {
                    return Err(format!("no response: GOAWAY with {code} and the last stream {last}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads frames until the response on this stream is complete.
    pub(super) fn stream_response(&mut self, stream: u32) -> Result<Response, String> {
        self.await_end(stream)?;
        let reply = self.session.replies.remove(&stream).ok_or("no such stream")?;
        if let Some(code) = reply.end.filter(|_| !reply.incoming.is_complete()) {
            return Err(format!("no response: RST_STREAM with {code}"));
        }
        self.responses += 1;
        Ok(reply.response)
    }

    /// Reads and discards bytes until the connection ends.
    pub(super) fn drain(&mut self) -> Result<(), String> {
        match io::copy(self, &mut io::sink()) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => Err(reason(&error)),
            _ => Ok(()),
        }
    }
}
