//! Parses the text of a contract into a syntax tree.

mod expression;

use std::collections::BTreeSet;

use config::nearest::did_you_mean;

use crate::finding::{Findings, Severity, Span, suggestion};
use crate::monitor::report::Kind;
use crate::syntax::{
    Clause, ClauseKind, Direction, Expr, File, Identifies, Local, Name, Operation, Param, Service, Step,
};
use crate::token::{Token, tokens};
use crate::types_and_schema::{Field, KnownSchema, Type};

/// Maximum length of a contract, in bytes.
pub const TEXT_MAX_BYTES: usize = 1 << 20;

/// Maximum nesting of expressions and types.
pub const DEPTH_MAX: u16 = 64;

/// Maximum number of open expressions, parentheses and types. One level of the tree may need three of them.
const NESTING_MAX: u16 = 3 * DEPTH_MAX;

/// The version of the language that this crate reads.
pub const VERSION: i64 = 1;

/// A syntax error that has been reported. The caller skips to a point from which it can continue.
pub(crate) struct Broken;

type Parsed<T> = Result<T, Broken>;

/// Parses a contract. Broken parts are reported and left out.
pub(crate) fn parse(text: &str, known: &KnownSchema, found: &mut Findings) -> File {
    if text.len() > TEXT_MAX_BYTES {
        let message = format!("a contract may have at most {TEXT_MAX_BYTES} bytes, this one has {}", text.len());
        found.mistake("size", Span::default(), message);
        return File::default();
    }
    let tokens = tokens(text, found);
    Parser { text, known, tokens, at: 0, found, nesting: 0, uneven: false }.file()
}

pub(crate) struct Parser<'t> {
    text: &'t str,
    known: &'t KnownSchema,
    tokens: Vec<(Token, Span)>,
    at: usize,
    found: &'t mut Findings,
    nesting: u16,
    /// Whether a brace that ended a broken part may belong to the enclosing part.
    uneven: bool,
}

