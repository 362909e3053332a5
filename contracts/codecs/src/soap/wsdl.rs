//! WSDL 1.1 with XML Schema, document/literal over SOAP 1.1. Resolves files into a [`Wsdl`].
//! # The subset
//! | part | supported | error |
//! |---|---|---|
//! | bindings | SOAP 1.1, `document`, `literal`; others are omitted | `rpc`, `encoded` in a SOAP 1.1 binding |
//! | messages | one part with an element | parts with a type, several parts in a body |
//! | complex types | `sequence`, `all`, `choice` (none of its elements is required), nested; `extension` of complex content; attributes; `any` is ignored | `restriction` of complex content, `simpleContent`, `group`, `attributeGroup` |
//! | simple types | `restriction` with its `enumeration`, other facets are ignored; `list` and `union` are text | an unknown base |
//! | elements | named or inline types, `ref`, `minOccurs`, `maxOccurs`, `nillable`, `form`; substitution groups are ignored | |
//! | files | `import`, `include` with a location; cycles are allowed | |

use std::collections::{BTreeMap, BTreeSet};

use config::nearest::did_you_mean;

use super::resolved_wsdl::{
    Builtin, Complex, ComplexId, Enumeration, EnumerationId, Field, Message, Operation, Service, Type, Wsdl, builtin,
};
use super::xml_tree::{Document, Limits, Node};
use crate::mistake::{Mistake, Mistakes, ReadFile};

const WSDL: &str = "http://schemas.xmlsoap.org/wsdl/";
const SOAP: &str = "http://schemas.xmlsoap.org/wsdl/soap/";
const XSD: &str = "http://www.w3.org/2001/XMLSchema";

/// Maximum number of imported files, including indirect imports.
pub const FILES_MAX: usize = 256;

/// Maximum nesting of types.
const DEPTH_MAX: usize = 64;
/// Maximum number of fields of all types together.
const FIELDS_MAX: usize = 1 << 16;

const LIMITS: Limits =
    Limits { document_bytes: 4 << 20, depth: DEPTH_MAX, elements: 1 << 17, attributes: 64, text_bytes: 1 << 20 };

/// Parses the WSDL `text`, called `source` in errors. `import` gets a file's text by location. Fails with all errors.
pub fn parse(source: &str, text: &str, import: ReadFile<'_>) -> Result<Wsdl, Mistakes> {
    let mut mistakes = Vec::new();
    let texts = load(source, text, import, &mut mistakes);
    let sources = texts.iter().map(|text| text.0.as_str()).collect::<Vec<_>>();
    if !mistakes.is_empty() {
        return Err(Mistakes(mistakes));
    }
    let documents = texts.iter().filter_map(|(source, text)| Document::parse(source, text.as_bytes(), &LIMITS).ok());
    let documents = documents.collect::<Vec<_>>();
    let mut reader = Reader { fields_left: FIELDS_MAX, mistakes, ..Reader::default() };
    documents.iter().for_each(|document| reader.index(document.root()));
    documents.iter().for_each(|document| reader.services(document.root()));
    if reader.wsdl.operations().next().is_none() && reader.mistakes.is_empty() {
        let hint = Some("add a `service` with a `port` that has a SOAP 1.1 address and binding".to_owned());
        reader.tell_hint(documents[0].root(), "no SOAP 1.1 operation found", hint);
    }
    Mistakes::or(reader.mistakes, &sources, reader.wsdl)
}

