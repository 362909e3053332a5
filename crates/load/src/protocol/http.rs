//! HTTP/1.1 with precomposed requests and exact framing of responses.

use std::sync::Arc;

use net::Nanos;
use stats::Rng;
use study::spec::{Connection, Expect, HttpRequest};
use wire::http1::{self, Memo, MessageError, ResponseReader};

use super::http_expectation::{Body, Sent};
use super::request_mix::Mix;
use super::varied_requests::{Values, Varied};
use super::{Answer, Arrival, Parsed, Protocol};
use crate::recorder::Fault;

#[derive(Debug)]
struct Composed {
    bytes: Vec<u8>,
    /// Request with values, which is written in place of `bytes`; `None` for a fixed request.
    varied: Option<Varied>,
}

#[derive(Clone, Debug)]
pub(crate) struct Http {
    requests: Arc<[Composed]>,
    mix: Mix,
    scratch: Vec<u8>,
    memo: Memo,
}

#[derive(Debug, Default)]
pub(crate) struct Stream {
    reader: ResponseReader,
    /// Arrival of the first part of the current response; 0 before it arrives.
    first_at: Nanos,
    body: Body,
}

impl Http {
    pub(crate) fn new(
        requests: &[HttpRequest],
        expect: &Expect,
        connection: Connection,
        mut values: Values<'_>,
    ) -> Result<Self, Vec<String>> {
        let mut composed = Vec::new();
        let mut mistakes = Vec::new();
        for request in requests {
            let mut bytes = Vec::new();
            let close = connection == Connection::PerRequest;
            let HttpRequest { method, target, headers, body, .. } = request;
            let media_type = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("Content-Type"));
            let media_type = media_type.map(|(_, value)| value.as_str());
            let varied = http1::compose_request(&mut bytes, method, target, headers, body, close)
                .and_then(|()| Varied::compile(&bytes, body.len(), media_type, &mut values));
            match varied {
                Ok(varied) => composed.push(Composed { bytes, varied }),
                Err(error) => mistakes.push(format!("request `{method} {target}`: {error}")),
            }
        }
        let traces = composed.iter().map(|request| request.varied.as_ref()?.trace());
        let mix = Mix::new(requests, traces, expect, &mut values, mistakes)?;
        Ok(Self { requests: composed.into(), mix, scratch: Vec::new(), memo: Memo::default() })
    }

    pub(crate) fn of_worker(&self, worker: u32, workers: u32) -> Self {
        Self { mix: self.mix.of_worker(worker, workers), ..self.clone() }
    }

    pub(crate) fn request_bytes_max(&self) -> usize {
        let bytes = |request: &Composed| request.varied.as_ref().map_or(request.bytes.len(), Varied::bytes_max);
        self.requests.iter().map(bytes).max().unwrap_or(0)
    }

    fn push(&mut self, sent: Sent, now: Nanos, out: &mut Vec<u8>) {
        let request = &self.requests[sent.index as usize];
        match &request.varied {
            None => out.extend_from_slice(&request.bytes),
            Some(varied) => varied.push(sent.number, now, &mut self.scratch, out),
        }
    }

    fn answered(&mut self, stream: &mut Stream, sent: Sent, response: http1::Response, used: usize) -> Answer {
        let http1::Response { status, body_bytes, keep_alive, .. } = response;
        let arrival = Some(Arrival { first_at: std::mem::take(&mut stream.first_at), body_bytes });
        let asked = self.mix.asked(sent);
        let fault = self.mix.expectation.judge(&mut stream.body, asked, sent, status, body_bytes);
        Answer { used, fault, status, is_last: !keep_alive, arrival, ..Answer::default() }
    }

    #[cold]
    fn broken(&mut self, error: MessageError) -> Fault {
        self.mix.expectation.note(Some(error.to_string()));
        super::http_fault(&error)
    }
}

impl Protocol for Http {
    type Stream = Stream;
    type Expected = Sent;
    type Exchange = ();

    fn stream(&self) -> Stream {
        Stream::default()
    }

    fn available(&mut self, wanted: u32) -> u32 {
        self.mix.available(wanted)
    }

    fn request(&mut self, _: &mut Stream, now: Nanos, rng: &mut Rng, out: &mut Vec<u8>) -> Sent {
        let sent = self.mix.next(rng);
        self.push(sent, now, out);
        sent
    }

    fn mix(&self, sent: Sent) -> Option<(&Mix, Sent)> {
        Some((&self.mix, sent))
    }

    fn again(&mut self, _: &mut Stream, sent: Sent, now: Nanos, out: &mut Vec<u8>) -> Sent {
        self.push(sent, now, out);
        sent
    }

    fn read(&mut self, stream: &mut Stream, sent: Sent, bytes: &[u8], at: Nanos) -> Parsed {
        let asked = self.mix.asked(sent);
        let Stream { reader, first_at, body } = stream;
        if *first_at == 0 {
            *first_at = at;
        }
        let expectation = &self.mix.expectation;
        let is_checked = expectation.checks_whole(sent);
        match reader.read(&mut self.memo, asked, bytes, |piece| expectation.compare(body, is_checked, piece)) {
            Ok(None) => Parsed::More,
            Ok(Some((used, response))) => Parsed::Answer(self.answered(stream, sent, response, used)),
            Err(error) => Parsed::Broken(self.broken(error)),
        }
    }

    fn end(&mut self, stream: &mut Stream, sent: Sent) -> Result<Answer, Fault> {
        match stream.reader.end() {
            Ok(Some(response)) => Ok(self.answered(stream, sent, response, 0)),
            Ok(None) => {
                self.mix.expectation.note(None);
                Err(Fault::Closed)
            }
            Err(error) => Err(self.broken(error)),
        }
    }

    fn explain(&self) -> Option<String> {
        self.mix.expectation.explain()
    }
}
