//! Assertions for any HTTP/1.1 stream. An input's first byte chooses the request, the limits and the cut points.

use wire::http1::{
    Body, BodyReader, Limits, Memo, MessageError, RequestMethod, Response, ResponseReader, compose_request,
    parse_request,
};

/// Maximum size, in bytes, of a stream that cannot reach the limits on chunk lines, chunk extensions and heads.
const STREAM_WITHIN_LIMITS_BYTES: usize = 4000;

/// Size of an incomplete head, in bytes, from which the head is parsed again only once it is complete.
const HEAD_AWAITED_BYTES: usize = 1024;

/// The responses that a client read from a stream.
#[derive(Debug, PartialEq, Eq)]
struct Answers {
    /// Each complete response, its body, and the offset of its end in the stream.
    complete: Vec<(Response, Vec<u8>, usize)>,
    /// The received part of an incomplete body.
    rest: Vec<u8>,
    end: Result<(), MessageError>,
}

/// Checks that responses depend neither on the cuts nor on the memo, and equal those of a simple httparse-based reader.
pub(crate) fn response(bytes: &[u8]) {
    let Some((&control, stream)) = bytes.split_first() else { return };
    let asked =
        [RequestMethod::Get, RequestMethod::Get, RequestMethod::Head, RequestMethod::Connect][usize::from(control & 3)];
    let is_narrow = control & 4 != 0;
    let limits = if is_narrow { Limits { head_bytes: 80, headers: 3 } } else { Limits::DEFAULT };
    let mut memo = Memo::default();
    let whole = answers(&mut memo, limits, asked, &[stream]);
    for pieces in cuts(control, stream) {
        assert_eq!(answers(&mut Memo::default(), limits, asked, &pieces), whole, "cut {:?}", lengths(&pieces));
        assert_eq!(answers(&mut memo, limits, asked, &pieces), whole, "known and cut {:?}", lengths(&pieces));
    }
    assert_eq!(answers(&mut memo, limits, asked, &[stream]), whole, "known");
    if !is_narrow && stream.len() <= STREAM_WITHIN_LIMITS_BYTES {
        let (complete, end) = naive_answers(stream, asked);
        assert_eq!(whole.complete, complete, "ours and the oracle's; ours ended {:?}, the oracle's {end:?}", whole.end);
        assert_eq!(whole.end.is_ok(), end == NaiveEnd::Clean, "ours {:?}, the oracle's {end:?}", whole.end);
    }
}

fn answers(memo: &mut Memo, limits: Limits, asked: RequestMethod, pieces: &[&[u8]]) -> Answers {
    let mut reader = ResponseReader::new(limits);
    let (mut complete, mut body, mut at) = (Vec::new(), Vec::new(), 0);
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            match reader.read(memo, asked, rest, |data| body.extend_from_slice(data)) {
                Ok(None) => {
                    at += rest.len();
                    rest = &[];
                }
                Ok(Some((used, response))) => {
                    assert!(used > 0, "a response is not nothing");
                    assert_eq!(response.body_bytes, body.len() as u64);
                    at += used;
                    complete.push((response, std::mem::take(&mut body), at));
                    rest = &rest[used..];
                }
                Err(error) => return Answers { complete, rest: body, end: Err(error) },
            }
        }
    }
    let end = match reader.end() {
        Ok(None) => Ok(()),
        Ok(Some(response)) => {
            complete.push((response, std::mem::take(&mut body), at));
            Ok(())
        }
        Err(error) => Err(error),
    };
    Answers { complete, rest: body, end }
}

fn cuts(control: u8, stream: &[u8]) -> Vec<Vec<&[u8]>> {
    let small = stream.len() / 512 + 1;
    let at = (usize::from(control) * 37) % (stream.len() + 1);
    let size = usize::from(control >> 3) + 2;
    vec![stream.chunks(small).collect(), vec![&stream[..at], &stream[at..]], stream.chunks(size).collect()]
}

fn lengths(pieces: &[&[u8]]) -> Vec<usize> {
    pieces.iter().map(|piece| piece.len()).collect()
}

#[derive(Debug, PartialEq, Eq)]
enum NaiveEnd {
    Clean,
    Incomplete,
    Refused,
}

type NaiveAnswers = (Vec<(Response, Vec<u8>, usize)>, NaiveEnd);

