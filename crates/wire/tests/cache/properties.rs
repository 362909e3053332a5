//! Properties: what was composed is what is parsed, however it is cut; and what was bad does not spoil what follows.

use proptest::prelude::*;
use wire::memcached::{self, Asked, Verb};
use wire::{cache_http, resp};

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

fn limits(whole_bytes: usize) -> memcached::Limits {
    memcached::Limits { whole_bytes, ..memcached::Limits::DEFAULT }
}

proptest! {
    #[test]
    fn requests_to_memcached(
        keys in prop::collection::vec(key(), 1..5), value in data(), client_flags: u32, exptime: i32, cas: u64, delta: u64,
        noreply: bool, whole_bytes in 0..300_usize, sizes in sizes(),
    ) {
        let (mut out, mut meant) = (Vec::new(), Vec::new());
        let borrowed = keys.iter().map(Vec::as_slice).collect::<Vec<_>>();
        let silent = if noreply { " noreply" } else { "" };
        memcached::compose_get(&mut out, &borrowed, false).unwrap();
        meant.push(format!("get{}", keys.iter().map(|key| format!(" {}", text(key))).collect::<String>()));
        for verb in [Verb::Set, Verb::Add, Verb::Replace, Verb::Append, Verb::Prepend, Verb::Cas] {
            let unique = (verb == Verb::Cas).then_some(cas);
            memcached::compose_store(&mut out, verb, &keys[0], client_flags, exptime, unique, &value, noreply).unwrap();
            let unique = unique.map_or(String::new(), |cas| format!(" cas {cas}"));
            meant.push(format!(
                "{} {} {client_flags} {:?}{unique}{silent} {}",
                format!("{verb:?}").to_lowercase(), text(&keys[0]), memcached::Expiry::of(exptime), text(&value)
            ));
        }
        memcached::compose_delete(&mut out, &keys[0], noreply).unwrap();
        meant.push(format!("delete {}{silent}", text(&keys[0])));
        memcached::compose_count(&mut out, &keys[0], delta, false, noreply).unwrap();
        meant.push(format!("incr {} {delta}{silent}", text(&keys[0])));
        memcached::compose_touch(&mut out, &keys[0], exptime, noreply).unwrap();
        meant.push(format!("touch {} {:?}{silent}", text(&keys[0]), memcached::Expiry::of(exptime)));
        memcached::compose_meta(&mut out, b'g', &keys[0], &[(b'v', b""), (b'O', b"1")]).unwrap();
        meant.push(format!("mg {} v O1", text(&keys[0])));
        memcached::compose_meta_set(&mut out, &keys[0], &value, &[(b'T', b"5")]).unwrap();
        meant.push(format!("set {} 0 AfterS(5) meta T5 {}", text(&keys[0]), text(&value)));
        memcached::compose_line(&mut out, b"mn");
        meant.push("mn".to_owned());
        prop_assert_eq!(memcached_requests(limits(whole_bytes), &pieces(&out, &sizes)), meant);
    }

    #[test]
    fn values_of_memcached(
        items in prop::collection::vec((key(), prop::option::of((any::<u32>(), data(), prop::option::of(any::<u64>())))), 1..6),
        sizes in sizes(),
    ) {
        let mut out = Vec::new();
        let (mut hits, mut bytes) = (0, 0);
        for (key, item) in &items {
            if let Some((client_flags, value, cas)) = item {
                memcached::compose_value(&mut out, key, *client_flags, value.len(), *cas);
                out.extend_from_slice(value);
                memcached::compose_value_end(&mut out);
                hits += 1;
                bytes += value.len();
            }
        }
        memcached::compose_line(&mut out, b"END");
        let keys = items.iter().map(|(key, _)| key.as_slice()).collect::<Vec<_>>();
        // The same key twice, of which one is there, would be answered for the first.
        prop_assume!(keys.iter().enumerate().all(|(index, key)| !keys[..index].contains(key)));
        let asked = [Asked::Get { keys: &keys }];
        let found = memcached_answers(memcached::Limits::DEFAULT, &asked, &pieces(&out, &sizes));
        prop_assert_eq!(found.len(), 1);
        let counts = format!(" {hits}/{} {bytes}", items.len() - hits);
        prop_assert!(found[0].starts_with("End ") && found[0].ends_with(&counts), "{}", found[0]);
    }

    /// Whatever is wrong with a storage command whose length can be read: what follows its block is understood.
    #[test]
    fn a_bad_storage_command_leaves_the_stream_in_step(
        name in prop::sample::select(vec!["set", "add", "replace", "append", "prepend", "cas"]),
        key in "[a-z]{1,300}", flags in "(0|-1|x|99999999999)", exptime in "(0|-1|x|99999999999)", value in data(),
        more in prop::option::of("(1|x|noreply|1 noreply|1 2 3)"), sizes in sizes(), whole_bytes in 0..300_usize,
    ) {
        let more = more.map_or(String::new(), |more| format!(" {more}"));
        let mut out = format!("{name} {key} {flags} {exptime} {}{more}\r\n", value.len()).into_bytes();
        out.extend_from_slice(&value);
        out.extend_from_slice(b"\r\nget next\r\n");
        let found = memcached_requests(limits(whole_bytes), &pieces(&out, &sizes));
        prop_assert_eq!(found.len(), 2, "{:?}", found);
        prop_assert_eq!(&found[1], "get \"next\"");
    }

    #[test]
    fn requests_in_resp(requests in prop::collection::vec(prop::collection::vec(data(), 1..6), 1..6), sizes in sizes()) {
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

    /// A request over the limits is refused once, and what follows it is understood.
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
    fn replies_in_resp(values in prop::collection::vec(prop::option::of(data()), 0..6), sizes in sizes()) {
        for version in [resp::Version::Two, resp::Version::Three] {
            let mut out = Vec::new();
            resp::compose_array(&mut out, values.len());
            let mut bytes = 0;
            for value in &values {
                match value {
                    Some(value) => resp::compose_bulk(&mut out, value),
                    None => resp::compose_null(&mut out, version),
                }
                bytes += value.as_ref().map_or(0, Vec::len);
            }
            let nulls = values.iter().filter(|value| value.is_none()).count();
            let found = resp_replies(resp::Limits::DEFAULT, &pieces(&out, &sizes));
            prop_assert_eq!(found.len(), 1);
            let counts = format!(" n{nulls} b{bytes}");
            prop_assert!(found[0].ends_with(&counts), "{}", found[0]);
        }
    }

    #[test]
    fn targets_of_the_cache(key in prop::collection::vec(any::<u8>(), 1..250), value in data()) {
        let mut target = String::new();
        cache_http::compose_put(&mut target, &key, &value);
        let Ok(cache_http::Operation::Put { key: found_key, value: found_value }) =
            cache_http::parse_target("PUT", &target, &cache_http::Limits::DEFAULT)
        else {
            panic!("{target}")
        };
        let (mut decoded_key, mut decoded_value) = (Vec::new(), Vec::new());
        found_key.decode_into(&mut decoded_key);
        found_value.decode_into(&mut decoded_value);
        prop_assert_eq!((decoded_key, decoded_value), (key, value));
    }

    #[test]
    fn keys_in_base64(key in prop::collection::vec(any::<u8>(), 1..187)) {
        let mut text = Vec::new();
        memcached::encode_key(&mut text, &key);
        let mut room = [0; 192];
        prop_assert_eq!(memcached::decode_key(&text, &mut room), Some(key.as_slice()));
    }
}

#[test]
fn what_would_be_read_as_something_else_is_not_written() {
    let mut out = Vec::new();
    for key in [b"".as_slice(), b"a b", b"a\nb", b"a\x7f", &[b'a'; 251]] {
        assert!(memcached::compose_get(&mut out, &[b"good", key], false).is_err());
        assert!(memcached::compose_store(&mut out, Verb::Set, key, 0, 0, None, b"", false).is_err());
        assert!(memcached::compose_meta(&mut out, b'g', key, &[]).is_err());
    }
    assert!(memcached::compose_get(&mut out, &[], false).is_err());
    assert!(memcached::compose_store(&mut out, Verb::Set, b"k", 0, 0, Some(1), b"", false).is_err());
    assert!(memcached::compose_meta(&mut out, b'g', b"k", &[(b'O', b"1 2")]).is_err());
    assert_eq!(out, b"");
}
