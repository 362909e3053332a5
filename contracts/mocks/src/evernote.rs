//! Mocks of Evernote's services: Thrift in POST bodies. The account service returns the URL of the note service.

use codecs::thrift::{
    self, Framing, Header, Limits, Message, MessageKind, Protocol, Schema, View, compose_application_exception,
    compose_message,
};
use codecs::value::Value;

use super::{MockAnswer, MockRequest, Service, digest, respond, respond_only, respond_text};

const SHARE_KEY: &str = "asd";
const SHARED_TOKEN: &str = "temp10";
const USER_STORE: &str = "UserStore";
const NOTEBOOK: &str = "guid10";
const NOTE: &str = "guid20";
/// The mock's time: 2017-05-12 00:00:00 UTC, in ms since 1970. A token is valid for one hour.
const NOW_MS: i64 = 1_494_547_200_000;
const HOUR_MS: i64 = 3_600_000;

const LIMITS: Limits =
    Limits { message_bytes: 1 << 20, string_bytes: 64 << 10, elements: 1024, values: 8192, depth: 16, name_bytes: 256 };

// Values of `EDAMErrorCode`.
const BAD_DATA_FORMAT: i64 = 2;
const DATA_REQUIRED: i64 = 5;

// Exception types of `TApplicationException`.
const UNKNOWN_METHOD: i32 = 1;
const INVALID_MESSAGE_TYPE: i32 = 2;
const INTERNAL_ERROR: i32 = 6;

/// The set of replies that the mock sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Profile {
    /// Replies of the published benchmark: keys and the second token are the same in every journey.
    #[default]
    Shipped,
    /// Replies that Whip's contracts expect: each journey has its own keys, tokens and ids, and ids are UUIDs.
    Paper,
}

/// A mock of one of Evernote's services.
#[derive(Debug)]
pub struct Evernote {
    schema: Schema,
    service: &'static str,
    profile: Profile,
    notes_url: String,
}

impl Evernote {
    /// Creates an account service, `UserStore`, that returns this URL for the note service.
    pub fn user(notes_url: String) -> Evernote {
        Evernote::new(USER_STORE, Profile::default(), notes_url)
    }

    /// Creates a note service, `NoteStore`, that returns this URL as its own.
    pub fn notes(profile: Profile, url: String) -> Evernote {
        Evernote::new("NoteStore", profile, url)
    }

    fn new(service: &'static str, profile: Profile, notes_url: String) -> Evernote {
        let include = &mut |_: &str| Err("includes are not needed".to_owned());
        let read = thrift::idl::parse("evernote.thrift", codecs::built_in_schemas::EVERNOTE_THRIFT, include);
        Evernote { schema: read.expect("covered by a test"), service, profile, notes_url }
    }

    /// Returns `shipped` for the published benchmark, otherwise the journey's own string.
    fn choose(&self, shipped: &str, paper: impl FnOnce() -> String) -> String {
        if self.profile == Profile::Shipped { shipped.to_owned() } else { paper() }
    }

    fn share_key(&self, token: &str) -> String {
        self.choose(SHARE_KEY, || format!("share-{:016x}", digest(1, token)))
    }

    fn shared_token(&self, key: &str) -> String {
        self.choose(SHARED_TOKEN, || format!("shared-{:016x}", digest(2, key)))
    }

    fn notebook(&self, token: &str) -> String {
        self.choose(NOTEBOOK, || uuid(3, token))
    }

    fn find(&self, arguments: &View<'_>) -> Result<Value, Thrown> {
        let token = token(arguments)?;
        let number = |name: &str| arguments.get(name).and_then(|value| value.as_i64());
        let offset = number("offset").ok_or_else(|| user(DATA_REQUIRED, "offset"))?;
        let most = number("maxNotes").ok_or_else(|| user(DATA_REQUIRED, "maxNotes"))?;
        if offset < 0 || most < 0 {
            return Err(user(BAD_DATA_FORMAT, if offset < 0 { "offset" } else { "maxNotes" }));
        }
        let notebook = self.notebook(token);
        let asked = arguments.get("filter").and_then(|filter| filter.get("notebookGuid"));
        if let Some(asked) = asked.and_then(|guid| guid.as_str()).filter(|guid| *guid != notebook) {
            return Err(missing("NoteFilter.notebookGuid", asked));
        }
        let note = match self.profile {
            Profile::Shipped => Value::record([("guid", NOTE.into()), ("title", "test".into())]),
            Profile::Paper => {
                let guid = uuid(4, token);
                let picture = Value::record([
                    ("guid", uuid(5, token).into()),
                    ("noteGuid", guid.as_str().into()),
                    ("mime", "image/png".into()),
                ]);
                Value::record([
                    ("guid", guid.into()),
                    ("title", "test".into()),
                    ("notebookGuid", notebook.into()),
                    ("resources", Value::List(vec![picture])),
                ])
            }
        };
        let is_in = offset == 0 && most > 0;
        Ok(Value::record([
            ("startIndex", Value::Integer(offset)),
            ("totalNotes", Value::Integer(1)),
            ("notes", Value::List(if is_in { vec![note] } else { Vec::new() })),
        ]))
    }

