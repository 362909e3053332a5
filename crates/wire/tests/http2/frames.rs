//! Tests with tables of frames and with floods of frames.

use wire::http2::{
    ConnectionError, ErrorCode, Event, FrameKind, Limits, PREFACE, Reader, ReceiveWindow, Role, SendWindow, Settings,
    push_data, push_frame_head, push_go_away, push_headers, push_ping, push_reset, push_settings, push_settings_ack,
    push_window_update,
};

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    push_frame_head(&mut out, payload.len(), FrameKind(kind), flags, stream);
    out.extend_from_slice(payload);
    out
}

fn made(make: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    make(&mut out);
    out
}

fn settings() -> Vec<u8> {
    frame(4, 0, 0, b"")
}

/// The events of a stream in words, for a client that opened streams up to 5.
fn events(role: Role, limits: Limits, pieces: &[&[u8]]) -> Result<String, ConnectionError> {
    let mut reader = Reader::new(role, limits);
    if role == Role::Client {
        reader.highest_stream = 5;
    }
    let mut words = Vec::<String>::new();
    for mut rest in pieces.iter().copied() {
        while !rest.is_empty() {
            let (used, event) = reader.read(rest)?;
            rest = &rest[used..];
            let end = |ends| if ends { " end" } else { "" };
            let next = match event {
                None => continue,
                Some(Event::Data { stream, data, flow_bytes, ends }) => {
                    let text = data.escape_ascii().to_string();
                    let data = format!("data {stream} ");
                    match words.last_mut() {
                        Some(last) if last.starts_with(&data) && last.ends_with('+') => {
                            last.pop();
                            let (start, sum) = last.rsplit_once(' ').unwrap();
                            let sum = sum.parse::<u32>().unwrap() + flow_bytes;
                            *last = format!("{start}{text} {sum}{}", if ends { " end" } else { "+" });
                            continue;
                        }
                        _ => format!("{data}{text} {flow_bytes}{}", if ends { " end" } else { "+" }),
                    }
                }
                Some(Event::Headers { stream, opens, block, ends }) => {
                    let opens = if opens { " opens" } else { "" };
                    format!("headers {stream}{opens} {}{}", block.escape_ascii(), end(ends))
                }
                Some(Event::Settings(settings)) if settings == Settings::DEFAULT => "settings".to_owned(),
                Some(Event::Reset { stream, code }) => format!("reset {stream} {code}"),
                Some(Event::GoAway { last, code, debug }) => format!("goaway {last} {code} {}", debug.escape_ascii()),
                Some(other) => format!("{other:?}"),
            };
            words.push(next);
        }
    }
    let is_open = words.last().is_some_and(|last| last.ends_with('+'));
    if !reader.is_between() && !is_open {
        words.push("more".to_owned());
    }
    Ok(words.join("; ").replace('+', ""))
}

fn check(role: Role, limits: Limits, stream: &[u8], expect: Result<&str, ConnectionError>) {
    for at in 0..=stream.len() {
        let cut = events(role, limits, &[&stream[..at], &stream[at..]]);
        assert_eq!(cut.as_deref(), expect.as_ref().copied(), "cut at {at}: {}", stream.escape_ascii());
    }
    let single = stream.chunks(1).collect::<Vec<_>>();
    assert_eq!(events(role, limits, &single).as_deref(), expect.as_ref().copied(), "single bytes");
}

fn client(frames: &[Vec<u8>], expect: Result<&str, ConnectionError>) {
    check(Role::Client, Limits::DEFAULT, &[settings(), frames.concat()].concat(), expect);
}

