//! Assertions for any cache protocol stream. An input's first byte chooses the request, the limits and the cut points.

use wire::cache_http::{self, Operation};
use wire::detect_cache_protocol::{DETECT_MAX_BYTES, Detected, detect};
use wire::{memcached, resp};

/// Limits that short inputs reach.
pub(crate) const NARROW_MEMCACHED: memcached::Limits =
    memcached::Limits { key_bytes: 10, value_bytes: 40, line_bytes: 48, get_line_bytes: 64, swallow_bytes: 100 };

pub(crate) const NARROW_RESP: resp::Limits =
    resp::Limits { bulk_bytes: 20, request_bytes: 48, arguments: 6, line_bytes: 40 };

/// Checks that requests do not depend on how the stream is cut.
pub(crate) fn memcached_request(bytes: &[u8]) {
    let Some((&control, stream)) = bytes.split_first() else { return };
    let limits = if control & 4 != 0 { NARROW_MEMCACHED } else { memcached::Limits::DEFAULT };
    let whole = memcached_requests(limits, &[stream]);
    for pieces in cuts(control, stream) {
        assert_eq!(memcached_requests(limits, &pieces), whole, "cut {:?}", lengths(&pieces));
    }
}

/// The requests that a server reads from a stream, as text, with their values.
pub(crate) fn memcached_requests(limits: memcached::Limits, pieces: &[&[u8]]) -> Vec<String> {
    use memcached::Read;
    let mut reader = memcached::RequestReader::new(limits);
    let (mut buffer, mut words) = (Vec::new(), Vec::new());
    let mut least = 0;
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let before = buffer.len();
            let used = match reader.read(&buffer) {
                Read::Need { used, more } => {
                    assert!(more > 0 && used <= before);
                    least = before - used + more;
                    buffer.drain(..used);
                    break;
                }
                Read::Command { used, command, noreply } => {
                    assert!(used >= least, "the minimum was reported as {least}");
                    words.push(command_words(&command, noreply));
                    used
                }
                Read::Refused { used, reply, noreply, close, outdated } => {
                    assert!(reply.ends_with(b"\r\n"));
                    let silent = if noreply { " silent" } else { "" };
                    let close_word = if close { " close" } else { "" };
                    let outdated_word = outdated.map_or(String::new(), |key| format!(" outdates {}", text(key)));
                    assert!(outdated.is_none() || reply.ends_with(b" too large for cache\r\n"));
                    words.push(format!(
                        "refused {}{silent}{close_word}{outdated_word}",
                        reply.trim_ascii().escape_ascii()
                    ));
                    if close {
                        return words;
                    }
                    used
                }
            };
            assert!(used > 0 && used <= before);
            least = 0;
            buffer.drain(..used);
        }
    }
    if !buffer.is_empty() {
        words.push("more".to_owned());
    }
    words
}

fn store_words(store: &memcached::Store<'_>, silent: &str) -> String {
    let verb = format!("{:?}", store.verb).to_lowercase();
    let cas = store.cas.map_or(String::new(), |cas| format!(" cas {cas}"));
    let (key, data) = (text(store.key), text(store.data));
    format!("{verb} {key} {} {}{cas}{silent} {data}", store.client_flags, store.exptime)
}

fn command_words(command: &memcached::Command<'_>, noreply: bool) -> String {
    use memcached::Command;
    let silent = if noreply { " noreply" } else { "" };
    match *command {
        Command::Get(get) => {
            let name = if get.with_cas { "gets" } else { "get" };
            let touch = get.touch.map_or(String::new(), |exptime| format!(" {exptime}"));
            let keys = get.keys.map(|key| format!(" {}", text(key))).collect::<String>();
            format!("{name}{touch}{keys}")
        }
        Command::Store(store) => store_words(&store, silent),
        Command::Delete(key) => format!("delete {}{silent}", text(key)),
        Command::Count { key, delta, down } => {
            format!("{} {} {delta}{silent}", if down { "decr" } else { "incr" }, text(key))
        }
        Command::Touch { key, exptime } => format!("touch {} {exptime}{silent}", text(key)),
        Command::FlushAll(delay_s) => format!("flush_all {delay_s}{silent}"),
        Command::Version => "version".to_owned(),
        Command::Verbosity => format!("verbosity{silent}"),
        Command::Stats(argument) => format!("stats {}", text(argument)),
        Command::Quit => "quit".to_owned(),
        Command::Noop => "mn".to_owned(),
    }
}

