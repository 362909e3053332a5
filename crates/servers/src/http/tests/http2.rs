//! Tests HTTP/2 on the same server and port as HTTP/1.1.

use std::collections::BTreeMap;

use wire::http2::hpack::{Indexing, push_field};
use wire::http2::{
    ErrorCode, Event, FrameKind, Incoming, Limits, PREFACE, Reader, ReceiveWindow, ResponseDecoder, Role, STREAM_MAX,
    Settings, WINDOW_MAX, flags, push_data, push_frame_head, push_go_away, push_headers, push_ping, push_reset,
    push_settings, push_window_update,
};

use super::*;

fn made(make: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    make(&mut out);
    out
}

/// The start of a connection that never throttles responses.
fn opening() -> Vec<u8> {
    let settings = Settings { initial_window_size: WINDOW_MAX, ..Settings::DEFAULT };
    let credit = made(|out| push_window_update(out, 0, WINDOW_MAX - Settings::DEFAULT.initial_window_size));
    [opening_with(&settings), credit].concat()
}

fn opening_with(settings: &Settings) -> Vec<u8> {
    [PREFACE.to_vec(), made(|out| push_settings(out, settings))].concat()
}

fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    made(|out| {
        fields.iter().for_each(|(name, value)| push_field(out, name.as_bytes(), value.as_bytes(), Indexing::Skip))
    })
}

fn fields<'a>(method: &'a str, path: &'a str, more: &[(&'a str, &'a str)]) -> Vec<u8> {
    let pseudo = [(":method", method), (":scheme", "http"), (":authority", "a"), (":path", path)];
    block(&[&pseudo, more].concat())
}

fn headers(stream: u32, block: &[u8], ends: bool) -> Vec<u8> {
    made(|out| push_headers(out, stream, block, ends, 16_384))
}

fn get2(stream: u32, path: &str) -> Vec<u8> {
    headers(stream, &fields("GET", path, &[]), true)
}

fn post2(stream: u32, path: &str, more: &[(&str, &str)], pieces: &[&[u8]]) -> Vec<u8> {
    let mut all = headers(stream, &fields("POST", path, more), pieces.is_empty());
    for (at, piece) in pieces.iter().enumerate() {
        push_data(&mut all, stream, piece, at + 1 == pieces.len());
    }
    all
}

fn frame(kind: FrameKind, flag: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = made(|out| push_frame_head(out, payload.len(), kind, flag, stream));
    out.extend_from_slice(payload);
    out
}

/// Reads a server's frames and checks them as a client does.
struct Responses {
    reader: Reader,
    decoder: ResponseDecoder,
    open: BTreeMap<u32, (Incoming, String, Vec<u8>)>,
    rendered: Vec<String>,
    /// Stream of each DATA frame, in order.
    turns: Vec<u32>,
}

impl Responses {
    fn new() -> Responses {
        let mut reader = Reader::new(Role::Client, Limits { idle_frames: u32::MAX, ..Limits::DEFAULT });
        reader.highest_stream = STREAM_MAX;
        Responses {
            reader,
            decoder: ResponseDecoder::default(),
            open: BTreeMap::new(),
            rendered: vec![],
            turns: vec![],
        }
    }

