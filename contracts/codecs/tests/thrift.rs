//! Compares Thrift messages with Apache Thrift's Python library, and tests rejected input and split streams.

use std::collections::BTreeMap;

use codecs::thrift::{
    DecodeError, Detected, Framing, Header, Limits, Message, MessageKind, MessageReader, Outcome, Progress, Protocol,
    Schema, StructId, WireType, compose_application_exception, compose_message, detect,
};
use codecs::value::Value;

use crate::idl::{calculator, evernote, parse};

/// Messages from `oracle/thrift_messages.py`: name, protocol (`old` is binary without a version) and bytes.
fn oracle() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let line = |line: &'static str| {
        let mut words = line.split(' ');
        let (name, protocol, hex) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        (name, protocol, unhex(hex))
    };
    include_str!("oracle/thrift.txt").lines().map(line).collect()
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn protocol_of(name: &str) -> Protocol {
    if name == "compact" { Protocol::Compact } else { Protocol::Binary }
}

fn every() -> Schema {
    parse("every.thrift", include_str!("every.thrift"))
}

fn struct_of<'s>(schemas: &'s [Schema], message: &Message<'_>) -> (&'s Schema, StructId) {
    let methods = schemas.iter().flat_map(|schema| schema.services.iter().map(move |service| (schema, service)));
    let found = methods.filter_map(|(schema, service)| Some((schema, service.method(message.header.method())?)));
    let (schema, method) = found.into_iter().next().expect("the oracle calls methods of these schemas");
    let is_reply = message.header.kind == MessageKind::Reply;
    (schema, if is_reply { method.result } else { method.arguments })
}

#[test]
fn apache_thrift_messages_survive_a_round_trip() {
    let schemas = [calculator(), evernote(), every()];
    let mut values = BTreeMap::<&str, Value>::new();
    for (name, protocol_name, bytes) in oracle() {
        let protocol = protocol_of(protocol_name);
        let message = Message::decode(protocol, &bytes, &Limits::DEFAULT).unwrap();
        assert_eq!(message.header.is_strict, protocol_name != "old");
        let header = &message.header;
        let again = if header.kind == MessageKind::Exception {
            compose_application_exception(protocol, Framing::Unframed, header, "Internal error", 6)
        } else {
            let (schema, id) = struct_of(&schemas, &message);
            let value = message.as_struct(schema, id).to_value();
            let composed = compose_message(protocol, Framing::Unframed, header, schema, id, &value);
            let before = values.entry(name).or_insert_with(|| value.clone());
            assert_eq!(*before, value, "{name} {protocol_name} means the same in the other protocol");
            composed.unwrap_or_else(|error| panic!("{name} {protocol_name}: {error}"))
        };
        assert_eq!(again, bytes, "{name} {protocol_name}");
    }
    assert_eq!(values.len(), 15, "of 16 messages one is an exception of the application");
    let wanted = Value::record([("a", Value::Integer(-2147483648)), ("b", Value::Integer(2147483647))]);
    assert_eq!(values["add-negative"], wanted);
    let filter = values["findNotes"].get("filter").unwrap();
    assert_eq!(filter.get("ascending"), Some(&Value::Bool(true)));
    assert!(matches!(filter.get("tagGuids"), Some(Value::List(tags)) if tags.len() == 16));
    let all = values["every"].get("all").unwrap();
    assert_eq!(all.get("double_"), Some(&Value::Double(-0.1)));
    assert_eq!(all.get("bools"), Some(&Value::List(vec![Value::Bool(true), Value::Bool(false), Value::Bool(true)])));
    assert_eq!(
        all.get("counts"),
        Some(&Value::Map(vec![("a".into(), Value::Integer(1)), ("b".into(), Value::Integer(-1))]))
    );
    assert_eq!(
        all.get("flags"),
        Some(&Value::List(vec![Value::record([("on", Value::Bool(false))]), Value::Record(vec![])]))
    );
    assert_eq!(all.get("bytes"), Some(&Value::Bytes(b"\0b".to_vec())));
}

