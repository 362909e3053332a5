//! A tree of an XML document with borrowed names and text, read within limits. Document types are rejected.

use std::borrow::Cow;
use std::fmt::{self, Write};

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesStart, Event};

use crate::mistake::DecodeError;

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
    /// Default limits: 16 MiB per document and text, 1,048,576 elements, 64 levels, and 64 attributes per element.
    pub const DEFAULT: Limits =
        Limits { document_bytes: 16 << 20, depth: 64, elements: 1 << 20, attributes: 64, text_bytes: 16 << 20 };
}

pub(super) struct Attribute {
    prefix: Option<String>,
    name: String,
    value: String,
}

pub(super) struct Element<'d> {
    qualified: &'d str,
    name: &'d str,
    parent: Option<u32>,
    pub(super) first_child: Option<u32>,
    next: Option<u32>,
    /// The element's own text with references resolved, without its children's text.
    pub(super) text: Cow<'d, str>,
    attributes: std::ops::Range<u32>,
    pub(super) at: usize,
}

pub(super) struct Document<'d> {
    /// Name in errors; empty for messages.
    pub(super) source: &'d str,
    pub(super) text: &'d str,
    elements: Vec<Element<'d>>,
    attributes: Vec<Attribute>,
    limits: Limits,
}

type Decoded<T> = Result<T, DecodeError>;

const XML: &str = "http://www.w3.org/XML/1998/namespace";

