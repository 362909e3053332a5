//! A tree of an XML document with borrowed names and text, read within limits. Document types are
//! rejected, so the only entities are XML's five and character references.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesStart, Event};

/// Limits for reading a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of the document, in bytes.
    pub document_bytes: usize,
    /// Maximum nesting of elements.
    pub depth: usize,
    /// Maximum number of elements.
    pub elements: usize,
    /// Maximum number of attributes per element, including namespace declarations.
    pub attributes: usize,
    /// Maximum size of the text of one element or attribute, in bytes.
    pub text_bytes: usize,
}

impl Limits {
    /// 16 MiB per document and text, 1,048,576 elements, 64 levels and 64 attributes per element.
    pub const DEFAULT: Limits =
        Limits { document_bytes: 16 << 20, depth: 64, elements: 1 << 20, attributes: 64, text_bytes: 16 << 20 };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

/// Why bytes are rejected, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at byte {at}: {what}")]
pub struct XmlError {
    /// Byte offset of the error, or shortly after it.
    pub at: usize,
    /// The thing, its value and the limit.
    pub what: String,
    /// Whether a limit was exceeded; the document may be well-formed.
    pub is_limit: bool,
}

pub(super) struct Attribute {
    prefix: Option<String>,
    name: String,
    value: String,
}

pub(super) struct Element<'d> {
    pub(super) name: &'d str,
    /// Index of the namespace of the prefix.
    pub(super) namespace: Option<u16>,
    pub(super) parent: Option<u32>,
    pub(super) first_child: Option<u32>,
    pub(super) next: Option<u32>,
    /// Its own text, without its children's, with references resolved.
    pub(super) text: Cow<'d, str>,
    attributes: std::ops::Range<u32>,
    pub(super) at: usize,
}

/// A document; element 0 is its root.
pub(super) struct Document<'d> {
    pub(super) elements: Vec<Element<'d>>,
    attributes: Vec<Attribute>,
    namespaces: Vec<String>,
}

const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// Maximum number of namespaces per document: lookups are linear.
const NAMESPACES_MAX: usize = 256;