#[test]
fn views_read_fields_without_copying() {
    let schema = evernote();
    let find = schema.service("NoteStore").unwrap().method("findNotes").unwrap();
    for (name, protocol, bytes) in oracle() {
        let message = Message::decode(protocol_of(protocol), &bytes, &Limits::DEFAULT).unwrap();
        match name {
            "findNotes" => {
                let arguments = message.arguments(&schema, find);
                assert_eq!(arguments.get("maxNotes").unwrap().as_i64(), Some(10));
                let tags = arguments.get("filter").unwrap().get("tagGuids").unwrap();
                assert_eq!((tags.elements().count(), tags.elements().nth(15).unwrap().as_str()), (16, Some("tag15")));
                assert!(tags.elements().nth(16).is_none() && arguments.get("nothing").is_none());
                assert!(arguments.get("filter").unwrap().get("words").is_none(), "missing from the message");
                let token = arguments.get("authenticationToken").unwrap().as_bytes().unwrap();
                assert!(bytes.as_ptr_range().contains(&token.as_ptr()), "it points into the message");
                assert_eq!(message.body.get_id(3).unwrap().as_i64(), Some(0));
            }
            "findNotes-reply" => {
                let Outcome::Returned(Some(list)) = message.outcome(&schema, find) else { panic!("it returns") };
                let titles = list.get("notes").unwrap().elements().map(|note| note.get("title").unwrap().as_str());
                assert_eq!(titles.collect::<Vec<_>>(), [Some("test")]);
            }
            "getNoteStoreUrl-threw" => {
                let method = schema.service("UserStore").unwrap().method("getNoteStoreUrl").unwrap();
                let Outcome::Threw(name, thrown) = message.outcome(&schema, method) else { panic!("it throws") };
                let code = thrown.get("errorCode").unwrap();
                assert_eq!((name, code.as_i64()), ("userException", Some(8)));
            }
            "getNoteStoreUrl-failed" => {
                let method = schema.service("UserStore").unwrap().method("getNoteStoreUrl").unwrap();
                let Outcome::Failed { message, code } = message.outcome(&schema, method) else { panic!("it fails") };
                assert_eq!((message, code), (b"Internal error".as_slice(), 6));
            }
            _ => {}
        }
    }
}

#[test]
fn views_read_every_type() {
    let schema = every();
    let method = schema.service("Test").unwrap().method("every").unwrap();
    for (_, protocol, bytes) in oracle().iter().filter(|line| line.0 == "every") {
        let message = Message::decode(protocol_of(protocol), bytes, &Limits::DEFAULT).unwrap();
        let arguments = message.arguments(&schema, method);
        assert_eq!(arguments.get("unnumbered").unwrap().as_i64(), Some(5));
        let all = arguments.get("all").unwrap();
        let get = |name: &str| all.get(name).unwrap();
        assert_eq!((get("yes").as_bool(), get("no").as_bool()), (Some(true), Some(false)));
        assert_eq!((get("byte_").as_i64(), get("short_").as_i64()), (Some(-128), Some(-32768)));
        assert_eq!((get("text").as_str(), get("bytes").as_str()), (Some("zażółć"), None));
        assert_eq!(get("id").as_bytes().unwrap()[15], 0xff);
        assert_eq!(get("doubles").elements().nth(19).unwrap().as_f64(), Some(2.375));
        assert_eq!(get("bools").elements().nth(1).unwrap().as_bool(), Some(false));
        assert_eq!(get("shorts").elements().nth(2).unwrap().as_i64(), Some(300));
        assert_eq!(get("counts").pairs().find(|pair| pair.0.as_str() == Some("b")).unwrap().1.as_i64(), Some(-1));
        assert_eq!(get("empty").pairs().count(), 0);
        assert_eq!(get("by_bool").pairs().map(|pair| pair.0.as_bool().unwrap()).collect::<Vec<_>>(), [true, false]);
        assert_eq!(get("flags").elements().next().unwrap().get("on").unwrap().as_bool(), Some(false));
        assert!(
            get("text").as_i64().is_none() && get("text").elements().count() == 0 && get("text").get("x").is_none()
        );
        assert_eq!(all.known_fields().count(), 17);
        assert_eq!(get("int_").wire, WireType::I32);
    }
}

#[test]
fn split_streams_yield_the_same_messages() {
    for framing in [Framing::Framed, Framing::Unframed] {
        for wanted in ["binary", "old", "compact"] {
            let mut stream = Vec::new();
            let mut ends = Vec::new();
            for (_, _, bytes) in oracle().iter().filter(|line| line.1 == wanted) {
                if framing == Framing::Framed {
                    stream.extend((bytes.len() as u32).to_be_bytes());
                }
                stream.extend(bytes);
                ends.push(stream.len());
            }
            for step in [1, 2, 7, stream.len()] {
                let mut reader = MessageReader::new(protocol_of(wanted), framing, Limits::DEFAULT);
                let (mut begin, mut found, mut promised) = (0, Vec::new(), 0);
                let mut shown = 0;
                while shown < stream.len() {
                    shown = (shown + step).min(stream.len());
                    while let Progress::Message { used, begin: from } = reader.read(&stream[begin..shown]).unwrap() {
                        assert!(begin + used >= promised, "as many bytes were needed as it said");
                        let message = &stream[begin + from..begin + used];
                        Message::decode(protocol_of(wanted), message, &Limits::DEFAULT).unwrap();
                        begin += used;
                        found.push(begin);
                    }
                    if let Progress::Need { more } = reader.read(&stream[begin..shown]).unwrap() {
                        assert!(more > 0);
                        promised = shown + more;
                    }
                }
                assert_eq!(found, ends, "{wanted}, {framing:?}, in steps of {step}");
            }
        }
    }
}

