//! Parses an IDL file into a tree with unresolved names. Continues after the item with an error.

use super::lexer::{Token, Word, tokenize};
use crate::thrift::schema::{Requirement, StructKind};

/// Maximum nesting of containers in a type or constant.
const DEPTH_MAX: usize = 32;

/// Maximum number of fields, enum members or methods per definition.
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

#[derive(Clone)]
pub(super) enum TypeRef {
    Named(usize, String),
    List(Box<TypeRef>),
    Set(Box<TypeRef>),
    Map(Box<TypeRef>, Box<TypeRef>),
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

/// A syntax error with its byte offset; `None` if already reported.
type Wrong = Option<(usize, String)>;

pub(super) struct SyntaxMistake {
    pub(super) at: usize,
    pub(super) text: String,
}

pub(super) fn parse_document(text: &str) -> (Document, Vec<SyntaxMistake>) {
    let mut found = Vec::new();
    let tokens = tokenize(text, |at, text| found.push(SyntaxMistake { at, text }));
    let mut parser = Parser { tokens, next: 0, found };
    let document = parser.document();
    parser.found.sort_by_key(|found| found.at);
    (document, parser.found)
}

struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    next: usize,
    found: Vec<SyntaxMistake>,
}

const DEFINITIONS: [&str; 9] =
    ["const", "typedef", "enum", "struct", "union", "exception", "service", "namespace", "include"];

