//! Parses an IDL file into a tree with unresolved names. After an error, continues with the next item.

use super::lexer::{SIGNS, Token, Word, tokenize};
use crate::thrift::schema::{Requirement, StructKind};

const DEPTH_MAX: usize = 32;

const MEMBERS_MAX: usize = 4096;

pub(super) struct Document {
    pub(super) includes: Vec<(usize, String)>,
    pub(super) definitions: Vec<Definition>,
}

pub(super) struct Definition {
    pub(super) at: usize,
    pub(super) name: String,
    pub(super) body: Body,
}

pub(super) enum Body {
    Constant { ty: TypeRef, value: Const },
    Typedef { ty: TypeRef },
    Enum { members: Vec<(usize, String, Option<i64>)> },
    Struct { kind: StructKind, fields: Vec<FieldDef> },
    Service { extends: Option<(usize, String)>, methods: Vec<MethodDef> },
}

pub(super) struct FieldDef {
    pub(super) at: usize,
    pub(super) id: Option<i64>,
    pub(super) name: String,
    pub(super) ty: TypeRef,
    pub(super) requirement: Requirement,
    pub(super) default: Option<Const>,
}

pub(super) struct MethodDef {
    pub(super) at: usize,
    pub(super) name: String,
    pub(super) is_oneway: bool,
    pub(super) returns: Option<TypeRef>,
    pub(super) arguments: Vec<FieldDef>,
    pub(super) throws: Vec<FieldDef>,
}

pub(super) struct TypeRef {
    pub(super) at: usize,
    /// `list`, `set`, `map`, or the name of any other type.
    pub(super) name: String,
    /// The element types of a container.
    pub(super) of: Vec<TypeRef>,
}

pub(super) struct Const {
    pub(super) at: usize,
    pub(super) kind: ConstKind,
}

pub(super) enum ConstKind {
    Integer(i64),
    Double(f64),
    Text(String),
    Name(String),
    List(Vec<Const>),
    Map(Vec<(Const, Const)>),
}

type SyntaxError = (usize, String);

/// A syntax error that has been reported.
struct Broken;

type Parsed<T> = Result<T, Broken>;

pub(super) fn parse_document(text: &str) -> (Document, Vec<SyntaxError>) {
    let mut found = Vec::new();
    let tokens = tokenize(text, |at, text| found.push((at, text)));
    let mut parser = Parser { tokens, next: 0, found };
    let document = parser.document();
    parser.found.sort_by_key(|found| found.0);
    (document, parser.found)
}

struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    next: usize,
    found: Vec<SyntaxError>,
}

pub(super) const CONTAINER_TYPES: [&str; 3] = ["list", "set", "map"];

const DEFINITIONS: [&str; 9] =
    ["const", "typedef", "enum", "struct", "union", "exception", "service", "namespace", "include"];