impl Parser<'_> {
    fn token(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].1
    }

    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn at_end(&self) -> bool {
        *self.token() == Token::End
    }

    fn word_at(&self, ahead: usize) -> Option<&str> {
        let (Token::Name, span) = self.tokens.get(self.at + ahead)? else { return None };
        Some(&self.text[span.range()])
    }

    /// The source of a token; empty beyond the end. A word or sign is never equal to the source of another token.
    fn source_at(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", |(_, span)| &self.text[span.range()])
    }

    /// Whether the next token is this word or sign.
    fn is(&self, source: &str) -> bool {
        self.source_at(0) == source
    }

    fn take(&mut self, source: &str) -> bool {
        let is_next = self.is(source);
        if is_next {
            self.advance();
        }
        is_next
    }

    fn broken<T>(&mut self, expected: &str) -> Parsed<T> {
        self.broken_hint(expected, None)
    }

    fn broken_hint<T>(&mut self, expected: &str, hint: Option<String>) -> Parsed<T> {
        if *self.token() != Token::Unclosed {
            let end = "the end of the file".to_owned();
            let found = if self.at_end() { end } else { format!("`{}`", self.source_at(0)) };
            let message = format!("expected {expected}, found {found}");
            self.found.push(Severity::Mistake, "syntax", self.span(), message, hint);
        }
        Err(Broken)
    }

    fn expect(&mut self, source: &str, what: &str) -> Parsed<()> {
        if self.take(source) { Ok(()) } else { self.broken(&format!("`{source}`{what}")) }
    }

    fn name(&mut self, what: &str) -> Parsed<Name> {
        let Some(text) = self.word_at(0).map(str::to_owned) else { return self.broken(what) };
        let span = self.span();
        self.advance();
        Ok(Name { text, span })
    }

    /// Parses a name, a word or sign, and the value or list of the name.
    fn binding(&mut self, what: &str, source: &str, after: &str) -> Parsed<(Local, Expr)> {
        let name = self.name(what)?;
        self.expect(source, after)?;
        Ok((Local { name, at: 0 }, self.expression()?))
    }

    fn take_text(&mut self) -> Option<Name> {
        let (Token::Text(text), span) = self.tokens[self.at].clone() else { return None };
        self.advance();
        Some(Name { text, span })
    }

    /// Parses comma-separated items up to and including the closing sign. A trailing comma is allowed.
    fn list<T>(&mut self, close: &str, after: &str, item: impl Fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(item(self)?);
            if !self.take(",") && !self.is(close) {
                return self.broken(&format!("`,` or `{close}`{after}"));
            }
        }
        Ok(items)
    }

    /// Skips an operation with a syntax error from its second token to its end or the next service.
    fn skip_operation(&mut self, first: usize) {
        self.at = first;
        // Open brackets, and whether they contain clauses.
        let mut open: Vec<(&str, bool)> = Vec::new();
        while !(self.at_end() || (self.at > first && self.is_service())) {
            if let (true, Some((_, has_clauses))) = (self.is_clause(), open.last_mut()) {
                *has_clauses = true;
            }
            match *self.token() {
                Token::Sign(sign @ ("(" | "[" | "{")) => open.push((sign, false)),
                Token::Sign(sign @ (")" | "]")) => {
                    // Closes the last open bracket of this kind, if any, and all brackets inside it.
                    let opening = if sign == ")" { "(" } else { "[" };
                    let of = open.iter().rposition(|(other, _)| *other == opening);
                    open.truncate(of.unwrap_or(open.len()));
                }
                Token::Sign("}") => {
                    let of = open.iter().rposition(|(sign, _)| *sign == "{");
                    let had_clauses = of.is_some_and(|of| open[of].1);
                    open.truncate(of.unwrap_or(0));
                    self.advance();
                    self.uneven |= of.is_none();
                    // The braces of a record in a result type are followed by the braces of the clauses.
                    let goes_on = ["{", ";", ">", ","].iter().any(|sign| self.is(sign));
                    if of.is_none() || had_clauses || (open.is_empty() && !goes_on) {
                        return;
                    }
                    continue;
                }
                Token::Sign(";") if open.is_empty() => {
                    self.advance();
                    return;
                }
                _ => {}
            }
            self.advance();
        }
    }

    fn skip_to_service(&mut self) {
        while !self.at_end() && !self.is_service() {
            self.advance();
        }
    }

    fn is_service(&self) -> bool {
        self.is("service") && self.word_at(1).is_some() && self.source_at(2) == "{"
    }

    fn file(&mut self) -> File {
        let mut file = File::default();
        if self.take("contract") {
            match *self.token() {
                Token::Int(VERSION) => self.advance(),
                Token::Int(other) => {
                    let message = format!("unsupported contract version {other}, expected {VERSION}");
                    self.found.mistake("version", self.span(), message);
                    self.advance();
                }
                _ => drop(self.broken::<()>("the language version, `1`,")),
            }
        } else {
            let message = "a contract must start with its language version";
            self.found.mistake_hint("version", self.span(), message, "write `contract 1` on the first line");
        }
        while self.take("schema") {
            if let Some(path) = self.take_text() {
                file.schemas.push(path);
                continue;
            }
            let _ = self.broken::<()>("a quoted schema path");
            if !self.is("service") && !self.is("schema") {
                self.advance();
            }
        }
        while !self.at_end() {
            if !self.take("service") {
                let hint = self.word_at(0).and_then(|word| did_you_mean(word, ["service", "schema"]));
                let _ = self.broken_hint::<()>("`service`", hint);
                self.advance();
                self.skip_to_service();
                continue;
            }
            match self.service() {
                Ok(service) => file.services.push(service),
                Err(Broken) => self.skip_to_service(),
            }
        }
        file
    }

    fn service(&mut self) -> Parsed<Service> {
        let name = self.name("a service name")?;
        let mut operations = Vec::new();
        if self.expect("{", " before the operations").is_err() {
            // Keeps the service's name, so that references to it are not reported.
            self.skip_to_service();
            return Ok(Service { name, operations });
        }
        self.uneven = false;
        while !self.take("}") {
            if self.at_end() || self.is_service() {
                if !self.uneven {
                    let message = format!("the service `{}` is not closed", name.text);
                    self.found.mistake_hint("syntax", name.span, message, "add the missing `}`");
                }
                break;
            }
            let first = self.at;
            match self.operation() {
                Ok(operation) => operations.push(operation),
                Err(Broken) => self.skip_operation(first),
            }
        }
        Ok(Service { name, operations })
    }

    fn operation(&mut self) -> Parsed<Operation> {
        let (method, name) = match self.take_text() {
            Some(path) => {
                let hint = "for example: `GET \"/path\"(args, headers, body)`";
                self.found.mistake_hint("method", path.span, "missing method before the path", hint);
                (None, path)
            }
            None => {
                let name = self.name("an operation name, or a method and a path,")?;
                match self.take_text() {
                    Some(path) => (Some(name), path),
                    None => (None, name),
                }
            }
        };
        self.expect("(", " before the parameters")?;
        let params = self.list(")", " after a parameter", |parser| {
            let name = parser.name("a parameter name")?;
            let of = if parser.take(":") { Some(parser.value_type()?) } else { None };
            Ok(Param { name, of })
        })?;
        let result = if self.take("->") {
            let start = self.span();
            Some((self.value_type()?, start.to(self.last_span())))
        } else {
            None
        };
        let mut clauses = Vec::new();
        if !self.take(";") {
            if !self.take("{") {
                return self.broken("`{` before the clauses, or `;` if there are none");
            }
            self.clauses(&name, &mut clauses);
        }
        Ok(Operation { method, name, params, result, clauses })
    }

    fn clauses(&mut self, operation: &Name, clauses: &mut Vec<Clause>) {
        while !self.take("}") {
            if self.at_end() || self.is_service() {
                let message = format!("the operation `{}` is not closed", operation.text);
                self.found.mistake_hint("syntax", operation.span, message, "add the missing `}`");
                return;
            }
            if self.take(";") {
                continue;
            }
            let start = self.span();
            match self.clause() {
                // A clause before an unclosed string is incomplete.
                Ok(_) if *self.token() == Token::Unclosed => self.skip_clause(),
                Ok((label, kind)) => clauses.push(Clause { label, kind, span: start.to(self.last_span()) }),
                Err(Broken) => self.skip_clause(),
            }
        }
    }

    fn skip_clause(&mut self) {
        let mut open = 0_usize;
        while !self.at_end() && !self.is_service() {
            if open == 0 && (self.is("}") || self.is_clause()) {
                return;
            }
            if self.is("{") {
                open += 1;
            } else if self.is("}") {
                open -= 1;
            }
            self.advance();
        }
    }

    fn is_clause(&self) -> bool {
        match self.word_at(0) {
            Some("request" | "reply") => self.word_at(1) == Some("identifies"),
            Some("requires" | "ensures" | "on_error") => true,
            _ => false,
        }
    }

    fn clause(&mut self) -> Parsed<(Option<Name>, ClauseKind)> {
        let Some(word) = self.word_at(0).map(str::to_owned) else { return self.broken("a clause") };
        if let Some(&(_, kind)) = Kind::KEYWORDS.iter().find(|(keyword, _)| *keyword == word) {
            self.advance();
            let label = if kind == Kind::Index { None } else { self.label() };
            return Ok((label, ClauseKind::Expression(kind, self.expression()?)));
        }
        if self.take("untyped") {
            return Ok((None, ClauseKind::Untyped));
        }
        let direction = match word.as_str() {
            "request" => Direction::Request,
            "reply" => Direction::Reply,
            _ => {
                let keywords = Kind::KEYWORDS.map(|(keyword, _)| keyword).into_iter();
                let hint = suggestion(&word, keywords.chain(["request", "reply", "untyped"]));
                let result = self.broken_hint("a clause", Some(hint));
                // Error recovery may stop at this word again; advancing prevents an endless loop.
                self.advance();
                return result;
            }
        };
        self.advance();
        Ok((None, ClauseKind::Identifies(self.identifies(direction)?)))
    }

    fn label(&mut self) -> Option<Name> {
        let (text, span) = (self.word_at(0).filter(|_| self.source_at(1) == ":")?.to_owned(), self.span());
        self.advance();
        self.advance();
        Some(Name { text, span })
    }

    fn identifies(&mut self, direction: Direction) -> Parsed<Identifies> {
        self.expect("identifies", "")?;
        let service = self.name("the name of the service at the endpoint")?;
        self.expect("at", "")?;
        let at = self.expression()?;
        let index = if self.take("index") { Some(self.expression()?) } else { None };
        let mut steps = Vec::new();
        loop {
            if self.take("for") {
                let (item, within) = self.binding("an item name", "in", "")?;
                steps.push(Step::For(item, within));
            } else if self.take("when") {
                steps.push(Step::When(self.expression()?));
            } else if self.take("let") {
                let (name, value) = self.binding("a name", "=", " after the name")?;
                steps.push(Step::Let(name, value));
            } else {
                return Ok(Identifies { direction, service, at, index, steps });
            }
        }
    }

    /// Runs `inner` one level deeper. Fails beyond the nesting limit.
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting == NESTING_MAX {
            self.found.mistake("depth", self.span(), format!("this nests deeper than {DEPTH_MAX} levels"));
            return Err(Broken);
        }
        self.nesting += 1;
        let result = inner(self);
        self.nesting -= 1;
        result
    }

    fn value_type(&mut self) -> Parsed<Type> {
        self.deeper(Self::type_inside)
    }

    fn type_inside(&mut self) -> Parsed<Type> {
        if self.take("{") {
            let fields = self.list("}", " after a field", |parser| {
                let name = parser.name("a field name, or `}`,")?;
                let required = !parser.take("?");
                parser.expect(":", " before the field type")?;
                let field = Field { name: name.text.clone(), of: parser.value_type()?, required };
                Ok((name, field))
            })?;
            let mut names = BTreeSet::new();
            fields.iter().for_each(|(name, _)| name.add_to(&mut names, "field", self.found));
            return Ok(Type::Record(fields.into_iter().map(|(_, field)| field).collect()));
        }
        let Name { text: name, span } = self.name("a type")?;
        Ok(match name.as_str() {
            "list" => {
                self.expect("<", " and the item type")?;
                let of = Box::new(self.value_type()?);
                self.expect(">", " after the item type")?;
                Type::List(of)
            }
            "map" => {
                self.expect("<", " and the key and value types")?;
                let key = Box::new(self.value_type()?);
                self.expect(",", " between the key and value types")?;
                let value = Box::new(self.value_type()?);
                self.expect(">", " after the value type")?;
                Type::Map(key, value)
            }
            "any" => Type::Any,
            "bool" => Type::Bool,
            "int" => Type::Int,
            "float" => Type::Float,
            "text" => Type::Text,
            "bytes" => Type::Bytes,
            _ if self.known.schema.types.contains_key(&name) => Type::Named(name),
            _ if !self.known.is_whole => Type::Any,
            _ => {
                let own = ["any", "bool", "int", "float", "text", "bytes", "list", "map"];
                let types = self.known.schema.types.keys().map(String::as_str);
                let hint = suggestion(&name, own.into_iter().chain(types));
                self.found.mistake_hint("unknown-type", span, format!("unknown type `{name}`"), hint);
                Type::Any
            }
        })
    }
}
