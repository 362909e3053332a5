//! Prepares a journey: reads its schemas, resolves its names and checks the types of its arguments.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use codecs::soap::{self, Wsdl};
use codecs::thrift::{self, Framing, Header, MessageKind, Protocol};
use codecs::value::Value;
use stats::Distribution;
use study::journey::condition::{self, Condition, Relation};
use study::journey::reply_path::{self, Path, Source};
use study::journey::{Argument, Call, Schema, Step as Written};
use study::url::{self, Url};
use study::{Journey, spec};
use wire::http1::RequestMethod;

use super::cookies::{self, Jar};
use super::reply_values;
use super::values_and_templates::{self, Given, Names, Piece, Template, Values};
use crate::recorder::{Fault, OrFault};
use crate::template_escaping::Syntax;

/// Sequence number of every Thrift call. One number suffices, because a connection has at most one call in flight.
const SEQUENCE: i32 = 1;

#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
    pub(crate) operations: Vec<String>,
    /// Number of counted calls per journey if no condition skips a call.
    pub(crate) calls: u64,
    /// The targets, whose URLs are in the first slots.
    pub(crate) targets: Vec<Target>,
    lets: Vec<(usize, Template)>,
    /// Names of values, by slot.
    names: Vec<String>,
    /// Sum of the weights of all journeys of the load up to and including this one.
    pub(crate) weight_until: u64,
    /// Number of steps of all journeys of the load before this one.
    pub(crate) steps_before: usize,
}

#[derive(Debug)]
pub(crate) struct Target {
    text: String,
    pub(crate) url: Url,
    pub(crate) host: String,
    /// Scheme, host and port, as written in the journey.
    pub(crate) origin: String,
}

#[derive(Debug)]
enum Codec {
    Thrift(Arc<thrift::Schema>),
    Soap(Arc<Wsdl>),
}

#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) operation: usize,
    pub(crate) url: Template,
    pub(crate) asked: RequestMethod,
    method: String,
    headers: Vec<(String, Template)>,
    body: Body,
    pub(crate) once: bool,
    /// Distribution of the pause before a call, ns; `None` for no pause.
    pub(crate) think: Option<Distribution>,
    pub(crate) repeat: u32,
    when: Option<(Template, Relation, Template)>,
    take: Vec<Take>,
    expect: Vec<(Path, String, Given)>,
}

#[derive(Debug)]
struct Take {
    slot: usize,
    source: Source,
    /// Whether the value may be missing or `null`.
    is_optional: bool,
    words: String,
}

#[derive(Debug)]
pub(crate) struct ReplyParts<'a> {
    pub(crate) status: u16,
    /// Final head of the response, without the heads of interim responses.
    pub(crate) head: &'a [u8],
    pub(crate) body: &'a [u8],
    pub(crate) cookies: &'a Jar,
}

impl Step {
    /// Whether the condition of the step holds; true if the step has none.
    pub(crate) fn is_due(&self, values: &mut Values) -> OrFault<bool> {
        let Some((left, relation, right)) = &self.when else { return Ok(true) };
        let (left, right) = (values.text(left).into_owned(), values.text(right));
        relation.holds(&left, &right).map_err(|why| (Fault::Value, format!("`when` of the next step: {why}")))
    }

    /// Fails if HTTP/2 forbids a header.
    fn check_http2(&self) -> Result<(), String> {
        let mut headers = vec![("Host", "host")];
        headers.extend(self.headers.iter().map(|(name, template)| match template.0.as_slice() {
            [Piece::Text(text)] => (name.as_str(), text.as_str()),
            _ => (name.as_str(), ""),
        }));
        wire::http2::request_fields("http", &self.method, "/", &headers, &[]).map(|_| ())
    }

    pub(crate) fn reads_body(&self) -> bool {
        !matches!(self.body, Body::Rest { .. }) || !self.take.is_empty() || !self.expect.is_empty()
    }

