//! Decodes the REST, SOAP or Thrift messages of a service into the values of its contract.

mod rest;
mod soap;
mod thrift;

pub(crate) use self::thrift::decode as thrift_message;

use std::sync::Arc;

use contract::{Tape, TapeId, Value};
use hyper::http::response;

use crate::config::ProtocolKind;
use crate::content_decoding::Content;
pub(crate) use crate::content_decoding::Unread;
use crate::contract_services::{Op, Schema, Service};

pub(crate) struct Request<'m> {
    pub(crate) tape: Tape<'m>,
    pub(crate) args: Vec<TapeId>,
}

impl Request<'_> {
    pub(crate) fn values(&self) -> Vec<Value<'_>> {
        self.args.iter().map(|id| self.tape.value(*id)).collect()
    }
}

pub(crate) struct Reply<'m> {
    pub(crate) tape: Tape<'m>,
    pub(crate) value: TapeId,
    pub(crate) is_error: bool,
    /// Whether the HTTP status is not 2xx. A proxy may have replied, so undecided clauses do not reject the reply.
    pub(crate) may_be_undecided: bool,
}

impl Reply<'_> {
    pub(crate) fn opaque() -> Self {
        Self::unread(Unread::Over)
    }

    /// Creates a reply that does not fit its operation, or that cannot be read.
    pub(crate) fn unread(why: Unread) -> Self {
        let mut tape = Tape::new();
        let value = why.put(&mut tape);
        Self { tape, value, is_error: false, may_be_undecided: false }
    }
}

pub(crate) enum RequestKind<'m> {
    Known(Arc<Op>, Request<'m>),
    Unlisted(String),
    Unreadable,
}

/// A copy of the head of an HTTP request, for clauses. The head itself is forwarded.
pub(crate) struct RequestHead {
    pub(crate) method: hyper::Method,
    /// The path after the endpoint's own path.
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: hyper::HeaderMap,
}

impl Service {
    pub(crate) fn thrift_request<'m>(&'m self, message: &::codecs::thrift::Message<'m>) -> RequestKind<'m> {
        let Schema::Thrift { schema, service } = &self.schema else { return RequestKind::Unlisted(String::new()) };
        thrift::request(schema, &schema.services[*service], &self.ops, message)
    }

    pub(crate) fn thrift_reply<'m>(&'m self, op: &Op, message: &::codecs::thrift::Message<'m>) -> Reply<'m> {
        let Schema::Thrift { schema, service } = &self.schema else { return Reply::opaque() };
        thrift::reply(schema, &schema.services[*service], op, message)
    }

    /// Whether a clause may refer to the body of an HTTP request. `None` if the contract does not list the request.
    pub(crate) fn reads_body(&self, method: &str, path: &str) -> Option<bool> {
        match self.family {
            ProtocolKind::Rest => self.route(method, path).map(|(op, _)| op.params.iter().any(|name| name == "body")),
            _ => (method == "POST").then_some(true),
        }
    }

    #[allow(clippy::type_complexity, reason = "the parameters of a path are pairs")]
    fn route<'p>(&self, method: &str, path: &'p str) -> Option<(&Arc<Op>, Vec<(&str, std::borrow::Cow<'p, str>)>)> {
        let of_method = self.routes.iter().filter(|route| route.0 == method);
        of_method.filter_map(|(_, template, op)| Some((op, template.matches(path)?))).next()
    }

    /// Finds the called operation. If `is_strict`, a request whose operation is ambiguous counts as unreadable.
    pub(crate) fn http_request<'m>(
        &'m self,
        head: &'m RequestHead,
        body: &'m Content<'m>,
        is_strict: bool,
    ) -> RequestKind<'m> {
        match (&self.schema, body) {
            (Schema::Thrift { .. }, Ok(body)) => {
                thrift::whole(body).map_or(RequestKind::Unreadable, |message| self.thrift_request(&message))
            }
            (Schema::Soap(wsdl), Ok(body)) => soap::request(wsdl, &self.ops, &head.headers, body, is_strict),
            (Schema::Thrift { .. } | Schema::Soap(_), _) => RequestKind::Unreadable,
            (Schema::Rest, _) => match self.route(head.method.as_str(), &head.path) {
                Some((op, path)) => RequestKind::Known(op.clone(), rest::request(op, &path, head, body)),
                None => RequestKind::Unlisted(format!("{} {}", head.method, head.path)),
            },
        }
    }

    pub(crate) fn http_reply<'m>(&'m self, op: &Op, head: &'m response::Parts, body: &'m Content<'m>) -> Reply<'m> {
        // A reply with an error status may be from a proxy, so its clauses may remain undecided.
        let is_done = head.status.is_success();
        let read = match (&self.schema, body) {
            (Schema::Rest, _) => Ok(rest::reply(head, body)),
            (_, Err(why)) => Err(why.clone()),
            (Schema::Thrift { .. }, Ok(body)) => thrift::whole(body).map(|message| self.thrift_reply(op, &message)),
            (Schema::Soap(wsdl), Ok(body)) => soap::reply(wsdl, op, &head.headers, body),
        };
        let reply = read.unwrap_or_else(|why| Reply::unread(if is_done { why } else { Unread::Over }));
        Reply { may_be_undecided: !is_done, ..reply }
    }
}

impl Unread {
    fn put(self, tape: &mut Tape<'_>) -> TapeId {
        match self {
            Self::Over | Self::Coding(_) => tape.add(Value::Opaque),
            Self::Malformed(what) => tape.malformed(what),
        }
    }
}

fn own_name(op: &Op) -> &str {
    op.name.split_once('.').map_or(&op.name, |parts| parts.1)
}
