//! Property tests: messages round-trip for any split; a bad request does not affect the next.

use proptest::prelude::*;
use wire::memcached::{self, Expected};
use wire::resp;

use crate::bodies::{memcached_answers, memcached_requests, resp_replies, resp_requests};

fn pieces<'a>(mut stream: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for &size in sizes.iter().cycle() {
        if stream.is_empty() {
            break;
        }
        let (piece, rest) = stream.split_at(size.min(stream.len()));
        pieces.push(piece);
        stream = rest;
    }
    pieces
}

fn text(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec((33..=255_u8).prop_filter("no control", |byte| *byte != 0x7f), 1..250)
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    let awkward =
        prop::sample::select(vec![b"\r\n".to_vec(), b"END\r\n".to_vec(), b"get a\r\n".to_vec(), b"$-1\r\n".to_vec()]);
    prop_oneof![prop::collection::vec(any::<u8>(), 0..300), awkward]
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1..40_usize, 1..5)
}

proptest! {
    #[test]
    fn memcached_requests_parse_back(key in key(), value in data(), client_flags: u32, exptime: i32, sizes in sizes()) {
        let mut out = Vec::new();
        memcached::compose_get(&mut out, &key).unwrap();
        memcached::compose_set(&mut out, &key, client_flags, exptime, &value).unwrap();
        memcached::compose_delete(&mut out, &key).unwrap();
        let (key, value) = (text(&key), text(&value));
        let set = format!("set {key} {client_flags} {exptime} {value}");
        let meant = [format!("get {key}"), set, format!("delete {key}")];
        prop_assert_eq!(memcached_requests(memcached::Limits::DEFAULT, &pieces(&out, &sizes)), meant);
    }

    #[test]
    fn memcached_values_parse_back(key in key(), client_flags: u32, value in data(), sizes in sizes()) {
        let mut out = Vec::new();
        memcached::compose_value(&mut out, &key, client_flags, &value, None);
        out.extend_from_slice(b"END\r\nEND\r\n");
        let expected = [Expected::Get(&key)];
        let found = memcached_answers(memcached::Limits::DEFAULT, &expected, &pieces(&out, &sizes));
        let value_text = if value.is_empty() { String::new() } else { format!(" {}", text(&value)) };
        let hit = format!("Hit value {client_flags} {}{value_text}", value.len());
        prop_assert_eq!(found, [hit, "Miss".to_owned()]);
    }

    #[test]
    fn a_bad_storage_command_leaves_the_stream_in_step(
        name in prop::sample::select(vec!["set", "add", "replace", "append", "prepend", "cas"]),
        key in "[a-z]{1,300}", flags in "(0|-1|x|99999999999)", exptime in "(0|-1|x|99999999999)", value in data(),
        more in prop::option::of("(1|x|noreply|1 noreply|1 2 3)"), sizes in sizes(),
    ) {
        let more = more.map_or(String::new(), |more| format!(" {more}"));
        let mut out = format!("{name} {key} {flags} {exptime} {}{more}\r\n", value.len()).into_bytes();
        out.extend_from_slice(&value);
        out.extend_from_slice(b"\r\nget next\r\n");
        let found = memcached_requests(memcached::Limits::DEFAULT, &pieces(&out, &sizes));
        prop_assert_eq!(found.len(), 2, "{:?}", found);
        prop_assert_eq!(&found[1], "get \"next\"");
    }

    #[test]
    fn resp_requests_parse_back(requests in prop::collection::vec(prop::collection::vec(data(), 1..6), 1..6), sizes in sizes()) {
        let mut out = Vec::new();
        for request in &requests {
            resp::compose_request(&mut out, &request.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
        let found = resp_requests(resp::Limits::DEFAULT, &pieces(&out, &sizes));
        prop_assert_eq!(found.len(), requests.len());
        for (found, request) in found.iter().zip(&requests) {
            let arguments = request.iter().map(|argument| text(argument)).collect::<Vec<_>>().join(" ");
            prop_assert!(found.ends_with(&arguments), "{} and {}", found, arguments);
        }
    }

    #[test]
    fn a_large_request_leaves_the_stream_in_step(arguments in prop::collection::vec(data(), 1..6), sizes in sizes()) {
        let limits = resp::Limits { bulk_bytes: 30, request_bytes: 60, ..resp::Limits::DEFAULT };
        let mut out = Vec::new();
        resp::compose_request(&mut out, &arguments.iter().map(Vec::as_slice).collect::<Vec<_>>());
        resp::compose_request(&mut out, &[b"PING"]);
        let found = resp_requests(limits, &pieces(&out, &sizes));
        let total = arguments.iter().map(Vec::len).sum::<usize>();
        let is_large = total > 60 || arguments.iter().any(|argument| argument.len() > 30);
        prop_assert_eq!(found.len(), 2, "{:?}", found);
        prop_assert_eq!(found[0].starts_with("refused "), is_large, "{:?}", found);
        prop_assert_eq!(&found[1], "Ping \"PING\"");
    }

    #[test]
    fn resp_replies_parse_back(values in prop::collection::vec(prop::option::of(data()), 0..6), sizes in sizes()) {
        let (mut out, mut meant) = (Vec::new(), Vec::new());
        for value in &values {
            match value {
                Some(value) => {
                    resp::compose_bulk(&mut out, value);
                    let value_text = if value.is_empty() { String::new() } else { format!(" {}", text(value)) };
                    meant.push(format!("Bulk({}){value_text}", value.len()));
                }
                None => {
                    resp::compose_null(&mut out, resp::Version::Two);
                    meant.push("Null".to_owned());
                }
            }
        }
        prop_assert_eq!(resp_replies(resp::Limits::DEFAULT, &pieces(&out, &sizes)), meant);
    }
}

#[test]
fn rejects_keys_that_would_end_early() {
    let mut out = Vec::new();
    for key in [b"".as_slice(), b"a b", b"a\nb", b"a\x7f", &[b'a'; 251]] {
        assert!(memcached::compose_get(&mut out, key).is_err());
        assert!(memcached::compose_set(&mut out, key, 0, 0, b"").is_err());
    }
    assert_eq!(out, b"");
}
