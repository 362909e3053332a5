//! The services of a contract with their schemas, operations and REST routes.

use std::collections::HashMap;
use std::sync::Arc;

use codecs::rest_path_and_query::Template;
use contract::{Contract, OperationId, ServiceId};

use crate::config::{Protocol, ProtocolKind};
use crate::endpoint::Scheme;
use crate::load_contract_and_schemas::{File, Files};

pub(crate) struct Op {
    pub(crate) id: OperationId,
    /// Service and operation, such as `Adder.add`, for metrics and the call log.
    pub(crate) name: Arc<str>,
    pub(crate) params: Vec<String>,
}

pub(crate) type Ops = HashMap<String, Arc<Op>>;

pub(crate) struct Service {
    pub(crate) contract: Arc<Contract>,
    pub(crate) id: ServiceId,
    pub(crate) name: String,
    pub(crate) family: ProtocolKind,
    /// Scheme of endpoints written without one.
    pub(crate) bare: Scheme,
    pub(crate) schema: Schema,
    /// Operations by their names in messages: a Thrift method, a SOAP operation, or `GET /path` for REST.
    pub(crate) ops: Ops,
    /// REST path templates, in the order in which they are tried; empty for other protocols.
    pub(crate) routes: Vec<(String, Template, Arc<Op>)>,
}

pub(crate) enum Schema {
    Thrift { schema: ::codecs::thrift::Schema, service: usize },
    Soap(::codecs::soap::Wsdl),
    Rest,
}

pub(crate) struct Services {
    pub(crate) contract: Arc<Contract>,
    all: HashMap<ServiceId, Arc<Service>>,
}

impl Services {
    /// Combines the protocols with `files`, the schemas that they name. Adds all errors to `wrong`.
    pub(crate) fn new(contract: Arc<Contract>, protocols: &[Protocol], files: &Files, wrong: &mut Vec<String>) -> Self {
        let services = protocols.iter().filter_map(|protocol| service(&contract, protocol, files, wrong));
        let all = services.map(|service| (service.id, Arc::new(service))).collect();
        Self { contract, all }
    }

    pub(crate) fn get(&self, id: ServiceId) -> Option<Arc<Service>> {
        self.all.get(&id).cloned()
    }

    /// Replaces the services. Calls in flight keep the services they began with.
    pub(crate) fn renew(&mut self, services: Services) {
        // Keep the previous services, because a caller may have taken a service number just before the reload.
        self.all.retain(|_, service| Arc::ptr_eq(&service.contract, &self.contract));
        self.all.extend(services.all);
        self.contract = services.contract;
    }
}

fn service(contract: &Arc<Contract>, protocol: &Protocol, files: &Files, wrong: &mut Vec<String>) -> Option<Service> {
    let name = &protocol.service;
    let mut add_error = |error: String| wrong.push(format!("`protocols.{name}`: {error}"));
    let Some(id) = contract.service(name) else {
        let known = contract.services().map(|id| format!("`{}`", contract.service_name(id))).collect::<Vec<_>>();
        add_error(format!("the contract has no service `{name}`, it has {}", known.join(", ")));
        return None;
    };
    let file = protocol.schema.as_ref().and_then(|path| files.get(path)).cloned();
    let schema = match (file, protocol.family) {
        (Some(File::Thrift(schema)), ProtocolKind::Thrift | ProtocolKind::ThriftHttp) => {
            let service = schema.services.iter().position(|service| service.name == protocol.schema_service);
            let Some(service) = service else {
                add_error(format!("the IDL file has no service `{}`", protocol.schema_service));
                return None;
            };
            Schema::Thrift { schema, service }
        }
        (Some(File::Soap(wsdl)), ProtocolKind::Soap) => Schema::Soap(wsdl),
        (None, ProtocolKind::Rest) => Schema::Rest,
        _ => {
            add_error("the file's kind does not match its extension".to_owned());
            return None;
        }
    };
    let mut ops = HashMap::new();
    let mut routes = Vec::new();
    for operation in contract.operations(id) {
        let id = contract.operation(id, operation).expect("the name comes from the contract");
        let (name, params) = (format!("{name}.{operation}").into(), contract.params(id).to_vec());
        let op = Arc::new(Op { id, name, params });
        if protocol.family == ProtocolKind::Rest {
            let Some((method, path)) = operation.split_once(' ') else {
                add_error(format!("`{operation}` has no method and path, so it cannot be called by REST"));
                continue;
            };
            let template = Template::parse(path).expect("a contract with an invalid path has been rejected");
            routes.push((method.to_owned(), template, op.clone()));
        }
        ops.insert(operation.to_owned(), op);
    }
    let (contract, family, bare) = (contract.clone(), protocol.family, protocol.bare);
    Some(Service { contract, id, name: name.clone(), family, bare, schema, ops, routes })
}
