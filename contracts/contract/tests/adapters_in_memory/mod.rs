//! Adapters that communicate in memory, with every metadata block encoded and decoded.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of this module")]

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::metadata::UNKNOWN;
use contract::metadata::{self, CallContext, Identified, RequestMetadata};
use contract::monitor::report::Report;
use contract::monitor::{Call, EndpointState, MemoryStore, Monitor, Outcome, Settings, Shown, Side};
use contract::{Contract, MessageValue, Value, check};
use serde_json::Value as Json;

pub fn contract(name: &str) -> Arc<Contract> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("contracts/{name}.contract"));
    let text = std::fs::read_to_string(&path).unwrap();
    let checked = check(&text, None);
    Arc::new(checked.contract.unwrap_or_else(|| panic!("{}", contract::to_text(name, &checked.findings))))
}

pub fn vouched(
    monitor: &mut Monitor<MemoryStore>,
    endpoint: &str,
    service: &str,
    index: Option<&str>,
) -> Option<Vec<String>> {
    let mut entries = monitor.entries(0).into_iter();
    let is_it =
        |entry: &Shown| (&*entry.endpoint, &*entry.service, entry.index.as_deref()) == (endpoint, service, index);
    entries.find(is_it).map(|entry| entry.labels)
}

pub fn message_value(json: &Json) -> MessageValue<'static> {
    match json {
        Json::Null => Value::Missing.into(),
        Json::Bool(value) => Value::Bool(*value).into(),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number).into(),
            None => Value::Float(number.as_f64().unwrap()).into(),
        },
        Json::String(text) => MessageValue::text(text.clone()),
        Json::Array(items) => MessageValue::List(items.iter().map(message_value).collect()),
        Json::Object(fields) => {
            MessageValue::record(fields.iter().map(|(name, value)| (name.clone(), message_value(value))))
        }
    }
}

#[derive(Debug, Default)]
pub struct Seen {
    pub reports: Vec<Report>,
    pub request: Option<RequestMetadata>,
    pub reply: Vec<Identified>,
    pub block_bytes: usize,
}

pub fn settings(label: &str) -> Settings {
    let (label, steps_max) = (label.to_owned(), contract::STEPS_MAX);
    Settings { label, requires: Side::Receiver, ensures: Side::Receiver, steps_max, show_secrets: false }
}

pub struct World {
    pub contract: Arc<Contract>,
    pub adapters: BTreeMap<String, Monitor<MemoryStore>>,
    pub now_s: u64,
}

pub struct Asked<'a> {
    pub client: Option<&'a str>,
    /// The server's adapter, which also receives requests without metadata; `None` if the server has none.
    pub public: Option<&'a str>,
    pub endpoint: &'a str,
    pub operation: &'a str,
    pub args: Json,
    pub result: Json,
    pub is_error: bool,
}

pub fn ask<'a>(client: &'a str, endpoint: &'a str, operation: &'a str, args: Json, result: Json) -> Asked<'a> {
    Asked { client: Some(client), public: None, endpoint, operation, args, result, is_error: false }
}

impl World {
    pub fn new(name: &str) -> Self {
        Self { contract: contract(name), adapters: BTreeMap::new(), now_s: 0 }
    }

    pub fn of_text(text: &str) -> Self {
        let contract = Arc::new(check(text, None).contract.unwrap());
        Self { contract, adapters: BTreeMap::new(), now_s: 0 }
    }

    pub fn adapter(&mut self, address: &str, label: &str) -> &mut Monitor<MemoryStore> {
        self.adapter_at(address, label, [Side::Receiver; 2])
    }

    pub fn adapter_at(
        &mut self,
        address: &str,
        label: &str,
        [requires, ensures]: [Side; 2],
    ) -> &mut Monitor<MemoryStore> {
        let settings = Settings { requires, ensures, ..settings(label) };
        let monitor = Monitor::new(self.contract.clone(), settings, MemoryStore::new(1 << 24, None), 0);
        self.adapters.entry(address.to_owned()).or_insert(monitor)
    }