fn load(source: &str, text: &str, import: ReadFile<'_>, mistakes: &mut Vec<Mistake>) -> Vec<(String, String)> {
    let mut texts = vec![(source.to_owned(), text.to_owned())];
    let mut known = BTreeSet::from([source.to_owned()]);
    let mut next = 0;
    while next < texts.len() {
        let (source, text) = texts[next].clone();
        next += 1;
        let mut tell = |at: usize, what: String| mistakes.push(Mistake::new(&source, &text, at, what, None));
        let document = Document::parse(&source, text.as_bytes(), &LIMITS).map_err(|error| tell(error.at, error.what));
        let Ok(document) = document else { continue };
        for node in document.nodes() {
            let location = match node.full_name() {
                (WSDL, "import") => node.attribute("location"),
                (XSD, "import" | "include") => node.attribute("schemaLocation"),
                _ => None,
            };
            let Some(location) = location.filter(|location| known.insert((*location).to_owned())) else { continue };
            let at = node.element().at;
            if texts.len() > FILES_MAX {
                tell(at, format!("more than {FILES_MAX} imported files"));
                return texts;
            }
            match import(location) {
                Ok(text) => texts.push((location.to_owned(), text)),
                Err(why) => tell(at, format!("`{location}` cannot be imported: {why}")),
            }
        }
    }
    texts
}

type Name<'f> = (&'f str, &'f str);

#[derive(Default)]
struct Reader<'f> {
    /// Definitions by kind (`type`, `port type`), namespace and name.
    definitions: BTreeMap<(&'static str, Name<'f>), Node<'f>>,
    /// Types read so far, by file and element of the definition.
    types: BTreeMap<(&'f str, u32), Type>,
    wsdl: Wsdl,
    depth: usize,
    fields_left: usize,
    mistakes: Vec<Mistake>,
}

impl<'f> Reader<'f> {
    fn tell(&mut self, node: Node<'_>, text: impl Into<String>) {
        self.tell_hint(node, text, None);
    }

    fn tell_hint(&mut self, node: Node<'_>, text: impl Into<String>, hint: Option<String>) {
        self.mistakes.push(Mistake::new(node.document.source, node.document.text, node.element().at, text, hint));
    }

