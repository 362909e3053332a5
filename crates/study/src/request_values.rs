//! `{{…}}` in requests: values that depend only on the seed, the request's number in the load and the string in the
//! braces. A request sent again has identical bytes (except times), and equal fields in a request have equal values.

use std::collections::BTreeMap;

use config::{Diagnostic, Invalid, Place, Report, nearest};

use crate::template::{self, Braces};

const LETTERS_MAX: u32 = 65_536;
const EXPONENT_MAX: f64 = 10.0;
const OPEN: &str = "{{";

const FORMS: [(&str, &str); 10] = [
    ("uuid", "{{uuid}}"),
    ("seq", "{{seq}} or {{seq:1000}}"),
    ("rand", "{{rand:1..100}}"),
    ("zipf", "{{zipf:1..100000}} or {{zipf:1..100000:0.99}}"),
    ("letters", "{{letters:8}}"),
    ("choice", "{{choice:book*9,pen}}"),
    ("csv", "{{csv:users.csv:email}}, {{csv:users.csv:email:random}} or {{csv:users.csv:email:once}}"),
    ("trace", "{{trace}}"),
    ("unix_ms", "{{unix_ms}}"),
    ("braces", "{{braces}}, which sends {{"),
];

/// A part of a string that can contain fields.
pub type Part<'t> = template::Part<'t, Field>;

/// The kinds of fields that requests can contain.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// A random UUID (RFC 9562, version 4).
    Uuid,
    /// Consecutive integers from `first`, each used once in a load across all threads and machines.
    Sequence {
        /// The first integer.
        first: u64,
    },
    /// A random integer from `first` to `last`.
    Integer {
        /// The smallest integer.
        first: u64,
        /// The largest integer.
        last: u64,
        /// Exponent of Zipf's law, which makes `first` the most frequent integer; `None` for equal frequencies.
        zipf: Option<f64>,
    },
    /// Random lower-case letters and digits.
    Letters {
        /// Number of characters.
        length: u32,
    },
    /// One of these words, picked by weight.
    Choice(Vec<(String, u32)>),
    /// A column of a CSV file with a header line (RFC 4180).
    Csv {
        /// Path of the CSV file.
        file: String,
        /// Name of the column in the header line.
        column: String,
        /// Order in which requests take rows. All columns of one file come from the same row.
        order: RowOrder,
    },
    /// A new `traceparent` (W3C Trace Context), with the sampled flag set.
    Trace,
    /// The time of sending, in ms since 1970, and the only value that changes if a request is sent again.
    UnixMs,
    /// A literal `{{`.
    Braces,
}

/// The order in which requests take the rows of a CSV file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOrder {
    /// File order, starting over after the last row.
    InTurn,
    /// A random row per request.
    Random,
    /// File order; the load ends after the last row.
    Once,
}

/// Splits a string at its fields. Fails at an unclosed, unknown or invalid field.
pub fn parts(text: &str) -> Result<Vec<Part<'_>>, Invalid> {
    template::parts(text, Braces::Double, |text| parse(text).map(Some))
}

/// Checks the fields in a file. Fails with the place of the first error.
pub fn check_file(text: &str) -> Result<(), Vec<Diagnostic>> {
    let report = Report::new("the file", text, &[]);
    let _ = parts(text).map_err(|error| report.invalid(Place { end: text.len(), ..Place::default() }, error));
    report.finish()
}

/// Checks an entry of `[load.values]`. Fails if a form has this name, or if `form` is not a valid field without braces.
pub fn check_named(name: &str, form: &str) -> Result<String, Invalid> {
    if FORMS.iter().any(|(known, _)| *known == name) {
        let message = format!("`{name}` is a form of values and cannot name one");
        return Err(Invalid::new(message).hint(format!("choose another name, such as `my_{name}`")));
    }
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
        return Err(Invalid::new(format!("`{}` cannot name a value", name.escape_debug()))
            .hint("use letters, digits, `_` and `-`"));
    }
    parse(form).map(|_| form.to_owned())
}