impl<'d> Document<'d> {
    pub(super) fn parse(source: &'d str, bytes: &'d [u8], limits: &Limits) -> Decoded<Document<'d>> {
        check_length(0, bytes.len(), limits.document_bytes)?;
        let text = std::str::from_utf8(bytes)
            .map_err(|error| DecodeError::malformed(error.valid_up_to(), "the text is not valid UTF-8"))?;
        let mark = text.len() - text.trim_start_matches('\u{feff}').len();
        let mut document = Document { source, text, elements: Vec::new(), attributes: Vec::new(), limits: *limits };
        let text = &text[mark..];
        let mut reader = Reader::from_str(text);
        // The stack of open elements, each with its last child so far.
        let mut open = Vec::<(u32, Option<u32>)>::new();
        loop {
            let at = reader.buffer_position() as usize;
            let event = reader.read_event();
            let event = event
                .map_err(|error| DecodeError::malformed(reader.error_position() as usize + mark, error.to_string()))?;
            let raw = &text[at..reader.buffer_position() as usize];
            let at = at + mark;
            let wrong = |what: &str| Err(DecodeError::malformed(at, what));
            let element = open.last().map(|open| open.0);
            match event {
                Event::Start(_) | Event::Empty(_) if open.is_empty() && !document.elements.is_empty() => {
                    return wrong("a second root element");
                }
                Event::Start(ref start) | Event::Empty(ref start) => {
                    if open.len() == limits.depth {
                        let what = format!("elements nested deeper than {} levels", limits.depth);
                        return Err(DecodeError::over(at, what));
                    }
                    let index = document.start(start, raw, at, element)?;
                    if let Some((parent, last)) = open.last_mut() {
                        match last.replace(index) {
                            Some(before) => document.elements[before as usize].next = Some(index),
                            None => document.elements[*parent as usize].first_child = Some(index),
                        }
                    }
                    if matches!(event, Event::Start(_)) {
                        open.push((index, None));
                    }
                }
                Event::End(_) => drop(open.pop()),
                Event::Text(_) if raw.contains("]]>") => return wrong("`]]>` in text"),
                Event::Text(_) => document.text(element, normal(raw), at)?,
                Event::CData(_) | Event::GeneralRef(_) if open.is_empty() => {
                    return wrong("text outside the root");
                }
                Event::CData(_) => {
                    let raw = raw.strip_prefix("<![CDATA[").and_then(|raw| raw.strip_suffix("]]>"));
                    document.text(element, normal(raw.unwrap_or_default()), at)?;
                }
                Event::GeneralRef(reference) => {
                    let referred = match reference.resolve_char_ref() {
                        Ok(Some(character)) if is_character(character) => character.to_string(),
                        Ok(None) => match resolve_xml_entity(&reference) {
                            Some(text) => text.to_owned(),
                            None => return wrong(&format!("unknown entity `{}`", shown(&reference))),
                        },
                        _ => return wrong(&format!("`&{};` is not a valid character", shown(&reference))),
                    };
                    document.text(element, Cow::Owned(referred), at)?;
                }
                Event::Decl(_) if at > mark => return wrong("a declaration that is not at the start"),
                Event::Decl(declaration) => {
                    if let Some(Ok(encoding)) = declaration.encoding()
                        && !encoding.eq_ignore_ascii_case("utf-8")
                        && !encoding.eq_ignore_ascii_case("us-ascii")
                    {
                        return wrong(&format!("unsupported encoding `{}`: only UTF-8", shown(&encoding)));
                    }
                }
                Event::DocType(_) => return wrong("a document type declaration, which SOAP forbids"),
                Event::Comment(_) | Event::PI(_) => {}
                Event::Eof if !open.is_empty() || document.elements.is_empty() => {
                    return wrong("the document ends too early");
                }
                Event::Eof => return Ok(document),
            }
        }
    }

    fn start(&mut self, start: &BytesStart<'_>, raw: &'d str, at: usize, parent: Option<u32>) -> Decoded<u32> {
        if self.elements.len() == self.limits.elements {
            return Err(DecodeError::over(at, format!("more than {} elements", self.limits.elements)));
        }
        let qualified = raw.get(1..1 + start.name().as_ref().len()).unwrap_or_default();
        let (_, name) = split(qualified);
        if name.is_empty() || name.contains(':') || qualified.starts_with(':') {
            return Err(DecodeError::malformed(at, format!("`{}` is not a valid name", shown(qualified))));
        }
        let begin = self.attributes.len();
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|error| DecodeError::malformed(at, error.to_string()))?;
            if self.attributes.len() - begin == self.limits.attributes {
                return Err(DecodeError::over(at, format!("more than {} attributes", self.limits.attributes)));
            }
            let value = attribute.normalized_value(quick_xml::XmlVersion::Implicit1_0);
            let value = value.map_err(|error| DecodeError::malformed(at, error.to_string()))?;
            check_length(at, value.len(), self.limits.text_bytes)?;
            let (prefix, name) = split(attribute.key.as_ref());
            let prefix = prefix.map(str::to_owned);
            self.attributes.push(Attribute { prefix, name: name.to_owned(), value: value.into_owned() });
        }
        let index = self.elements.len() as u32;
        let attributes = begin as u32..self.attributes.len() as u32;
        let text = Cow::Borrowed("");
        self.elements.push(Element { qualified, name, parent, first_child: None, next: None, text, attributes, at });
        if (Node { document: self, index }).qualified(qualified).is_none() {
            return Err(DecodeError::malformed(at, format!("undeclared prefix in `{}`", shown(qualified))));
        }
        Ok(index)
    }

    fn text(&mut self, element: Option<u32>, text: Cow<'d, str>, at: usize) -> Decoded<()> {
        let Some(element) = element else {
            let is_blank = text.trim_matches([' ', '\t', '\n', '\r']).is_empty();
            return if is_blank { Ok(()) } else { Err(DecodeError::malformed(at, "text outside the root")) };
        };
        if let Some(bad) = text.chars().find(|character| !is_character(*character)) {
            let what = format!("the character U+{:04X}, which XML forbids", u32::from(bad));
            return Err(DecodeError::malformed(at, what));
        }
        let own = &mut self.elements[element as usize].text;
        check_length(at, own.len() + text.len(), self.limits.text_bytes)?;
        *own += text;
        Ok(())
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        (0..self.elements.len() as u32).map(|index| Node { document: self, index })
    }

    pub(super) fn root(&self) -> Node<'_> {
        Node { document: self, index: 0 }
    }
}

/// An element of a document, by its position.
#[derive(Clone, Copy)]
pub(super) struct Node<'d> {
    pub(super) document: &'d Document<'d>,
    pub(super) index: u32,
}

impl<'d> Node<'d> {
    pub(super) fn element(self) -> &'d Element<'d> {
        &self.document.elements[self.index as usize]
    }

