//! Parses expressions by precedence climbing.

use super::{Broken, DEPTH_MAX, Parsed, Parser};
use crate::finding::Span;
use crate::syntax::{Binary, Expr, ExprKind, Quantifier};
use crate::token::Token;

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        self.deeper(Self::expression_inside)
    }

    fn expression_inside(&mut self) -> Parsed<Expr> {
        let start = self.span();
        if self.take("let") {
            let (name, value) = self.binding("a name", "=", " after the name")?;
            self.expect(";", " after the value of a name")?;
            let body = self.expression()?;
            return Ok(self.node(start, ExprKind::Let(name, Box::new(value), Box::new(body))));
        }
        let condition = self.binary(1)?;
        if !self.take("?") {
            return Ok(condition);
        }
        let yes = self.expression()?;
        self.expect(":", " between the two values")?;
        let no = self.expression()?;
        Ok(self.node(start, ExprKind::If(Box::new(condition), Box::new(yes), Box::new(no))))
    }

    /// Creates a node. A node nested too deeply is reported and replaced, which bounds the stack.
    fn node(&mut self, start: Span, kind: ExprKind) -> Expr {
        let span = start.to(self.last_span());
        let mut expr = Expr { kind, span, depth: 1 };
        expr.depth = expr.parts().iter().map(|part| part.depth).max().unwrap_or(0) + 1;
        if expr.depth > DEPTH_MAX {
            let message = format!("this nests deeper than {DEPTH_MAX} levels");
            let hint = "split it into several clauses, or name parts of it with `let`";
            self.found.mistake_hint("depth", span, message, hint);
            return Expr { kind: ExprKind::Bool(true), span, depth: 1 };
        }
        expr
    }

    fn operator(&self) -> Option<(&'static str, Binary, u8)> {
        Binary::SIGNS.iter().find(|(sign, ..)| self.is(sign)).copied()
    }

    fn binary(&mut self, least: u8) -> Parsed<Expr> {
        let start = self.span();
        let mut left = self.unary()?;
        let mut compared = false;
        while let Some((_, operator, strength)) = self.operator().filter(|(.., strength)| *strength >= least) {
            if strength == Binary::COMPARISON && compared {
                let hint = "write `a < b && b < c`";
                self.found.mistake_hint("syntax", self.span(), "comparisons cannot be chained", hint);
                return Err(Broken);
            }
            compared |= strength == Binary::COMPARISON;
            self.advance();
            let right = self.deeper(|parser| parser.binary(strength + 1))?;
            left = self.node(start, ExprKind::Binary(operator, Box::new(left), Box::new(right)));
        }
        let wrong = [("=", "=="), ("&", "&&"), ("|", "||"), ("and", "&&"), ("or", "||"), ("is", "==")];
        if let Some((_, right)) = wrong.iter().find(|(wrong, _)| self.is(wrong)) {
            let hint = Some(format!("did you mean `{right}`?"));
            return self.broken_hint("an operator or the end of the clause", hint);
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let is_not = self.take("!");
        if !is_not && !self.take("-") {
            return self.postfix();
        }
        let of = Box::new(self.deeper(Self::unary)?);
        Ok(self.node(start, if is_not { ExprKind::Not(of) } else { ExprKind::Minus(of) }))
    }

    fn postfix(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let mut of = self.primary()?;
        loop {
            if self.take(".") {
                let field = self.name("a field name")?;
                of = self.node(start, ExprKind::Field(Box::new(of), field));
            } else if self.take("[") {
                let at = self.expression()?;
                self.expect("]", " after an index")?;
                of = self.node(start, ExprKind::Index(Box::new(of), Box::new(at)));
            } else {
                return Ok(of);
            }
        }
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let kind = match self.token().clone() {
            Token::Int(number) => ExprKind::Int(number),
            Token::Float(number) => ExprKind::Float(number),
            Token::Text(text) => ExprKind::Text(text),
            Token::Name => return self.word(start),
            Token::Sign("(") => {
                self.advance();
                let mut items = self.list(")", "", Self::expression)?;
                let has_comma = self.tokens[self.at - 2].0 == Token::Sign(",");
                let is_tuple = items.len() != 1 || has_comma;
                return Ok(if is_tuple { self.node(start, ExprKind::Tuple(items)) } else { items.remove(0) });
            }
            Token::Sign("[") => {
                self.advance();
                let items = self.list("]", "", Self::expression)?;
                return Ok(self.node(start, ExprKind::List(items)));
            }
            _ => return self.broken("an expression"),
        };
        self.advance();
        Ok(self.node(start, kind))
    }

    fn word(&mut self, start: Span) -> Parsed<Expr> {
        let name = self.name("a name")?;
        if let Ok(value) = name.text.parse() {
            return Ok(self.node(start, ExprKind::Bool(value)));
        }
        if name.text == "not" {
            self.found.mistake_hint("syntax", name.span, "unknown operator `not`", "did you mean `!`?");
            return Err(Broken);
        }
        if !self.take("(") {
            return Ok(self.node(start, ExprKind::Name(name.text)));
        }
        let each = Quantifier::WORDS.iter().find(|(word, _)| *word == name.text);
        if let Some((_, each)) = each {
            let (item, within) = self.binding("an item name", "in", "")?;
            self.expect(":", " before the condition on each item")?;
            let body = self.expression()?;
            self.expect(")", " after the condition on each item")?;
            return Ok(self.node(start, ExprKind::Quantifier(*each, item, Box::new(within), Box::new(body))));
        }
        let arguments = self.list(")", "", Self::expression)?;
        Ok(self.node(start, ExprKind::Call(name, arguments)))
    }
}