#[test]
fn reads_each_frame() {
    for (frame, expect) in [
        (frame(0, 0, 1, b"body"), "data 1 body 4"),
        (frame(0, 1, 1, b"body"), "data 1 body 4 end"),
        (frame(0, 1, 1, b""), "data 1  0 end"),
        (frame(0, 9, 1, b"\x03body\0\0\0"), "data 1 body 8 end"),
        (frame(0, 9, 1, b"\0"), "data 1  1 end"),
        (frame(0, 9, 1, b"\x01\0"), "data 1  2 end"),
        (frame(1, 5, 1, b"\x88"), "headers 1 \\x88 end"),
        (frame(1, 4, 3, b""), "headers 3 "),
        (frame(1, 0x2c, 1, b"\x02\0\0\0\0\x10block\0\0"), "headers 1 block"),
        (frame(2, 0, 7, b"\0\0\0\0\x10"), ""),
        (frame(3, 0, 1, b"\0\0\0\x07"), "reset 1 REFUSED_STREAM"),
        (frame(3, 0, 1, b"\0\0\0\xff"), "reset 1 0xff"),
        (frame(4, 1, 0, b""), "SettingsAck"),
        (frame(4, 0, 0, b"\0\x63\0\0\0\x01"), "settings"),
        (frame(6, 0, 0, b"12345678"), "Ping([49, 50, 51, 52, 53, 54, 55, 56])"),
        (frame(6, 1, 0, b"12345678"), "PingAck([49, 50, 51, 52, 53, 54, 55, 56])"),
        (frame(7, 0, 0, b"\x80\0\0\x05\0\0\0\x0bbye"), "goaway 5 ENHANCE_YOUR_CALM bye"),
        (frame(8, 0, 0, b"\x80\0\0\x05"), "WindowUpdate { stream: 0, bytes: 5 }"),
        (frame(8, 0, 5, b"\0\0\0\x05"), "WindowUpdate { stream: 5, bytes: 5 }"),
        (frame(0xee, 0xff, 0, b"anything"), ""),
    ] {
        let events = ["settings", expect].join("; ");
        client(&[frame], Ok(events.trim_end_matches("; ")));
    }
}

#[test]
fn joins_field_blocks() {
    let expect = "settings; headers 1 abcdef end; headers 3 x";
    client(
        &[
            frame(1, 1, 1, b"ab"),
            frame(9, 0, 1, b"cd"),
            frame(9, 0, 1, b""),
            frame(9, 4, 1, b"ef"),
            frame(1, 4, 3, b"x"),
        ],
        Ok(expect),
    );
    client(&[frame(1, 0, 1, b"ab")], Ok("settings; more"));
    client(&[frame(1, 0, 1, b"ab"), frame(0, 0, 1, b"")], Err(ConnectionError::Interrupted(FrameKind::DATA)));
    client(&[frame(1, 0, 1, b"ab"), frame(9, 4, 3, b"")], Err(ConnectionError::Interrupted(FrameKind::CONTINUATION)));
    client(&[frame(9, 4, 1, b"")], Err(ConnectionError::NoBlock));
}