/// Implements RFC 9112, section 6.3, for a complete stream, with httparse for the heads.
fn naive_answers(stream: &[u8], asked: RequestMethod) -> NaiveAnswers {
    let mut complete = Vec::new();
    let (mut at, mut interim_bytes) = (0, 0);
    loop {
        if at == stream.len() {
            return (complete, if interim_bytes == 0 { NaiveEnd::Clean } else { NaiveEnd::Incomplete });
        }
        let head = match naive_head(&stream[at..]) {
            Ok(head) => head,
            Err(end) => return (complete, end),
        };
        let rest = &stream[at + head.bytes..];
        if head.status == 101 {
            return (complete, NaiveEnd::Refused);
        }
        if (100..200).contains(&head.status) {
            at += head.bytes;
            interim_bytes += head.bytes;
            continue;
        }
        let (body, used, until_end) = match naive_body(&head, asked, rest) {
            Ok(body) => body,
            Err(end) => return (complete, end),
        };
        let is_tunnel = asked == RequestMethod::Connect && (200..300).contains(&head.status);
        let options = head.list("connection");
        let has = |option: &str| options.iter().any(|other| other == option);
        let persists = !has("close") && (head.minor_version > 0 || has("keep-alive"));
        let response = Response {
            status: head.status,
            keep_alive: persists && !until_end && !is_tunnel,
            head_bytes: (interim_bytes + head.bytes) as u64,
            body_bytes: body.len() as u64,
        };
        at += head.bytes + used;
        interim_bytes = 0;
        complete.push((response, body, at));
        if until_end {
            return (complete, NaiveEnd::Clean);
        }
    }
}

struct NaiveHead {
    status: u16,
    minor_version: u8,
    bytes: usize,
    /// Fields with lower-case names and unfolded values; each byte is one character.
    fields: Vec<(String, String)>,
}

impl NaiveHead {
    fn list(&self, name: &str) -> Vec<String> {
        let values = self.fields.iter().filter(|field| field.0 == name);
        values.flat_map(|field| field.1.split(',').map(|element| trimmed(element).to_ascii_lowercase())).collect()
    }
}

fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

fn naive_head(bytes: &[u8]) -> Result<NaiveHead, NaiveEnd> {
    // httparse accepts only HTTP/1.0 and HTTP/1.1.
    let mut bytes = bytes.to_vec();
    if bytes.starts_with(b"HTTP/1.") && bytes.get(7).is_some_and(u8::is_ascii_digit) && bytes[7] > b'1' {
        bytes[7] = b'1';
    }
    let mut room = [httparse::EMPTY_HEADER; Limits::DEFAULT.headers];
    let mut parsed = httparse::Response::new(&mut room);
    let mut config = httparse::ParserConfig::default();
    config.allow_obsolete_multiline_headers_in_responses(true);
    let head_bytes = match config.parse_response(&mut parsed, &bytes) {
        Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
        Ok(httparse::Status::Partial) => return Err(NaiveEnd::Incomplete),
        Err(_) => return Err(NaiveEnd::Refused),
    };
    let head = &bytes[..head_bytes];
    if !head.starts_with(b"HTTP/") || has_bare_lf(head) {
        return Err(NaiveEnd::Refused);
    }
    let characters = |bytes: &[u8]| bytes.iter().map(|&byte| char::from(byte)).collect::<String>();
    let unfolded = |value: &[u8]| trimmed(&characters(value).replace(['\r', '\n'], " ")).to_owned();
    let fields = parsed.headers.iter().map(|field| (field.name.to_ascii_lowercase(), unfolded(field.value))).collect();
    let (status, minor_version) = (parsed.code.unwrap(), parsed.version.unwrap());
    Ok(NaiveHead { status, minor_version, bytes: head_bytes, fields })
}

fn has_bare_lf(bytes: &[u8]) -> bool {
    bytes.split_inclusive(|&byte| byte == b'\n').any(|line| line.ends_with(b"\n") && !line.ends_with(b"\r\n"))
}