    /// Composes the request of the step. Fails if a value from a reply lacks the required type.
    pub(crate) fn compose(
        &self,
        values: &mut Values,
        (host, target): (&str, &str),
        cookies: Option<String>,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let mut headers = vec![("Host", Cow::Borrowed(host))];
        headers.extend(cookies.map(|cookies| ("Cookie", Cow::Owned(cookies))));
        let body = match &self.body {
            Body::Rest { body: None, .. } => Cow::default(),
            Body::Rest { body: Some(body), .. } => match values.text(body) {
                Cow::Borrowed(text) => text.as_bytes().into(),
                Cow::Owned(text) => text.into_bytes().into(),
            },
            Body::Thrift { schema, method, arguments } => {
                headers.push(("Content-Type", "application/x-thrift".into()));
                headers.push(("Accept", "application/x-thrift".into()));
                compose_thrift(schema, method, &values.value(arguments))?.into()
            }
            Body::Soap { schema, operation, arguments } => {
                headers.push(("Content-Type", "text/xml; charset=utf-8".into()));
                headers.push(("SOAPAction", format!("\"{}\"", operation.action).into()));
                let composed = soap::compose_envelope(schema, &operation.input, &values.value(arguments));
                composed.map_err(|error| error.to_string())?.into_bytes().into()
            }
        };
        for (name, template) in &self.headers {
            headers.retain(|header| !header.0.eq_ignore_ascii_case(name));
            headers.push((name, values.text(template)));
        }
        wire::http1::compose_request(out, &self.method, target, &headers, &body, false)
    }

    pub(crate) fn judge(&self, values: &mut Values, reply: &ReplyParts<'_>) -> OrFault<()> {
        let &ReplyParts { status, body, .. } = reply;
        let unexpected = |right: &[u16]| (Fault::Status, study::validate_http::unexpected_status(status, right));
        let said = match &self.body {
            Body::Rest { status: right, .. } => {
                if if right.is_empty() { !(200..=299).contains(&status) } else { !right.contains(&status) } {
                    return Err(unexpected(right));
                }
                let is_read = |take: &Take| matches!(take.source, Source::Value(_));
                if self.take.iter().any(is_read) || !self.expect.is_empty() {
                    codecs::json::parse(body).map_err(|error| (Fault::Body, format!("not valid JSON: {error}")))?
                } else {
                    Value::Null
                }
            }
            Body::Thrift { .. } if status != 200 => return Err(unexpected(&[200])),
            Body::Thrift { schema, method, .. } => thrift_reply(schema, method, body)?,
            // A SOAP fault has status 500 (SOAP 1.1, section 6.2) and explains more than an unexpected status.
            Body::Soap { .. } if status != 200 && status != 500 => return Err(unexpected(&[200])),
            Body::Soap { schema, operation, .. } => match soap_reply(schema, operation, body)? {
                _ if status != 200 => return Err(unexpected(&[200])),
                value => value,
            },
        };
        let wrong_value = |why: String| (Fault::Value, why);
        for (path, words, given) in &self.expect {
            let expected = values.value(given);
            reply_values::expect(path, words, &expected, &said).map_err(wrong_value)?;
        }
        for Take { slot, source, is_optional, words } in &self.take {
            let text =
                |found: Option<&str>| found.map(Value::from).ok_or_else(|| format!("`{words}` is not in the response"));
            let found = match source {
                Source::Value(path) => reply_values::extract(path, words, &said, &mut |count| values.pick(count)),
                Source::Header(name) => text(
                    cookies::fields(reply.head).find(|field| field.0.eq_ignore_ascii_case(name)).map(|field| field.1),
                ),
                Source::Cookie(name) => text(reply.cookies.get(name)),
                Source::DecodedCookie(name) => {
                    let cookie = reply.cookies.get(name);
                    text(cookie.map(|cookie| study::validate_http::percent_decoded(cookie, false)).as_deref())
                }
                Source::Match(regex) => {
                    let found = regex.captures(body).and_then(|found| found.get(1).or(found.get(0)));
                    text(found.and_then(|found| std::str::from_utf8(found.as_bytes()).ok()))
                }
            };
            values.slots[*slot] = match found {
                Err(_) if *is_optional => Value::Null,
                found => found.map_err(wrong_value)?,
            };
        }
        Ok(())
    }
}

#[derive(Debug)]
enum Body {
    Rest { body: Option<Template>, status: Vec<u16> },
    Thrift { schema: Arc<thrift::Schema>, method: Box<thrift::Method>, arguments: Given },
    Soap { schema: Arc<Wsdl>, operation: Box<soap::Operation>, arguments: Given },
}

