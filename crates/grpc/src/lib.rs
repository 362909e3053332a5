//! Converts messages of gRPC calls to and from JSON, given their schema. Source: ProtoJSON (protobuf.dev, "ProtoJSON
//! Format") and gRPC over HTTP2 (grpc/grpc, doc/PROTOCOL-HTTP2.md).

use std::path::Path;

use prost_reflect::prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor};
use serde_json::Value;

/// Length in bytes of the prefix of a message: a compression flag and the length of the message.
pub const PREFIX_BYTES: usize = 5;
/// Maximum size of a schema, in bytes.
const SCHEMA_MAX_BYTES: u64 = 16 << 20;
/// Maximum number of names that an error lists.
const NAMES_MAX: usize = 8;

/// Services and messages of a `.proto` file or a descriptor set.
#[derive(Clone, Debug)]
pub struct Schema(DescriptorPool);

/// A method of a service, with the types of its messages.
#[derive(Clone, Debug)]
pub struct Method(MethodDescriptor);

impl Schema {
    /// Reads a `.proto` file, whose imports are relative to its directory, or a descriptor set, as written by
    /// `protoc --descriptor_set_out=FILE --include_imports`. Fails if the file is unreadable or invalid.
    pub fn read(path: &Path) -> Result<Self, String> {
        let invalid = |error: &dyn std::fmt::Display| format!("schema `{}`: {error}", path.display());
        let size = std::fs::metadata(path).map_err(|error| invalid(&error))?.len();
        if size > SCHEMA_MAX_BYTES {
            return Err(invalid(&format!("{size} bytes, at most {SCHEMA_MAX_BYTES} are allowed")));
        }
        if path.extension().is_none_or(|extension| extension != "proto") {
            let set = std::fs::read(path).map_err(|error| invalid(&error))?;
            return Self::decode(&set).map_err(|error| invalid(&error));
        }
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        let set = protox::compile([path], [directory.unwrap_or(Path::new("."))]).map_err(|error| invalid(&error))?;
        DescriptorPool::from_file_descriptor_set(set).map(Self).map_err(|error| invalid(&error))
    }

    /// Decodes a descriptor set. Fails if `set` is not a descriptor set or lacks an imported file.
    pub fn decode(set: &[u8]) -> Result<Self, String> {
        DescriptorPool::decode(set).map(Self).map_err(|error| format!("not a valid descriptor set: {error}"))
    }

    /// Encodes all files as a descriptor set, for [`Schema::decode`].
    pub fn encode(&self) -> Vec<u8> {
        self.0.encode_to_vec()
    }

    /// Finds the method with this path, such as `/shop.Shop/Order`. Fails with the names of known services or methods.
    pub fn method(&self, path: &str) -> Result<Method, String> {
        let (service, method) = path.trim_start_matches('/').split_once('/').unwrap_or((path, ""));
        let Some(known) = self.0.get_service_by_name(service) else {
            let names = listed(self.0.services().map(|service| service.full_name().to_owned()));
            return Err(format!("the schema has no service `{service}`, only {names}"));
        };
        let found = known.methods().find(|known| known.name() == method);
        found.map(Method).ok_or_else(|| {
            let names = listed(known.methods().map(|method| method.name().to_owned()));
            format!("service `{service}` has no method `{method}`, only {names}")
        })
    }
}