/// The body, the used bytes of `rest`, and whether the end of the stream ended the body.
fn naive_body(head: &NaiveHead, asked: RequestMethod, rest: &[u8]) -> Result<(Vec<u8>, usize, bool), NaiveEnd> {
    let is_tunnel = asked == RequestMethod::Connect && (200..300).contains(&head.status);
    if asked == RequestMethod::Head || matches!(head.status, 204 | 304) || is_tunnel {
        return Ok((Vec::new(), 0, false));
    }
    let has = |name: &str| head.fields.iter().any(|field| field.0 == name);
    if has("transfer-encoding") {
        if has("content-length") || head.minor_version == 0 {
            return Err(NaiveEnd::Refused);
        }
        let mut codings = head.list("transfer-encoding");
        codings.retain(|coding| !coding.is_empty());
        let name = |coding: &String| trimmed(coding.split(';').next().unwrap()).to_owned();
        let is_token = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
        };
        let chunked = codings.iter().filter(|coding| name(coding) == "chunked").count();
        let has_parameters = codings.iter().any(|coding| name(coding) == "chunked" && coding.contains(';'));
        if codings.is_empty() || !codings.iter().all(|coding| is_token(&name(coding))) || chunked > 1 || has_parameters
        {
            return Err(NaiveEnd::Refused);
        }
        if codings.last().is_some_and(|coding| coding == "chunked") {
            let (body, used) = naive_chunks(rest)?;
            return Ok((body, used, false));
        }
    } else if has("content-length") {
        let lengths = head.list("content-length");
        let is_number = |text: &String| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        if !lengths.iter().all(is_number) {
            return Err(NaiveEnd::Refused);
        }
        let mut values = lengths.iter().map(|text| text.parse::<u64>());
        let Some(Ok(length)) = values.next() else { return Err(NaiveEnd::Refused) };
        if values.any(|value| value != Ok(length)) {
            return Err(NaiveEnd::Refused);
        }
        let body = usize::try_from(length).ok().and_then(|length| rest.get(..length)).ok_or(NaiveEnd::Incomplete)?;
        return Ok((body.to_vec(), body.len(), false));
    }
    Ok((rest.to_vec(), rest.len(), true))
}

fn naive_chunks(bytes: &[u8]) -> Result<(Vec<u8>, usize), NaiveEnd> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let end = bytes[at..].iter().position(|&byte| byte == b'\n').ok_or(NaiveEnd::Incomplete)?;
        let line = bytes[at..at + end].strip_suffix(b"\r").ok_or(NaiveEnd::Refused)?;
        at += end + 1;
        if line.iter().any(|&byte| byte.is_ascii_control() && byte != b'\t') {
            return Err(NaiveEnd::Refused);
        }
        let line = line.iter().map(|&byte| char::from(byte)).collect::<String>();
        let digits = match line.split_once(';') {
            Some((digits, _)) => digits.trim_end_matches([' ', '\t']),
            None => &line,
        };
        if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(NaiveEnd::Refused);
        }
        let digits = digits.trim_start_matches('0');
        if digits.is_empty() {
            break;
        }
        let size = u64::from_str_radix(digits, 16).map_err(|_| NaiveEnd::Refused)?;
        let size = usize::try_from(size).map_err(|_| NaiveEnd::Incomplete)?;
        let data = bytes[at..].get(..size).ok_or(NaiveEnd::Incomplete)?;
        body.extend_from_slice(data);
        at += size;
        match &bytes[at..] {
            [b'\r', b'\n', ..] => at += 2,
            [] | [b'\r'] => return Err(NaiveEnd::Incomplete),
            _ => return Err(NaiveEnd::Refused),
        }
    }
    // Trailers have the syntax of header fields, so they are parsed as a head.
    let begin = b"HTTP/1.1 200 OK\r\n";
    let head = naive_head(&[begin.as_slice(), &bytes[at..]].concat())?;
    Ok((body, at + head.bytes - begin.len()))
}

/// Checks that requests do not depend on how the stream is cut, follow RFC 9112 if accepted, and can be written again.
pub(crate) fn request(bytes: &[u8]) {
    let Some((&control, stream)) = bytes.split_first() else { return };
    let limits = if control & 4 != 0 { Limits { head_bytes: 80, headers: 3 } } else { Limits::DEFAULT };
    let whole = asks(limits, &[stream]);
    for pieces in cuts(control, stream) {
        let cut = asks(limits, &pieces);
        // Depending on the cuts, an invalid long head is rejected before it is complete or only afterwards.
        let is_awaited = whole.end == Ok(()) && whole.head_bytes >= HEAD_AWAITED_BYTES && cut.end.is_err();
        assert_eq!(cut.complete, whole.complete, "cut {:?}", lengths(&pieces));
        assert!(cut.end == whole.end || is_awaited, "{:?} and {:?}, cut {:?}", cut.end, whole.end, lengths(&pieces));
    }
    for (head, body) in &whole.complete {
        check_request(head, body, &limits);
    }
}

/// The requests that a server read from a stream.
#[derive(Debug, PartialEq, Eq)]
struct Asks {
    complete: Vec<(Vec<u8>, Vec<u8>)>,
    /// Number of received bytes of an incomplete head.
    head_bytes: usize,
    end: Result<(), MessageError>,
}