impl<'d> Document<'d> {
    pub(super) fn parse(bytes: &'d [u8], limits: &Limits) -> Result<Document<'d>, XmlError> {
        if bytes.len() > limits.document_bytes {
            let what = format!("{} bytes, over the limit of {}", bytes.len(), limits.document_bytes);
            return Err(XmlError { at: 0, what, is_limit: true });
        }
        let text = std::str::from_utf8(bytes).map_err(|error| XmlError {
            at: error.valid_up_to(),
            what: "the text is not valid UTF-8".to_owned(),
            is_limit: false,
        })?;
        let mark = text.len() - text.trim_start_matches('\u{feff}').len();
        let text = &text[mark..];
        let mut document = Document { elements: Vec::new(), attributes: Vec::new(), namespaces: Vec::new() };
        let mut reader = Reader::from_str(text);
        let mut open = Vec::<u32>::new();
        let mut last_children = Vec::<Option<u32>>::new();
        loop {
            let at = reader.buffer_position() as usize;
            let wrong = |what: String| XmlError { at: at + mark, what, is_limit: false };
            let event = reader.read_event().map_err(|error| XmlError {
                at: reader.error_position() as usize + mark,
                what: error.to_string(),
                is_limit: false,
            })?;
            let end = reader.buffer_position() as usize;
            match event {
                Event::Start(_) | Event::Empty(_) if open.is_empty() && !document.elements.is_empty() => {
                    return Err(wrong("a second root element".to_owned()));
                }
                Event::Start(ref start) | Event::Empty(ref start) => {
                    if open.len() == limits.depth {
                        let what = format!("elements nested deeper than {} levels", limits.depth);
                        return Err(XmlError { is_limit: true, ..wrong(what) });
                    }
                    let index = document.start(start, &text[at..], at + mark, open.last().copied(), limits)?;
                    if let Some(last) = last_children.last_mut() {
                        match last.replace(index) {
                            Some(before) => document.elements[before as usize].next = Some(index),
                            None => {
                                let parent = *open.last().expect("both are as long") as usize;
                                document.elements[parent].first_child = Some(index);
                            }
                        }
                    }
                    if matches!(event, Event::Start(_)) {
                        open.push(index);
                        last_children.push(None);
                    }
                }
                Event::End(_) => {
                    open.pop();
                    last_children.pop();
                }
                Event::Text(_) => {
                    let raw = &text[at..end];
                    if raw.contains("]]>") {
                        return Err(wrong("`]]>` in text".to_owned()));
                    }
                    document.text(open.last().copied(), normal(raw), at + mark, limits)?;
                }
                Event::CData(_) => {
                    if open.is_empty() {
                        return Err(wrong("text outside the root".to_owned()));
                    }
                    let raw = text[at..end].strip_prefix("<![CDATA[").and_then(|raw| raw.strip_suffix("]]>"));
                    document.text(open.last().copied(), normal(raw.unwrap_or_default()), at + mark, limits)?;
                }
                Event::GeneralRef(reference) => {
                    let referred = match reference.resolve_char_ref() {
                        Ok(Some(character)) if is_character(character) => character.to_string(),
                        Ok(None) => match resolve_xml_entity(&reference) {
                            Some(text) => text.to_owned(),
                            None => return Err(wrong(format!("unknown entity `{}`", shown(&reference)))),
                        },
                        _ => return Err(wrong(format!("`&{};` is not a valid character", shown(&reference)))),
                    };
                    if open.is_empty() {
                        return Err(wrong("text outside the root".to_owned()));
                    }
                    document.text(open.last().copied(), Cow::Owned(referred), at + mark, limits)?;
                }
                Event::Decl(declaration) => {
                    if at > 0 {
                        return Err(wrong("a declaration that is not at the start".to_owned()));
                    }
                    if let Some(Ok(encoding)) = declaration.encoding()
                        && !encoding.eq_ignore_ascii_case("utf-8")
                        && !encoding.eq_ignore_ascii_case("us-ascii")
                    {
                        return Err(wrong(format!("unsupported encoding `{}`: only UTF-8", shown(&encoding))));
                    }
                }
                Event::DocType(_) => return Err(wrong("a document type declaration, which SOAP forbids".to_owned())),
                Event::Comment(_) | Event::PI(_) => {}
                Event::Eof if !open.is_empty() || document.elements.is_empty() => {
                    return Err(wrong("the document ends too early".to_owned()));
                }
                Event::Eof => return Ok(document),
            }
        }
    }

    fn start(
        &mut self,
        start: &BytesStart<'_>,
        rest: &'d str,
        at: usize,
        parent: Option<u32>,
        limits: &Limits,
    ) -> Result<u32, XmlError> {
        let wrong = |what: String| XmlError { at, what, is_limit: false };
        let over = |what: String| XmlError { at, what, is_limit: true };
        if self.elements.len() == limits.elements {
            return Err(over(format!("more than {} elements", limits.elements)));
        }
        let qualified = rest.get(1..1 + start.name().as_ref().len()).unwrap_or_default();
        let (prefix, name) = split(qualified);
        if name.is_empty() || name.contains(':') || qualified.starts_with(':') {
            return Err(wrong(format!("`{}` is not a valid name", shown(qualified))));
        }
        let begin = self.attributes.len();
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|error| wrong(error.to_string()))?;
            if self.attributes.len() - begin == limits.attributes {
                return Err(over(format!("more than {} attributes", limits.attributes)));
            }
            let value = attribute.normalized_value(quick_xml::XmlVersion::Implicit1_0);
            let value = value.map_err(|error| wrong(error.to_string()))?;
            if value.len() > limits.text_bytes {
                return Err(over(format!("{} bytes, over the limit of {}", value.len(), limits.text_bytes)));
            }
            let key: &str = attribute.key.as_ref();
            let (prefix, name) = split(key);
            let prefix = prefix.map(str::to_owned);
            self.attributes.push(Attribute { prefix, name: name.to_owned(), value: value.into_owned() });
        }
        let index = self.elements.len() as u32;
        let attributes = begin as u32..self.attributes.len() as u32;
        self.elements.push(Element {
            name,
            namespace: None,
            parent,
            first_child: None,
            next: None,
            text: Cow::Borrowed(""),
            attributes,
            at,
        });
        match self.resolve(index, prefix) {
            Some(namespace) => {
                let namespace = namespace.to_owned();
                let known = self.namespaces.iter().position(|other| *other == namespace);
                let place = match known {
                    Some(place) => place,
                    None if self.namespaces.len() == NAMESPACES_MAX => {
                        return Err(wrong(format!("more than {NAMESPACES_MAX} namespaces")));
                    }
                    None => {
                        self.namespaces.push(namespace);
                        self.namespaces.len() - 1
                    }
                };
                self.elements[index as usize].namespace = Some(place as u16);
            }
            None if prefix.is_some() => {
                return Err(wrong(format!("undeclared prefix in `{}`", shown(qualified))));
            }
            None => {}
        }
        Ok(index)
    }

    fn text(&mut self, element: Option<u32>, text: Cow<'d, str>, at: usize, limits: &Limits) -> Result<(), XmlError> {
        let wrong = |what: String| Err(XmlError { at, what, is_limit: false });
        let Some(element) = element else {
            let is_blank = text.trim_matches([' ', '\t', '\n', '\r']).is_empty();
            return if is_blank { Ok(()) } else { wrong("text outside the root".to_owned()) };
        };
        if let Some(bad) = text.chars().find(|character| !is_character(*character)) {
            return wrong(format!("the character U+{:04X}, which XML forbids", u32::from(bad)));
        }
        let own = &mut self.elements[element as usize].text;
        let bytes = own.len() + text.len();
        if bytes > limits.text_bytes {
            let what = format!("{bytes} bytes, over the limit of {}", limits.text_bytes);
            return Err(XmlError { at, what, is_limit: true });
        }
        if own.is_empty() {
            *own = text;
        } else {
            own.to_mut().push_str(&text);
        }
        Ok(())
    }

    pub(super) fn element(&self, index: u32) -> &Element<'d> {
        &self.elements[index as usize]
    }

    /// The namespace of an element; empty if it has none.
    pub(super) fn namespace(&self, index: u32) -> &str {
        self.element(index).namespace.map_or("", |namespace| &self.namespaces[usize::from(namespace)])
    }

    pub(super) fn is(&self, index: u32, namespace: &str, name: &str) -> bool {
        self.element(index).name == name && self.namespace(index) == namespace
    }

    pub(super) fn children(&self, index: u32) -> impl Iterator<Item = u32> + use<'_, 'd> {
        std::iter::successors(self.element(index).first_child, |child| self.element(*child).next)
    }

    pub(super) fn child(&self, index: u32, namespace: &str, name: &str) -> Option<u32> {
        self.children(index).find(|child| self.is(*child, namespace, name))
    }

    fn own_attributes(&self, index: u32) -> &[Attribute] {
        let range = &self.element(index).attributes;
        &self.attributes[range.start as usize..range.end as usize]
    }

    pub(super) fn attribute(&self, index: u32, name: &str) -> Option<&str> {
        let own = self.own_attributes(index).iter();
        own.filter(|own| own.prefix.is_none() && own.name == name).map(|own| own.value.as_str()).next()
    }

    pub(super) fn attribute_in(&self, index: u32, namespace: &str, name: &str) -> Option<&str> {
        let own = self.own_attributes(index).iter().filter(|own| own.name == name && own.prefix.is_some());
        own.filter(|own| self.resolve(index, own.prefix.as_deref()) == Some(namespace))
            .map(|own| own.value.as_str())
            .next()
    }

    /// The namespace that a prefix means at this element.
    pub(super) fn resolve(&self, index: u32, prefix: Option<&str>) -> Option<&str> {
        if prefix == Some("xml") {
            return Some(XML);
        }
        for ancestor in std::iter::successors(Some(index), |index| self.element(*index).parent) {
            for own in self.own_attributes(ancestor) {
                let declares = match prefix {
                    None => own.prefix.is_none() && own.name == "xmlns",
                    Some(prefix) => own.prefix.as_deref() == Some("xmlns") && own.name == prefix,
                };
                if declares {
                    return (!own.value.is_empty()).then_some(own.value.as_str());
                }
            }
        }
        None
    }

    /// Namespace and local name of a qualified name in an attribute or text of an element. `None`
    /// if its prefix is undeclared.
    pub(super) fn qualified<'n>(&self, index: u32, name: &'n str) -> Option<(&str, &'n str)> {
        let (prefix, name) = split(name.trim());
        match (self.resolve(index, prefix), prefix) {
            (Some(namespace), _) => Some((namespace, name)),
            (None, None) => Some(("", name)),
            (None, Some(_)) => None,
        }
    }
}

fn split(name: &str) -> (Option<&str>, &str) {
    match name.split_once(':') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, name),
    }
}

/// Converts line ends to LF, as XML requires.
fn normal(raw: &str) -> Cow<'_, str> {
    if raw.contains('\r') { Cow::Owned(raw.replace("\r\n", "\n").replace('\r', "\n")) } else { Cow::Borrowed(raw) }
}

pub(super) fn is_character(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

fn shown(text: &str) -> String {
    text.chars().take(60).flat_map(char::escape_default).collect()
}

/// Appends escaped text. Characters that XML forbids become U+FFFD.
pub(super) fn escape_into(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            // A reader would turn a bare CR into LF, or a space in an attribute.
            '\r' => out.push_str("&#13;"),
            other if is_character(other) => out.push(other),
            _ => out.push('\u{fffd}'),
        }
    }
}