    pub fn configure(&mut self, adapter: &str, endpoint: &str, service: &str, labels: &[&str], peer: Option<&str>) {
        let service = self.contract.service(service).unwrap();
        let now_s = self.now_s;
        self.adapters.get_mut(adapter).unwrap().configure(endpoint, service, labels, peer, now_s);
    }

    pub fn call(&mut self, asked: &Asked<'_>) -> Seen {
        let (mut seen, now_s) = (Seen::default(), self.now_s);
        let args = asked.args.as_array().unwrap().iter().map(message_value).collect::<Vec<_>>();
        let args = args.iter().map(MessageValue::value).collect::<Vec<_>>();
        let result = message_value(&asked.result);
        let outcome = Outcome { value: result.value(), is_error: asked.is_error };

        let mut server = asked.public.map(str::to_owned);
        let mut at_client = None;
        if let Some(client) = asked.client
            && let Some(call) = self.known(client, asked, &args)
        {
            let peer = self.adapters[client].peer(asked.endpoint).map(str::to_owned);
            let stepped = self.monitor(client).request_sent(call, now_s);
            seen.reports.extend(stepped.reports);
            seen.request = stepped.request;
            assert_eq!(seen.request.is_some(), peer.is_some());
            server = peer.or(server);
            at_client = Some((call, stepped.ticket));
        }
        let service = at_client.as_ref().map(|(call, _)| self.service_of(call)).unwrap_or_default();
        let sender = seen.request.as_ref().map_or(UNKNOWN.to_owned(), |metadata| metadata.sender.clone());
        let known = CallContext { receiver: asked.endpoint, service: &service, sender: &sender };
        if let Some(sent) = &seen.request {
            let block = metadata::encode_request(sent, known);
            seen.block_bytes += block.len();
            assert_eq!(metadata::decode_request(&block, known).as_ref(), Some(sent));
        }
        let mut replied = None;
        if let Some(server) = &server
            && let Some(call) = self.known(server, asked, &args)
        {
            let stepped = self.monitor(server).request_received(call, seen.request.as_ref(), now_s);
            seen.reports.extend(stepped.reports);
            if let Some(ticket) = stepped.ticket {
                let stepped = self.monitor(server).reply_sent(call, ticket, outcome, now_s);
                seen.reports.extend(stepped.reports);
                replied = stepped.reply;
            }
            if let Some(entries) = &replied {
                let block = metadata::encode_reply(entries, known);
                seen.block_bytes += block.len();
                assert_eq!(metadata::decode_reply(&block, known).as_ref(), Some(entries));
            }
        }
        if let Some((call, Some(ticket))) = at_client {
            let monitor = self.monitor(asked.client.unwrap());
            seen.reports.extend(monitor.reply_received(call, ticket, outcome, replied.as_deref(), now_s).reports);
        }
        seen.reply = replied.unwrap_or_default();
        seen
    }

    fn service_of(&self, call: &Call<'_>) -> String {
        let services = self.contract.services();
        let of =
            |id| self.contract.operations(id).any(|name| self.contract.operation(id, name) == Some(call.operation));
        let service = services.into_iter().find(|id| of(*id)).unwrap();
        self.contract.service_name(service).to_owned()
    }

    fn known<'a>(&self, adapter: &str, asked: &Asked<'a>, args: &'a [Value<'a>]) -> Option<Call<'a>> {
        let EndpointState::Service(service) = self.adapters[adapter].standing(asked.endpoint) else { return None };
        let operation = self.contract.operation(service, asked.operation)?;
        Some(Call { endpoint: asked.endpoint, operation, args })
    }

    fn monitor(&mut self, adapter: &str) -> &mut Monitor<MemoryStore> {
        self.adapters.get_mut(adapter).unwrap_or_else(|| panic!("no adapter at {adapter}"))
    }
}