impl<'t> Parser<'t> {
    fn peek(&self) -> &Token<'t> {
        &self.tokens[self.next]
    }

    fn advance(&mut self) -> Token<'t> {
        let token = self.tokens[self.next].clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn at_end(&self) -> bool {
        self.peek().word == Word::End
    }

    /// Whether the next token is this name or sign.
    fn is(&self, source: &str) -> bool {
        self.peek().source == source
    }

    fn take(&mut self, source: &str) -> bool {
        let is_next = self.is(source);
        if is_next {
            self.advance();
        }
        is_next
    }

    fn wrong<T>(&mut self, expected: &str) -> Parsed<T> {
        let token = self.peek();
        let found = match &token.word {
            // The lexer has reported these.
            Word::Integer(None) => return Err(Broken),
            Word::Sign(sign) if !SIGNS.contains(*sign) => return Err(Broken),
            Word::Text(text) => format!("the string {text:?}"),
            Word::End => "the end of the file".to_owned(),
            _ => format!("`{}`", token.source),
        };
        self.found.push((token.at, format!("expected {expected}, found {found}")));
        Err(Broken)
    }

    fn sign(&mut self, sign: &str) -> Parsed<()> {
        if self.take(sign) { Ok(()) } else { self.wrong(&format!("`{sign}`")) }
    }

    fn name(&mut self, what: &str) -> Parsed<(usize, String)> {
        let Word::Name(name) = self.peek().word else { return self.wrong(what) };
        Ok((self.advance().at, name.to_owned()))
    }

    /// Reads the name of a definition, which contains no dots.
    fn own_name(&mut self, what: &str) -> Parsed<(usize, String)> {
        let (at, name) = self.name(what)?;
        if name.contains('.') {
            self.found.push((at, format!("{what} `{name}` contains a dot")));
        }
        Ok((at, name))
    }

    fn text(&mut self, what: &str) -> Parsed<(usize, String)> {
        let Word::Text(text) = self.peek().word.clone() else { return self.wrong(what) };
        Ok((self.advance().at, text))
    }

    fn separator(&mut self) -> bool {
        self.take(",") || self.take(";")
    }

    fn item_end(&mut self) -> Parsed<()> {
        self.annotations()?;
        self.separator();
        Ok(())
    }

    fn document(&mut self) -> Document {
        let mut document = Document { includes: Vec::new(), definitions: Vec::new() };
        while !self.at_end() {
            let before = self.next;
            if self.definition(&mut document).is_err() {
                self.next = self.next.max(before + 1).min(self.tokens.len() - 1);
                while !self.begins_definition() && !self.at_end() {
                    self.advance();
                }
            }
        }
        document
    }

    fn begins_definition(&self) -> bool {
        let token = self.peek();
        token.is_first && matches!(token.word, Word::Name(name) if DEFINITIONS.contains(&name))
    }

    fn definition(&mut self, document: &mut Document) -> Parsed<()> {
        let Word::Name(keyword) = self.peek().word else { return self.wrong("a definition") };
        let begin = self.peek().at;
        if !DEFINITIONS.contains(&keyword) && keyword != "cpp_include" {
            let expected = "`const`, `typedef`, `enum`, `struct`, `union`, `exception` or `service`";
            let is_old = matches!(keyword, "senum" | "slist");
            let hint = if is_old { " (it is no longer part of the language)" } else { "" };
            return self.wrong(&format!("{expected}{hint}"));
        }
        self.advance();
        let (at, name, body) = match keyword {
            "include" => {
                document.includes.push(self.text("a quoted file path")?);
                return Ok(());
            }
            "cpp_include" => return self.text("a quoted file path").map(drop),
            "namespace" => {
                if !self.take("*") {
                    self.name("`*` or a language")?;
                }
                self.name("a name")?;
                return self.annotations();
            }
            "const" => {
                let ty = self.field_type(0)?;
                let (at, name) = self.own_name("a constant name")?;
                self.sign("=")?;
                let value = self.constant(0)?;
                (at, name, Body::Constant { ty, value })
            }
            "typedef" => {
                let ty = self.field_type(0)?;
                let (at, name) = self.own_name("a type name")?;
                (at, name, Body::Typedef { ty })
            }
            "enum" => {
                let (at, name) = self.own_name("an enum name")?;
                self.sign("{")?;
                let members = self.members(begin, Parser::member);
                (at, name, Body::Enum { members })
            }
            "service" => {
                let (at, name) = self.own_name("a service name")?;
                let extends = if self.take("extends") { Some(self.name("a service name")?) } else { None };
                self.sign("{")?;
                let methods = self.members(begin, Parser::method);
                (at, name, Body::Service { extends, methods })
            }
            _ => {
                let kind = match keyword {
                    "union" => StructKind::Union,
                    "exception" => StructKind::Exception,
                    _ => StructKind::Struct,
                };
                let (at, name) = self.own_name("a struct name")?;
                self.take("xsd_all");
                self.sign("{")?;
                let fields = self.members(begin, Parser::field);
                (at, name, Body::Struct { kind, fields })
            }
        };
        self.item_end()?;
        document.definitions.push(Definition { at, name, body });
        Ok(())
    }

    /// Parses members and the closing brace. After an error, continues after a separator or on the next line.
    fn members<T>(&mut self, begin: usize, read: impl Fn(&mut Parser<'t>) -> Parsed<T>) -> Vec<T> {
        let mut members = Vec::new();
        while !self.take("}") {
            if self.at_end() {
                self.found.push((begin, "missing `}` at the end of this".to_owned()));
                break;
            }
            // If a definition begins here, the closing brace before it is missing.
            if self.begins_definition() {
                self.found.push((self.peek().at, "expected `}` before this".to_owned()));
                break;
            }
            let before = self.next;
            match read(self) {
                Ok(member) if members.len() < MEMBERS_MAX => members.push(member),
                Ok(_) => {
                    self.found.push((begin, format!("more than {MEMBERS_MAX} members")));
                    while !self.is("}") && !self.at_end() {
                        self.advance();
                    }
                }
                Err(Broken) => {
                    if self.next == before && !self.is("}") {
                        self.advance();
                    }
                    while !self.is("}") && !self.peek().is_first && !self.separator() {
                        self.advance();
                    }
                }
            }
        }
        members
    }

    fn member(&mut self) -> Parsed<(usize, String, Option<i64>)> {
        let (at, name) = self.own_name("an enum member")?;
        let number = if self.take("=") { Some(self.integer("a number")?) } else { None };
        self.item_end()?;
        Ok((at, name, number))
    }

    fn integer(&mut self, what: &str) -> Parsed<i64> {
        let Word::Integer(Some(value)) = self.peek().word else { return self.wrong(what) };
        self.advance();
        Ok(value)
    }

    fn field(&mut self) -> Parsed<FieldDef> {
        let mut id = None;
        if let Word::Integer(_) = self.peek().word {
            id = Some(self.integer("a field number")?);
            self.sign(":")?;
        }
        let requirement = match () {
            () if self.take("required") => Requirement::Required,
            () if self.take("optional") => Requirement::Optional,
            () => Requirement::Default,
        };
        let ty = self.field_type(0)?;
        self.take("&");
        let (at, name) = self.own_name("a field name")?;
        let default = if self.take("=") { Some(self.constant(0)?) } else { None };
        self.item_end()?;
        Ok(FieldDef { at, id, name, ty, requirement, default })
    }

    fn method(&mut self) -> Parsed<MethodDef> {
        let is_oneway = self.take("oneway") || self.take("async");
        let returns = if self.take("void") { None } else { Some(self.field_type(0)?) };
        let (at, name) = self.own_name("a method name")?;
        let arguments = self.fields_in_parentheses()?;
        let throws = if self.take("throws") { self.fields_in_parentheses()? } else { Vec::new() };
        self.item_end()?;
        Ok(MethodDef { at, name, is_oneway, returns, arguments, throws })
    }

    fn fields_in_parentheses(&mut self) -> Parsed<Vec<FieldDef>> {
        self.sign("(")?;
        let mut fields = Vec::new();
        while !self.take(")") {
            fields.push(self.field()?);
        }
        Ok(fields)
    }

    fn field_type(&mut self, depth: usize) -> Parsed<TypeRef> {
        if depth > DEPTH_MAX {
            return self.wrong(&format!("a type nested at most {DEPTH_MAX} levels deep"));
        }
        let (at, name) = self.name("a type")?;
        let mut of = Vec::new();
        if CONTAINER_TYPES.contains(&name.as_str()) {
            self.cpp_type()?;
            self.sign("<")?;
            of.push(self.field_type(depth + 1)?);
            if name == "map" {
                self.sign(",")?;
                of.push(self.field_type(depth + 1)?);
            }
            self.sign(">")?;
            self.cpp_type()?;
        }
        self.annotations()?;
        Ok(TypeRef { at, name, of })
    }

    fn cpp_type(&mut self) -> Parsed<()> {
        if self.take("cpp_type") { self.text("a quoted C++ type").map(drop) } else { Ok(()) }
    }

    fn constant(&mut self, depth: usize) -> Parsed<Const> {
        if depth > DEPTH_MAX {
            return self.wrong(&format!("a value nested at most {DEPTH_MAX} levels deep"));
        }
        let at = self.peek().at;
        let kind = match &self.peek().word {
            Word::Integer(Some(value)) => ConstKind::Integer(*value),
            Word::Double(value) => ConstKind::Double(*value),
            Word::Text(text) => ConstKind::Text(text.clone()),
            Word::Name(name) => ConstKind::Name((*name).to_owned()),
            Word::Sign('[') => {
                self.advance();
                let mut elements = Vec::new();
                while !self.take("]") {
                    elements.push(self.constant(depth + 1)?);
                    self.separator();
                }
                return Ok(Const { at, kind: ConstKind::List(elements) });
            }
            Word::Sign('{') => {
                self.advance();
                let mut pairs = Vec::new();
                while !self.take("}") {
                    let key = self.constant(depth + 1)?;
                    self.sign(":")?;
                    pairs.push((key, self.constant(depth + 1)?));
                    self.separator();
                }
                return Ok(Const { at, kind: ConstKind::Map(pairs) });
            }
            _ => return self.wrong("a value"),
        };
        self.advance();
        Ok(Const { at, kind })
    }

    /// Skips annotations such as `(name = "value", other)`, which do not affect the wire format.
    fn annotations(&mut self) -> Parsed<()> {
        if self.take("(") {
            while !self.take(")") {
                self.name("an annotation name")?;
                if self.take("=") {
                    self.text("a quoted string")?;
                }
                self.separator();
            }
        }
        Ok(())
    }
}
