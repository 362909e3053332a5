//! Messages as contracts see them: which operation a request calls, with what arguments, and what came back.

mod json;
mod soap;
mod thrift;

pub(crate) use self::thrift::decode as thrift_message;

use std::collections::HashMap;
use std::sync::Arc;

use contract::monitor::Outcome;
use contract::{Contract, OperationId, ServiceId, Tape, TapeId, Value};

use crate::config::{Family, Protocol};
use crate::schema::{self, File};

/// An operation of the contract, as messages call it.
#[derive(Debug)]
pub(crate) struct Op {
    pub(crate) id: OperationId,
    /// `Adder.add`, for metrics and lines of calls.
    pub(crate) name: Arc<str>,
    pub(crate) params: Vec<String>,
    pub(crate) reads_reply: bool,
}

/// How the messages of one service are read.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) id: ServiceId,
    pub(crate) name: String,
    pub(crate) family: Family,
    schema: Schema,
    /// By the name that messages have: the method's, the operation's, `GET /path`.
    ops: HashMap<String, Arc<Op>>,
    /// Of REST, in the order in which they are tried.
    routes: Vec<(String, wire::rest::Template, Arc<Op>)>,
}

#[derive(Debug)]
enum Schema {
    Thrift { schema: ::wire::thrift::Schema, service: usize },
    Soap(::wire::soap::Wsdl),
    Rest,
}

/// The services of a contract.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) contract: Arc<Contract>,
    all: HashMap<ServiceId, Arc<Service>>,
}

/// A request on a tape.
#[derive(Debug)]
pub(crate) struct Request<'m> {
    pub(crate) tape: Tape<'m>,
    pub(crate) args: Vec<TapeId>,
}

impl Request<'_> {
    pub(crate) fn values(&self) -> Vec<Value<'_>> {
        self.args.iter().map(|id| self.tape.value(*id)).collect()
    }
}

/// A reply on a tape.
#[derive(Debug)]
pub(crate) struct Reply<'m> {
    pub(crate) tape: Tape<'m>,
    pub(crate) value: TapeId,
    pub(crate) is_error: bool,
}

impl Reply<'_> {
    /// A reply of which nothing can be said.
    pub(crate) fn opaque() -> Self {
        let mut tape = Tape::new();
        let value = tape.opaque();
        Self { tape, value, is_error: false }
    }

    pub(crate) fn outcome(&self) -> Outcome<'_> {
        let value = self.tape.value(self.value);
        if self.is_error { Outcome::Error(value) } else { Outcome::Result(value) }
    }
}

/// What a request calls.
#[derive(Debug)]
pub(crate) enum Called<'m> {
    /// An operation of the contract.
    Known(Arc<Op>, Request<'m>),
    /// Something that the contract does not speak of.
    Unlisted,
    /// It cannot be read.
    Unreadable,
}

impl Services {
    /// Reads the schemas that the protocols name.
    ///
    /// # Errors
    /// All mistakes: services that the contract has not, files that cannot be read.
    pub(crate) fn new(contract: Arc<Contract>, protocols: &[Protocol]) -> Result<Self, Vec<String>> {
        let mut wrong = Vec::new();
        let mut all = HashMap::new();
        for protocol in protocols {
            match service(&contract, protocol) {
                Ok(service) => drop(all.insert(service.id, Arc::new(service))),
                Err(error) => wrong.push(error),
            }
        }
        if wrong.is_empty() { Ok(Self { contract, all }) } else { Err(wrong) }
    }

    pub(crate) fn get(&self, id: ServiceId) -> Option<&Arc<Service>> {
        self.all.get(&id)
    }
}

fn service(contract: &Contract, protocol: &Protocol) -> Result<Service, String> {
    let name = &protocol.service;
    let Some(id) = contract.service(name) else {
        let known = contract.services().map(|id| format!("`{}`", contract.service_name(id))).collect::<Vec<_>>();
        return Err(format!("`protocols.{name}`: the contract has no service `{name}`, it has {}", known.join(", ")));
    };
    let told = |error: String| format!("`protocols.{name}`: {error}");
    let schema = match protocol.schema.as_deref().map(schema::load).transpose().map_err(told)? {
        Some(File::Thrift(schema)) => {
            let service = schema.services.iter().position(|service| service.name == protocol.schema_service);
            let Some(service) = service else {
                return Err(told(format!("the IDL file has no service `{}`", protocol.schema_service)));
            };
            Schema::Thrift { schema, service }
        }
        Some(File::Soap(wsdl)) => Schema::Soap(wsdl),
        None => Schema::Rest,
    };
    let fits = match (&schema, protocol.family) {
        (Schema::Thrift { .. }, family) => matches!(family, Family::Thrift | Family::ThriftHttp),
        (Schema::Soap(_), family) => family == Family::Soap,
        (Schema::Rest, family) => family == Family::Rest,
    };
    if !fits {
        return Err(told("the file is of another kind than its ending says".to_owned()));
    }
    let mut ops = HashMap::new();
    let mut routes = Vec::new();
    for operation in contract.operations(id) {
        let id = contract.operation(id, operation).expect("its name is the contract's own");
        let op = Arc::new(Op {
            id,
            name: format!("{name}.{operation}").into(),
            params: contract.params(id).to_vec(),
            reads_reply: contract.reads_reply(id),
        });
        if protocol.family == Family::Rest {
            let Some((method, path)) = operation.split_once(' ') else {
                return Err(told(format!("`{operation}` has no method and path, so it cannot be called by REST")));
            };
            let template = wire::rest::Template::parse(path).map_err(|mistakes| {
                told(mistakes.iter().map(|mistake| format!("`{path}`: {mistake}")).collect::<Vec<_>>().join("; "))
            })?;
            routes.push((method.to_owned(), template, op.clone()));
        }
        ops.insert(operation.to_owned(), op);
    }
    Ok(Service { id, name: name.clone(), family: protocol.family, schema, ops, routes })
}