fn listed(names: impl Iterator<Item = String>) -> String {
    let mut names = names.map(|name| format!("`{name}`")).collect::<Vec<_>>();
    if names.is_empty() {
        return "messages".to_owned();
    }
    let more = names.len().saturating_sub(NAMES_MAX);
    names.truncate(NAMES_MAX);
    names.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

impl Method {
    /// Encodes the messages of a request. `json` is one message, or a list of messages if the client streams; an empty
    /// `json` is one message with default values. Fails for invalid JSON, unknown fields and values of the wrong type.
    pub fn encode(&self, json: &str) -> Result<Vec<Vec<u8>>, String> {
        let name = self.0.input().full_name().to_owned();
        let json = if json.trim().is_empty() { "{}" } else { json };
        let value = serde_json::from_str::<Value>(json).map_err(|error| format!("message `{name}`: {error}"))?;
        let values = match value {
            Value::Array(values) if self.0.is_client_streaming() => values,
            Value::Array(_) => return Err(format!("message `{name}` is a list, but only client streams send several")),
            value => vec![value],
        };
        let encode = |value| {
            let message = DynamicMessage::deserialize(self.0.input(), value);
            message.map(|message| message.encode_to_vec()).map_err(|error| format!("message `{name}`: {error}"))
        };
        values.into_iter().map(encode).collect()
    }

    /// Decodes the body of a response, whose messages have prefixes, into JSON: one message, or a list if the server
    /// streams. Fails for a compressed, truncated or invalid message.
    pub fn decode(&self, body: &[u8]) -> Result<Value, String> {
        let name = self.0.output().full_name().to_owned();
        let (mut messages, mut rest) = (Vec::new(), body);
        while let Some((prefix, after)) = rest.split_first_chunk::<PREFIX_BYTES>() {
            let [flag, length @ ..] = *prefix;
            if flag != 0 {
                return Err(format!("message `{name}` is compressed, which is not supported"));
            }
            let message = after.split_at_checked(u32::from_be_bytes(length) as usize);
            let (message, after) = message.ok_or_else(|| format!("message `{name}` is truncated"))?;
            let message = DynamicMessage::decode(self.0.output(), message);
            let message = message.map_err(|error| format!("message `{name}`: {error}"))?;
            messages.push(serde_json::to_value(&message).map_err(|error| format!("message `{name}`: {error}"))?);
            rest = after;
        }
        if !rest.is_empty() {
            return Err(format!("message `{name}` is truncated"));
        }
        if self.0.is_server_streaming() {
            return Ok(Value::Array(messages));
        }
        let one = <[Value; 1]>::try_from(messages).map(|[message]| message);
        one.map_err(|messages| format!("{} messages `{name}`, expected one", messages.len()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHOP: &str = r#"
        syntax = "proto3";
        package shop;
        import "google/protobuf/timestamp.proto";
        message Order { string item = 1; int64 count = 2; repeated uint32 sizes = 3; Kind kind = 4; Order inner = 5; }
        message Bill { double total = 1; google.protobuf.Timestamp at = 2; map<string, bool> paid = 3; }
        enum Kind { PLAIN = 0; GIFT = 1; }
        service Shop {
          rpc Place(Order) returns (Bill);
          rpc PlaceAll(stream Order) returns (Bill);
          rpc Watch(Order) returns (stream Bill);
        }
        "#;

    fn schema() -> Schema {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.proto");
        std::fs::write(&path, SHOP).unwrap();
        Schema::read(&path).unwrap()
    }

    fn framed(message: &[u8]) -> Vec<u8> {
        [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat()
    }

    #[test]
    fn messages_are_encoded_as_protoc_does() {
        let place = schema().method("/shop.Shop/Place").unwrap();
        // The bytes are the output of `protoc --encode=shop.Order` (libprotoc 3.21.12).
        for (json, hex) in [
            ("", ""),
            ("{}", ""),
            (r#"{"item": "tea", "count": "7"}"#, "0a037465611007"),
            (r#"{"count": -1}"#, "10ffffffffffffffffff01"),
            (r#"{"sizes": [1, 300], "kind": "GIFT", "inner": {"item": "a"}}"#, "1a0301ac0220012a030a0161"),
        ] {
            let found = place.encode(json).unwrap();
            let found = found[0].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            assert_eq!(found, hex, "{json}");
        }
        let all = schema().method("/shop.Shop/PlaceAll").unwrap();
        assert_eq!(all.encode(r#"[{"count": 1}, {}]"#).unwrap(), [&b"\x10\x01"[..], b""]);
    }

    #[test]
    fn responses_are_decoded() {
        let bill = b"\x09\0\0\0\0\0\0\xf8\x3f\x12\x02\x08\x01";
        let json = serde_json::json!({"total": 1.5, "at": "1970-01-01T00:00:01Z"});
        let (place, watch) =
            (schema().method("/shop.Shop/Place").unwrap(), schema().method("/shop.Shop/Watch").unwrap());
        assert_eq!(place.decode(&framed(bill)).unwrap(), json);
        assert_eq!(watch.decode(&[framed(bill), framed(b"")].concat()).unwrap(), serde_json::json!([json, {}]));
        for (body, why) in [
            (&b""[..], "0 messages `shop.Bill`, expected one"),
            (&[framed(b""), framed(b"")].concat(), "2 messages `shop.Bill`, expected one"),
            (&framed(bill)[..9], "message `shop.Bill` is truncated"),
            (b"\0\0", "message `shop.Bill` is truncated"),
            (b"\x01\0\0\0\0", "message `shop.Bill` is compressed, which is not supported"),
        ] {
            assert_eq!(place.decode(body).unwrap_err(), why);
        }
        assert!(place.decode(&framed(b"\x09")).unwrap_err().starts_with("message `shop.Bill`: "));
    }

    #[test]
    fn wrong_names_and_messages_are_explained() {
        let schema = schema();
        let method = |path| schema.method(path).map(|_| ()).unwrap_err();
        assert_eq!(method("/shop.Store/Place"), "the schema has no service `shop.Store`, only `shop.Shop`");
        assert_eq!(
            method("/shop.Shop/Buy"),
            "service `shop.Shop` has no method `Buy`, only `Place`, `PlaceAll`, `Watch`"
        );
        let place = schema.method("/shop.Shop/Place").unwrap();
        for (json, why) in [
            ("[]", "message `shop.Order` is a list, but only client streams send several"),
            ("{", "message `shop.Order`: EOF while parsing an object at line 1 column 1"),
            (r#"{"itm": "a"}"#, "message `shop.Order`: unrecognized field name 'itm'"),
            ("7", "message `shop.Order`: invalid type: integer `7`, expected a map"),
        ] {
            assert_eq!(place.encode(json).unwrap_err(), why);
        }
    }

    #[test]
    fn schemas_that_cannot_be_read_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in
            [("a.proto", "message {"), ("b.proto", "import \"no.proto\";"), ("c.bin", "text"), ("d", "")]
        {
            let path = folder.path().join(name);
            if !text.is_empty() {
                std::fs::write(&path, text).unwrap();
            }
            let error = Schema::read(&path).unwrap_err();
            assert!(error.starts_with(&format!("schema `{}`: ", path.display())), "{error}");
        }
        let set = schema().encode();
        let path = folder.path().join("shop.bin");
        std::fs::write(&path, &set).unwrap();
        assert!(Schema::read(&path).unwrap().method("/shop.Shop/Watch").is_ok());
    }

    proptest! {
        #[test]
        fn hostile_input_never_panics(at in 0_usize..2000, byte: u8, body: Vec<u8>, json in ".*") {
            let mut set = schema().encode();
            let length = set.len();
            set[at % length] = byte;
            for schema in [Schema::decode(&set), Ok(schema())].into_iter().flatten() {
                for path in ["/shop.Shop/Place", "/shop.Shop/Watch"] {
                    let Ok(method) = schema.method(path) else { continue };
                    let _ = (method.decode(&body), method.decode(&framed(&body)), method.encode(&json));
                    let _ = method.encode(r#"{"item": "a", "sizes": [1], "kind": "GIFT", "inner": {}}"#);
                }
            }
        }
    }
}