/// Replaces each field that names one of `values` with the form of the value. Two names with one form have different
/// values, except that all columns of a CSV file come from the same row.
pub fn with_names(text: &str, values: &BTreeMap<String, String>) -> String {
    values.iter().fold(text.to_owned(), |text, (name, form)| {
        let label = if form.starts_with("csv:") { String::new() } else { format!("@{name}") };
        text.replace(&format!("{{{{{name}}}}}"), &format!("{{{{{form}{label}}}}}"))
    })
}

/// Whether the string has a field, valid or not.
pub fn has_values(text: &str) -> bool {
    text.contains(OPEN)
}

fn parse(text: &str) -> Result<Field, Invalid> {
    if has_values(text) || text.contains("}}") {
        let error = Invalid::new(format!("the value `{}` contains another value", text.escape_debug()));
        return Err(error.hint("write values side by side; for a literal `{{`, write `{{braces}}`"));
    }
    // A label turns a form into a separate field with its own values: `{{uuid@b}}`.
    let unlabeled = text.split_once('@').map_or(text, |(field, _)| field);
    let named = unlabeled.split_once(':');
    let (name, argument) = named.map_or((unlabeled, None), |(name, argument)| (name, Some(argument)));
    let field = match (name, argument) {
        ("uuid", None) => Some(Field::Uuid),
        ("trace", None) => Some(Field::Trace),
        ("unix_ms", None) => Some(Field::UnixMs),
        ("braces", None) => Some(Field::Braces),
        ("seq", None) => Some(Field::Sequence { first: 1 }),
        ("seq", Some(first)) => first.parse().ok().map(|first| Field::Sequence { first }),
        ("rand", Some(range)) => integers(range, None),
        ("zipf", Some(argument)) => match argument.split_once(':') {
            None => integers(argument, Some(0.99)),
            Some((range, exponent)) => {
                let exponent = exponent.parse().ok().filter(|exponent| (0.0..=EXPONENT_MAX).contains(exponent));
                exponent.and_then(|exponent| integers(range, Some(exponent)))
            }
        },
        ("letters", Some(length)) => {
            let length = length.parse().ok().filter(|length| (1..=LETTERS_MAX).contains(length));
            length.map(|length| Field::Letters { length })
        }
        ("choice", Some(words)) => choice(words),
        ("csv", Some(argument)) => csv(argument),
        _ => None,
    };
    field.ok_or_else(|| {
        let known = FORMS.iter().find(|(known, _)| *known == name);
        let near = || nearest::nearest(name, FORMS.iter().map(|(known, _)| *known));
        let form = known.or_else(|| FORMS.iter().find(|(known, _)| Some(*known) == near()));
        let all = || FORMS.map(|(known, _)| known).join(", ");
        let error = Invalid::new(match known {
            Some(_) => format!("`{{{{{text}}}}}` is not a valid value"),
            None => format!("unknown value `{{{{{text}}}}}`"),
        });
        error.hint(form.map_or_else(|| format!("known: {}", all()), |(_, form)| format!("write {form}")))
    })
}

fn integers(range: &str, zipf: Option<f64>) -> Option<Field> {
    let (first, last) = range.split_once("..")?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    let count_max = if zipf.is_some() { stats::popularity::KEYS_MAX } else { u64::MAX };
    (first <= last && last - first < count_max).then_some(Field::Integer { first, last, zipf })
}

fn choice(words: &str) -> Option<Field> {
    let word = |word: &str| match word.rsplit_once('*') {
        Some((word, weight)) => Some((word.to_owned(), weight.parse().ok().filter(|weight| *weight > 0)?)),
        None => Some((word.to_owned(), 1)),
    };
    let words = Some(words).filter(|words| !words.is_empty())?;
    words.split(',').map(word).collect::<Option<_>>().map(Field::Choice)
}