#[test]
fn rejects_invalid_frames() {
    use ConnectionError::*;
    let size = |kind, bytes| FrameSize { kind: FrameKind(kind), bytes };
    let stream = |kind, stream| BadStream { kind: FrameKind(kind), stream };
    let idle = |kind, stream| IdleStream { kind: FrameKind(kind), stream };
    let setting = |id, value| Setting { id, value };
    for (frame, error, code) in [
        (frame(0, 0, 0, b"a"), stream(0, 0), ErrorCode::PROTOCOL_ERROR),
        (frame(0, 0, 7, b"a"), idle(0, 7), ErrorCode::PROTOCOL_ERROR),
        (frame(0, 0, 2, b"a"), idle(0, 2), ErrorCode::PROTOCOL_ERROR),
        (frame(0, 8, 1, b""), size(0, 0), ErrorCode::FRAME_SIZE_ERROR),
        (frame(0, 8, 1, b"\x01"), Padding(FrameKind::DATA), ErrorCode::PROTOCOL_ERROR),
        (frame(0, 8, 1, b"\x05body"), Padding(FrameKind::DATA), ErrorCode::PROTOCOL_ERROR),
        (frame(1, 4, 0, b""), stream(1, 0), ErrorCode::PROTOCOL_ERROR),
        (frame(1, 4, 7, b""), idle(1, 7), ErrorCode::PROTOCOL_ERROR),
        (frame(1, 0x0c, 1, b"\x01"), Padding(FrameKind::HEADERS), ErrorCode::PROTOCOL_ERROR),
        (frame(1, 0x24, 1, b"1234"), size(1, 4), ErrorCode::FRAME_SIZE_ERROR),
        (frame(2, 0, 0, b"12345"), stream(2, 0), ErrorCode::PROTOCOL_ERROR),
        (frame(2, 0, 1, b"1234"), size(2, 4), ErrorCode::FRAME_SIZE_ERROR),
        (frame(3, 0, 0, b"1234"), stream(3, 0), ErrorCode::PROTOCOL_ERROR),
        (frame(3, 0, 7, b"1234"), idle(3, 7), ErrorCode::PROTOCOL_ERROR),
        (frame(3, 0, 1, b"123"), size(3, 3), ErrorCode::FRAME_SIZE_ERROR),
        (frame(4, 0, 1, b""), stream(4, 1), ErrorCode::PROTOCOL_ERROR),
        (frame(4, 0, 0, b"12345"), size(4, 5), ErrorCode::FRAME_SIZE_ERROR),
        (frame(4, 1, 0, b"123456"), size(4, 6), ErrorCode::FRAME_SIZE_ERROR),
        (frame(4, 0, 0, b"\0\x02\0\0\0\x02"), setting(2, 2), ErrorCode::PROTOCOL_ERROR),
        (frame(4, 0, 0, b"\0\x04\x80\0\0\0"), WindowTooLarge, ErrorCode::FLOW_CONTROL_ERROR),
        (frame(4, 0, 0, b"\0\x05\0\0\x3f\xff"), setting(5, 16_383), ErrorCode::PROTOCOL_ERROR),
        (frame(4, 0, 0, b"\0\x05\x01\0\0\0"), setting(5, 1 << 24), ErrorCode::PROTOCOL_ERROR),
        (frame(5, 4, 1, b"\0\0\0\x02"), Push, ErrorCode::PROTOCOL_ERROR),
        (frame(6, 0, 1, b"12345678"), stream(6, 1), ErrorCode::PROTOCOL_ERROR),
        (frame(6, 0, 0, b"1234567"), size(6, 7), ErrorCode::FRAME_SIZE_ERROR),
        (frame(7, 0, 1, b"12345678"), stream(7, 1), ErrorCode::PROTOCOL_ERROR),
        (frame(7, 0, 0, b"1234567"), size(7, 7), ErrorCode::FRAME_SIZE_ERROR),
        (frame(8, 0, 0, b"\0\0\0\0"), NoCredit(0), ErrorCode::PROTOCOL_ERROR),
        (frame(8, 0, 0, b"\0\0\0"), size(8, 3), ErrorCode::FRAME_SIZE_ERROR),
        (frame(8, 0, 7, b"\0\0\0\x01"), idle(8, 7), ErrorCode::PROTOCOL_ERROR),
        (
            frame(0, 0, 1, &[0; 16_385]),
            FrameTooLarge { kind: FrameKind::DATA, bytes: 16_385, limit: 16_384 },
            ErrorCode::FRAME_SIZE_ERROR,
        ),
    ] {
        assert_eq!(error.code(), code, "{error}");
        // The last case fails because of its frame head, so most of its payload is omitted.
        client(&[frame[..frame.len().min(60)].to_vec()], Err(error));
    }
}