/// Checks that responses do not depend on how the stream is cut.
pub(crate) fn memcached_response(bytes: &[u8]) {
    let Some((&control, stream)) = bytes.split_first() else { return };
    let limits = if control & 1 != 0 { NARROW_MEMCACHED } else { memcached::Limits::DEFAULT };
    let expected = expected(usize::from(control >> 1));
    let whole = memcached_answers(limits, &expected, &[stream]);
    for pieces in cuts(control, stream) {
        assert_eq!(memcached_answers(limits, &expected, &pieces), whole, "cut {:?}", lengths(&pieces));
    }
}

/// Returns one request of each kind, starting with kind `first`.
fn expected(first: usize) -> Vec<memcached::Expected<'static>> {
    use memcached::Expected;
    const ALL: [Expected<'static>; 4] = [Expected::Get(b"a"), Expected::Set, Expected::Delete, Expected::Get(b"b")];
    (0..ALL.len()).map(|offset| ALL[(first + offset) % ALL.len()]).collect()
}

/// The responses that a client reads from a stream after sending the requests of `expected` repeatedly.
pub(crate) fn memcached_answers(
    limits: memcached::Limits,
    expected: &[memcached::Expected<'_>],
    pieces: &[&[u8]],
) -> Vec<String> {
    use memcached::Event;
    let mut reader = memcached::ResponseReader::new(limits);
    let (mut words, mut found, mut data) = (Vec::new(), String::new(), Vec::new());
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let progress = reader.read(expected[words.len() % expected.len()], rest, |event| match event {
                Event::Data(piece) => {
                    assert!(!piece.is_empty() && rest.as_ptr_range().contains(&piece.as_ptr()));
                    data.extend_from_slice(piece);
                }
                Event::Value { client_flags, bytes } => found += &format!(" value {client_flags} {bytes}"),
                Event::Text(line) => found += &format!("{} {}", take(&mut data), text(line)),
            });
            match progress {
                Ok(None) => rest = &[],
                Ok(Some((used, outcome))) => {
                    assert!(used > 0 && used <= rest.len() && reader.is_between());
                    words.push(format!("{outcome:?}{}{}", std::mem::take(&mut found), take(&mut data)));
                    rest = &rest[used..];
                }
                Err(error) => {
                    assert_eq!(reader.read(expected[0], rest, |_| panic!("nothing after an error")), Err(error));
                    words.push(format!("error {error}"));
                    return words;
                }
            }
        }
    }
    if !reader.is_between() {
        words.push(format!("more{found}{}", take(&mut data)));
    }
    words
}

fn take(data: &mut Vec<u8>) -> String {
    if data.is_empty() { String::new() } else { format!(" {}", text(&std::mem::take(data))) }
}

/// Checks that requests do not depend on how the stream is cut, and that known requests survive a round trip.
pub(crate) fn resp_request(bytes: &[u8]) {
    let Some((&control, stream)) = bytes.split_first() else { return };
    let limits = if control & 4 != 0 { NARROW_RESP } else { resp::Limits::DEFAULT };
    let whole = resp_requests(limits, &[stream]);
    for pieces in cuts(control, stream) {
        assert_eq!(resp_requests(limits, &pieces), whole, "cut {:?}", lengths(&pieces));
    }
}

/// The arguments of each request that a server reads from a stream, with `.` after known commands.
pub(crate) fn resp_requests(limits: resp::Limits, pieces: &[&[u8]]) -> Vec<String> {
    use resp::Read;
    let mut reader = resp::RequestReader::new(limits);
    let (mut buffer, mut words) = (Vec::new(), Vec::new());
    let mut least = 0;
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let before = buffer.len();
            let used = match reader.read(&buffer) {
                Read::Need { used, more } => {
                    assert!(more > 0 && used <= before);
                    least = before - used + more;
                    buffer.drain(..used);
                    break;
                }
                Read::Request { used, request } => {
                    assert!(used >= least, "the minimum was reported as {least}");
                    let arguments = request.arguments().collect::<Vec<_>>();
                    words.push(request_words(&request));
                    again(&arguments);
                    used
                }
                Read::Refused { used, refusal } => {
                    let mut reply = Vec::new();
                    refusal.compose(&mut reply);
                    assert!(reply.starts_with(b"-ERR ") && reply.iter().filter(|byte| **byte == b'\n').count() == 1);
                    words.push(format!("refused {refusal}{}", if refusal.closes() { " close" } else { "" }));
                    if refusal.closes() {
                        return words;
                    }
                    used
                }
            };
            assert!(used > 0 && used <= before);
            least = 0;
            buffer.drain(..used);
        }
    }
    if !buffer.is_empty() {
        words.push("more".to_owned());
    }
    words
}

fn request_words(request: &resp::Request<'_, '_>) -> String {
    let arguments = request.arguments().map(text).collect::<Vec<_>>().join(" ");
    let _ = resp::parse_set(request, 0);
    match request.command() {
        Ok(name) => format!("{name:?} {arguments}"),
        Err(refusal) => format!("{}: {arguments}", variant(refusal)),
    }
}

