//! Cases for HTTP/2 servers without TLS. Source: RFC 9113, whose sections are in parentheses.

use study::cases::Split;
use wire::http1::RequestMethod;
use wire::http2::hpack::{self, Indexing};
use wire::http2::{ErrorCode, FrameKind, PREFACE, Settings, WINDOW_MAX, flags, push_go_away, push_headers, push_reset};

use super::check_definition::{Check, code};
use super::client::Client;
use super::expected_page::miss;
use super::http2_session::{Frame, GENEROUS, block, field, frame};
use super::server_under_test::Server;
use super::unsuccessful_check_reason::{Trouble, excerpt};

const MISSING: &str = "/there/is/no-such-thing";
const LARGE: &str = "/bytes/100000";

pub(super) fn checks() -> Vec<Check> {
    let mut all = vec![
        code("settings", "the first frame is SETTINGS, and the client's SETTINGS are acknowledged (3.4)", settings),
        code("streams", "1,000 requests get their responses, at least 100 of them on one connection", streams),
        code(
            "concurrent",
            "as many requests at once as the limit allows get their responses, again and again",
            concurrent,
        ),
        code("limit", "requests above the limit of concurrent streams are refused (5.1.2)", limit),
        code("head", "HEAD returns the head of GET and no body", head),
        code("unknown", "404 for a missing path, and the connection stays open", unknown),
        code("body", "a request's body gets credit, and a response or a reset (6.9, 8.1)", body),
        code("partial", "the first bytes and a request may arrive in two pieces, cut anywhere, or byte by byte", cuts),
        code("ping", "a PING is acknowledged with its payload (6.7)", ping),
        code("hpack", "fields may use the dynamic table and change its size (RFC 7541)", dynamic_table),
        code("continuation", "a field block may span CONTINUATION frames (6.10)", continuation),
        code("ignored", "unknown frames, settings and flags, padding and PRIORITY change nothing (5.5)", ignored),
        code("windows", "a response waits for credit and continues with it (6.9)", windows),
        code("slow-reader", "a client that grants no credit neither blocks other clients nor loses data", slow_reader),
        code("cancel", "requests that are reset at once end at most their connection (5.4.2)", cancel),
        code("go-away", "after a client's GOAWAY, its requests get their responses (6.8)", go_away),
        code("preface", "a connection without the preface is closed (3.4)", preface),
    ];
    all.extend(super::http2_violations::checks());
    all
}

fn settings(server: &mut Server<'_>) -> Result<(), Trouble> {
    Ok(server.http2(&GENEROUS).map(drop)?)
}

fn streams(server: &mut Server<'_>) -> Result<(), Trouble> {
    const MANY: u32 = 1_000;
    let mut client = server.connect()?;
    for number in 1..=MANY {
        let place = |why| format!("request {number} of {MANY}: {why}");
        let Err(why) = client.ask(number) else { continue };
        if !client.has_ended_keep_alive() {
            return Err(place(why).into());
        }
        client = server.connect()?;
        client.ask(number).map_err(place)?;
    }
    Ok(())
}

fn concurrent(server: &mut Server<'_>) -> Result<(), Trouble> {
    let page = server.page(&server.path)?;
    let mut client = server.http2(&GENEROUS)?;
    let count = client.session.peer().max_concurrent_streams.min(100);
    for _ in 0..20 {
        let requests: Vec<_> = (0..count).map(|_| client.get_request(&server.path)).collect();
        client.send(&requests.iter().flat_map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>())?;
        // The last is awaited first: responses may arrive in any order.
        for (stream, _) in requests.into_iter().rev() {
            let response = client.stream_response(stream).map_err(|why| format!("{count} requests at once: {why}"))?;
            page.check(&response, false)?;
        }
        if client.is_closing {
            client = server.http2(&GENEROUS)?;
        }
    }
    Ok(())
}

fn limit(server: &mut Server<'_>) -> Result<(), Trouble> {
    let mut client = server.http2(&GENEROUS)?;
    let limit = client.session.peer().max_concurrent_streams;
    if limit > 1_000 {
        return Err(Trouble::NotChecked("the limit is above 1,000 streams".to_owned()));
    }
    let mut streams: Vec<_> = (0..=limit).map(|_| client.session.open(RequestMethod::Get)).collect();
    let (mut out, head) = (Vec::new(), block("POST", &server.path, &[("content-length", "4")]));
    streams.iter().for_each(|stream| push_headers(&mut out, *stream, &head, false, 16_384));
    client.send(&out)?;
    client.ping()?;
    let last = streams.pop().unwrap_or_default();
    let is_end = |frame| {
        matches!(frame, Frame::PingAck | Frame::GoAway(..) | Frame::End)
            || matches!(frame, Frame::Reset(stream, _) if stream == last)
    };
    let end = client.frames_until(is_end)?;
    let has_early_responses = || streams.iter().any(|stream| client.session.is_ended(*stream));
    match end {
        Frame::GoAway(..) | Frame::End => Ok(()),
        Frame::Reset(_, ErrorCode::REFUSED_STREAM | ErrorCode::PROTOCOL_ERROR) => Ok(()),
        _ if has_early_responses() => {
            Err(Trouble::NotChecked("requests got responses before their bodies were complete".to_owned()))
        }
        Frame::Reset(_, code) => {
            Err(format!("stream {last} is above the limit of {limit}, but was reset with {code}").into())
        }
        _ => Err(format!("stream {last} is above the limit of {limit} streams, but was not refused").into()),
    }
}

