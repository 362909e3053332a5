//! WSDL 1.1 with XML Schema, document/literal over SOAP 1.1. Resolves files into a [`Wsdl`].
//!
//! # The subset
//!
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
use config::place::line_and_column;

use super::types::{
    Complex, ComplexId, Field, Message, Operation, Port, Service, Simple, SimpleId, Type, Wsdl, builtin,
};
use super::xml::{Document, Limits};
use crate::mistake::{MISTAKES_MAX, Mistake, Mistakes};

const WSDL: &str = "http://schemas.xmlsoap.org/wsdl/";
const SOAP: &str = "http://schemas.xmlsoap.org/wsdl/soap/";
const XSD: &str = "http://www.w3.org/2001/XMLSchema";

/// Maximum number of imported files, including indirect imports.
pub const FILES_MAX: usize = 256;

/// Maximum nesting of types, and maximum number of fields of all types together.
const DEPTH_MAX: usize = 64;
const FIELDS_MAX: usize = 1 << 16;

const LIMITS: Limits =
    Limits { document_bytes: 4 << 20, depth: DEPTH_MAX, elements: 1 << 17, attributes: 64, text_bytes: 1 << 20 };

/// Parses the WSDL `text`; `source` is its name in error messages. `import` returns the text of a
/// file by its location as written, or the reason why it cannot. It is called once per location.
///
/// Returns all errors of the file and its imports.
pub fn parse(
    source: &str,
    text: &str,
    import: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<Wsdl, Mistakes> {
    let mut mistakes = Vec::new();
    let texts = load(source, text, import, &mut mistakes);
    if !mistakes.is_empty() {
        return Err(Mistakes(mistakes));
    }
    let files = texts.iter().filter_map(|(source, text)| {
        let document = Document::parse(text.as_bytes(), &LIMITS).ok()?;
        Some(File { source, text, document })
    });
    let mut reader = Reader {
        files: files.collect(),
        names: BTreeMap::new(),
        types: BTreeMap::new(),
        wsdl: Wsdl::default(),
        depth: 0,
        fields_left: FIELDS_MAX,
        mistakes,
    };
    reader.index();
    reader.services();
    let mut mistakes = reader.mistakes;
    if mistakes.is_empty() {
        return Ok(reader.wsdl);
    }
    let order = |source: &str| texts.iter().position(|text| text.0 == source);
    mistakes.sort_by_key(|mistake| (order(&mistake.source), mistake.line, mistake.column));
    mistakes.dedup();
    mistakes.truncate(MISTAKES_MAX);
    Err(Mistakes(mistakes))
}

fn load(
    source: &str,
    text: &str,
    import: &mut dyn FnMut(&str) -> Result<String, String>,
    mistakes: &mut Vec<Mistake>,
) -> Vec<(String, String)> {
    let mut texts = vec![(source.to_owned(), text.to_owned())];
    let mut known = BTreeSet::from([source.to_owned()]);
    let mut next = 0;
    while next < texts.len() {
        let (source, text) = texts[next].clone();
        next += 1;
        let mut tell = |at: usize, what: String| {
            let (line, column) = line_and_column(&text, at);
            mistakes.push(Mistake { source: source.clone(), line, column, text: what, hint: None });
        };
        let document = match Document::parse(text.as_bytes(), &LIMITS) {
            Ok(document) => document,
            Err(error) => {
                tell(error.at, error.what);
                continue;
            }
        };
        for index in 0..document.elements.len() as u32 {
            let location = match (document.namespace(index), document.element(index).name) {
                (WSDL, "import") => document.attribute(index, "location"),
                (XSD, "import" | "include") => document.attribute(index, "schemaLocation"),
                _ => None,
            };
            let Some(location) = location.filter(|location| known.insert((*location).to_owned())) else { continue };
            let at = document.element(index).at;
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

struct File<'f> {
    source: &'f str,
    text: &'f str,
    document: Document<'f>,
}

/// File index and element index.
type ElementId = (usize, u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Space {
    Element,
    Type,
    Message,
    PortType,
    Binding,
}

struct Reader<'f> {
    files: Vec<File<'f>>,
    names: BTreeMap<(Space, String, String), ElementId>,
    /// Types read so far, by their definition.
    types: BTreeMap<ElementId, Type>,
    wsdl: Wsdl,
    depth: usize,
    fields_left: usize,
    mistakes: Vec<Mistake>,
}

impl Reader<'_> {
    fn tell(&mut self, place: ElementId, text: String, hint: Option<String>) {
        let file = &self.files[place.0];
        let (line, column) = line_and_column(file.text, file.document.element(place.1).at);
        self.mistakes.push(Mistake { source: file.source.to_owned(), line, column, text, hint });
    }

    fn children(&self, place: ElementId) -> Vec<ElementId> {
        self.files[place.0].document.children(place.1).map(|child| (place.0, child)).collect()
    }

    fn children_named(&self, place: ElementId, namespace: &str, name: &str) -> Vec<ElementId> {
        let mut children = self.children(place);
        children.retain(|child| self.is(*child, namespace, name));
        children
    }

    fn is(&self, place: ElementId, namespace: &str, name: &str) -> bool {
        self.files[place.0].document.is(place.1, namespace, name)
    }

    fn name(&self, place: ElementId) -> String {
        self.files[place.0].document.element(place.1).name.to_owned()
    }

    fn attribute(&self, place: ElementId, name: &str) -> Option<String> {
        self.files[place.0].document.attribute(place.1, name).map(str::to_owned)
    }

    /// A required attribute. Reports an error and returns an empty string if it is missing.
    fn required(&mut self, place: ElementId, name: &str) -> String {
        self.attribute(place, name).unwrap_or_else(|| {
            let element = self.name(place);
            self.tell(place, format!("`{element}` has no attribute `{name}`"), None);
            String::new()
        })
    }

    /// A qualified name in an attribute. Reports an error if it is missing or undeclared.
    fn qualified(&mut self, place: ElementId, attribute: &str) -> Option<(String, String)> {
        let value = self.required(place, attribute);
        if value.is_empty() {
            return None;
        }
        let document = &self.files[place.0].document;
        let found = document.qualified(place.1, &value).map(|name| (name.0.to_owned(), name.1.to_owned()));
        if found.is_none() {
            self.tell(place, format!("undeclared prefix in `{value}`"), None);
        }
        found
    }

    fn look_up(&mut self, place: ElementId, space: Space, name: &(String, String)) -> Option<ElementId> {
        let found = self.names.get(&(space, name.0.clone(), name.1.clone())).copied();
        if found.is_none() {
            let what = match space {
                Space::Element => "element",
                Space::Type => "type",
                Space::Message => "message",
                Space::PortType => "port type",
                Space::Binding => "binding",
            };
            let same = self.names.keys().filter(|key| key.0 == space);
            let elsewhere = same.clone().find(|key| key.2 == name.1).map(|key| {
                if key.1.is_empty() {
                    "it exists without a namespace".to_owned()
                } else {
                    format!("it exists in namespace `{}`", key.1)
                }
            });
            let hint = elsewhere.or_else(|| did_you_mean(&name.1, same.map(|key| key.2.as_str())));
            self.tell(place, format!("no {what} `{}` in namespace `{}`", name.1, name.0), hint);
        }
        found
    }

    fn index(&mut self) {
        for file in 0..self.files.len() {
            let root = (file, 0);
            if self.is(root, XSD, "schema") {
                self.index_schema(root);
                continue;
            }
            if !self.is(root, WSDL, "definitions") {
                let name = self.name(root);
                let hint = Some("WSDL 1.1 starts with `definitions`, a schema with `schema`".to_owned());
                self.tell(root, format!("`{name}` is neither a WSDL nor a schema"), hint);
                continue;
            }
            let namespace = self.attribute(root, "targetNamespace").unwrap_or_default();
            if file == 0 {
                self.wsdl.namespace = namespace.clone();
            }
            for child in self.children(root) {
                let document = &self.files[file].document;
                let space = match (document.namespace(child.1), document.element(child.1).name) {
                    (WSDL, "message") => Space::Message,
                    (WSDL, "portType") => Space::PortType,
                    (WSDL, "binding") => Space::Binding,
                    (WSDL, "types") => {
                        for schema in self.children_named(child, XSD, "schema") {
                            self.index_schema(schema);
                        }
                        continue;
                    }
                    _ => continue,
                };
                self.index_name(space, namespace.clone(), child);
            }
        }
    }

    fn index_schema(&mut self, schema: ElementId) {
        let namespace = self.attribute(schema, "targetNamespace").unwrap_or_default();
        for child in self.children(schema) {
            let document = &self.files[child.0].document;
            let space = match (document.namespace(child.1), document.element(child.1).name) {
                (XSD, "element") => Space::Element,
                (XSD, "complexType" | "simpleType") => Space::Type,
                _ => continue,
            };
            self.index_name(space, namespace.clone(), child);
        }
    }

    fn index_name(&mut self, space: Space, namespace: String, place: ElementId) {
        let name = self.required(place, "name");
        if self.names.insert((space, namespace, name.clone()), place).is_some() {
            self.tell(place, format!("`{name}` is defined twice"), None);
        }
    }

    fn schema_of(&self, place: ElementId) -> ElementId {
        let document = &self.files[place.0].document;
        let mut ancestors = std::iter::successors(Some(place.1), |index| document.element(*index).parent);
        (place.0, ancestors.find(|index| document.is(*index, XSD, "schema")).unwrap_or(0))
    }

    fn type_of(&mut self, place: ElementId, name: &str) -> Option<Type> {
        if self.attribute(place, "type").is_some() {
            let type_name = self.qualified(place, "type")?;
            return self.type_named(place, &type_name);
        }
        let inner = self
            .children(place)
            .into_iter()
            .find(|child| self.is(*child, XSD, "complexType") || self.is(*child, XSD, "simpleType"));
        match inner {
            Some(inner) => self.type_at(inner, name),
            None => Some(Type::Any),
        }
    }

    fn type_named(&mut self, place: ElementId, name: &(String, String)) -> Option<Type> {
        if name.0 == XSD {
            let found = builtin(&name.1);
            if found.is_none() {
                let text = format!("unsupported XML Schema type `{}`", name.1);
                self.tell(place, text, None);
            }
            return found;
        }
        let definition = self.look_up(place, Space::Type, name)?;
        self.type_at(definition, &name.1)
    }

    fn type_at(&mut self, place: ElementId, name: &str) -> Option<Type> {
        if let Some(known) = self.types.get(&place) {
            return Some(*known);
        }
        if self.depth == DEPTH_MAX {
            self.tell(place, format!("types nested deeper than {DEPTH_MAX} levels"), None);
            return None;
        }
        self.depth += 1;
        let found =
            if self.is(place, XSD, "simpleType") { self.simple(place, name) } else { self.complex(place, name) };
        self.depth -= 1;
        found
    }

    fn simple(&mut self, place: ElementId, name: &str) -> Option<Type> {
        let id = SimpleId(self.wsdl.simple.len() as u32);
        let text = super::types::Builtin::Text;
        // Registers the type before resolving its base, so that a cycle ends.
        self.wsdl.simple.push(Simple { name: name.to_owned(), base: text, values: Vec::new() });
        self.types.insert(place, Type::Simple(id));
        if let Some(restriction) = self.children_named(place, XSD, "restriction").first().copied() {
            let base = if self.attribute(restriction, "base").is_some() {
                let base = self.qualified(restriction, "base")?;
                self.type_named(restriction, &base)?
            } else {
                self.type_of(restriction, name)?
            };
            let Some(base) = self.wsdl.base(base) else {
                self.tell(restriction, format!("the base of `{name}` is not a simple type"), None);
                return None;
            };
            let values = self.children_named(restriction, XSD, "enumeration");
            let values = values.into_iter().map(|value| self.required(value, "value")).collect();
            let simple = &mut self.wsdl.simple[id.0 as usize];
            (simple.base, simple.values) = (base, values);
        }
        Some(Type::Simple(id))
    }

    fn complex(&mut self, place: ElementId, name: &str) -> Option<Type> {
        let id = ComplexId(self.wsdl.complex.len() as u32);
        self.wsdl.complex.push(Complex { name: name.to_owned(), fields: Vec::new(), is_choice: false });
        self.types.insert(place, Type::Complex(id));
        let mut fields = Vec::new();
        let mut is_choice = false;
        self.content(place, &mut fields, &mut is_choice);
        let mut names = BTreeSet::new();
        if let Some(twice) = fields.iter().find(|field| !names.insert(field.name.as_str())) {
            let text = format!("`{name}` has two fields `{}`", twice.name);
            self.tell(place, text, None);
        }
        fields.sort_by_key(|field| field.is_attribute);
        self.fields_left = self.fields_left.saturating_sub(fields.len());
        if self.fields_left == 0 {
            self.tell(place, format!("more than {FIELDS_MAX} fields"), None);
            fields.clear();
        }
        let complex = &mut self.wsdl.complex[id.0 as usize];
        (complex.fields, complex.is_choice) = (fields, is_choice);
        Some(Type::Complex(id))
    }

    fn content(&mut self, place: ElementId, fields: &mut Vec<Field>, is_choice: &mut bool) {
        for child in self.children(place) {
            let document = &self.files[child.0].document;
            if document.namespace(child.1) != XSD {
                continue;
            }
            match document.element(child.1).name {
                "sequence" | "all" => self.particles(child, fields, false),
                "choice" => {
                    *is_choice = true;
                    self.particles(child, fields, true);
                }
                "attribute" => self.field(child, fields, false),
                "complexContent" => {
                    for derived in self.children(child) {
                        match self.name(derived).as_str() {
                            "extension" => self.extension(derived, fields, is_choice),
                            "annotation" => {}
                            other => self.tell(derived, format!("`{other}` in complex content is not supported"), None),
                        }
                    }
                }
                "annotation" | "anyAttribute" => {}
                other => {
                    let text = format!("`{other}` in a complex type is not supported");
                    self.tell(child, text, None);
                }
            }
        }
    }

    fn extension(&mut self, place: ElementId, fields: &mut Vec<Field>, is_choice: &mut bool) {
        if let Some(base) = self.qualified(place, "base")
            && let Some(base) = self.type_named(place, &base)
        {
            match base {
                // A base still being read extends itself; it has no fields yet.
                Type::Complex(id) => fields.extend(self.wsdl.complex(id).fields.iter().cloned()),
                Type::Any => {}
                _ => self.tell(place, "the base of complex content is not a complex type".to_owned(), None),
            }
        }
        self.content(place, fields, is_choice);
    }

    fn particles(&mut self, place: ElementId, fields: &mut Vec<Field>, is_optional: bool) {
        let is_optional = is_optional || self.attribute(place, "minOccurs").as_deref() == Some("0");
        if self.occurs(place, "maxOccurs") != Some(1) {
            let name = self.name(place);
            self.tell(place, format!("`{name}` that may occur more than once is not supported"), None);
        }
        for child in self.children(place) {
            let document = &self.files[child.0].document;
            if document.namespace(child.1) != XSD {
                continue;
            }
            match document.element(child.1).name {
                "element" => self.field(child, fields, is_optional),
                "sequence" => self.particles(child, fields, is_optional),
                "choice" => self.particles(child, fields, true),
                "any" | "annotation" => {}
                other => {
                    let text = format!("`{other}` is not supported");
                    self.tell(child, text, None);
                }
            }
        }
    }

    /// `minOccurs` or `maxOccurs`; `None` for `unbounded`.
    fn occurs(&mut self, place: ElementId, attribute: &str) -> Option<u32> {
        match self.attribute(place, attribute).as_deref() {
            None => Some(1),
            Some("unbounded") if attribute == "maxOccurs" => None,
            Some(text) => match text.trim().parse::<u32>() {
                Ok(count) => Some(count),
                Err(_) => {
                    let text = format!("`{attribute}` is {text:?}, not a number");
                    self.tell(place, text, None);
                    Some(1)
                }
            },
        }
    }

    fn field(&mut self, place: ElementId, fields: &mut Vec<Field>, is_optional: bool) {
        let is_attribute = self.name(place) == "attribute";
        let is_true = |text: Option<String>| matches!(text.as_deref().map(str::trim), Some("true" | "1"));
        let min = match is_attribute {
            true => u32::from(self.attribute(place, "use").as_deref() == Some("required")),
            false => self.occurs(place, "minOccurs").filter(|_| !is_optional).unwrap_or(0),
        };
        let max = if is_attribute { Some(1) } else { self.occurs(place, "maxOccurs") };
        if max.is_some_and(|max| max < min) {
            return self.tell(place, format!("`maxOccurs` is less than `minOccurs`, {min}"), None);
        }
        let (definition, namespace, name) = if self.attribute(place, "ref").is_some() {
            let Some(name) = self.qualified(place, "ref") else { return };
            if is_attribute {
                return;
            }
            let Some(definition) = self.look_up(place, Space::Element, &name) else { return };
            (definition, name.0, name.1)
        } else {
            let name = self.required(place, "name");
            let schema = self.schema_of(place);
            let (form, default) = match is_attribute {
                true => (self.attribute(place, "form"), "attributeFormDefault"),
                false => (self.attribute(place, "form"), "elementFormDefault"),
            };
            let form = form.or_else(|| self.attribute(schema, default));
            let namespace = match form.as_deref() {
                Some("qualified") => self.attribute(schema, "targetNamespace").unwrap_or_default(),
                _ => String::new(),
            };
            (place, namespace, name)
        };
        let Some(ty) = self.type_of(definition, &name) else { return };
        let is_nillable = is_true(self.attribute(definition, "nillable"));
        fields.push(Field { name, namespace, ty, min, max, is_nillable, is_attribute });
    }

    fn services(&mut self) {
        for file in 0..self.files.len() {
            if !self.is((file, 0), WSDL, "definitions") {
                continue;
            }
            for service in self.children_named((file, 0), WSDL, "service") {
                let name = self.required(service, "name");
                let mut ports = Vec::new();
                for port in self.children_named(service, WSDL, "port") {
                    // A port of another binding has its address in another namespace.
                    let Some(address) = self.children_named(port, SOAP, "address").first().copied() else { continue };
                    let address = self.required(address, "location");
                    let name = self.required(port, "name");
                    let Some(binding) = self.qualified(port, "binding") else { continue };
                    let Some(binding) = self.look_up(port, Space::Binding, &binding) else { continue };
                    let operations = self.binding(binding);
                    ports.push(Port { name, address, operations });
                }
                self.wsdl.services.push(Service { name, ports });
            }
        }
        if self.wsdl.operations().next().is_none() && self.mistakes.is_empty() {
            let hint = Some("add a `service` with a `port` that has a SOAP 1.1 address and binding".to_owned());
            self.tell((0, 0), "no SOAP 1.1 operation found".to_owned(), hint);
        }
    }

    fn binding(&mut self, binding: ElementId) -> Vec<Operation> {
        let Some(port_type) = self.qualified(binding, "type") else { return Vec::new() };
        let Some(port_type) = self.look_up(binding, Space::PortType, &port_type) else { return Vec::new() };
        let soap = self.children_named(binding, SOAP, "binding").first().copied();
        let style = soap.and_then(|soap| self.attribute(soap, "style"));
        let mut operations = Vec::new();
        for bound in self.children_named(binding, WSDL, "operation") {
            let name = self.required(bound, "name");
            let soap = self.children_named(bound, SOAP, "operation").first().copied();
            let own = soap.and_then(|soap| self.attribute(soap, "style")).or_else(|| style.clone());
            if own.as_deref() == Some("rpc") {
                self.tell(bound, format!("`{name}` is `rpc`; only `document` is supported"), None);
                continue;
            }
            let action = soap.and_then(|soap| self.attribute(soap, "soapAction")).unwrap_or_default();
            for way in self.children(bound) {
                for body in self.children_named(way, SOAP, "body") {
                    if self.attribute(body, "use").as_deref() == Some("encoded") {
                        self.tell(body, format!("`{name}` is `encoded`; only `literal` is supported"), None);
                    }
                }
            }
            let abstracts = self.children_named(port_type, WSDL, "operation");
            let same = abstracts.into_iter().find(|other| self.attribute(*other, "name").as_deref() == Some(&name));
            let Some(operation) = same else {
                self.tell(bound, format!("the port type has no operation `{name}`"), None);
                continue;
            };
            let way = |reader: &mut Self, way: &str| {
                let place = reader.children_named(operation, WSDL, way).first().copied()?;
                Some((place, reader.message(place)))
            };
            let Some((_, input)) = way(self, "input") else {
                self.tell(operation, format!("`{name}` has no `input`"), None);
                continue;
            };
            let output = way(self, "output").and_then(|output| output.1);
            let Some(input) = input else { continue };
            operations.push(Operation { name, action, input, output });
        }
        operations
    }

    fn message(&mut self, place: ElementId) -> Option<Message> {
        let name = self.qualified(place, "message")?;
        let message = self.look_up(place, Space::Message, &name)?;
        let parts = self.children_named(message, WSDL, "part");
        let [part] = parts.as_slice() else {
            let text = format!("message `{}` has {} parts, expected one", name.1, parts.len());
            self.tell(message, text, None);
            return None;
        };
        if self.attribute(*part, "element").is_none() {
            let hint = Some("document/literal needs parts with an `element`".to_owned());
            self.tell(*part, format!("the part of message `{}` has no `element`", name.1), hint);
            return None;
        }
        let element = self.qualified(*part, "element")?;
        let definition = self.look_up(*part, Space::Element, &element)?;
        match self.type_of(definition, &element.1)? {
            Type::Complex(content) => Some(Message { element: element.1, namespace: element.0, content }),
            _ => {
                self.tell(definition, format!("`{}` is a message without a complex type", element.1), None);
                None
            }
        }
    }
}