#[test]
fn rejects_truncated_messages() {
    for (name, protocol, bytes) in oracle() {
        for end in 0..bytes.len() {
            let cut = Message::decode(protocol_of(protocol), &bytes[..end], &Limits::DEFAULT);
            let expect = format!("at byte {end}: the message ends too early");
            assert_eq!(cut.err().map(|error| error.to_string()), Some(expect), "{name} {protocol} up to {end}");
        }
        let longer = [bytes.as_slice(), b"x"].concat();
        let expect = format!("at byte {}: 1 trailing bytes after the message", bytes.len());
        let longer = Message::decode(protocol_of(protocol), &longer, &Limits::DEFAULT);
        assert_eq!(longer.err().map(|error| error.to_string()), Some(expect));
    }
}

#[test]
fn protocol_and_framing_are_detected() {
    for (name, wanted, bytes) in oracle() {
        for framing in [Framing::Framed, Framing::Unframed] {
            let mut stream =
                if framing == Framing::Framed { (bytes.len() as u32).to_be_bytes().to_vec() } else { vec![] };
            stream.extend(&bytes);
            let expect = Detected::Thrift(protocol_of(wanted), framing);
            assert_eq!(detect(&stream, &Limits::DEFAULT), expect, "{name} {wanted}");
            for end in 0..stream.len() {
                let found = detect(&stream[..end], &Limits::DEFAULT);
                assert!(found == expect || (found == Detected::Need && end < 6), "{name} {wanted} {end}: {found:?}");
            }
        }
    }
    for other in ["GET / HTTP/1.1", "[1,\"add\",1,0,{}]", "\0\0\0\0\0\0", "\u{16}\u{3}\u{1}\0\0", "PRI * HTTP/2.0"] {
        assert_eq!(detect(other.as_bytes(), &Limits::DEFAULT), Detected::Unknown, "{other:?}");
    }
    assert_eq!(detect(&[0x82, 0x22, 0], &Limits::DEFAULT), Detected::Unknown, "an unknown version");
}

const NARROW: Limits = Limits { message_bytes: 200, string_bytes: 8, elements: 3, values: 6, depth: 3, name_bytes: 4 };

#[track_caller]
fn refused(protocol: Protocol, hex: &str, expect: &str) {
    let bytes = unhex(&hex.replace(' ', ""));
    let found = Message::decode(protocol, &bytes, &NARROW);
    assert_eq!(found.map(|_| ()).map_err(|error| error.to_string()), Err(expect.to_owned()), "{hex}");
    // A stream reports the same error, as early as possible.
    let mut reader = MessageReader::new(protocol, Framing::Unframed, NARROW);
    if !expect.contains("too early") && !expect.contains("after the message") {
        assert_eq!(reader.read(&bytes).map_err(|error| error.to_string()), Err(expect.to_owned()), "{hex} as a stream");
    }
}

const OLD: &str = "00000001 66 01 00000000";

#[test]
fn rejects_invalid_binary_messages() {
    let check = |hex: &str, expect: &str| refused(Protocol::Binary, hex, expect);
    check("80020001", "at byte 0: unknown protocol version 2");
    check("80010005 00000001 66", "at byte 0: 5 is not a message type");
    check("80010000", "at byte 0: 0 is not a message type");
    check("00000005 6161616161", "at byte 0: 5 bytes, over the limit of 4");
    check("80010001 ffffffff", "at byte 4: a negative length");
    check("00000001 ff 01 00000000", "at byte 0: a method name that is not valid UTF-8");
    check(&format!("{OLD} 05"), "at byte 10: 0x05 is not a type number");
    check(&format!("{OLD} 020001 02"), "at byte 13: 0x02 is not a bool");
    check(&format!("{OLD} 0b0001 7fffffff"), "at byte 13: 2147483647 bytes, over the limit of 8");
    check(&format!("{OLD} 0b0001 80000000"), "at byte 13: a negative length");
    check(&format!("{OLD} 0f0001 08 7fffffff"), "at byte 13: 2147483647 values, over the limit of 3");
    check(&format!("{OLD} 0f0001 08 ffffffff"), "at byte 13: a negative length");
    check(&format!("{OLD} 0f0001 63 00000001"), "at byte 13: 0x63 is not a type number");
    check(&format!("{OLD} 0d0001 08 63 00000001"), "at byte 13: 0x63 is not a type number");
    check(&format!("{OLD} 0d0001 0808 00000004"), "at byte 13: 4 values, over the limit of 3");
    check(&format!("{OLD} 0c0001 0c0001 0c0001"), "at byte 16: values nested deeper than 3 levels");
    check(&format!("{OLD} {}", "030001 01".repeat(7)), "at byte 34: 7 values, over the limit of 6");
    check(&format!("{OLD} 00 00"), "at byte 11: 1 trailing bytes after the message");
    check(&format!("{OLD} 0b0001 00000002 61"), "at byte 18: the message ends too early");
}