fn csv(argument: &str) -> Option<Field> {
    let suffix = |(suffix, order)| Some((argument.strip_suffix(suffix)?, order));
    let orders = [(":random", RowOrder::Random), (":once", RowOrder::Once)];
    let (rest, order) = orders.into_iter().find_map(suffix).unwrap_or((argument, RowOrder::InTurn));
    let (file, column) = rest.rsplit_once(':')?;
    let is_named = !file.is_empty() && !column.is_empty();
    is_named.then(|| Field::Csv { file: file.to_owned(), column: column.to_owned(), order })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_texts_at_fields() {
        assert_eq!(parts(r#"{"a": {"b": 1}}"#).unwrap(), [Part::Text(r#"{"a": {"b": 1}}"#)]);
        assert_eq!(
            parts("/items/{{seq}}?q={{csv:a:b.csv:x y}}").unwrap(),
            [
                Part::Text("/items/"),
                Part::Field("seq", Field::Sequence { first: 1 }),
                Part::Text("?q="),
                Part::Field(
                    "csv:a:b.csv:x y",
                    Field::Csv { file: "a:b.csv".to_owned(), column: "x y".to_owned(), order: RowOrder::InTurn }
                ),
            ]
        );
    }

    #[test]
    fn fields() {
        let field = |text: &str| match parts(text).unwrap().as_slice() {
            [Part::Field(_, field)] => field.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(field("{{uuid@2}}"), Field::Uuid);
        assert_eq!(field("{{seq:1000}}"), Field::Sequence { first: 1000 });
        assert_eq!(field("{{rand:0..0}}"), Field::Integer { first: 0, last: 0, zipf: None });
        assert_eq!(field("{{zipf:1..9}}"), Field::Integer { first: 1, last: 9, zipf: Some(0.99) });
        assert_eq!(field("{{zipf:1..9:1.2}}"), Field::Integer { first: 1, last: 9, zipf: Some(1.2) });
        assert_eq!(field("{{choice:a*3,}}"), Field::Choice(vec![("a".to_owned(), 3), (String::new(), 1)]));
        for (text, order) in [("random", RowOrder::Random), ("once", RowOrder::Once)] {
            let expected = Field::Csv { file: "u.csv".to_owned(), column: "name".to_owned(), order };
            assert_eq!(field(&format!("{{{{csv:u.csv:name:{text}}}}}")), expected);
        }
    }

    #[test]
    fn names_stand_for_forms() {
        let values = [("user", "csv:users.csv:email"), ("order", "seq:1000"), ("other", "seq:1000")];
        let values = values.map(|(name, form)| (name.to_owned(), form.to_owned())).into();
        assert_eq!(
            with_names("/{{user}}/{{order}}?a={{other}}&{{uuid}}", &values),
            "/{{csv:users.csv:email}}/{{seq:1000@order}}?a={{seq:1000@other}}&{{uuid}}"
        );
        assert!(check_named("order", "seq:1000").is_ok());
        for (name, form, said) in [
            ("uuid", "seq", "`uuid` is a form of values and cannot name one"),
            ("a b", "seq", "`a b` cannot name a value"),
            ("a", "sq", "unknown value `{{sq}}`"),
            ("a", "choice:{{b}}", "the value `choice:{{b}}` contains another value"),
        ] {
            assert_eq!(check_named(name, form).unwrap_err().message, said);
        }
    }

    #[test]
    fn wrong_fields_have_a_hint() {
        for (text, said) in [
            ("{{uid}}", "unknown value `{{uid}}`; write {{uuid}}"),
            (
                "{{x}}",
                "unknown value `{{x}}`; known: uuid, seq, rand, zipf, letters, choice, csv, trace, unix_ms, braces",
            ),
            ("{{rand:9..1}}", "`{{rand:9..1}}` is not a valid value; write {{rand:1..100}}"),
            (
                "{{choice:{{seq}}}}",
                "the value `choice:{{seq` contains another value; write values side by side; for a literal `{{`, write `{{braces}}`",
            ),
            ("{{letters:0}}", "`{{letters:0}}` is not a valid value; write {{letters:8}}"),
            ("{{choice:}}", "`{{choice:}}` is not a valid value; write {{choice:book*9,pen}}"),
            ("{{choice:a*0}}", "`{{choice:a*0}}` is not a valid value; write {{choice:book*9,pen}}"),
            (
                "a {{uuid",
                "`{{uuid` is not closed with `}}`; `{{` begins a value; for a literal one, write `{{braces}}`",
            ),
        ] {
            let error = parts(text).unwrap_err();
            assert_eq!(format!("{error}; {}", error.hint.as_deref().unwrap_or_default()), said);
        }
    }
}