fn again(arguments: &[&[u8]]) {
    let mut composed = Vec::new();
    resp::compose_request(&mut composed, arguments);
    let limits = resp::Limits { bulk_bytes: 1 << 26, request_bytes: 1 << 26, ..resp::Limits::DEFAULT };
    let mut reader = resp::RequestReader::new(limits);
    let resp::Read::Request { used, request } = reader.read(&composed) else { panic!("it was composed whole") };
    assert_eq!(used, composed.len());
    assert!(request.arguments().eq(arguments.iter().copied()));
}

/// Checks that replies do not depend on how the stream is cut.
pub(crate) fn resp_reply(bytes: &[u8]) {
    let Some((&control, stream)) = bytes.split_first() else { return };
    let limits = if control & 4 != 0 { NARROW_RESP } else { resp::Limits::DEFAULT };
    let whole = resp_replies(limits, &[stream]);
    for pieces in cuts(control, stream) {
        assert_eq!(resp_replies(limits, &pieces), whole, "cut {:?}", lengths(&pieces));
    }
}

/// The replies that a client reads from a stream, with their text.
pub(crate) fn resp_replies(limits: resp::Limits, pieces: &[&[u8]]) -> Vec<String> {
    use resp::Event;
    let mut reader = resp::ReplyReader::new(limits);
    let (mut words, mut data) = (Vec::new(), Vec::new());
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let progress = reader.read(rest, |event| match event {
                Event::Data(piece) | Event::Text(piece) => data.extend_from_slice(piece),
                Event::Value { .. } => assert!(data.is_empty()),
            });
            match progress {
                Ok(None) => rest = &[],
                Ok(Some((used, reply))) => {
                    assert!(used > 0 && used <= rest.len() && reader.is_between());
                    words.push(format!("{reply:?}{}", take(&mut data)));
                    rest = &rest[used..];
                }
                Err(error) => {
                    assert_eq!(reader.read(rest, |_| panic!("nothing after an error")), Err(error));
                    words.push(format!("error {error}"));
                    return words;
                }
            }
        }
    }
    if !reader.is_between() {
        words.push(format!("more{}", take(&mut data)));
    }
    words
}

/// Checks that a target is rejected or gives an operation whose decoded key and value are within the limits.
pub(crate) fn cache_http(bytes: &[u8]) {
    let Some((&control, target)) = bytes.split_first() else { return };
    let Ok(target) = std::str::from_utf8(target) else { return };
    let method = ["GET", "PUT", "DELETE", "HEAD", "POST", "PATCH"][usize::from(control % 6)];
    let limits = cache_http::Limits { key_bytes: 20, value_bytes: 40 };
    let check = |decoded: std::borrow::Cow<'_, [u8]>, limit| assert!(decoded.len() <= limit);
    match cache_http::parse_target(method, target, &limits) {
        Err(refusal) => assert!([400, 404, 405, 413, 414].contains(&refusal.status)),
        Ok(Operation::Get { key, .. } | Operation::Delete(key)) => check(key, limits.key_bytes),
        Ok(Operation::Put { key, value }) => {
            check(key, limits.key_bytes);
            check(value, limits.value_bytes);
        }
        Ok(Operation::Status | Operation::Reset) => {}
    }
}

/// Checks that a detected protocol does not change when more bytes arrive.
pub(crate) fn detect_protocol(bytes: &[u8]) {
    let mut decided = Detected::Need;
    for end in 0..=bytes.len().min(2 * DETECT_MAX_BYTES) {
        let found = detect(&bytes[..end]);
        assert!(decided == Detected::Need || decided == found, "{decided:?} became {found:?} at {end}");
        assert!(found != Detected::Need || end < DETECT_MAX_BYTES);
        decided = found;
    }
}

fn text(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

/// Cuts the stream into single bytes (longer pieces if it is long), in two, and into pieces of equal size.
fn cuts(control: u8, stream: &[u8]) -> Vec<Vec<&[u8]>> {
    let small = stream.len() / 512 + 1;
    let at = (usize::from(control) * 37) % (stream.len() + 1);
    let size = usize::from(control >> 3) + 2;
    vec![stream.chunks(small).collect(), vec![&stream[..at], &stream[at..]], stream.chunks(size).collect()]
}

fn lengths(pieces: &[&[u8]]) -> Vec<usize> {
    pieces.iter().map(|piece| piece.len()).collect()
}

/// The kebab-case variant of an error: `bad-host` for `BadHost`.
pub(crate) fn variant(error: impl std::fmt::Debug) -> String {
    let text = format!("{error:?}");
    let mut name = String::new();
    for letter in text.chars().take_while(char::is_ascii_alphanumeric) {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}
