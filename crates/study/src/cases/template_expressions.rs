//! Expressions over random values in the strings of a case, such as `{a + b}`. An expression starts at a `{` before a
//! letter, `_` or `(`, and has no inner quote or brace. Other braces are literal (JSON needs no escapes); `{{` is `{`.

use config::{Invalid, suggestion};

use crate::template::{self, Braces};

/// Maximum length of an expression, bytes. It also bounds the nesting depth.
const EXPRESSION_MAX_BYTES: usize = 120;
/// Maximum number of hexadecimal digits in a format, such as 8 in `{n:8x}`.
const DIGITS_MAX: u32 = 32;

const FUNCTIONS: [&str; 4] = ["length", "lower", "reverse", "upper"];

/// Value of a name or an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A whole number.
    Integer(i128),
    /// A string.
    Text(String),
}

/// A string with expressions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    parts: Vec<(Expression, Format)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Plain,
    /// A number as a string, even if the expression is the whole template.
    Decimal,
    /// This many of the lowest hexadecimal digits of a number.
    Hex(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Expression {
    Value(Value),
    Name(String),
    Call(&'static str, Box<Expression>),
    Binary(u8, Box<Expression>, Box<Expression>),
}

impl Template {
    /// Parses a template that may use `names`, each with an example of its type. Fails at the first invalid expression.
    pub fn parse(text: &str, names: &[(String, Value)]) -> Result<Template, Invalid> {
        let read = |inner: &str| {
            if !inner.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_' || first == '(') {
                return Ok(None);
            }
            part(inner, names).map(Some).map_err(|error| {
                let error = error.of(&format!("`{{{}}}`", inner.escape_debug()));
                if error.hint.is_some() { error } else { error.hint("write `{{` for a literal brace") }
            })
        };
        let of_template = |part| match part {
            template::Part::Text(text) => (Expression::Value(Value::Text(text.to_owned())), Format::Plain),
            template::Part::Field(_, part) => part,
        };
        let parts = template::parts(text, Braces::SingleOrEscaped, read)?;
        Ok(Template { parts: parts.into_iter().map(of_template).collect() })
    }
}

/// Values of a case's names in one repetition. If a name occurs twice, the later value counts.
#[derive(Clone, Debug, Default)]
pub struct Values(pub(super) Vec<(String, Value)>);

impl Values {
    /// Adds a name with its value, which replaces an earlier value of the name.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Values {
        self.0.push((name.to_owned(), value));
        self
    }

    /// The value of a name; an empty string if the name is unknown.
    pub fn get(&self, name: &str) -> Value {
        let found = self.0.iter().rev().find(|(known, _)| known == name);
        found.map_or_else(|| Value::Text(String::new()), |(_, value)| value.clone())
    }

    /// Replaces each expression of a template with its value.
    pub fn fill(&self, template: &Template) -> String {
        let text = |(expression, format): &(Expression, Format)| match (self.value_of(expression), format) {
            (Value::Integer(number), Format::Hex(digits)) => {
                // Keep only the bits that the digits show, so that the number wraps around.
                let shown = number.cast_unsigned() & (u128::MAX >> (128 - 4 * digits));
                format!("{shown:0width$x}", width = *digits as usize)
            }
            (Value::Integer(number), _) => number.to_string(),
            (Value::Text(text), _) => text,
        };
        template.parts.iter().map(text).collect()
    }

    /// The value of a template that is a single expression without a format; `None` for any other template.
    pub fn alone(&self, template: &Template) -> Option<Value> {
        let [(expression, Format::Plain)] = &template.parts[..] else { return None };
        Some(self.value_of(expression))
    }

    fn value_of(&self, expression: &Expression) -> Value {
        expression.value(&|name| Ok(self.get(name))).expect("`Template::parse` has checked the types")
    }
}

impl Expression {
    fn value(&self, of: &dyn Fn(&str) -> Result<Value, Invalid>) -> Result<Value, Invalid> {
        let integer = |expression: &Expression| match expression.value(of)? {
            Value::Integer(number) => Ok(number),
            Value::Text(_) => Err(Invalid::new("texts cannot be computed with")),
        };
        Ok(match self {
            Expression::Value(value) => value.clone(),
            Expression::Name(name) => of(name)?,
            Expression::Call(function, inner) => {
                let Value::Text(text) = inner.value(of)? else {
                    return Err(Invalid::new(format!("`{function}` takes a text")));
                };
                match *function {
                    "length" => Value::Integer(text.len() as i128),
                    "lower" => Value::Text(text.to_ascii_lowercase()),
                    "upper" => Value::Text(text.to_ascii_uppercase()),
                    _ => Value::Text(text.chars().rev().collect()),
                }
            }
            Expression::Binary(operator, left, right) => {
                let (left, right) = (integer(left)?, integer(right)?);
                Value::Integer(match operator {
                    b'+' => left.wrapping_add(right),
                    b'-' => left.wrapping_sub(right),
                    _ => left.wrapping_mul(right),
                })
            }
        })
    }
}

pub use crate::journey::placeholders::is_name;

fn part(text: &str, names: &[(String, Value)]) -> Result<(Expression, Format), Invalid> {
    if text.len() > EXPRESSION_MAX_BYTES {
        return Err(Invalid::new(format!("longer than {EXPRESSION_MAX_BYTES} bytes")));
    }
    let (text, format) = match text.rsplit_once(':') {
        None => (text, Format::Plain),
        Some((text, "d")) => (text, Format::Decimal),
        Some((text, format)) => {
            let digits = format.strip_suffix('x').and_then(|digits| digits.parse().ok());
            let error = Invalid::new(format!("unknown format `{}`", format.escape_debug()));
            let unknown = || error.hint("`:8x` is 8 hexadecimal digits, `:d` a number as a text");
            let digits = digits.filter(|digits| (1..=DIGITS_MAX).contains(digits)).ok_or_else(unknown)?;
            (text, Format::Hex(digits))
        }
    };
    let mut cursor = Cursor { rest: text };
    let expression = cursor.sum()?;
    if let Some(first) = cursor.peek() {
        return Err(Invalid::new(format!("expected an operator, found `{}`", char::from(first).escape_debug())));
    }
    let example = expression.value(&|name| {
        let known = names.iter().find(|(known, _)| known == name).map(|(_, example)| example.clone());
        known.ok_or_else(|| {
            let hint = suggestion(name, names.iter().map(|(known, _)| known.as_str()));
            Invalid::new(format!("`{name}` is not drawn in this case")).hint(hint)
        })
    })?;
    if matches!(example, Value::Text(_)) && format != Format::Plain {
        return Err(Invalid::new("only numbers have a format"));
    }
    Ok((expression, format))
}

struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_start();
        self.rest.bytes().next()
    }

    /// Takes the next byte if it is one of `wanted`.
    fn take(&mut self, wanted: &[u8]) -> Option<u8> {
        let found = self.peek().filter(|first| wanted.contains(first))?;
        self.rest = &self.rest[1..];
        Some(found)
    }

    fn word(&mut self) -> &'a str {
        let end = self.rest.find(|next: char| !next.is_ascii_alphanumeric() && next != '_');
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    fn sum(&mut self) -> Result<Expression, Invalid> {
        let mut left = self.product()?;
        while let Some(operator) = self.take(b"+-") {
            left = Expression::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expression, Invalid> {
        let mut left = self.factor()?;
        while let Some(operator) = self.take(b"*") {
            left = Expression::Binary(operator, Box::new(left), Box::new(self.factor()?));
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Expression, Invalid> {
        if self.take(b"-").is_some() {
            let zero = Expression::Value(Value::Integer(0));
            return Ok(Expression::Binary(b'-', Box::new(zero), Box::new(self.factor()?)));
        }
        if self.take(b"(").is_some() {
            return self.closed_sum();
        }
        let word = self.word();
        match word.bytes().next() {
            Some(b'0'..=b'9') => {
                let number = word.parse::<i64>().map_err(|_| Invalid::new(format!("`{word}` is not a number")))?;
                Ok(Expression::Value(Value::Integer(number.into())))
            }
            Some(_) if self.take(b"(").is_none() => Ok(Expression::Name(word.to_owned())),
            Some(_) => {
                let unknown = || Invalid::new(format!("unknown function `{word}`")).hint(suggestion(word, FUNCTIONS));
                let function = FUNCTIONS.into_iter().find(|known| *known == word).ok_or_else(unknown)?;
                Ok(Expression::Call(function, Box::new(self.closed_sum()?)))
            }
            None => {
                let found = self.rest.chars().next().map(|first| format!("`{}`", first.escape_debug()));
                let found = found.unwrap_or_else(|| "the end".to_owned());
                Err(Invalid::new(format!("expected a name or a number, found {found}")))
            }
        }
    }

    /// Reads a sum and the `)` behind it.
    fn closed_sum(&mut self) -> Result<Expression, Invalid> {
        let sum = self.sum()?;
        self.take(b")").map(|_| sum).ok_or_else(|| Invalid::new("expected `)`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let names = [("a", Value::Integer(0)), ("b", Value::Integer(0)), ("word", Value::Text(String::new()))];
        let names = names.map(|(name, example)| (name.to_owned(), example));
        let values = Values::default().with("a", Value::Integer(0xffff_ffff)).with("b", Value::Integer(-3));
        let values = values.with("word", Value::Text("Hey".to_owned()));
        let found = match Template::parse(text, &names) {
            Ok(template) => values.fill(&template),
            Err(error) => format!("{error} / {}", error.hint.as_deref().unwrap_or_default()),
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn evaluates_expressions() {
        check("", "");
        check("plain", "plain");
        check("/sum?a={a}&b={b}", "/sum?a=4294967295&b=-3");
        check("{a + b}", "4294967292");
        check("{(b - 1) * -b}", "-12");
        check("{b - 1 - 2 * 3}", "-10");
        check("{a:8x}", "ffffffff");
        check("{a + 1:8x}", "00000000");
        check("{b:2x}", "fd");
        check("{b:32x}", "fffffffffffffffffffffffffffffffd");
        check("{word}{upper(word)}{lower(word)}{reverse(word)}{length(word) + 1}", "HeyHEYheyyeH4");
    }

    #[test]
    fn other_braces_are_literal() {
        check(r#"{"n": {b}}"#, r#"{"n": -3}"#);
        check("{", "{");
        check("{}", "{}");
        check("{1}", "{1}");
        check("{a", "{a");
        check("{{a}", "{a}");
        check("{a{b}", "{a-3");
        check("}{", "}{");
    }

    #[test]
    fn explains_invalid_expressions() {
        check("{wrd}", "`{wrd}`: `wrd` is not drawn in this case / did you mean `word`?");
        check("{a +}", "`{a +}`: expected a name or a number, found the end / write `{{` for a literal brace");
        check("{(a}", "`{(a}`: expected `)` / write `{{` for a literal brace");
        check("{a b}", "`{a b}`: expected an operator, found `b` / write `{{` for a literal brace");
        check("{a:q}", "`{a:q}`: unknown format `q` / `:8x` is 8 hexadecimal digits, `:d` a number as a text");
        check("{a:33x}", "`{a:33x}`: unknown format `33x` / `:8x` is 8 hexadecimal digits, `:d` a number as a text");
        check("{word:8x}", "`{word:8x}`: only numbers have a format / write `{{` for a literal brace");
        check("{word + 1}", "`{word + 1}`: texts cannot be computed with / write `{{` for a literal brace");
        check("{upper(a)}", "`{upper(a)}`: `upper` takes a text / write `{{` for a literal brace");
        check("{uper(word)}", "`{uper(word)}`: unknown function `uper` / did you mean `upper`?");
        check("{a + é}", "`{a + é}`: expected a name or a number, found `é` / write `{{` for a literal brace");
    }
}
