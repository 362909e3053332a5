//! Assertions for any HTTP/2 stream and any field blocks.

use ringline_h2::hpack as oracle;
use wire::http2::hpack::{self, Decoder, HpackError, Indexing};
use wire::http2::{
    ConnectionError, Event, Limits, PREFACE, Reader, RequestHead, ResponseDecoder, ResponseHead, Role, Settings,
    read_trailers,
};

/// Checks that a stream's events do not depend on how it is cut, except for pieces of bodies. The first byte of an
/// input chooses the role and the cuts.
pub(crate) fn frames(bytes: &[u8]) {
    let Some((&control, stream)) = bytes.split_first() else { return };
    let role = if control & 1 == 0 { Role::Client } else { Role::Server };
    let stream = match role {
        Role::Client => stream.to_vec(),
        Role::Server => [PREFACE, stream].concat(),
    };
    let whole = events(role, &[&stream]);
    let small = stream.len() / 512 + 1;
    let at = (usize::from(control) * 37) % (stream.len() + 1);
    let size = usize::from(control >> 1) + 2;
    for pieces in [stream.chunks(small).collect(), vec![&stream[..at], &stream[at..]], stream.chunks(size).collect()] {
        assert_eq!(events(role, &pieces), whole);
    }
}

#[derive(Debug, PartialEq)]
enum Seen {
    Body { stream: u32, data: Vec<u8>, flow_bytes: u64, ends: bool },
    Block { stream: u32, opens: bool, ends: bool, fields: String },
    Settings(Settings),
    Other(String),
    Error(ConnectionError),
}

fn events(role: Role, pieces: &[&[u8]]) -> Vec<Seen> {
    let mut reader = Reader::new(role, Limits::DEFAULT);
    if role == Role::Client {
        reader.highest_stream = 9;
    }
    let (mut decoder, mut responses, mut head) =
        (Decoder::default(), ResponseDecoder::default(), RequestHead::default());
    let mut seen = Vec::new();
    for mut rest in pieces.iter().copied() {
        while !rest.is_empty() {
            let (used, event) = match reader.read(rest) {
                Ok(progress) => progress,
                Err(error) => {
                    assert_eq!(reader.read(b"\0"), Err(error), "errors stay");
                    seen.push(Seen::Error(error));
                    return seen;
                }
            };
            assert!(used > 0 && (event.is_some() || used == rest.len()), "{used} bytes, {event:?}");
            rest = &rest[used..];
            match event {
                None => {}
                Some(Event::Data { stream, data, flow_bytes, ends }) => {
                    if let Some(Seen::Body { stream: last, data: before, flow_bytes: sum, ends: ended }) =
                        seen.last_mut()
                        && *last == stream
                        && !*ended
                    {
                        before.extend_from_slice(data);
                        *sum += u64::from(flow_bytes);
                        *ended = ends;
                    } else {
                        seen.push(Seen::Body { stream, data: data.to_vec(), flow_bytes: flow_bytes.into(), ends });
                    }
                }
                Some(Event::Headers { stream, opens, block, ends }) => {
                    let mut fields = String::new();
                    let add = |name: &[u8], value: &[u8]| {
                        fields.push_str(&format!("{}={};", name.escape_ascii(), value.escape_ascii()));
                    };
                    let result = match role {
                        Role::Server => head.read(&mut decoder, block, &Limits::DEFAULT, add).map(|result| {
                            result.map(|()| format!("{} {} {:?}", head.method(), head.path(), head.content_length))
                        }),
                        Role::Client => {
                            let expect = ResponseHead::read(&mut decoder, block, &Limits::DEFAULT, add);
                            let known = responses.read(block, &Limits::DEFAULT);
                            assert_eq!(known, expect, "with and without known blocks");
                            known.map(|result| result.map(|head| format!("{head:?}")))
                        }
                    };
                    match result {
                        Ok(result) => {
                            let fields = format!("{result:?} {fields}");
                            seen.push(Seen::Block { stream, opens, ends, fields });
                        }
                        Err(error) => {
                            seen.push(Seen::Error(error));
                            return seen;
                        }
                    }
                }
                Some(Event::Settings(settings)) => seen.push(Seen::Settings(settings)),
                Some(other) => seen.push(Seen::Other(format!("{other:?}"))),
            }
        }
    }
    seen
}

/// Checks that field blocks decode as in another implementation and that decoded fields can be encoded again. An input
/// is a series of blocks, each after two bytes with its length.
pub(crate) fn blocks(bytes: &[u8]) {
    let mut rest = bytes;
    let (mut decoder, mut other) = (Decoder::default(), oracle::Decoder::new(4096));
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length)).min(after.len());
        let (block, after) = after.split_at(length);
        rest = after;
        let mut fields = Vec::new();
        let own = decoder.decode(block, &Limits::DEFAULT, |name, value| fields.push((name.to_vec(), value.to_vec())));
        let theirs = other.decode(block);
        match (own, theirs) {
            (Ok(()), Ok(theirs)) => {
                let theirs = theirs.into_iter().map(|field| (field.name, field.value)).collect::<Vec<_>>();
                assert_eq!(fields, theirs);
            }
            (Err(_), Err(_)) => return,
            // The other implementation has different limits and accepts padding with zeros (RFC 7541, section 5.2).
            (Err(HpackError::FieldsTooLarge(_) | HpackError::Integer | HpackError::Huffman), Ok(_)) => return,
            (own, theirs) => panic!("ours {own:?}, theirs {theirs:?} of {}", block.escape_ascii()),
        }
        round_trip(&fields);
        let mut ignored = Decoder::default();
        let _ = read_trailers(&mut ignored, block, &Limits::DEFAULT, |_, _| {});
    }
}

fn round_trip(fields: &[(Vec<u8>, Vec<u8>)]) {
    for indexing in [Indexing::Insert, Indexing::Skip] {
        let mut block = Vec::new();
        fields.iter().for_each(|(name, value)| hpack::push_field(&mut block, name, value, indexing));
        let mut decoded = Vec::new();
        let add = |name: &[u8], value: &[u8]| decoded.push((name.to_vec(), value.to_vec()));
        Decoder::default().decode(&block, &Limits::DEFAULT, add).expect("own blocks are valid");
        assert_eq!(decoded, fields);
        let theirs = oracle::Decoder::new(4096).decode(&block).expect("own blocks are valid elsewhere");
        assert!(
            theirs.iter().map(|field| (&field.name, &field.value)).eq(fields.iter().map(|(name, value)| (name, value)))
        );
    }
}