    /// Fails with an error at this element.
    pub(super) fn wrong<T>(self, what: String) -> Decoded<T> {
        Err(DecodeError::malformed(self.element().at, what))
    }

    pub(super) fn name(self) -> &'d str {
        self.element().name
    }

    pub(super) fn namespace(self) -> &'d str {
        self.qualified(self.element().qualified).map_or("", |name| name.0)
    }

    pub(super) fn full_name(self) -> (&'d str, &'d str) {
        (self.namespace(), self.name())
    }

    pub(super) fn is(self, namespace: &str, name: &str) -> bool {
        self.name() == name && self.namespace() == namespace
    }

    pub(super) fn children(self) -> impl Iterator<Item = Node<'d>> {
        let next = move |child: &Node<'d>| child.element().next.map(|index| Node { index, ..self });
        std::iter::successors(self.element().first_child.map(|index| Node { index, ..self }), next)
    }

    pub(super) fn children_named(self, namespace: &str, name: &str) -> impl Iterator<Item = Node<'d>> {
        self.children().filter(move |child| child.is(namespace, name))
    }

    pub(super) fn child_named(self, namespace: &str, name: &str) -> Option<Node<'d>> {
        self.children_named(namespace, name).next()
    }

    /// The element and its ancestors, up to the root.
    pub(super) fn ancestors(self) -> impl Iterator<Item = Node<'d>> {
        let parent = move |node: &Node<'d>| node.element().parent.map(|index| Node { index, ..self });
        std::iter::successors(Some(self), parent)
    }

    fn attributes(self) -> &'d [Attribute] {
        let range = &self.element().attributes;
        &self.document.attributes[range.start as usize..range.end as usize]
    }

    pub(super) fn attribute(self, name: &str) -> Option<&'d str> {
        let mut own = self.attributes().iter();
        own.find(|own| own.prefix.is_none() && own.name == name).map(|own| own.value.as_str())
    }

    pub(super) fn attribute_in(self, namespace: &str, name: &str) -> Option<&'d str> {
        let mut own = self.attributes().iter().filter(|own| own.name == name && own.prefix.is_some());
        let own = own.find(|own| self.resolve(own.prefix.as_deref()) == Some(namespace))?;
        Some(&own.value)
    }

    /// Resolves a prefix to its namespace at this element. `None` if the prefix is undeclared.
    fn resolve(self, prefix: Option<&str>) -> Option<&'d str> {
        if prefix == Some("xml") {
            return Some(XML);
        }
        let (wanted_prefix, wanted_name) = prefix.map_or((None, "xmlns"), |prefix| (Some("xmlns"), prefix));
        let mut attributes = self.ancestors().flat_map(Node::attributes);
        let is_wanted = |own: &&Attribute| own.prefix.as_deref() == wanted_prefix && own.name == wanted_name;
        attributes.find(is_wanted).map(|own| own.value.as_str()).filter(|namespace| !namespace.is_empty())
    }

    /// Splits a qualified name into namespace and local name. `None` if its prefix is undeclared at this element.
    pub(super) fn qualified<'n>(self, name: &'n str) -> Option<(&'d str, &'n str)> {
        let (prefix, name) = split(name.trim());
        match (self.resolve(prefix), prefix) {
            (Some(namespace), _) => Some((namespace, name)),
            (None, None) => Some(("", name)),
            (None, Some(_)) => None,
        }
    }
}

fn check_length(at: usize, bytes: usize, limit: usize) -> Decoded<()> {
    let over = || DecodeError::over(at, format!("{bytes} bytes, over the limit of {limit}"));
    if bytes > limit { Err(over()) } else { Ok(()) }
}

fn split(name: &str) -> (Option<&str>, &str) {
    name.split_once(':').map_or((None, name), |(prefix, name)| (Some(prefix), name))
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

/// Displays a string with XML escapes. Characters that XML forbids become U+FFFD.
pub(super) struct Escaped<'t>(pub(super) &'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '&' => f.write_str("&amp;"),
            '"' => f.write_str("&quot;"),
            // An XML parser would turn a bare CR into LF, or into a space in an attribute value.
            '\r' => f.write_str("&#13;"),
            other => f.write_char(if is_character(other) { other } else { '\u{fffd}' }),
        })
    }
}