fn head(server: &mut Server<'_>) -> Result<(), Trouble> {
    let page = server.page(&server.path)?;
    let mut client = server.connect()?;
    for _ in 0..2 {
        let stream = client.session.open(RequestMethod::Head);
        client.send_head(stream, &block("HEAD", &server.path, &[]), true)?;
        page.check(&client.stream_response(stream)?, true)?;
        client.ask(1)?;
    }
    Ok(())
}

fn unknown(server: &mut Server<'_>) -> Result<(), Trouble> {
    let mut client = server.connect()?;
    for _ in 0..2 {
        let response = client.get_response(MISSING)?;
        if response.status != 404 {
            return Err(miss(format!("status of GET {MISSING}"), 404, response.status).into());
        }
        client.ask(1)?;
    }
    Ok(())
}

fn body(server: &mut Server<'_>) -> Result<(), Trouble> {
    let mut client = server.connect()?;
    for bytes in [5, 100_000] {
        let stream = client.session.open(RequestMethod::Get);
        client.send_head(stream, &block("POST", &server.path, &[("content-length", &bytes.to_string())]), false)?;
        client.send_body(stream, &vec![b'x'; bytes])?;
        client.await_end(stream)?;
        client.ask(1).map_err(|why| format!("after a body of {bytes} bytes: {why}"))?;
    }
    Ok(())
}

fn cuts(server: &mut Server<'_>) -> Result<(), Trouble> {
    let page = server.page(&server.path)?;
    let start = |client: &mut Client| {
        let mut bytes = client.opening(&GENEROUS);
        let (stream, request) = client.get_request(&server.path);
        bytes.extend(request);
        (stream, bytes)
    };
    let length = start(&mut server.dial()?).1.len();
    for cut in study::cases::cuts(&Split::All, length).unwrap_or_default() {
        let mut client = server.dial()?;
        let (stream, bytes) = start(&mut client);
        client.send_cut(&bytes, &cut)?;
        let place = format!("{}: ", cut.words().unwrap_or_default());
        let response = client.stream_response(stream).map_err(|why| format!("{place}{why}"))?;
        page.check(&response, false).map_err(|miss| Trouble::from(miss).at(&place))?;
    }
    Ok(())
}

fn ping(server: &mut Server<'_>) -> Result<(), Trouble> {
    let mut client = server.connect()?;
    client.ping_pong()?;
    client.ask(1)?;
    Ok(client.ping_pong()?)
}

fn dynamic_table(server: &mut Server<'_>) -> Result<(), Trouble> {
    let page = server.page(&server.path)?;
    let mut client = server.http2(&GENEROUS)?;
    let table_bytes = client.session.peer().header_table_size;
    if table_bytes < Settings::DEFAULT.header_table_size {
        return Err(Trouble::NotChecked(format!("its dynamic table has only {table_bytes} bytes")));
    }
    let mut fixed = Vec::new();
    [(":method", "GET"), (":scheme", "http")].iter().for_each(|(name, value)| field(&mut fixed, name, value));
    let mut inserted = fixed.clone();
    for (name, value) in [(":authority", "localhost"), (":path", &server.path), ("x-quintain", "www.example.com")] {
        hpack::push_literal_name(&mut inserted, name.as_bytes(), Indexing::Insert);
        hpack::push_string(&mut inserted, value.as_bytes());
    }
    let mut indexed = fixed;
    [2, 1, 0].iter().for_each(|nth| hpack::push_indexed(&mut indexed, hpack::DYNAMIC_FIRST + nth));
    let mut resized = Vec::new();
    hpack::push_table_size(&mut resized, 0);
    hpack::push_table_size(&mut resized, Settings::DEFAULT.header_table_size as usize);
    resized.extend(&inserted);
    for (step, block) in [
        ("fields inserted into the table", &inserted),
        ("fields of the table", &indexed),
        ("fields inserted after a change of the table's size", &resized),
        ("fields of the changed table", &indexed),
    ] {
        let stream = client.session.open(RequestMethod::Get);
        client.send_head(stream, block, true)?;
        let response = client.stream_response(stream).map_err(|why| format!("{step}: {why}"))?;
        page.check(&response, false).map_err(|miss| Trouble::from(miss).at(&format!("{step}: ")))?;
    }
    Ok(())
}

fn continuation(server: &mut Server<'_>) -> Result<(), Trouble> {
    let page = server.page(&server.path)?;
    let mut client = server.connect()?;
    let mut out = Vec::new();
    let stream = client.session.open(RequestMethod::Get);
    push_headers(&mut out, stream, &block("GET", &server.path, &[]), true, 5);
    client.send(&out)?;
    page.check(&client.stream_response(stream)?, false)?;
    Ok(client.ask(1)?)
}