impl<'t> Parser<'t> {
    fn peek(&self) -> &Token<'t> {
        &self.tokens[self.next]
    }

    fn advance(&mut self) -> Token<'t> {
        let token = self.tokens[self.next].clone();
        // The end token is never consumed.
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.peek().word, Word::Name(other) if other == name)
    }

    fn take_name(&mut self, name: &str) -> bool {
        let is = self.is_name(name);
        if is {
            self.advance();
        }
        is
    }

    fn is_sign(&self, sign: char) -> bool {
        self.peek().word == Word::Sign(sign)
    }

    fn take_sign(&mut self, sign: char) -> bool {
        let is = self.is_sign(sign);
        if is {
            self.advance();
        }
        is
    }

    fn wrong<T>(&self, expected: &str) -> Result<T, Wrong> {
        let token = self.peek();
        let found = match &token.word {
            Word::Name(name) => format!("`{name}`"),
            Word::Integer(Some(value)) => format!("`{value}`"),
            // The lexer has reported it.
            Word::Integer(None) => return Err(None),
            Word::Double(value) => format!("`{value}`"),
            Word::Text(text) => format!("the string {text:?}"),
            Word::Sign(sign) if "{}()<>[],;:=&*".contains(*sign) => format!("`{sign}`"),
            Word::Sign(_) => return Err(None),
            Word::End => "the end of the file".to_owned(),
        };
        Err(Some((token.at, format!("expected {expected}, found {found}"))))
    }

    fn sign(&mut self, sign: char) -> Result<(), Wrong> {
        if self.take_sign(sign) { Ok(()) } else { self.wrong(&format!("`{sign}`")) }
    }

    fn name(&mut self, what: &str) -> Result<(usize, String), Wrong> {
        match self.peek().word {
            Word::Name(name) => Ok((self.advance().at, name.to_owned())),
            _ => self.wrong(what),
        }
    }

    /// The name of a definition, which contains no dots.
    fn own_name(&mut self, what: &str) -> Result<(usize, String), Wrong> {
        let (at, name) = self.name(what)?;
        if name.contains('.') {
            self.tell(Some((at, format!("{what} `{name}` contains a dot"))));
        }
        Ok((at, name))
    }

    fn text(&mut self, what: &str) -> Result<(usize, String), Wrong> {
        match &self.peek().word {
            Word::Text(text) => {
                let text = text.clone();
                Ok((self.advance().at, text))
            }
            _ => self.wrong(what),
        }
    }

    fn tell(&mut self, wrong: Wrong) {
        if let Some((at, text)) = wrong {
            self.found.push(SyntaxMistake { at, text });
        }
    }

    fn separator(&mut self) {
        let _ = self.take_sign(',') || self.take_sign(';');
    }

    fn document(&mut self) -> Document {
        let mut document = Document { includes: Vec::new(), definitions: Vec::new() };
        while self.peek().word != Word::End {
            let before = self.next;
            if let Err(wrong) = self.definition(&mut document) {
                self.tell(wrong);
                self.next = self.next.max(before + 1).min(self.tokens.len() - 1);
                while !self.begins_definition() && self.peek().word != Word::End {
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

    fn definition(&mut self, document: &mut Document) -> Result<(), Wrong> {
        let Word::Name(keyword) = self.peek().word else { return self.wrong("a definition") };
        let begin = self.peek().at;
        if !DEFINITIONS.contains(&keyword) && keyword != "cpp_include" {
            let hint = match keyword {
                "senum" | "slist" => " (it is no longer part of the language)",
                _ => "",
            };
            return self
                .wrong(&format!("`const`, `typedef`, `enum`, `struct`, `union`, `exception` or `service`{hint}"));
        }
        self.advance();
        let (at, name, body) = match keyword {
            "include" => {
                document.includes.push(self.text("a quoted file path")?);
                return Ok(());
            }
            "cpp_include" => {
                self.text("a quoted file path")?;
                return Ok(());
            }
            "namespace" => {
                if !self.take_sign('*') {
                    self.name("`*` or a language")?;
                }
                self.name("a name")?;
                return self.annotations();
            }
            "const" => {
                let ty = self.field_type(0)?;
                let (at, name) = self.own_name("a constant name")?;
                self.sign('=')?;
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
                self.sign('{')?;
                let members = self.members(begin, Parser::member);
                (at, name, Body::Enum { members })
            }
            "service" => {
                let (at, name) = self.own_name("a service name")?;
                let extends = if self.take_name("extends") { Some(self.name("a service name")?) } else { None };
                self.sign('{')?;
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
                self.take_name("xsd_all");
                self.sign('{')?;
                let fields = self.members(begin, Parser::field);
                (at, name, Body::Struct { kind, fields })
            }
        };
        self.annotations()?;
        self.separator();
        document.definitions.push(Definition { at, name, body });
        Ok(())
    }

    /// Parses members and the closing brace. After an error, continues at a separator or line.
    fn members<T>(&mut self, begin: usize, read: impl Fn(&mut Parser<'t>) -> Result<T, Wrong>) -> Vec<T> {
        let mut members = Vec::new();
        loop {
            if self.take_sign('}') {
                return members;
            }
            if self.peek().word == Word::End {
                self.tell(Some((begin, "missing `}` at the end of this".to_owned())));
                return members;
            }
            // A nested definition: the closing brace before it is missing.
            if self.begins_definition() {
                self.tell(Some((self.peek().at, "expected `}` before this".to_owned())));
                return members;
            }
            let before = self.next;
            match read(self) {
                Ok(member) if members.len() < MEMBERS_MAX => members.push(member),
                Ok(_) => {
                    self.tell(Some((begin, format!("more than {MEMBERS_MAX} members"))));
                    while !self.is_sign('}') && self.peek().word != Word::End {
                        self.advance();
                    }
                }
                Err(wrong) => {
                    self.tell(wrong);
                    if self.next == before && !self.is_sign('}') {
                        self.advance();
                    }
                    while !self.is_sign('}') && !self.peek().is_first {
                        if self.take_sign(',') || self.take_sign(';') {
                            break;
                        }
                        self.advance();
                    }
                }
            }
        }
    }

    fn member(&mut self) -> Result<(usize, String, Option<i64>), Wrong> {
        let (at, name) = self.own_name("an enum member")?;
        let number = if self.take_sign('=') { Some(self.integer("a number")?) } else { None };
        self.annotations()?;
        self.separator();
        Ok((at, name, number))
    }

    fn integer(&mut self, what: &str) -> Result<i64, Wrong> {
        match self.peek().word {
            Word::Integer(Some(value)) => {
                self.advance();
                Ok(value)
            }
            _ => self.wrong(what),
        }
    }

    fn field(&mut self) -> Result<FieldDef, Wrong> {
        let id = match self.peek().word {
            Word::Integer(_) => {
                let id = self.integer("a field number")?;
                self.sign(':')?;
                Some(id)
            }
            _ => None,
        };
        let requirement = if self.take_name("required") {
            Requirement::Required
        } else if self.take_name("optional") {
            Requirement::Optional
        } else {
            Requirement::Default
        };
        let ty = self.field_type(0)?;
        self.take_sign('&');
        let (at, name) = self.own_name("a field name")?;
        let default = if self.take_sign('=') { Some(self.constant(0)?) } else { None };
        self.annotations()?;
        self.separator();
        Ok(FieldDef { at, id, name, ty, requirement, default })
    }

    fn method(&mut self) -> Result<MethodDef, Wrong> {
        let is_oneway = self.take_name("oneway") || self.take_name("async");
        let returns = if self.take_name("void") { None } else { Some(self.field_type(0)?) };
        let (at, name) = self.own_name("a method name")?;
        let arguments = self.fields_in_parentheses()?;
        let throws = if self.take_name("throws") { self.fields_in_parentheses()? } else { Vec::new() };
        self.annotations()?;
        self.separator();
        Ok(MethodDef { at, name, is_oneway, returns, arguments, throws })
    }

    fn fields_in_parentheses(&mut self) -> Result<Vec<FieldDef>, Wrong> {
        self.sign('(')?;
        let mut fields = Vec::new();
        while !self.take_sign(')') {
            fields.push(self.field()?);
        }
        Ok(fields)
    }

    fn field_type(&mut self, depth: usize) -> Result<TypeRef, Wrong> {
        if depth > DEPTH_MAX {
            return self.wrong(&format!("a type nested at most {DEPTH_MAX} levels deep"));
        }
        let (at, name) = self.name("a type")?;
        let ty = match name.as_str() {
            "list" | "set" | "map" => {
                if self.take_name("cpp_type") {
                    self.text("a quoted C++ type")?;
                }
                self.sign('<')?;
                let first = Box::new(self.field_type(depth + 1)?);
                let ty = match name.as_str() {
                    "map" => {
                        self.sign(',')?;
                        TypeRef::Map(first, Box::new(self.field_type(depth + 1)?))
                    }
                    "list" => TypeRef::List(first),
                    _ => TypeRef::Set(first),
                };
                self.sign('>')?;
                if self.take_name("cpp_type") {
                    self.text("a quoted C++ type")?;
                }
                ty
            }
            _ => TypeRef::Named(at, name),
        };
        self.annotations()?;
        Ok(ty)
    }

    fn constant(&mut self, depth: usize) -> Result<Const, Wrong> {
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
                while !self.take_sign(']') {
                    elements.push(self.constant(depth + 1)?);
                    self.separator();
                }
                return Ok(Const { at, kind: ConstKind::List(elements) });
            }
            Word::Sign('{') => {
                self.advance();
                let mut pairs = Vec::new();
                while !self.take_sign('}') {
                    let key = self.constant(depth + 1)?;
                    self.sign(':')?;
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

    /// Skips annotations, `(name = "value", other)`; they do not affect the wire format.
    fn annotations(&mut self) -> Result<(), Wrong> {
        if self.take_sign('(') {
            while !self.take_sign(')') {
                self.name("an annotation name")?;
                if self.take_sign('=') {
                    self.text("a quoted string")?;
                }
                self.separator();
            }
        }
        Ok(())
    }
}