    /// Reads frames. `head_streams` are the streams with HEAD requests.
    fn read(&mut self, mut bytes: &[u8], head_streams: &[u32], mut also: impl FnMut(&Event<'_>)) {
        while !bytes.is_empty() {
            let (used, event) = self.reader.read(bytes).unwrap();
            bytes = &bytes[used..];
            let Some(event) = event else { continue };
            also(&event);
            match event {
                Event::Headers { stream, block, ends, .. } => {
                    let head = self.decoder.read(block, &Limits::DEFAULT).unwrap().unwrap();
                    let (incoming, status, _) = self.open.entry(stream).or_default();
                    let is_head = head_streams.contains(&stream);
                    let asked = if is_head { RequestMethod::Head } else { RequestMethod::Get };
                    incoming.response(head, asked, ends).unwrap();
                    status.push_str(&format!("{} ", head.status));
                    self.finish(stream);
                }
                Event::Data { stream, data, ends, .. } => {
                    let (incoming, _, body) = self.open.get_mut(&stream).expect("a response that has begun");
                    incoming.data(data.len(), ends).unwrap();
                    body.extend_from_slice(data);
                    self.turns.push(stream);
                    self.finish(stream);
                }
                Event::GoAway { last, code, .. } => self.rendered.push(format!("go away {last} {code}")),
                Event::Reset { stream, code } => {
                    self.open.remove(&stream);
                    self.rendered.push(format!("{stream}: {code}"));
                }
                Event::Ping(_) | Event::PingAck(_) => self.rendered.push("ping".to_owned()),
                Event::Settings(_) | Event::SettingsAck | Event::WindowUpdate { .. } => {}
            }
        }
    }

    fn finish(&mut self, stream: u32) {
        if !self.open[&stream].0.is_complete() {
            return;
        }
        let (_, status, body) = self.open.remove(&stream).unwrap();
        let is_pattern = body.iter().enumerate().all(|(at, &byte)| byte == prebuilt_responses::piece(at as u64, 1)[0]);
        self.rendered.push(match body.len() {
            0..=60 => format!("{stream}: {status}{:?}", String::from_utf8_lossy(&body)),
            bytes => format!("{stream}: {status}{bytes} {}bytes", if is_pattern { "" } else { "other " }),
        });
    }
}

fn render2(seen: &Seen) -> String {
    render_with(seen, &[])
}

fn render_with(seen: &Seen, head_streams: &[u32]) -> String {
    let mut responses = Responses::new();
    responses.read(&seen.bytes, head_streams, |_| {});
    let mut rendered = responses.rendered;
    rendered.extend(responses.open.keys().map(|stream| format!("{stream}: incomplete")));
    match (seen.closed, seen.ended) {
        (Some((_, true)), _) => rendered.push("reset".to_owned()),
        (_, Some(_)) => rendered.push("end".to_owned()),
        _ => {}
    }
    rendered.join(", ")
}

/// Sends `pieces` 1 ms apart and renders the responses within a virtual second.
fn talk2(network: Network, limits: &HttpLimits, pieces: &[&[u8]], head_streams: &[u32]) -> String {
    let mut world = World::new(network, limits);
    let send = |(index, piece): (usize, &&[u8])| Step::Send(index as Nanos * MS, piece.to_vec());
    let seen = world.client(pieces.iter().enumerate().map(send).collect());
    world.run(S);
    let seen = seen.borrow();
    render_with(&seen, head_streams)
}

/// Checks the responses to frames sent at once, split at every byte, byte by byte, and over a bad network.
#[track_caller]
fn check2(name: &str, frames: &[u8], expected: &str) {
    check_with(name, &HttpLimits::DEFAULT, frames, &[], expected);
}

#[track_caller]
fn check_with(name: &str, limits: &HttpLimits, frames: &[u8], head_streams: &[u32], expected: &str) {
    let sent = [opening(), frames.to_vec()].concat();
    let rendered = |network, pieces: &[&[u8]]| talk2(network, limits, pieces, head_streams);
    assert_eq!(rendered(Network::PERFECT, &[&sent]), expected, "{name}");
    for at in 1..sent.len().min(400) {
        assert_eq!(rendered(Network::PERFECT, &[&sent[..at], &sent[at..]]), expected, "{name}, cut at {at}");
    }
    let bytes: Vec<&[u8]> = sent.chunks(1).collect();
    if bytes.len() < 900 {
        assert_eq!(rendered(Network::PERFECT, &bytes), expected, "{name}, byte by byte");
    }
    assert_eq!(rendered(Network::CHOPPY, &[&sent]), expected, "{name}, over a bad network");
}

#[test]
fn connection_over_the_limit_gets_goaway() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    world.connections = 1;
    let all = [(); 2].map(|()| world.client(vec![Step::Send(0, [opening(), get2(1, "/")].concat())]));
    world.run(S);
    assert_eq!(all.map(|seen| render2(&seen.borrow())), [r#"1: 200 "test""#, "go away 0 ENHANCE_YOUR_CALM, end"]);
}

#[test]
fn routes_of_http2_match_http1() {
    for (target, expected) in [
        ("/", r#"200 "test""#),
        ("/?query", r#"200 "test""#),
        ("/plaintext", r#"200 "Hello, World!""#),
        ("/json", r#"200 "{\"message\":\"Hello, World!\"}""#),
        ("/health", r#"200 "ok\n""#),
        ("/bytes/0", r#"200 """#),
        ("/bytes/10", r#"200 "ABCDEFGHIJ""#),
        ("/bytes/16384", "200 16384 bytes"),
        ("/bytes/16385", "200 16385 bytes"),
        ("/bytes/200001", "200 200001 bytes"),
        ("/chunked/0", r#"200 """#),
        ("/chunked/10?chunk=3", r#"200 "ABCDEFGHIJ""#),
        ("/chunked/10000?chunk=1", "200 10000 bytes"),
        ("/chunked/200001?chunk=65536", "200 200001 bytes"),
        ("/delay?mean=0", r#"200 "test""#),
        ("/delay?mean=3ms", r#"200 "test""#),
        ("/nowhere", NOT_FOUND),
        ("/chunked/1?chunk=0", r#"400 "/chunked/N takes `chunk=BYTES`, 1 to 65536\n""#),
    ] {
        check2(target, &get2(1, target), &format!("1: {expected}"));
    }
}

#[test]
fn methods_over_http2() {
    for (method, path, expected) in [
        ("HEAD", "/", r#"200 """#),
        ("HEAD", "/bytes/1000000", r#"200 """#),
        ("HEAD", "/chunked/1000000", r#"200 """#),
        ("HEAD", "/delay?mean=1ms", r#"200 """#),
        ("HEAD", "/nowhere", r#"404 """#),
        ("OPTIONS", "*", r#"204 """#),
        ("OPTIONS", "/echo", r#"204 """#),
        ("DELETE", "/", NOT_ALLOWED),
        ("GET", "/echo", NOT_ALLOWED),
        ("POST", "/", NOT_ALLOWED),
        ("POST", "/echo", r#"200 """#),
        ("BREW", "/", r#"501 "unknown method\n""#),
    ] {
        let head_streams: &[u32] = if method == "HEAD" { &[1] } else { &[] };
        let sent = headers(1, &fields(method, path, &[]), true);
        check_with(&format!("{method} {path}"), &HttpLimits::DEFAULT, &sent, head_streams, &format!("1: {expected}"));
    }
    let connect = headers(1, &block(&[(":method", "CONNECT"), (":authority", "a:443")]), true);
    check2("connect", &connect, r#"1: 501 "unknown method\n""#);
}

#[test]
fn bodies_over_http2() {
    let trailers = headers(1, &block(&[("checksum", "1")]), true);
    let open_post = |path: &str| headers(1, &fields("POST", path, &[]), false);
    let padded = frame(FrameKind::DATA, flags::PADDED | flags::END_STREAM, 1, b"\x03hello\0\0\0");
    for (name, sent, expected) in [
        ("echo", post2(1, "/echo", &[("content-length", "5")], &[b"hello"]), r#"1: 200 "hello""#),
        ("of unknown length", post2(1, "/echo", &[], &[b"hello"]), r#"1: 200 "hello""#),
        ("in pieces", post2(1, "/echo", &[], &[b"hel", b"", b"lo", b""]), r#"1: 200 "hello""#),
        (
            "with trailers",
            [open_post("/echo"), made(|out| push_data(out, 1, b"hi", false)), trailers.clone()].concat(),
            r#"1: 200 "hi""#,
        ),
        ("only trailers", [open_post("/echo"), trailers].concat(), r#"1: 200 """#),
        ("padded", [open_post("/echo"), padded].concat(), r#"1: 200 "hello""#),
        ("nothing", post2(1, "/echo", &[], &[b""]), r#"1: 200 """#),
        ("unexpected", post2(1, "/", &[], &[b"abc"]), r#"1: 405 "method not allowed here; see Allow\n""#),
        ("to nowhere", post2(1, "/nowhere", &[], &[b"abc"]), "1: 404 82 other bytes"),
        ("expected", post2(1, "/echo", &[("expect", "100-continue")], &[b"hi"]), r#"1: 100 200 "hi""#),
        ("shorter than announced", post2(1, "/", &[("content-length", "5")], &[b"abc"]), "1: PROTOCOL_ERROR"),
        ("longer than announced", post2(1, "/", &[("content-length", "2")], &[b"abc"]), "1: PROTOCOL_ERROR"),
        ("none, but announced", post2(1, "/", &[("content-length", "2")], &[]), "1: PROTOCOL_ERROR"),
    ] {
        check2(name, &sent, expected);
    }
    let posts = [1, 3].map(|stream| headers(stream, &fields("POST", "/echo", &[]), false)).concat();
    let data = |stream, text: &[u8], ends| made(|out| push_data(out, stream, text, ends));
    let sent = [posts, data(1, b"a", false), data(3, b"b", false), data(1, b"c", true), data(3, b"d", true)].concat();
    check2("interleaved", &sent, r#"1: 200 "ac", 3: 200 "bd""#);
}

#[test]
fn errors_get_their_status() {
    let large = "x".repeat(20_000);
    let many = (0..101).map(|_| ("x", "y")).collect::<Vec<_>>();
    let path = format!("/{}", "x".repeat(40_000));
    let large_fields = [("x", large.as_str()), ("y", &large)];
    let length = [("content-length", "1073741824")];
    let begins = |path: &str, more: &[(&str, &str)]| headers(1, &fields("POST", path, more), false);
    for (name, sent, expected) in [
        ("fields", headers(1, &fields("GET", "/", &many), true), "1: 431"),
        ("bytes", headers(1, &fields("GET", "/", &large_fields), true), "1: 431"),
        ("bytes, with a body", begins("/", &large_fields), "1: 431"),
        ("of HEAD", headers(1, &fields("HEAD", "/", &large_fields), true), "1: 431"),
        ("path", get2(1, &path), "1: 414"),
        ("body", begins("/echo", &length), "1: 413"),
    ] {
        let head_streams: &[u32] = if name == "of HEAD" { &[1] } else { &[] };
        let sent = [opening(), sent, get2(3, "/")].concat();
        for pieces in [vec![sent.as_slice()], sent.chunks(999).collect()] {
            let rendered = talk2(Network::PERFECT, &HttpLimits::DEFAULT, &pieces, head_streams);
            assert!(rendered.starts_with(expected) && rendered.ends_with(r#"3: 200 "test""#), "{name}: {rendered}");
            assert_eq!(rendered.contains("1: NO_ERROR"), name.contains("body"), "{name}: {rendered}");
        }
    }
}

#[test]
fn a_body_above_the_limit_is_refused() {
    let limits = HttpLimits { body_bytes: 10, ..HttpLimits::DEFAULT };
    let rendered = |sent: Vec<u8>| talk2(Network::PERFECT, &limits, &[&[opening(), sent, get2(3, "/")].concat()], &[]);
    let twice = [&[b'x'; 6][..], &[b'y'; 6]];
    let refused = r#"1: 413 "a body of more than 10 bytes\n", 1: NO_ERROR, 3: 200 "test""#;
    assert_eq!(rendered(post2(1, "/", &[], &[twice[0], twice[1], b"z"])), refused);
    assert_eq!(rendered(post2(1, "/echo", &[], &[&twice.concat(), b"z"])), refused);
    assert_eq!(rendered(post2(1, "/", &[], &twice)), refused.replace("1: NO_ERROR, ", ""), "a complete request");
    assert_eq!(rendered(post2(1, "/echo", &[], &twice)), r#"1: CANCEL, 3: 200 "test""#, "an echo that has begun");
}

#[test]
fn a_client_without_a_window_gets_a_reset() {
    let settings = Settings { initial_window_size: 0, ..Settings::DEFAULT };
    let large = headers(1, &fields("POST", "/echo", &[("content-length", "1073741824")]), false);
    let more = made(|out| push_data(out, 1, &[b'x'; 1000], false));
    let pieces = [&[opening_with(&settings), large].concat()[..], &more, &get2(3, "/bytes/0")];
    let rendered = talk2(Network::PERFECT, &HttpLimits::DEFAULT, &pieces, &[]);
    assert_eq!(rendered, r#"1: CANCEL, 3: 200 """#);
}

#[test]
fn violations_end_the_connection_with_their_code() {
    let bad_length = frame(FrameKind::PING, 0, 0, b"1234567");
    let unopened = made(|out| push_data(out, 1, b"x", true));
    let zero = made(|out| push_window_update(out, 0, 0));
    let too_much = made(|out| push_window_update(out, 0, WINDOW_MAX));
    let trailers = headers(1, &block(&[("a", "b")]), true);
    let broken_block = headers(1, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff], true);
    for (name, sent, expected) in [
        ("an unopened stream", unopened, "go away 0 PROTOCOL_ERROR"),
        ("an even stream", get2(2, "/"), "go away 0 PROTOCOL_ERROR"),
        ("a lower stream", [get2(5, "/"), get2(3, "/")].concat(), r#"5: 200 "test", go away 5 PROTOCOL_ERROR"#),
        ("a closed stream", [get2(1, "/"), trailers].concat(), r#"1: 200 "test", go away 1 STREAM_CLOSED"#),
        ("the size of a frame", bad_length, "go away 0 FRAME_SIZE_ERROR"),
        ("no credit", zero, "go away 0 PROTOCOL_ERROR"),
        ("too much credit", too_much, "go away 0 FLOW_CONTROL_ERROR"),
        ("a block", broken_block, "go away 0 COMPRESSION_ERROR"),
        ("another client", b"GET / HTTP/1.1\r\n\r\n".to_vec(), "go away 0 FRAME_SIZE_ERROR"),
    ] {
        check2(name, &sent, &format!("{expected}, end"));
    }
    let more = made(|out| push_data(out, 1, &[0; 16_384], false)).repeat(5);
    let sent = [headers(1, &fields("POST", "/echo", &[]), false), more].concat();
    let settings = Settings { initial_window_size: 0, ..Settings::DEFAULT };
    let rendered = talk2(Network::PERFECT, &HttpLimits::DEFAULT, &[&[opening_with(&settings), sent].concat()], &[]);
    assert_eq!(rendered, "go away 1 FLOW_CONTROL_ERROR, 1: incomplete, end", "more than the window");
}

#[test]
fn only_the_start_of_a_connection_is_a_preface() {
    let sent = [crlf(&get("/")), opening()].concat();
    let rendered = talk(Network::PERFECT, &[&sent]);
    assert!(rendered.starts_with(r#"200 "test", 505 close "#), "{rendered}");
    let rendered = talk(Network::PERFECT, &[&crlf("PRI * HTTP/2.0\n\nSN\n\n")]);
    assert!(rendered.starts_with("505 close "), "{rendered}");
}

#[test]
fn responses_to_one_read_leave_in_one_write() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let paths = ["/", "/json", "/nowhere", "/bytes/100"];
    let requests = (0..40).flat_map(|at| get2(2 * at + 1, paths[at as usize % 4]));
    let seen = world.client(vec![Step::Send(0, opening().into_iter().chain(requests).collect())]);
    world.run(MS);
    let seen = seen.borrow();
    assert_eq!(seen.came.len(), 1, "one write: {:?}", seen.came);
    assert_eq!(render2(&seen).matches(": 200").count(), 30);
}

#[test]
fn streams_end_in_the_order_of_their_delays() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let targets = ["/delay?mean=30ms", "/delay?mean=10ms", "/", "/delay?mean=20ms"];
    let requests = (0..4).flat_map(|at| get2(2 * at + 1, targets[at as usize]));
    let seen = world.client(vec![Step::Send(0, opening().into_iter().chain(requests).collect())]);
    world.run(S);
    assert_eq!(render2(&seen.borrow()), r#"5: 200 "test", 3: 200 "test", 7: 200 "test", 1: 200 "test""#);
    let times: Vec<Nanos> = seen.borrow().came.iter().map(|&(at, _)| at).collect();
    assert_eq!(times, [20_000, 10_020_000, 20_020_000, 30_020_000]);
    let log = world.http.service_ns();
    assert_eq!((log.len(), log.min(), log.max()), (3, Some(10_000_000), Some(30_000_000)));
}

/// The delays are drawn even if the other responses fill the buffer.
#[test]
fn delays_between_large_responses_end() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let pair = |at: u32| [get2(4 * at + 1, "/delay?mean=10ms"), get2(4 * at + 3, "/bytes/16000")].concat();
    let seen = world.client(vec![Step::Send(0, opening().into_iter().chain((0..40).flat_map(pair)).collect())]);
    world.run(S);
    let rendered = render2(&seen.borrow());
    assert_eq!(
        (rendered.matches("16000 bytes").count(), rendered.matches(r#"200 "test""#).count()),
        (40, 40),
        "{rendered}"
    );
    assert_eq!(world.http.service_ns().min(), Some(10_000_000));
}

#[test]
fn a_canceled_delay_has_no_response() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let cancel = made(|out| push_reset(out, 1, ErrorCode::CANCEL));
    let requests = [opening(), get2(1, "/delay?mean=20ms"), get2(3, "/delay?mean=30ms")].concat();
    let seen = world.client(vec![Step::Send(0, requests), Step::Send(10 * MS, cancel)]);
    world.run(S);
    assert_eq!(render2(&seen.borrow()), r#"3: 200 "test""#);
    assert_eq!(world.http.service_ns().len(), 1);
}

#[test]
fn responses_wait_for_the_windows() {
    let credit = |stream, bytes| made(|out| push_window_update(out, stream, bytes));
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let settings = |size| Settings { initial_window_size: size, ..Settings::DEFAULT };
    let requests = [opening_with(&settings(0)), get2(1, "/"), get2(3, "/bytes/100"), get2(5, "/bytes/0")].concat();
    let seen = world.client(vec![
        Step::Send(0, requests),
        Step::Send(10 * MS, credit(1, 3)),
        Step::Send(20 * MS, credit(3, 100)),
        Step::Send(30 * MS, credit(1, 1)),
        // Streams 7 and 9 share the connection's window of 65,535 bytes, of which 104 are used.
        Step::Send(40 * MS, [get2(7, "/bytes/65000"), get2(9, "/bytes/1000")].concat()),
        Step::Send(50 * MS, made(|out| push_settings(out, &settings(65_000)))),
        Step::Send(60 * MS, credit(0, 569)),
    ]);
    world.run(55 * MS);
    let before = r#"5: 200 "", 3: 200 100 bytes, 1: 200 "test", 9: 200 1000 bytes"#;
    assert_eq!(render2(&seen.borrow()), format!("{before}, 7: incomplete"));
    assert_eq!(world.http.connections.slots[0].input.len(), 0);
    world.run(S);
    assert_eq!(render2(&seen.borrow()), format!("{before}, 7: 200 65000 bytes"));
}

#[test]
fn long_bodies_take_turns() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let requests = [opening(), get2(1, "/bytes/800000"), get2(3, "/bytes/800000"), get2(5, "/")].concat();
    let seen = world.client(vec![Step::Send(0, requests)]);
    world.run(S);
    let mut responses = Responses::new();
    responses.read(&seen.borrow().bytes, &[], |_| {});
    assert_eq!(responses.rendered, [r#"5: 200 "test""#, "1: 200 800000 bytes", "3: 200 800000 bytes"]);
    let turns = responses.turns.iter().filter(|stream| **stream != 5).collect::<Vec<_>>();
    assert!(turns.windows(3).all(|turns| turns[0] != turns[2] || turns[0] != turns[1]), "{turns:?}");
    assert!(world.largest_out <= 140_000, "{}", world.largest_out);
}

/// A client that sends a body as the server gives credit, and that gives credit for the echo.
struct Uploader {
    body: Vec<u8>,
    sent: usize,
    /// Credit of the connection and of stream 1, in bytes.
    credit: [u32; 2],
    windows: [ReceiveWindow; 2],
    responses: Responses,
    seen: Rc<RefCell<Vec<String>>>,
}

impl Uploader {
    fn send(&mut self, to: &mut Actions) {
        loop {
            let left = (self.body.len() - self.sent) as u32;
            let count = left.min(16_384).min(self.credit[0]).min(self.credit[1]);
            if count == 0 {
                return;
            }
            self.credit.iter_mut().for_each(|credit| *credit -= count);
            let piece = &self.body[self.sent..][..count as usize];
            self.sent += count as usize;
            to.send(0, made(|out| push_data(out, 1, piece, count == left)));
        }
    }
}

impl Peer for Uploader {
    fn on_connect(&mut self, _: Nanos, to: &mut Actions) {
        to.send(0, [opening_with(&Settings::DEFAULT), headers(1, &fields("POST", "/echo", &[]), false)].concat());
        self.send(to);
    }

    fn on_data(&mut self, bytes: &[u8], _: Nanos, to: &mut Actions) {
        let (mut credit, mut windows) = (self.credit, self.windows);
        self.responses.read(bytes, &[], |event| match *event {
            Event::WindowUpdate { stream, bytes } => credit[stream as usize] += bytes,
            Event::Data { flow_bytes, .. } => {
                for (stream, window) in (0..).zip(&mut windows) {
                    match window.receive(flow_bytes).unwrap() {
                        0 => {}
                        credit => to.send(0, made(|out| push_window_update(out, stream, credit))),
                    }
                }
            }
            _ => {}
        });
        (self.credit, self.windows) = (credit, windows);
        self.seen.borrow_mut().append(&mut self.responses.rendered);
        self.send(to);
    }
}

#[test]
fn an_upload_of_any_length_is_echoed() {
    for (network, bytes) in [(Network::PERFECT, 3_000_000), (Network::CHOPPY, 200_000)] {
        let mut world = World::new(network, &HttpLimits::DEFAULT);
        let seen = Rc::default();
        let body = (0..bytes).map(|at| prebuilt_responses::piece(at, 1)[0]).collect();
        let window = Settings::DEFAULT.initial_window_size;
        let client = Uploader {
            body,
            sent: 0,
            credit: [window; 2],
            windows: [ReceiveWindow::new(window); 2],
            responses: Responses::new(),
            seen: Rc::clone(&seen),
        };
        world.driver.client(world.address, 0, client);
        world.run(100 * S);
        assert_eq!(*seen.borrow(), [&format!("1: 200 {bytes} bytes"), "go away 1 NO_ERROR"]);
        assert!(world.largest_out <= 262_144, "{}", world.largest_out);
    }
}

/// The server gives further credit for an upload only after the client has read the echo.
#[test]
fn an_echo_that_is_not_read_stops_its_upload() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let settings = Settings { initial_window_size: 0, ..Settings::DEFAULT };
    let data = made(|out| push_data(out, 1, &[b'x'; 16_000], false)).repeat(4);
    let requests = [opening_with(&settings), headers(1, &fields("POST", "/echo", &[]), false), data].concat();
    let seen = world.client(vec![Step::Send(0, requests)]);
    world.run(S);
    let mut credit = 0;
    Responses::new().read(&seen.borrow().bytes, &[], |event| {
        credit += if let Event::WindowUpdate { stream: 1, bytes } = event { *bytes } else { 0 };
    });
    assert_eq!(credit, 0);
}

#[test]
fn a_client_with_a_small_table_can_read_all_heads() {
    for size in [0, 100] {
        let settings = Settings { header_table_size: size, ..Settings::DEFAULT };
        let requests = [opening_with(&settings), get2(1, "/"), get2(3, "/"), get2(5, "/nowhere")].concat();
        let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
        let seen = world.client(vec![Step::Send(0, requests)]);
        world.run(S);
        let mut decoder = wire::http2::hpack::Decoder::default();
        decoder.allow_table(size);
        let mut count = 0;
        Responses::new().read(&seen.borrow().bytes, &[], |event| {
            if let Event::Headers { block, .. } = event {
                decoder.decode(block, &Limits::DEFAULT, |_, _| {}).unwrap();
                count += 1;
            }
        });
        assert_eq!(count, 3);
    }
}

#[test]
fn a_stream_above_the_limit_is_refused() {
    let limits = HttpLimits { streams: 3, ..HttpLimits::DEFAULT };
    let requests = (0..5).flat_map(|at| get2(2 * at + 1, "/delay?mean=10ms"));
    let sent: Vec<u8> = opening().into_iter().chain(requests).collect();
    let later = get2(11, "/delay?mean=10ms");
    let pieces = [sent.as_slice(), &[], &[], &[], &[], &[], &[], &[], &[], &[], &[], &[], &later];
    let done = [1, 3, 5, 11].map(|stream| format!(r#"{stream}: 200 "test""#)).join(", ");
    assert_eq!(talk2(Network::PERFECT, &limits, &pieces, &[]), format!("7: REFUSED_STREAM, 9: REFUSED_STREAM, {done}"));
}

#[test]
fn a_connection_ends_after_its_requests() {
    let limits = HttpLimits { requests: 2, ..HttpLimits::DEFAULT };
    let body = made(|out| push_data(out, 3, b"hi", true));
    let sent = [get2(1, "/"), headers(3, &fields("POST", "/echo", &[]), false), body].concat();
    check_with("GOAWAY", &limits, &sent, &[], r#"1: 200 "test", go away 3 NO_ERROR, 3: 200 "hi", end"#);

    let mut world = World::new(Network::PERFECT, &limits);
    let requests = [get("/").repeat(2), get("/")].concat();
    let seen = world.client(vec![Step::Send(0, crlf(&requests))]);
    world.run(S);
    assert_eq!(render(&crlf(&requests), &seen.borrow()), r#"200 "test", 200 close "test", end"#);
}

#[test]
fn floods_end_the_connection_within_fixed_memory() {
    let ping = made(|out| push_ping(out, [0; 8], false));
    let settings = made(|out| push_settings(out, &Settings::DEFAULT));
    let reset = |stream| made(|out| push_reset(out, stream, ErrorCode::CANCEL));
    let unfinished = |more: &[u8]| frame(FrameKind::HEADERS, 0, 1, &[&fields("GET", "/", &[]), more].concat());
    let rapid = (0..20_000).flat_map(|at| [get2(2 * at + 1, "/delay?mean=60s"), reset(2 * at + 1)].concat()).collect();
    let malformed = (0..20_000).flat_map(|at| headers(2 * at + 1, &block(&[(":path", "/")]), true)).collect();
    let wide = [("x", "y")].repeat(1000);
    let bomb = [made(|out| push_field(out, b"x", &[b'y'; 3000], Indexing::Insert)), vec![0xbe; 15_000]].concat();
    let empty = made(|out| push_data(out, 1, b"", false)).repeat(20_000);
    for (name, sent) in [
        ("pings", ping.repeat(20_000)),
        ("settings", settings.repeat(20_000)),
        ("empty frames", [headers(1, &fields("POST", "/echo", &[]), false), empty].concat()),
        ("priorities", frame(FrameKind::PRIORITY, 0, 1, &[0; 5]).repeat(20_000)),
        ("continuations", [unfinished(&[]), frame(FrameKind::CONTINUATION, 0, 1, b"").repeat(20_000)].concat()),
        ("a block", [unfinished(&[]), frame(FrameKind::CONTINUATION, 0, 1, &[0; 10_000]).repeat(100)].concat()),
        ("fields", headers(1, &fields("GET", "/", &wide), true)),
        ("references", headers(1, &[fields("GET", "/", &[]), bomb].concat(), true)),
        ("canceled requests", rapid),
        ("resets", [get2(1, "/"), reset(1).repeat(20_000)].concat()),
        ("malformed requests", malformed),
    ] {
        let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
        let seen = world.client(vec![Step::Send(0, opening()), Step::Send(MS, sent)]);
        let other = world.client(vec![Step::Send(10 * MS, crlf(&get("/")))]);
        world.run(5 * S);
        let rendered = render2(&seen.borrow());
        assert!(
            rendered.ends_with("ENHANCE_YOUR_CALM, end"),
            "{name}: {}",
            &rendered[rendered.len().saturating_sub(300)..]
        );
        assert_eq!(render(b"", &other.borrow()), r#"200 "test""#, "{name}");
        assert_eq!(world.http.connections.open, 1, "{name}");
        assert!(world.largest_out <= 140_000, "{name}: {}", world.largest_out);
    }
}

#[test]
fn canceled_delays_are_forgotten() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let round = |at: u32| {
        let canceled =
            [get2(4 * at + 1, "/delay?mean=60s"), made(|out| push_reset(out, 4 * at + 1, ErrorCode::CANCEL))];
        [canceled.concat(), get2(4 * at + 3, "/")].concat()
    };
    let seen = world.client(vec![Step::Send(0, opening().into_iter().chain((0..20_000).flat_map(round)).collect())]);
    world.run(5 * S);
    assert_eq!(render2(&seen.borrow()).matches(r#"200 "test""#).count(), 20_000);
    assert!(world.http.queue.len() <= 4096, "{}", world.http.queue.len());
}

#[test]
fn a_client_that_does_not_read_pauses_http2() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let requests = (0..2_000).flat_map(|at| get2(2 * at + 1, "/bytes/16000"));
    let sent = opening().into_iter().chain(requests).collect();
    let seen = world.client(vec![Step::Stall(0, 20 * S), Step::Send(0, sent)]);
    world.run(19 * S);
    let connection = &world.http.connections.slots[0];
    assert!(connection.blocked && connection.paused, "it waits");
    assert!(connection.input.len() < 65_536, "{} bytes wait", connection.input.len());
    assert!(world.largest_out <= 140_000, "{} bytes of responses at once", world.largest_out);
    world.run(25 * S);
    assert_eq!(render2(&seen.borrow()).matches("200 16000 bytes").count(), 2_000);
}

#[test]
fn stalled_http2_clients_are_ended() {
    let zero = opening_with(&Settings { initial_window_size: 0, ..Settings::DEFAULT });
    let tiny = |second: Nanos| Step::Send(second * S, made(|out| push_window_update(out, 1, 1)));
    let head = get2(1, "/");
    let post = |path: &str| headers(1, &fields("POST", path, &[]), false);
    let after_data = |path: &str| [opening(), post(path), made(|out| push_data(out, 1, b"xyz", false))].concat();
    for (name, steps, expected, end_s) in [
        ("silence", vec![Step::Send(0, opening())], "go away 0 NO_ERROR, end", 60),
        (
            "after a request",
            vec![Step::Send(0, [opening(), head.clone()].concat())],
            r#"1: 200 "test", go away 1 NO_ERROR, end"#,
            60,
        ),
        (
            "part of a frame",
            vec![Step::Send(0, [&opening()[..], &head[..10]].concat())],
            "go away 0 ENHANCE_YOUR_CALM, end",
            10,
        ),
        (
            "no credit",
            vec![Step::Send(0, [&zero[..], &get2(1, "/bytes/9")].concat())],
            "go away 1 ENHANCE_YOUR_CALM, 1: incomplete, end",
            30,
        ),
        (
            "little credit",
            [Step::Send(0, [&zero[..], &get2(1, "/bytes/999")].concat())]
                .into_iter()
                .chain((1..50).map(tiny))
                .collect(),
            "go away 1 ENHANCE_YOUR_CALM, 1: incomplete, end",
            30,
        ),
    ] {
        let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
        let seen = world.client(steps);
        world.run(100 * S);
        assert_eq!(render2(&seen.borrow()), expected, "{name}");
        let closed = seen.borrow().closed.unwrap().0;
        assert!((end_s * S..end_s * S + 10 * MS).contains(&closed), "{name}: {closed}");
    }
    for (path, expected) in [
        (
            "/",
            r#"1: 408 "the request body took longer than 10 s at 1024 bytes/s\n", 1: NO_ERROR, go away 1 NO_ERROR, end"#,
        ),
        ("/echo", "1: CANCEL, go away 1 NO_ERROR, end"),
    ] {
        let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
        let seen = world.client(vec![Step::Send(0, after_data(path))]);
        world.run(100 * S);
        assert_eq!(render2(&seen.borrow()), expected, "{path}");
    }
}

#[test]
fn a_client_that_ends_its_stream_gets_its_responses() {
    let requests =
        [opening(), get2(1, "/delay?mean=5ms"), get2(3, "/bytes/100000"), post2(5, "/", &[], &[b"x"])[..20].to_vec()];
    for network in [Network::PERFECT, Network::CHOPPY] {
        let mut world = World::new(network, &HttpLimits::DEFAULT);
        let seen = world.client(vec![Step::Send(0, requests.concat()), Step::End(0)]);
        world.run(S);
        let rendered = render2(&seen.borrow());
        assert!(rendered.contains("3: 200 100000 bytes") && rendered.contains(r#"1: 200 "test""#), "{rendered}");
        assert!(rendered.ends_with("end"), "{rendered}");
        assert_eq!(world.http.connections.open, 0);
    }
    let leaves =
        [opening(), get2(1, "/delay?mean=5ms"), made(|out| push_go_away(out, 0, ErrorCode::NO_ERROR))].concat();
    check2("go away", &leaves[opening().len()..], r#"1: 200 "test", end"#);
}

#[test]
fn shutdown_ends_http2_after_its_streams() {
    let mut world = World::new(Network::PERFECT, &HttpLimits::DEFAULT);
    let idle = world.client(vec![Step::Send(0, opening())]);
    let late = world.client(vec![
        Step::Send(0, [opening(), get2(1, "/delay?mean=400ms")].concat()),
        // The first request is in time, the second arrives in the grace period, and the third is too late.
        Step::Send(150 * MS, get2(3, "/health")),
        Step::Send(220 * MS, get2(5, "/")),
    ]);
    let upload = world.client(vec![
        Step::Send(0, [opening(), headers(1, &fields("POST", "/echo", &[]), false)].concat()),
        Step::Send(300 * MS, made(|out| push_data(out, 1, b"def", true))),
    ]);
    world.run(100 * MS);
    world.end(5 * S);
    assert!(world.http.is_done(), "{} are left", world.http.connections.open);
    assert!(world.driver.now() < 401 * MS, "{}", world.driver.now());
    world.run(S);
    let first = format!("go away {STREAM_MAX} NO_ERROR");
    assert_eq!(render2(&idle.borrow()), format!("{first}, go away 0 NO_ERROR, end"));
    assert_eq!(
        render2(&late.borrow()),
        format!(
            r#"{first}, 3: 503 "the server is shutting down\n", go away 3 NO_ERROR, 5: REFUSED_STREAM, 1: 200 "test", end"#
        )
    );
    assert_eq!(render2(&upload.borrow()), format!(r#"{first}, go away 1 NO_ERROR, 1: 200 "def", end"#));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Random frames cause at most errors and never hold up other clients.
    #[test]
    fn http2_noise(pieces in prop::collection::vec(prop_oneof![
        any::<Vec<u8>>(),
        (0..10u8, any::<u8>(), 0..9u32, any::<Vec<u8>>())
            .prop_map(|(kind, flag, stream, payload)| frame(FrameKind(kind), flag, stream, &payload)),
        (0..9u32).prop_map(|at| get2(2 * at + 1, "/bytes/100000")),
        (0..9u32).prop_map(|at| get2(2 * at + 1, "/delay?mean=1ms")),
        (0..9u32).prop_map(|at| headers(2 * at + 1, &fields("POST", "/echo", &[]), false)),
        (0..9u32, any::<bool>()).prop_map(|(at, ends)| made(|out| push_data(out, 2 * at + 1, b"hello", ends))),
        (0..9u32).prop_map(|at| made(|out| push_reset(out, 2 * at + 1, ErrorCode::CANCEL))),
        (0..9u32, 1..100_000u32).prop_map(|(stream, bytes)| made(|out| push_window_update(out, stream, bytes))),
        (0..100_000u32).prop_map(|initial_window_size| {
            made(|out| push_settings(out, &Settings { initial_window_size, ..Settings::DEFAULT }))
        }),
    ], 1..30), seed in any::<u64>(), end in any::<bool>()) {
        let mut world = World::seeded(Network::CHOPPY, &HttpLimits::DEFAULT, seed);
        let mut steps = vec![Step::Send(0, opening_with(&Settings::DEFAULT))];
        steps.extend(pieces.into_iter().map(|piece| Step::Send(0, piece)));
        if end {
            steps.push(Step::End(0));
        }
        let seen = world.client(steps);
        let other = world.client(vec![Step::Send(MS, crlf(&get("/")))]);
        world.run(200 * S);
        prop_assert!(seen.borrow().closed.is_some());
        render2(&seen.borrow());
        prop_assert_eq!(render(b"", &other.borrow()), r#"200 "test", end"#);
        prop_assert_eq!(world.http.connections.open, 0);
    }
}