impl Program {
    pub(crate) fn new(
        journey: &Journey,
        targets: &BTreeMap<String, String>,
        http2: bool,
        (weight_until, steps_before): (u64, usize),
    ) -> Result<Program, Vec<String>> {
        let mut mistakes = Vec::new();
        let mut names = Names::default();
        let mut planned = Vec::new();
        for (name, url) in &journey.targets {
            names.add(name);
            let url = targets.get(name).unwrap_or(url);
            match url::parse(url) {
                Ok(parsed) if matches!(parsed.protocol, spec::Protocol::Http | spec::Protocol::Https) => {
                    let text = url.trim_end_matches('/');
                    let authority = text.find("://").map_or(0, |at| at + 3);
                    let end = text[authority..].find('/').map_or(text.len(), |at| authority + at);
                    let (text, origin) = (text.to_owned(), text[..end].to_owned());
                    planned.push(Target { text, host: parsed.host_field(), url: parsed, origin });
                }
                Ok(_) => mistakes.push(format!("target `{name}`: `{url}` is not an HTTP URL")),
                Err(_) if url.is_empty() => mistakes.push(format!("target `{name}` of the journey has no URL")),
                Err(error) => mistakes.push(format!("target `{name}`: {error}")),
            }
        }
        let mut lets = Vec::new();
        for (name, text) in &journey.lets {
            let template =
                names.template(text, Syntax::Other).map_err(|error| mistakes.push(format!("`{name}`: {error}")));
            let slot = names.add(name);
            lets.extend(template.ok().map(|template| (slot, template)));
        }
        let schemas = journey.schemas.iter().map(|schema| load_schema(schema, &mut mistakes)).collect::<Vec<_>>();
        let operations = journey.operations().into_iter().map(str::to_owned).collect::<Vec<_>>();
        let mut steps = Vec::new();
        for step in &journey.steps {
            let operation = operations.iter().position(|known| *known == step.operation).unwrap_or(0);
            let prepared = prepare_step(step, operation, journey, &schemas, &mut names);
            match prepared.and_then(|step| if http2 { step.check_http2().map(|()| step) } else { Ok(step) }) {
                Ok(step) => steps.push(step),
                Err(mistake) => mistakes.push(format!("step `{}` (line {}): {mistake}", step.operation, step.line)),
            }
        }
        if journey.steps.is_empty() {
            mistakes.push("the journey has no steps".to_owned());
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let (name, calls) = (journey.name.clone(), journey.calls());
        let (targets, names) = (planned, names.0);
        Ok(Program { name, steps, operations, calls, targets, lets, names, weight_until, steps_before })
    }

    pub(crate) fn initial_values(&self, seed: u64, number: u64) -> Values {
        let mut values = Values::new(self.names.len(), seed, number);
        for (slot, target) in self.targets.iter().enumerate() {
            values.slots[slot] = Value::Text(target.text.clone());
        }
        for (slot, template) in &self.lets {
            values.slots[*slot] = Value::Text(values.text(template).into_owned());
        }
        values
    }

    /// Index of the target with which the step's URL begins; `None` if it begins with no target.
    pub(crate) fn target(&self, step: &Step) -> Option<usize> {
        match step.url.0.first() {
            Some(Piece::Slot(slot, _)) if *slot < self.targets.len() => Some(*slot),
            _ => None,
        }
    }

    pub(crate) fn is_called(&self, target: usize) -> bool {
        self.steps.iter().any(|step| self.target(step) == Some(target))
    }

    /// Whether a URL has the same origin as a target that the journey calls.
    pub(crate) fn calls_origin_of(&self, url: &Url) -> bool {
        let mut targets = self.targets.iter().enumerate();
        targets.any(|(index, target)| target.url.same_origin(url) && self.is_called(index))
    }

    /// Whether a client always calls the same server when it begins with this step. False if a number, random
    /// characters or a value of the journey precedes the path of the URL.
    pub(crate) fn has_fixed_server(&self, step: usize) -> bool {
        let mut before = String::new();
        let has_path = |url: &str| url.split_once("://").is_some_and(|(_, rest)| rest.contains(['/', '?']));
        for piece in &self.steps[step].url.0 {
            match piece {
                Piece::Text(text) => before += text,
                Piece::Slot(slot, _) if *slot < self.targets.len() => before += &self.targets[*slot].text,
                Piece::Slot(slot, _) if self.kept_slots().any(|kept| kept == *slot) => before += "http://kept",
                Piece::Slot(..) | Piece::Number(_) | Piece::Random(_) => return has_path(&before),
            }
        }
        true
    }

    /// Lists the values that a step took from its response, for a transcript.
    pub(crate) fn taken(&self, step: &Step, values: &Values) -> String {
        let line = |Take { slot, .. }: &Take| {
            format!("= {}: {}\n", self.names[*slot], values_and_templates::value_text(&values.slots[*slot]))
        };
        step.take.iter().map(line).collect()
    }

    /// Index of the first step in a client's later journeys, which skip `once` steps.
    pub(crate) fn first_repeated(&self) -> usize {
        self.steps.iter().take_while(|step| step.once).count()
    }

    pub(crate) fn kept_slots(&self) -> impl Iterator<Item = usize> {
        self.steps.iter().filter(|step| step.once).flat_map(|step| step.take.iter().map(|take| take.slot))
    }
}

/// Parses a schema; `None` if it has errors, which are added to `mistakes`.
fn load_schema(schema: &Schema, mistakes: &mut Vec<String>) -> Option<Codec> {
    let own = codecs::built_in_schemas::by_file_name(&schema.file).filter(|_| schema.text.is_empty());
    let text = own.unwrap_or(&schema.text);
    if text.is_empty() {
        mistakes.push(format!("schema `{}`: cannot read the file `{}`", schema.name, schema.file));
        return None;
    }
    let mut include = |path: &str| Err(format!("includes are not supported in a journey's schema: `{path}`"));
    let read = if schema.file.ends_with(".wsdl") {
        soap::wsdl::parse(&schema.file, text, &mut include).map(|wsdl| Codec::Soap(Arc::new(wsdl)))
    } else {
        thrift::idl::parse(&schema.file, text, &mut include).map(|schema| Codec::Thrift(Arc::new(schema)))
    };
    read.map_err(|found| mistakes.extend(found.0.iter().map(ToString::to_string))).ok()
}

fn prepare_step(
    step: &Written,
    operation: usize,
    journey: &Journey,
    schemas: &[Option<Codec>],
    names: &mut Names,
) -> Result<Step, String> {
    let prepared = prepare_call(step, operation, journey, schemas, names);
    // Names of taken values are added last, because a step cannot use values of its own reply.
    let take = |(name, text): &(String, String)| {
        let slot = names.slot(name);
        let (words, is_optional) = reply_path::optional(text);
        let source = reply_path::source(words, step.call.reply_root()).map_err(|error| error.in_one_line())?;
        Ok(Take { slot, source, is_optional, words: words.to_owned() })
    };
    let take = step.take.iter().map(take).collect::<Result<_, String>>();
    Ok(Step { take: take?, ..prepared? })
}

/// Prepares a step except for [`Step::take`].
fn prepare_call(
    step: &Written,
    operation: usize,
    journey: &Journey,
    schemas: &[Option<Codec>],
    names: &Names,
) -> Result<Step, String> {
    let header = |(name, text): &(String, String)| Ok((name.clone(), names.template(text, Syntax::Header)?));
    let media_type = step.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let media_type = media_type.map(|(_, text)| text.as_str());
    let (method, body) = match &step.call {
        Call::Rest { method, body, status } => {
            let template = |body: &String| names.template(body, Syntax::of_body(media_type, body));
            let body = body.as_ref().map(template).transpose()?;
            (method.as_str(), Body::Rest { body, status: status.clone() })
        }
        Call::Thrift { schema, method: called, arguments } | Call::Soap { schema, operation: called, arguments } => {
            let mut known = journey.schemas.iter().zip(schemas).filter(|known| known.0.name == *schema);
            let Some((Schema { file, .. }, Some(codec))) = known.next() else {
                return Err(format!("the schema `{schema}` cannot be read"));
            };
            let arguments = names.argument(arguments)?;
            let sample = names.unknown_values().value(&arguments);
            let body = match (&step.call, codec) {
                (Call::Thrift { .. }, Codec::Thrift(schema)) => thrift_body(schema, file, called, arguments, &sample)?,
                (Call::Soap { .. }, Codec::Soap(wsdl)) => soap_body(wsdl, file, called, arguments, &sample)?,
                (_, Codec::Soap(_)) => return Err(format!("the schema `{schema}` is not Thrift")),
                (_, Codec::Thrift(_)) => return Err(format!("the schema `{schema}` is not WSDL")),
            };
            ("POST", body)
        }
    };
    let think = match step.think.as_str() {
        "" => None,
        law => Some(study::time_law::parse(law).map_err(|error| error.in_one_line())?),
    };
    let when = match step.when.as_str() {
        "" => None,
        text => {
            let Condition { left, relation, right } = condition::parse(text)?;
            Some((names.template(&left, Syntax::Other)?, relation, names.template(&right, Syntax::Other)?))
        }
    };
    let expect = |(text, argument): &(String, Argument)| {
        let path = reply_path::parse(text).map_err(|error| error.in_one_line())?;
        Ok((path, text.clone(), names.argument(argument)?))
    };
    Ok(Step {
        operation,
        url: names.template(&step.url, Syntax::Url)?,
        asked: RequestMethod::parse(method),
        method: method.to_owned(),
        headers: step.headers.iter().map(header).collect::<Result<_, String>>()?,
        body,
        once: step.once,
        think,
        repeat: step.repeat.max(1),
        when,
        take: Vec::new(),
        expect: step.expect.iter().map(expect).collect::<Result<_, String>>()?,
    })
}

/// Prepares a Thrift call, of which `sample` are the arguments with placeholders for values unknown until then.
fn thrift_body(
    schema: &Arc<thrift::Schema>,
    file: &str,
    method: &str,
    arguments: Given,
    sample: &Value,
) -> Result<Body, String> {
    let called = method.split_once('.').and_then(|(service, name)| schema.service(service)?.method(name));
    let called = called.ok_or_else(|| format!("`{file}` has no method `{method}`"))?;
    if called.is_oneway {
        return Err(format!("`{method}` is oneway, so it has no reply to verify"));
    }
    compose_thrift(schema, called, sample)?;
    // Thrift allows omissions, but servers then read unintended defaults.
    let fields = schema.structure(called.arguments).in_order();
    let missing = fields.filter(|field| field.default.is_none() && sample.get(&field.name).is_none());
    let missing = missing.map(|field| format!("`{}`", field.name)).collect::<Vec<_>>();
    if !missing.is_empty() {
        return Err(format!("missing arguments of `{method}`: {}", missing.join(", ")));
    }
    Ok(Body::Thrift { schema: schema.clone(), method: Box::new(called.clone()), arguments })
}

/// Prepares a SOAP call as [`thrift_body`] does.
fn soap_body(wsdl: &Arc<Wsdl>, file: &str, operation: &str, arguments: Given, sample: &Value) -> Result<Body, String> {
    let called = wsdl.operation(operation).ok_or_else(|| format!("`{file}` has no operation `{operation}`"))?;
    soap::compose_envelope(wsdl, &called.input, sample).map_err(|error| error.to_string())?;
    Ok(Body::Soap { schema: wsdl.clone(), operation: Box::new(called.clone()), arguments })
}

fn compose_thrift(schema: &thrift::Schema, method: &thrift::Method, arguments: &Value) -> Result<Vec<u8>, String> {
    let header = Header { name: &method.name, kind: MessageKind::Call, sequence: SEQUENCE, is_strict: true };
    let (protocol, framing) = (Protocol::Binary, Framing::Unframed);
    thrift::compose_message(protocol, framing, &header, schema, method.arguments, arguments)
        .map_err(|error| error.to_string())
}

fn thrift_reply(schema: &thrift::Schema, method: &thrift::Method, body: &[u8]) -> OrFault<Value> {
    let message = thrift::Message::decode(Protocol::Binary, body, &thrift::Limits::DEFAULT)
        .map_err(|error| (Fault::Body, format!("not a Thrift message: {error}")))?;
    let header = message.header;
    if !matches!(header.kind, MessageKind::Reply | MessageKind::Exception) {
        return Err((Fault::WrongAnswer, "message is not a reply".to_owned()));
    }
    if header.name != method.name || header.sequence != SEQUENCE {
        let found = format!("got the reply to `{}`, number {}", header.name.escape_debug(), header.sequence);
        return Err((Fault::WrongAnswer, format!("{found}, expected `{}`, number {SEQUENCE}", method.name)));
    }
    match message.outcome(schema, method) {
        thrift::Outcome::Returned(value) => Ok(value.map_or(Value::Null, |value| value.to_value())),
        thrift::Outcome::Threw(name, _) => Err((Fault::ErrorAnswer, format!("`{}` threw `{name}`", method.name))),
        thrift::Outcome::Failed { message, .. } => {
            let why = String::from_utf8_lossy(message).chars().take(200).collect::<String>();
            Err((Fault::ErrorAnswer, format!("`{}` failed: {why}", method.name)))
        }
        thrift::Outcome::Missing => Err((Fault::Body, format!("the response to `{}` has no result", method.name))),
    }
}

fn soap_reply(wsdl: &Wsdl, operation: &soap::Operation, body: &[u8]) -> OrFault<Value> {
    let wrong = |error: soap::DecodeError| (Fault::Body, error.to_string());
    let envelope = soap::Envelope::parse(body, &soap::Limits::DEFAULT).map_err(wrong)?;
    match envelope.response(wsdl, operation).map_err(wrong)? {
        soap::Response::Fault(fault) => {
            let why = fault.string.chars().take(200).collect::<String>();
            Err((Fault::ErrorAnswer, format!("`{}` failed: {}: {why}", operation.name, fault.code_name())))
        }
        soap::Response::Returned { result, all } => Ok(result.unwrap_or(all).to_value()),
    }
}