    fn call(&self, method: &str, arguments: &View<'_>) -> Result<Value, Thrown> {
        if self.service == USER_STORE {
            token(arguments)?;
        }
        match method {
            "getNoteStoreUrl" => Ok(self.notes_url.as_str().into()),
            "getUser" => Ok(Value::record([("id", Value::Integer(1)), ("username", "quintain".into())])),
            "listNotebooks" => {
                token(arguments)?;
                let own = [("guid", "guid0".into()), ("name", "notes".into()), ("defaultNotebook", Value::Bool(true))];
                Ok(Value::List(vec![Value::record(own)]))
            }
            "listLinkedNotebooks" => {
                let token = token(arguments)?;
                let linked = Value::record([
                    ("shareKey", self.share_key(token).into()),
                    ("guid", "guid00".into()),
                    ("noteStoreUrl", self.notes_url.as_str().into()),
                ]);
                Ok(Value::List(vec![linked]))
            }
            "authenticateToSharedNotebook" => {
                let key = text(arguments, "shareKey")?;
                token(arguments)?;
                let is_known = match self.profile {
                    Profile::Shipped => key == SHARE_KEY,
                    Profile::Paper => key.strip_prefix("share-").is_some_and(is_digest),
                };
                if !is_known {
                    return Err(missing("SharedNotebook.shareKey", key));
                }
                Ok(Value::record([
                    ("currentTime", Value::Integer(NOW_MS)),
                    ("authenticationToken", self.shared_token(key).into()),
                    ("expiration", Value::Integer(NOW_MS + HOUR_MS)),
                ]))
            }
            "getSharedNotebookByAuth" => Ok(Value::record([("notebookGuid", self.notebook(token(arguments)?).into())])),
            "findNotes" => self.find(arguments),
            other => unreachable!("the schema has no method `{other}`"),
        }
    }

    fn reply(&self, protocol: Protocol, message: &Message<'_>) -> Vec<u8> {
        let header = Header { kind: MessageKind::Reply, ..message.header };
        let failed =
            |why: &str, code: i32| compose_application_exception(protocol, Framing::Unframed, &header, why, code);
        if message.header.kind != MessageKind::Call {
            return failed("the message is not a call", INVALID_MESSAGE_TYPE);
        }
        let name = message.header.method();
        let Some(method) = self.schema.service(self.service).and_then(|service| service.method(name)) else {
            return failed(&format!("unknown method `{}`", name.escape_debug()), UNKNOWN_METHOD);
        };
        let result = match self.call(name, &message.arguments(&self.schema, method)) {
            Ok(value) => Value::record([("success", value)]),
            Err((field, exception)) => Value::record([(field, exception)]),
        };
        compose_message(protocol, Framing::Unframed, &header, &self.schema, method.result, &result)
            .unwrap_or_else(|error| failed(&error.to_string(), INTERNAL_ERROR))
    }
}

impl Service for Evernote {
    fn answer(&self, request: &MockRequest) -> MockAnswer {
        // Evernote's SDK requests `//edam/user`, so additional slashes are ignored.
        let path = request.uri().path().trim_matches('/');
        if self.service == USER_STORE && path != "edam/user" {
            return respond_text(404, "the account service is at /edam/user");
        }
        if self.service != USER_STORE && !path.is_empty() {
            return respond_text(404, "the notes service is at /");
        }
        if request.method() != "POST" {
            return respond_only("POST");
        }
        let thrift::Detected::Thrift(protocol, Framing::Unframed) = thrift::detect(request.body(), &LIMITS) else {
            return respond_text(400, "the body is not an unframed Thrift message");
        };
        match Message::decode(protocol, request.body(), &LIMITS) {
            Ok(message) => respond(200, "application/x-thrift", self.reply(protocol, &message)),
            Err(error) => respond_text(400, &format!("the body is not a Thrift message: {error}")),
        }
    }
}

/// A declared exception: the name of its field in the result, and its value.
type Thrown = (&'static str, Value);

fn user(code: i64, parameter: &str) -> Thrown {
    let exception = [("errorCode", Value::Integer(code)), ("parameter", parameter.into())];
    ("userException", Value::record(exception))
}

fn missing(identifier: &str, key: &str) -> Thrown {
    ("notFoundException", Value::record([("identifier", identifier.into()), ("key", key.into())]))
}

fn text<'m>(arguments: &View<'m>, name: &str) -> Result<&'m str, Thrown> {
    match arguments.get(name).map(|value| value.as_str()) {
        None | Some(Some("")) => Err(user(DATA_REQUIRED, name)),
        Some(None) => Err(user(BAD_DATA_FORMAT, name)),
        Some(Some(text)) => Ok(text),
    }
}

fn token<'m>(arguments: &View<'m>) -> Result<&'m str, Thrown> {
    text(arguments, "authenticationToken")
}

fn is_digest(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A UUID of version 4 derived from a string and `kind`. Source: RFC 9562, section 5.4.
fn uuid(kind: u64, text: &str) -> String {
    let high = digest(kind, text) & !0xf000 | 0x4000;
    let low = digest(kind + 100, text) & !(0b11 << 62) | 0b10 << 62;
    let (high, low) = (format!("{high:016x}"), format!("{low:016x}"));
    format!("{}-{}-{}-{}-{}", &high[..8], &high[8..12], &high[12..], &low[..4], &low[4..])
}

#[cfg(test)]
mod tests;