    /// Returns a required attribute. If it is missing, reports an error and returns an empty string.
    fn required(&mut self, node: Node<'f>, name: &str) -> &'f str {
        node.attribute(name).unwrap_or_else(|| {
            self.tell(node, format!("`{}` has no attribute `{name}`", node.name()));
            ""
        })
    }

    /// Returns the qualified name in an attribute. Reports an error and returns `None` if it is missing or undeclared.
    fn qualified(&mut self, node: Node<'f>, attribute: &str) -> Option<Name<'f>> {
        let value = self.required(node, attribute);
        if value.is_empty() {
            return None;
        }
        let found = node.qualified(value);
        if found.is_none() {
            self.tell(node, format!("undeclared prefix in `{value}`"));
        }
        found
    }

    fn referred(&mut self, node: Node<'f>, attribute: &str, kind: &'static str) -> Option<(Name<'f>, Node<'f>)> {
        let name = self.qualified(node, attribute)?;
        Some((name, self.look_up(node, kind, name)?))
    }

    fn look_up(&mut self, node: Node<'f>, kind: &'static str, name: Name<'f>) -> Option<Node<'f>> {
        let found = self.definitions.get(&(kind, name)).copied();
        if found.is_none() {
            let same = self.definitions.keys().filter(|key| key.0 == kind).map(|key| key.1);
            let elsewhere = same.clone().find(|other| other.1 == name.1).map(|other| match other.0 {
                "" => "it exists without a namespace".to_owned(),
                namespace => format!("it exists in namespace `{namespace}`"),
            });
            let hint = elsewhere.or_else(|| did_you_mean(name.1, same.map(|other| other.1)));
            self.tell_hint(node, format!("no {kind} `{}` in namespace `{}`", name.1, name.0), hint);
        }
        found
    }

    fn index(&mut self, root: Node<'f>) {
        if root.is(XSD, "schema") {
            return self.index_children(root);
        }
        if !root.is(WSDL, "definitions") {
            let hint = Some("WSDL 1.1 starts with `definitions`, a schema with `schema`".to_owned());
            return self.tell_hint(root, format!("`{}` is neither a WSDL nor a schema", root.name()), hint);
        }
        self.index_children(root);
        for types in root.children_named(WSDL, "types") {
            types.children_named(XSD, "schema").for_each(|schema| self.index_children(schema));
        }
    }

    fn index_children(&mut self, parent: Node<'f>) {
        let namespace = parent.attribute("targetNamespace").unwrap_or_default();
        let language = parent.namespace();
        for child in parent.children().filter(|child| child.namespace() == language) {
            let kind = match child.full_name() {
                (WSDL, "message") => "message",
                (WSDL, "portType") => "port type",
                (WSDL, "binding") => "binding",
                (XSD, "element") => "element",
                (XSD, "complexType" | "simpleType") => "type",
                _ => continue,
            };
            let name = self.required(child, "name");
            if self.definitions.insert((kind, (namespace, name)), child).is_some() {
                self.tell(child, format!("`{name}` is defined twice"));
            }
        }
    }

    fn type_of(&mut self, node: Node<'f>, name: &str) -> Option<Type> {
        if node.attribute("type").is_some() {
            return self.type_named(node, "type");
        }
        let inner = node.children().find(|child| matches!(child.full_name(), (XSD, "complexType" | "simpleType")));
        inner.map_or(Some(Type::Any), |inner| self.type_at(inner, name))
    }

    fn type_named(&mut self, node: Node<'f>, attribute: &str) -> Option<Type> {
        let name = self.qualified(node, attribute)?;
        if name.0 == XSD {
            let found = builtin(name.1);
            if found.is_none() {
                self.tell(node, format!("unsupported XML Schema type `{}`", name.1));
            }
            return found;
        }
        let definition = self.look_up(node, "type", name)?;
        self.type_at(definition, name.1)
    }

    fn type_at(&mut self, node: Node<'f>, name: &str) -> Option<Type> {
        let key = (node.document.source, node.index);
        if let Some(known) = self.types.get(&key) {
            return Some(*known);
        }
        if self.depth == DEPTH_MAX {
            self.tell(node, format!("types nested deeper than {DEPTH_MAX} levels"));
            return None;
        }
        self.depth += 1;
        // Registers the type before resolving its parts, so that a cycle ends.
        let found = if node.name() == "simpleType" {
            self.types.insert(key, Type::Simple(Builtin::Text, None));
            self.simple(node, name)
        } else {
            let id = ComplexId(self.wsdl.complex.len() as u32);
            self.wsdl.complex.push(Complex { name: name.to_owned(), fields: Vec::new(), is_choice: false });
            self.types.insert(key, Type::Complex(id));
            self.complex(id, node, name);
            Some(Type::Complex(id))
        };
        self.types.extend(found.map(|found| (key, found)));
        self.depth -= 1;
        found
    }

    fn simple(&mut self, node: Node<'f>, name: &str) -> Option<Type> {
        let Some(restriction) = node.child_named(XSD, "restriction") else {
            return Some(Type::Simple(Builtin::Text, None));
        };
        let base = match restriction.attribute("base") {
            Some(_) => self.type_named(restriction, "base")?,
            None => self.type_of(restriction, name)?,
        };
        let Some(builtin) = base.builtin() else {
            self.tell(restriction, format!("the base of `{name}` is not a simple type"));
            return None;
        };
        let values = restriction.children_named(XSD, "enumeration");
        let values = values.map(|value| self.required(value, "value").to_owned()).collect::<Vec<_>>();
        if values.is_empty() {
            return Some(Type::Simple(builtin, None));
        }
        let id = EnumerationId(self.wsdl.enumerations.len() as u32);
        self.wsdl.enumerations.push(Enumeration { name: name.to_owned(), values });
        Some(Type::Simple(builtin, Some(id)))
    }

    fn complex(&mut self, id: ComplexId, node: Node<'f>, name: &str) {
        let (mut fields, mut is_choice) = (Vec::new(), false);
        self.content(node, &mut fields, &mut is_choice);
        let mut names = BTreeSet::new();
        if let Some(twice) = fields.iter().find(|field: &&Field| !names.insert(field.name.as_str())) {
            self.tell(node, format!("`{name}` has two fields `{}`", twice.name));
        }
        fields.sort_by_key(|field| field.is_attribute);
        self.fields_left = self.fields_left.saturating_sub(fields.len());
        if self.fields_left == 0 {
            self.tell(node, format!("more than {FIELDS_MAX} fields"));
            fields.clear();
        }
        let complex = &mut self.wsdl.complex[id.0 as usize];
        (complex.fields, complex.is_choice) = (fields, is_choice);
    }

    fn content(&mut self, node: Node<'f>, fields: &mut Vec<Field>, is_choice: &mut bool) {
        for child in node.children().filter(|child| child.namespace() == XSD) {
            match child.name() {
                "sequence" | "all" => self.particles(child, fields, false),
                "choice" => {
                    *is_choice = true;
                    self.particles(child, fields, true);
                }
                "attribute" => self.field(child, fields, false),
                "complexContent" => {
                    for derived in child.children() {
                        match derived.name() {
                            "extension" => self.extension(derived, fields, is_choice),
                            "annotation" => {}
                            other => self.tell(derived, format!("`{other}` in complex content is not supported")),
                        }
                    }
                }
                "annotation" | "anyAttribute" => {}
                other => self.tell(child, format!("`{other}` in a complex type is not supported")),
            }
        }
    }

    fn extension(&mut self, node: Node<'f>, fields: &mut Vec<Field>, is_choice: &mut bool) {
        match self.type_named(node, "base") {
            // A base that is still being read extends itself and has no fields yet, so the cycle ends.
            Some(Type::Complex(id)) => fields.extend(self.wsdl.complex(id).fields.iter().cloned()),
            Some(Type::Any) | None => {}
            Some(_) => self.tell(node, "the base of complex content is not a complex type"),
        }
        self.content(node, fields, is_choice);
    }

    fn particles(&mut self, node: Node<'f>, fields: &mut Vec<Field>, is_optional: bool) {
        let is_optional = is_optional || node.attribute("minOccurs") == Some("0");
        if self.occurs(node, "maxOccurs") != Some(1) {
            self.tell(node, format!("`{}` that may occur more than once is not supported", node.name()));
        }
        for child in node.children().filter(|child| child.namespace() == XSD) {
            match child.name() {
                "element" => self.field(child, fields, is_optional),
                "sequence" => self.particles(child, fields, is_optional),
                "choice" => self.particles(child, fields, true),
                "any" | "annotation" => {}
                other => self.tell(child, format!("`{other}` is not supported")),
            }
        }
    }

    /// Returns `minOccurs` or `maxOccurs`; `None` for `unbounded`.
    fn occurs(&mut self, node: Node<'f>, attribute: &str) -> Option<u32> {
        match node.attribute(attribute) {
            Some("unbounded") if attribute == "maxOccurs" => None,
            text => Some(text.unwrap_or("1").trim().parse().unwrap_or_else(|_| {
                self.tell(node, format!("`{attribute}` is {:?}, not a number", text.unwrap_or_default()));
                1
            })),
        }
    }

    fn field(&mut self, node: Node<'f>, fields: &mut Vec<Field>, is_optional: bool) {
        let is_attribute = node.name() == "attribute";
        let (min, max) = match is_attribute {
            true => (u32::from(node.attribute("use") == Some("required")), Some(1)),
            false => {
                let min = self.occurs(node, "minOccurs").filter(|_| !is_optional);
                (min.unwrap_or(0), self.occurs(node, "maxOccurs"))
            }
        };
        if max.is_some_and(|max| max < min) {
            return self.tell(node, format!("`maxOccurs` is less than `minOccurs`, {min}"));
        }
        let ((namespace, name), definition) = if node.attribute("ref").is_some() {
            if is_attribute {
                // References to attributes are checked and otherwise ignored.
                let _ = self.qualified(node, "ref");
                return;
            }
            let Some(referred) = self.referred(node, "ref", "element") else { return };
            referred
        } else {
            let mut ancestors = node.ancestors();
            let schema = ancestors.find(|node| node.is(XSD, "schema")).unwrap_or(node.document.root());
            let default = if is_attribute { "attributeFormDefault" } else { "elementFormDefault" };
            let namespace = match node.attribute("form").or_else(|| schema.attribute(default)) {
                Some("qualified") => schema.attribute("targetNamespace").unwrap_or_default(),
                _ => "",
            };
            ((namespace, self.required(node, "name")), node)
        };
        let Some(ty) = self.type_of(definition, name) else { return };
        let is_nillable = matches!(definition.attribute("nillable").map(str::trim), Some("true" | "1"));
        let (name, namespace) = (name.to_owned(), namespace.to_owned());
        fields.push(Field { name, namespace, ty, min, max, is_nillable, is_attribute });
    }

    fn services(&mut self, root: Node<'f>) {
        for service in root.children_named(WSDL, "service") {
            let name = self.required(service, "name").to_owned();
            let mut operations = Vec::new();
            for port in service.children_named(WSDL, "port") {
                // Skips ports of other bindings, which have their addresses in other namespaces.
                let Some(address) = port.child_named(SOAP, "address") else { continue };
                self.required(address, "location");
                self.required(port, "name");
                let Some((_, binding)) = self.referred(port, "binding", "binding") else { continue };
                operations.extend(self.binding(binding));
            }
            self.wsdl.services.push(Service { name, operations });
        }
    }

    fn binding(&mut self, binding: Node<'f>) -> Vec<Operation> {
        let Some((_, port_type)) = self.referred(binding, "type", "port type") else { return Vec::new() };
        let style = binding.child_named(SOAP, "binding").and_then(|soap| soap.attribute("style"));
        let mut operations = Vec::new();
        for bound in binding.children_named(WSDL, "operation") {
            let name = self.required(bound, "name");
            let soap = bound.child_named(SOAP, "operation");
            if soap.and_then(|soap| soap.attribute("style")).or(style) == Some("rpc") {
                self.tell(bound, format!("`{name}` is `rpc`; only `document` is supported"));
                continue;
            }
            for body in bound.children().flat_map(|way| way.children_named(SOAP, "body")) {
                if body.attribute("use") == Some("encoded") {
                    self.tell(body, format!("`{name}` is `encoded`; only `literal` is supported"));
                }
            }
            let mut abstracts = port_type.children_named(WSDL, "operation");
            let Some(operation) = abstracts.find(|other| other.attribute("name") == Some(name)) else {
                self.tell(bound, format!("the port type has no operation `{name}`"));
                continue;
            };
            let Some(input) = operation.child_named(WSDL, "input") else {
                self.tell(operation, format!("`{name}` has no `input`"));
                continue;
            };
            let input = self.message(input);
            let output = operation.child_named(WSDL, "output").and_then(|output| self.message(output));
            let Some(input) = input else { continue };
            let action = soap.and_then(|soap| soap.attribute("soapAction")).unwrap_or_default();
            operations.push(Operation { name: name.to_owned(), action: action.to_owned(), input, output });
        }
        operations
    }

    fn message(&mut self, node: Node<'f>) -> Option<Message> {
        let ((_, name), message) = self.referred(node, "message", "message")?;
        let parts = message.children_named(WSDL, "part").collect::<Vec<_>>();
        let [part] = parts[..] else {
            self.tell(message, format!("message `{name}` has {} parts, expected one", parts.len()));
            return None;
        };
        if part.attribute("element").is_none() {
            let hint = Some("document/literal needs parts with an `element`".to_owned());
            self.tell_hint(part, format!("the part of message `{name}` has no `element`"), hint);
            return None;
        }
        let ((namespace, element), definition) = self.referred(part, "element", "element")?;
        let Type::Complex(content) = self.type_of(definition, element)? else {
            self.tell(definition, format!("`{element}` is a message without a complex type"));
            return None;
        };
        Some(Message { element: element.to_owned(), namespace: namespace.to_owned(), content })
    }
}