fn asks(limits: Limits, pieces: &[&[u8]]) -> Asks {
    let (mut complete, mut buffer) = (Vec::new(), Vec::new());
    let mut reading = None::<(Vec<u8>, BodyReader, Vec<u8>)>;
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            if let Some((head, reader, body)) = &mut reading {
                match reader.read(&buffer, |data| body.extend_from_slice(data)) {
                    Ok(Some(used)) => {
                        assert_eq!(reader.read_bytes, body.len() as u64);
                        complete.push((std::mem::take(head), std::mem::take(body)));
                        buffer.drain(..used);
                        reading = None;
                    }
                    Ok(None) => {
                        buffer.clear();
                        break;
                    }
                    Err(error) => return Asks { complete, head_bytes: buffer.len(), end: Err(error) },
                }
            }
            match parse_request(&buffer, &limits) {
                Ok(None) => break,
                Ok(Some((request, used))) => {
                    let reader = BodyReader::new(request.body, &limits, 1 << 16);
                    reading = Some((buffer[..used].to_vec(), reader, Vec::new()));
                    buffer.drain(..used);
                }
                Err(error) => {
                    assert!([400, 413, 414, 431, 501, 505].contains(&error.status()), "{error:?}");
                    return Asks { complete, head_bytes: buffer.len(), end: Err(error) };
                }
            }
        }
    }
    Asks { complete, head_bytes: buffer.len(), end: Ok(()) }
}

fn check_request(head: &[u8], data: &[u8], limits: &Limits) {
    let (request, used) = parse_request(head, limits).unwrap().unwrap();
    assert_eq!(used, head.len());
    assert!(used <= limits.head_bytes && fields(head).len() <= limits.headers);
    assert!(!has_bare_lf(head) && head.ends_with(b"\r\n\r\n"));
    assert!(request.target.bytes().all(|byte| byte.is_ascii_graphic()));
    let values = |name: &str| {
        let named = fields(head).into_iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value).collect::<Vec<_>>()
    };
    let hosts = values("host").len();
    assert!(hosts == 1 || hosts == 0 && request.minor_version == 0);
    let (lengths, codings) = (values("content-length"), values("transfer-encoding"));
    match request.body {
        Body::None => assert!(lengths.is_empty() && codings.is_empty()),
        Body::Length(length) => {
            assert!(codings.is_empty() && !lengths.is_empty());
            let elements = lengths.iter().flat_map(|value| value.split(|&byte| byte == b','));
            for element in elements {
                assert_eq!(str::from_utf8(element).unwrap().trim().parse(), Ok(length));
            }
            assert_eq!(length, data.len() as u64);
        }
        Body::Chunked => {
            assert!(lengths.is_empty() && request.minor_version == 1);
            assert!(
                codings.concat().to_ascii_lowercase().ends_with(b"chunked")
                    || codings.len() > 1
                    || codings[0].ends_with(b",")
            );
        }
    }
    if request.minor_version == 0 || request.body == Body::Chunked {
        return;
    }
    let texts = fields(head).into_iter().map(|(name, value)| Some((name, str::from_utf8(value).ok()?)));
    let Some(headers) = texts.collect::<Option<Vec<_>>>() else { return };
    // Repeated equal `Content-Length` values are accepted but never written.
    if lengths.len() > 1 || lengths.iter().any(|value| value.contains(&b',')) {
        return;
    }
    let mut written = Vec::new();
    compose_request(&mut written, request.method, request.target, &headers, data, false).unwrap();
    let (again, used) =
        parse_request(&written, &Limits { head_bytes: 2 * limits.head_bytes, headers: limits.headers + 1 })
            .unwrap()
            .unwrap();
    assert_eq!((again.method, again.target, again.keep_alive), (request.method, request.target, request.keep_alive));
    assert_eq!(&written[used..], data);
    let again = fields(&written[..used]).into_iter().take(headers.len());
    assert!(again.map(|(name, value)| (name, str::from_utf8(value).unwrap())).eq(headers));
}

/// Names and trimmed values of a valid head.
fn fields(head: &[u8]) -> Vec<(&str, &[u8])> {
    let lines = head.split(|&byte| byte == b'\n').map(|line| line.trim_ascii_end());
    let fields = lines.skip_while(|line| line.is_empty()).skip(1).take_while(|line| !line.is_empty());
    let split = |line: &'_ [u8]| line.iter().position(|&byte| byte == b':').unwrap();
    fields.map(|line| (str::from_utf8(&line[..split(line)]).unwrap(), line[split(line) + 1..].trim_ascii())).collect()
}