/// What of an HTTP request clauses may speak of.
#[derive(Debug)]
pub(crate) struct HttpRequest<'m> {
    pub(crate) method: &'m str,
    /// Behind the endpoint's own path.
    pub(crate) path: &'m str,
    pub(crate) query: &'m str,
    pub(crate) headers: &'m hyper::HeaderMap,
    pub(crate) body: &'m [u8],
}

/// What of an HTTP reply clauses may speak of.
#[derive(Debug)]
pub(crate) struct HttpReply<'m> {
    pub(crate) code: u16,
    pub(crate) headers: &'m hyper::HeaderMap,
    pub(crate) body: &'m [u8],
}

impl Service {
    /// What a Thrift message calls.
    pub(crate) fn thrift_request<'m>(&'m self, message: &::wire::thrift::Message<'m>) -> Called<'m> {
        let Schema::Thrift { schema, service } = &self.schema else { return Called::Unlisted };
        thrift::request(schema, &schema.services[*service], &self.ops, message)
    }

    /// What a Thrift message replies.
    pub(crate) fn thrift_reply<'m>(&'m self, op: &Op, message: &::wire::thrift::Message<'m>) -> Reply<'m> {
        let Schema::Thrift { schema, service } = &self.schema else { return Reply::opaque() };
        thrift::reply(schema, &schema.services[*service], op, message)
    }

    /// Which operation an HTTP request calls, as far as its head tells; `None`: its body must be read.
    pub(crate) fn by_head(&self, method: &str, path: &str) -> Option<Option<&Arc<Op>>> {
        match self.family {
            Family::Rest => Some(self.route(method, path).map(|(op, _)| op)),
            _ if method == "POST" => None,
            _ => Some(None),
        }
    }

    /// Whether a clause may speak of the body of a request.
    pub(crate) fn reads_body(&self, op: &Op) -> bool {
        self.family != Family::Rest || op.params.iter().any(|param| param == "body")
    }

    #[allow(clippy::type_complexity, reason = "the parameters of a path are pairs")]
    fn route<'p>(&self, method: &str, path: &'p str) -> Option<(&Arc<Op>, Vec<(&str, std::borrow::Cow<'p, str>)>)> {
        let of_method = self.routes.iter().filter(|route| route.0 == method);
        of_method.filter_map(|(_, template, op)| Some((op, template.matches(path)?))).next()
    }

    /// What an HTTP request calls.
    pub(crate) fn http_request<'m>(&'m self, request: &HttpRequest<'m>) -> Called<'m> {
        match &self.schema {
            Schema::Thrift { .. } => match thrift::whole(request.body) {
                Ok(message) => self.thrift_request(&message),
                Err(_) => Called::Unreadable,
            },
            Schema::Soap(wsdl) => {
                let action = request.headers.get("soapaction").and_then(|action| action.to_str().ok());
                soap::request(wsdl, &self.ops, action, request.body)
            }
            Schema::Rest => match self.route(request.method, request.path) {
                Some((op, path)) => Called::Known(op.clone(), json::request(op, &path, request)),
                None => Called::Unlisted,
            },
        }
    }

    /// What an HTTP reply says.
    pub(crate) fn http_reply<'m>(&'m self, op: &Op, reply: &HttpReply<'m>) -> Reply<'m> {
        let is_encoded = reply.headers.get(hyper::header::CONTENT_ENCODING).is_some_and(|how| how != "identity");
        match &self.schema {
            Schema::Rest => json::reply(reply, is_encoded),
            _ if is_encoded => Reply::opaque(),
            Schema::Thrift { .. } => match thrift::whole(reply.body) {
                Ok(message) => self.thrift_reply(op, &message),
                Err(_) => Reply::opaque(),
            },
            Schema::Soap(wsdl) => soap::reply(wsdl, op, reply.body),
        }
    }
}

/// The last part of an operation's name: its own.
fn own_name(op: &Op) -> &str {
    op.name.split_once('.').map_or(&op.name, |parts| parts.1)
}