#[test]
fn rejects_invalid_compact_messages() {
    let check = |hex: &str, expect: &str| refused(Protocol::Compact, hex, expect);
    check("80 01", "at byte 0: not the start of a message");
    check("82 22", "at byte 0: unknown protocol version 2");
    check("82 01", "at byte 0: 0 is not a message type");
    check("82 21 ffffffff7f", "at byte 2: a number too wide for its type");
    check("82 21 8080808080", "at byte 2: a number too wide for its type");
    check("82 21 00 05 6161616161", "at byte 3: 5 bytes, over the limit of 4");
    check("82 21 00 00 1e", "at byte 4: 0x0e is not a type number");
    check("82 21 00 00 14 ffff07", "at byte 5: a number too wide for its type");
    check("82 21 00 00 05 feff03 02 15", "at byte 9: a number too wide for its type");
    check("82 21 00 00 19 11 03", "at byte 6: 0x03 is not a bool");
    check("82 21 00 00 19 f5 ffffffff0f", "at byte 5: 4294967295 values, over the limit of 3");
    check("82 21 00 00 1b 04 55", "at byte 5: 4 values, over the limit of 3");
    check("82 21 00 00 1b 01 5e", "at byte 5: 0x0e is not a type number");
    check("82 21 00 00 18 ffffffff0f", "at byte 5: 4294967295 bytes, over the limit of 8");
    check("82 21 00 00 1c 1c 1c", "at byte 6: values nested deeper than 3 levels");
    check("82 21 00 00 11 11 11 11 11 11 11", "at byte 10: 7 values, over the limit of 6");
}

#[test]
fn rejects_oversized_messages_from_their_first_bytes() {
    let mut reader = MessageReader::new(Protocol::Binary, Framing::Framed, NARROW);
    let said = |result: Result<Progress, DecodeError>| result.map_err(|error| error.to_string());
    assert_eq!(said(reader.read(&[0, 0])), Ok(Progress::Need { more: 2 }));
    assert_eq!(said(reader.read(&[0, 0, 0, 9, 1])), Ok(Progress::Need { more: 8 }));
    assert_eq!(said(reader.read(&[0, 0, 0, 197])), Err("at byte 0: 201 bytes, over the limit of 200".to_owned()));
    assert_eq!(said(reader.read(&[0xff; 4])), Err("at byte 0: a negative length".to_owned()));
    let long = Limits { message_bytes: 17, string_bytes: 100, ..NARROW };
    let mut reader = MessageReader::new(Protocol::Binary, Framing::Unframed, long);
    let bytes = unhex(&format!("{OLD} 0b0001 00000032").replace(' ', ""));
    assert_eq!(said(reader.read(&bytes)), Err("at byte 0: 67 bytes, over the limit of 17".to_owned()));
    // An error beyond the limit is not reported, even if its bytes have arrived.
    let beyond = unhex(&format!("{OLD} 030001 01 030002 01 05").replace(' ', ""));
    let mut reader = MessageReader::new(Protocol::Binary, Framing::Unframed, long);
    assert_eq!(said(reader.read(&beyond)), Err("at byte 0: 18 bytes, over the limit of 17".to_owned()));
}