#[test]
fn connections_start_with_settings() {
    let limits = Limits::DEFAULT;
    let check_client = |bytes: &[u8], expect| check(Role::Client, limits, bytes, expect);
    check_client(b"", Ok(""));
    check_client(&frame(6, 0, 0, b"12345678"), Err(ConnectionError::NoSettings(FrameKind::PING)));
    check_client(&frame(4, 1, 0, b""), Err(ConnectionError::NoSettings(FrameKind::SETTINGS)));
    check_client(b"HTTP/1.1 400 Bad Request\r\n\r\n", Err(ConnectionError::Http1));

    let start = [PREFACE.as_slice(), &settings()].concat();
    let check_server = |bytes: &[u8], expect| check(Role::Server, limits, bytes, expect);
    check_server(&PREFACE[..10], Ok("more"));
    check_server(&start, Ok("settings"));
    check_server(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rX", Err(ConnectionError::BadPreface));
    let request = |stream| frame(1, 5, stream, b"\x82");
    let stream = [start.as_slice(), &request(3), &request(1), &request(5)].concat();
    check_server(&stream, Ok("settings; headers 3 opens \\x82 end; headers 1 \\x82 end; headers 5 opens \\x82 end"));
    let even = ConnectionError::IdleStream { kind: FrameKind::HEADERS, stream: 2 };
    check_server(&[start.as_slice(), &request(2)].concat(), Err(even));
    check_server(
        &[start.as_slice(), &request(1)[..9], b"\x82", &frame(5, 4, 1, b"")].concat(),
        Err(ConnectionError::Push),
    );
}

#[test]
fn floods_end_in_an_error() {
    let limits = Limits { idle_frames: 5, continuations: 3, block_bytes: 10, ..Limits::DEFAULT };
    let check_all =
        |frames: &[Vec<u8>], expect| check(Role::Client, limits, &[settings(), frames.concat()].concat(), expect);
    let flood = Err(ConnectionError::Flood(5));
    for frame in [
        frame(6, 0, 0, b"12345678"),
        frame(6, 1, 0, b"12345678"),
        settings(),
        frame(4, 1, 0, b""),
        frame(0, 0, 1, b""),
        frame(2, 0, 1, b"12345"),
        frame(0x20, 0, 0, b""),
    ] {
        // The first SETTINGS frame also counts toward the limit.
        check_all(&vec![frame.clone(); 5], flood);
        assert!(events(Role::Client, limits, &[&[settings(), frame.repeat(4)].concat()]).is_ok());
        let response = [frame.repeat(4), self::frame(1, 4, 1, b"\x88"), frame.repeat(5)].concat();
        assert!(events(Role::Client, limits, &[&settings(), &response]).is_ok());
    }
    let open = frame(1, 0, 1, b"");
    let empty = frame(9, 0, 1, b"");
    check_all(&[open.clone(), empty.repeat(4)], Err(ConnectionError::TooManyContinuations(3)));
    check_all(&[open, frame(9, 0, 1, b"123456"), frame(9, 0, 1, b"12345")], Err(ConnectionError::BlockTooLarge(10)));
    check_all(&[frame(1, 4, 1, b"12345678901")], Err(ConnectionError::BlockTooLarge(10)));
}

#[test]
fn written_frames_read_back() {
    let own = Settings {
        header_table_size: 0,
        enable_push: false,
        max_concurrent_streams: 7,
        initial_window_size: 1 << 20,
        max_frame_size: 1 << 15,
        max_header_list_size: 1 << 16,
    };
    let read = |make: &dyn Fn(&mut Vec<u8>)| {
        events(Role::Client, Limits::DEFAULT, &[&[settings(), made(make)].concat()]).unwrap()
    };
    assert_eq!(made(|out| push_settings(out, &Settings::DEFAULT)), settings());
    assert_eq!(read(&|out| push_settings(out, &own)), format!("settings; {:?}", Event::Settings(own)));
    assert_eq!(read(&|out| push_settings_ack(out)), "settings; SettingsAck");
    assert_eq!(read(&|out| push_ping(out, [1; 8], true)), "settings; PingAck([1, 1, 1, 1, 1, 1, 1, 1])");
    assert_eq!(read(&|out| push_window_update(out, 5, 9)), "settings; WindowUpdate { stream: 5, bytes: 9 }");
    assert_eq!(read(&|out| push_reset(out, 5, ErrorCode::CANCEL)), "settings; reset 5 CANCEL");
    assert_eq!(read(&|out| push_go_away(out, 3, ErrorCode::NO_ERROR)), "settings; goaway 3 NO_ERROR ");
    assert_eq!(read(&|out| push_data(out, 1, b"abc", true)), "settings; data 1 abc 3 end");
    for bytes in [2, 3, 4, 100] {
        let expect = "settings; headers 1 abcd end; headers 3 ";
        let write = |out: &mut Vec<u8>| {
            push_headers(out, 1, b"abcd", true, bytes);
            push_headers(out, 3, b"", false, bytes);
        };
        assert_eq!(read(&write), expect);
    }
}

#[test]
fn windows_are_bounded() {
    let mut window = SendWindow::new(10);
    assert_eq!((window.take(4), window.take(9), window.take(1)), (4, 6, 0));
    // A smaller initial window may make a window negative (RFC 9113, section 6.9.2).
    assert_eq!((window.add(-5), window.available(), window.add(7), window.available()), (Ok(()), 0, Ok(()), 2));
    assert_eq!(window.add(i64::from(u32::MAX >> 1) - 2), Ok(()));
    assert_eq!(window.add(1), Err(ConnectionError::WindowTooLarge));

    let mut window = ReceiveWindow::new(10);
    assert_eq!([5, 1, 6, 5].map(|bytes| window.receive(bytes)), [Ok(0), Ok(6), Ok(6), Ok(0)]);
    assert_eq!(window.receive(6), Err(ConnectionError::WindowExceeded));

    // The window gives no credit for received bytes until they are consumed.
    let mut window = ReceiveWindow::new(10);
    assert_eq!(
        (window.count_received(9), window.consume(3), window.count_received(1), window.consume(4)),
        (Ok(()), 0, Ok(()), 7)
    );
    assert_eq!((window.count_received(7), window.count_received(1)), (Ok(()), Err(ConnectionError::WindowExceeded)));
}