fn ignored(server: &mut Server<'_>) -> Result<(), Trouble> {
    let page = server.page(&server.path)?;
    let mut client = server.connect()?;
    let block = block("GET", &server.path, &[]);
    let stream = client.session.open(RequestMethod::Get);
    let padded = [&[3][..], &block, &[0; 3]].concat();
    let all_flags = flags::END_STREAM | flags::END_HEADERS | flags::PADDED;
    let rows = [
        frame(FrameKind(0xfa), 0xff, 0, b"unknown"),
        frame(FrameKind::SETTINGS, 0xfe, 0, &[0xfa, 0xfa, 0, 0, 0, 1]),
        frame(FrameKind::PRIORITY, 0, stream, &[0, 0, 0, 0, 16]),
        frame(FrameKind::HEADERS, all_flags, stream, &padded),
        frame(FrameKind(0xfa), 0xff, stream, b"unknown"),
    ];
    client.send(&rows.concat())?;
    page.check(&client.stream_response(stream)?, false)?;
    Ok(client.ask(1)?)
}

fn windows(server: &mut Server<'_>) -> Result<(), Trouble> {
    let page = server.page(&server.path)?;
    let mut client = server.http2(&Settings { initial_window_size: 0, ..GENEROUS })?;
    client.grant(0, WINDOW_MAX - Settings::DEFAULT.initial_window_size)?;
    let (stream, request) = client.get_request(&server.path);
    client.send(&request)?;
    // The client fails when DATA exceeds its windows.
    client.frames_until(|frame| frame == Frame::Headers(stream))?;
    client.ping_pong()?;
    if client.session.is_ended(stream) {
        return Err(Trouble::NotChecked(format!("GET {} has no body", server.path)));
    }
    client.grant(stream, 1)?;
    client.frames_until(|frame| frame == Frame::Data(stream))?;
    client.ping_pong()?;
    client.grant(stream, WINDOW_MAX - 1)?;
    page.check(&client.stream_response(stream)?, false)?;
    // The next response is larger than the first window of the connection.
    let large = server.page(LARGE)?;
    if large.status != 200 {
        return Ok(());
    }
    let mut client = server.http2(&Settings { initial_window_size: WINDOW_MAX - 1, ..GENEROUS })?;
    let (stream, request) = client.get_request(LARGE);
    client.send(&request)?;
    while client.session.replies[&stream].response.body.len() < Settings::DEFAULT.initial_window_size as usize {
        if client.next_frame()? == Frame::End {
            return Err("no response: the connection was closed".to_owned().into());
        }
    }
    client.ping_pong()?;
    client.grant(0, 1 << 20)?;
    Ok(large.check(&client.stream_response(stream)?, false)?)
}

fn slow_reader(server: &mut Server<'_>) -> Result<(), Trouble> {
    let page = server.page(&server.path)?;
    let mut slow = server.http2(&Settings { initial_window_size: 0, ..GENEROUS })?;
    let count = slow.session.peer().max_concurrent_streams.min(50);
    let requests: Vec<_> = (0..count).map(|_| slow.get_request(&server.path)).collect();
    slow.send(&requests.iter().flat_map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>())?;
    let mut others = server.served_clients(16)?;
    for (index, other) in others.iter_mut().enumerate() {
        other.ask(1).map_err(|why| format!("beside a client without credit, client {}: {why}", index + 1))?;
    }
    slow.grant(0, WINDOW_MAX - Settings::DEFAULT.initial_window_size)?;
    for (stream, _) in requests {
        slow.grant(stream, WINDOW_MAX)?;
        page.check(&slow.stream_response(stream)?, false)?;
    }
    Ok(())
}

fn cancel(server: &mut Server<'_>) -> Result<(), Trouble> {
    let mut witness = server.connect()?;
    let mut client = server.connect()?;
    let mut out = Vec::new();
    for _ in 0..500 {
        let (stream, request) = client.get_request(&server.path);
        out.extend(request);
        push_reset(&mut out, stream, ErrorCode::CANCEL);
    }
    client.send(&out)?;
    Ok(witness.ask(1).map_err(|why| format!("beside 500 requests that are reset: {why}"))?)
}

fn go_away(server: &mut Server<'_>) -> Result<(), Trouble> {
    let page = server.page(&server.path)?;
    let mut client = server.connect()?;
    let requests = [(); 3].map(|()| client.get_request(&server.path));
    let mut out = requests.iter().flat_map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>();
    push_go_away(&mut out, 0, ErrorCode::NO_ERROR);
    client.send(&out)?;
    for (stream, _) in requests {
        page.check(&client.stream_response(stream)?, false)?;
    }
    Ok(())
}

fn preface(server: &mut Server<'_>) -> Result<(), Trouble> {
    let no_settings = [&PREFACE[..], &frame(FrameKind::PING, 0, 0, &[0; 8])].concat();
    for bytes in [b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n".to_vec(), no_settings] {
        let mut client = server.dial()?;
        client.send(&bytes)?;
        client.drain().map_err(|why| format!("after `{}`: the connection was not closed: {why}", excerpt(&bytes)))?;
    }
    Ok(())
}