#[test]
fn skips_unknown_fields_and_takes_the_last_repeat() {
    let schema = calculator();
    let add = schema.service("Adder").unwrap().method("add").unwrap();
    // The fields are `a` as a string, an unknown field 9, `b`, `a` with its type, and `b` again.
    let body = "0b0001 00000001 78  0c0009 0f0001 08 00000001 00000007 00  080002 00000005  080001 00000003  080002 00000006 00";
    let bytes = unhex(&format!("{OLD}{body}").replace(' ', ""));
    let message = Message::decode(Protocol::Binary, &bytes, &Limits::DEFAULT).unwrap();
    let arguments = message.arguments(&schema, add);
    assert_eq!(arguments.get("a").unwrap().as_i64(), Some(3), "the one that has the schema's type");
    assert_eq!(arguments.get("b").unwrap().as_i64(), Some(6), "the last one");
    assert_eq!(arguments.to_value(), Value::record([("a", Value::Integer(3)), ("b", Value::Integer(6))]));
    assert_eq!(arguments.raw_fields().map(|field| field.0).collect::<Vec<_>>(), [1, 9, 2, 1, 2]);
    let unknown = message.body;
    assert_eq!(unknown.get_id(9).unwrap().get_id(1).unwrap().elements().next().unwrap().as_i64(), Some(7));
}

#[test]
fn replies_without_result_or_known_exception_are_missing() {
    let schema = calculator();
    let add = schema.service("Adder").unwrap().method("add").unwrap();
    for body in ["00", "0b0000 00000001 78 00", "080009 00000001 00"] {
        let bytes = unhex(&format!("00000001 66 02 00000000 {body}").replace(' ', ""));
        let message = Message::decode(Protocol::Binary, &bytes, &Limits::DEFAULT).unwrap();
        assert!(matches!(message.outcome(&schema, add), Outcome::Missing), "{body}");
    }
}

#[test]
fn rejects_values_that_do_not_fit_the_schema() {
    let schema = evernote();
    let id = schema.service("NoteStore").unwrap().method("findNotes").unwrap().arguments;
    let header = Header { name: "findNotes", kind: MessageKind::Call, sequence: 0, is_strict: true };
    let check = |value: Value, expect: &str| {
        let composed = compose_message(Protocol::Compact, Framing::Framed, &header, &schema, id, &value);
        let expect = format!("NoteStore.findNotes.arguments{expect}");
        assert_eq!(composed.map_err(|error| error.to_string()), Err(expect));
    };
    check(Value::Null, ": expected `NoteStore.findNotes.arguments`, found null");
    check(Value::record([("ofset", Value::Integer(1))]), ": `NoteStore.findNotes.arguments` has no field `ofset`");
    check(Value::record([("offset", Value::Integer(1 << 31))]), ".offset: 2147483648 is not a valid `i32`");
    check(Value::record([("offset", "x".into())]), ".offset: expected `i32`, found text");
    let tags = Value::record([("tagGuids", Value::List(vec!["a".into(), Value::Null]))]);
    check(Value::record([("filter", tags)]), ".filter.tagGuids.[1]: expected `string`, found null");

    let result = schema.service("NoteStore").unwrap().method("findNotes").unwrap().result;
    let value = Value::record([("success", Value::record([("startIndex", Value::Integer(0))]))]);
    let composed = compose_message(Protocol::Binary, Framing::Unframed, &header, &schema, result, &value);
    assert_eq!(
        composed.map_err(|error| error.to_string()),
        Err("NoteStore.findNotes.result.success: the required field `totalNotes` is missing".to_owned())
    );
}

#[test]
fn composes_enum_names_and_defaults() {
    let schema = parse(
        "x.thrift",
        "enum E { A = 7 } union U { 1: E e; 2: i32 i } struct S { 1: E e = E.A, 2: optional i32 o = 4, 3: U u } service T { void f(1: S s) }",
    );
    let arguments = schema.service("T").unwrap().method("f").unwrap().arguments;
    let header = Header { name: "T:f", kind: MessageKind::Call, sequence: -2, is_strict: false };
    for protocol in [Protocol::Binary, Protocol::Compact] {
        let union = Value::record([("e", "A".into()), ("i", Value::Null)]);
        let value = Value::record([("s", Value::record([("u", union)]))]);
        let out = compose_message(protocol, Framing::Unframed, &header, &schema, arguments, &value).unwrap();
        let message = Message::decode(protocol, &out, &Limits::DEFAULT).unwrap();
        assert_eq!((message.header.name, message.header.method()), ("T:f", "f"));
        assert_eq!(message.header.sequence, -2);
        let read = message.as_struct(&schema, arguments).to_value();
        let union = Value::record([("e", Value::Integer(7))]);
        assert_eq!(read, Value::record([("s", Value::record([("e", Value::Integer(7)), ("u", union)]))]));
        let both = Value::record([(
            "s",
            Value::record([("u", Value::record([("e", "A".into()), ("i", Value::Integer(1))]))]),
        )]);
        let refused = compose_message(protocol, Framing::Unframed, &header, &schema, arguments, &both);
        assert_eq!(refused.unwrap_err().to_string(), "T.f.arguments.s.u: a union takes one field, found 2");
    }
}
