//! Describes in words how the readers parse a stream, for any split.

use wire::http1::{Body, BodyReader, Limits, Memo, MessageError, RequestMethod, ResponseReader, parse_request};

/// A client's view of a stream that ends after `pieces`, such as `200 keep "body"`. Reads each byte once.
pub(crate) fn responses(memo: &mut Memo, limits: Limits, asked: RequestMethod, pieces: &[&[u8]]) -> String {
    let mut reader = ResponseReader::new(limits);
    let mut words = Vec::new();
    let mut body = Vec::new();
    let describe = |response: wire::http1::Response, body: &mut Vec<u8>| {
        assert_eq!(response.body_bytes, body.len() as u64);
        let keep = if response.keep_alive { "keep" } else { "close" };
        let words = format!("{} {keep} {}", response.status, quoted(body));
        body.clear();
        words
    };
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            match reader.read(memo, asked, rest, |data| {
                assert!(!data.is_empty() && rest.as_ptr_range().contains(&data.as_ptr()));
                body.extend_from_slice(data);
            }) {
                Ok(None) => rest = &[],
                Ok(Some((used, response))) => {
                    assert!(used <= rest.len());
                    assert!(reader.is_between());
                    words.push(describe(response, &mut body));
                    rest = &rest[used..];
                }
                Err(error) => {
                    assert_eq!(reader.read(memo, asked, rest, |_| panic!("no body after an error")), Err(error));
                    assert_eq!(reader.end(), Err(error));
                    words.push(format!("error {}{}", variant(error), after(&body)));
                    return words.join("; ");
                }
            }
        }
    }
    match reader.end() {
        Ok(None) => {}
        Ok(Some(response)) => words.push(describe(response, &mut body)),
        Err(error) => words.push(format!("error {}{}", variant(error), after(&body))),
    }
    words.join("; ")
}

/// A server's view of a stream, such as `GET / 1.1 keep`, `error 400 bare-lf`, or `more` if it is incomplete.
pub(crate) fn requests(limits: Limits, pieces: &[&[u8]]) -> String {
    let mut words = Vec::<String>::new();
    let mut buffer = Vec::new();
    let mut reading = None::<BodyReader>;
    let mut body = Vec::new();
    let fail = |words: &mut Vec<String>, error: MessageError| {
        words.push(format!("error {} {}", error.status(), variant(error)));
        words.join("; ")
    };
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            if let Some(reader) = &mut reading {
                match reader.read(&buffer, |data| body.extend_from_slice(data)) {
                    Ok(Some(used)) => {
                        assert_eq!(reader.read_bytes, body.len() as u64);
                        buffer.drain(..used);
                        words.last_mut().unwrap().push_str(&format!(" {}", quoted(&body)));
                        body.clear();
                        reading = None;
                    }
                    Ok(None) => {
                        buffer.clear();
                        break;
                    }
                    Err(error) => {
                        assert_eq!(reader.read(&buffer, |_| panic!("no body after an error")), Err(error));
                        return fail(&mut words, error);
                    }
                }
            }
            if buffer.is_empty() {
                break;
            }
            match parse_request(&buffer, &limits) {
                Ok(None) => break,
                Ok(Some((request, used))) => {
                    let keep = if request.keep_alive { "keep" } else { "close" };
                    let expect = if request.expect_continue { " expect" } else { "" };
                    words.push(format!(
                        "{} {} 1.{} {keep}{expect}",
                        request.method, request.target, request.minor_version
                    ));
                    if request.body != Body::None {
                        reading = Some(BodyReader::new(request.body, &limits, 1 << 20));
                    }
                    buffer.drain(..used);
                }
                Err(error) => return fail(&mut words, error),
            }
        }
    }
    if reading.is_some() || !buffer.is_empty() {
        words.push("more".to_owned());
    }
    words.join("; ")
}

fn after(body: &[u8]) -> String {
    if body.is_empty() { String::new() } else { format!(" after {}", quoted(body)) }
}

fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

/// Returns the stream whole, byte by byte, and split in two at every byte.
pub(crate) fn cuts(bytes: &[u8]) -> Vec<Vec<&[u8]>> {
    let mut cuts = vec![vec![bytes], bytes.chunks(1).collect()];
    cuts.extend((1..bytes.len()).map(|at| vec![&bytes[..at], &bytes[at..]]));
    cuts
}

/// The variant of an error or of its field error, such as `bad-host` for `BadHost`.
pub(crate) fn variant(error: impl std::fmt::Debug) -> String {
    let text = format!("{error:?}");
    let text = match text.split_once("error: ") {
        Some((line, error)) if line.starts_with("Field {") => error,
        _ => &text,
    };
    let mut name = String::new();
    for letter in text.chars().take_while(char::is_ascii_alphanumeric) {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}
