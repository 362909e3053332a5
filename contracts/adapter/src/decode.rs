mod rest;
mod soap;
mod thrift;

pub(crate) use self::thrift::decode as thrift_message;

use std::collections::HashMap;
use std::sync::Arc;

use contract::{Contract, OperationId, ServiceId, Tape, TapeId, Value};
use hyper::http::response;

use crate::config::{Protocol, ProtocolKind};
use crate::content_coding::Content;
pub(crate) use crate::content_coding::Unread;
use crate::endpoint::Scheme;
use crate::load_contract::{File, Files};

pub(crate) struct Op {
    pub(crate) id: OperationId,
    /// `Adder.add`, for metrics and the call log.
    pub(crate) name: Arc<str>,
    pub(crate) params: Vec<String>,
    pub(crate) reads_reply: bool,
    pub(crate) introduces_by_reply: bool,
}

type Ops = HashMap<String, Arc<Op>>;

pub(crate) struct Service {
    pub(crate) contract: Arc<Contract>,
    pub(crate) id: ServiceId,
    pub(crate) name: String,
    pub(crate) family: ProtocolKind,
    /// The scheme of endpoints written without one.
    pub(crate) bare: Scheme,
    schema: Schema,
    /// Operations by their name in messages: the method, the operation, or `GET /path`.
    ops: Ops,
    /// REST only, in the order in which they are tried.
    routes: Vec<(String, codecs::rest::Template, Arc<Op>)>,
}

enum Schema {
    Thrift { schema: ::codecs::thrift::Schema, service: usize },
    Soap(::codecs::soap::Wsdl),
    Rest,
}

pub(crate) struct Services {
    pub(crate) contract: Arc<Contract>,
    all: HashMap<ServiceId, Arc<Service>>,
}

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
    /// Whether the HTTP status is not 2xx. The body may have another type, for example if a proxy
    /// wrote it, so undecided clauses do not reject it.
    pub(crate) may_be_undecided: bool,
}

impl Reply<'_> {
    pub(crate) fn opaque() -> Self {
        Self::unread(Unread::Over)
    }

    /// A reply that does not fit its operation, or whose fit is unknown.
    pub(crate) fn unread(why: Unread) -> Self {
        let mut tape = Tape::new();
        let value = why.put(&mut tape);
        Self { tape, value, is_error: false, may_be_undecided: false }
    }
}

pub(crate) enum RequestKind<'m> {
    Known(Arc<Op>, Request<'m>),
    /// The name of an operation that the contract does not list.
    Unlisted(String),
    Unreadable,
}

impl Services {
    /// `files`: the schemas that the protocols name. Fails with all services that the contract or schemas lack.
    pub(crate) fn new(contract: Arc<Contract>, protocols: &[Protocol], files: &Files) -> Result<Self, Vec<String>> {
        let mut wrong = Vec::new();
        let mut all = HashMap::new();
        for protocol in protocols {
            match service(&contract, protocol, files) {
                Ok(service) => drop(all.insert(service.id, Arc::new(service))),
                Err(errors) => wrong.extend(errors),
            }
        }
        if wrong.is_empty() { Ok(Self { contract, all }) } else { Err(wrong) }
    }

    pub(crate) fn get(&self, id: ServiceId) -> Option<Arc<Service>> {
        self.all.get(&id).cloned()
    }

    /// Replaces the services. Calls in flight keep those they began with.
    pub(crate) fn renew(&mut self, mut services: Services) {
        // A caller may have taken the number of a previous service just before the reload.
        for (id, service) in self.all.iter().filter(|(_, service)| Arc::ptr_eq(&service.contract, &self.contract)) {
            services.all.entry(*id).or_insert_with(|| service.clone());
        }
        *self = services;
    }
}

fn service(contract: &Arc<Contract>, protocol: &Protocol, files: &Files) -> Result<Service, Vec<String>> {
    let name = &protocol.service;
    let Some(id) = contract.service(name) else {
        let known = contract.services().map(|id| format!("`{}`", contract.service_name(id))).collect::<Vec<_>>();
        let known = known.join(", ");
        return Err(vec![format!("`protocols.{name}`: the contract has no service `{name}`, it has {known}")]);
    };
    let told = |error: String| vec![format!("`protocols.{name}`: {error}")];
    let file = protocol.schema.as_ref().and_then(|path| files.get(path)).cloned();
    let schema = match (file, protocol.family) {
        (Some(File::Thrift(schema)), ProtocolKind::Thrift | ProtocolKind::ThriftHttp) => {
            let service = schema.services.iter().position(|service| service.name == protocol.schema_service);
            let Some(service) = service else {
                return Err(told(format!("the IDL file has no service `{}`", protocol.schema_service)));
            };
            Schema::Thrift { schema, service }
        }
        (Some(File::Soap(wsdl)), ProtocolKind::Soap) => Schema::Soap(wsdl),
        (None, ProtocolKind::Rest) => Schema::Rest,
        _ => return Err(told("the file's kind does not match its extension".to_owned())),
    };
    let mut ops = HashMap::new();
    let mut routes = Vec::new();
    let mut wrong = Vec::new();
    for operation in contract.operations(id) {
        let id = contract.operation(id, operation).expect("the name comes from the contract");
        let (name, params) = (format!("{name}.{operation}").into(), contract.params(id).to_vec());
        let (reads_reply, introduces_by_reply) = (contract.reads_reply(id), contract.introduces_by_reply(id));
        let op = Arc::new(Op { id, name, params, reads_reply, introduces_by_reply });
        if protocol.family == ProtocolKind::Rest {
            let Some((method, path)) = operation.split_once(' ') else {
                wrong.extend(told(format!("`{operation}` has no method and path, so it cannot be called by REST")));
                continue;
            };
            match codecs::rest::Template::parse(path) {
                Ok(template) => routes.push((method.to_owned(), template, op.clone())),
                Err(mistakes) => {
                    wrong.extend(mistakes.iter().flat_map(|mistake| told(format!("`{path}`: {mistake}"))));
                }
            }
        }
        ops.insert(operation.to_owned(), op);
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let (contract, family, bare) = (contract.clone(), protocol.family, protocol.bare());
    Ok(Service { contract, id, name: name.clone(), family, bare, schema, ops, routes })
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

    /// Whether a clause may refer to the body of an HTTP request. `None` if its head shows that it is unlisted.
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

    /// The called operation. `is_strict`: a request that readers may take for different operations is unreadable.
    pub(crate) fn http_request<'m>(
        &'m self,
        head: &'m RequestHead,
        body: &'m Content<'m>,
        is_strict: bool,
    ) -> RequestKind<'m> {
        match (&self.schema, body) {
            (Schema::Thrift { .. }, Ok(body)) => match thrift::whole(body) {
                Ok(message) => self.thrift_request(&message),
                Err(_) => RequestKind::Unreadable,
            },
            (Schema::Soap(wsdl), Ok(body)) => soap::request(wsdl, &self.ops, &head.headers, body, is_strict),
            // Only the body names the operation.
            (Schema::Thrift { .. } | Schema::Soap(_), _) => RequestKind::Unreadable,
            (Schema::Rest, _) => match self.route(head.method.as_str(), &head.path) {
                Some((op, path)) => RequestKind::Known(op.clone(), rest::request(op, &path, head, body)),
                None => RequestKind::Unlisted(format!("{} {}", head.method, head.path)),
            },
        }
    }

    pub(crate) fn http_reply<'m>(&'m self, op: &Op, head: &'m response::Parts, body: &'m Content<'m>) -> Reply<'m> {
        // Proxies may also send an error status, with a body of their own.
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
