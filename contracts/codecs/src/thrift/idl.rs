//! The interface definition language of Apache Thrift: a file and what it includes become a [`Schema`]. Source: the grammar at
//! <https://thrift.apache.org/docs/idl>, and what the compiler of Apache Thrift does where that is silent.
//!
//! ```
//! use codecs::thrift::idl;
//!
//! let text = "service Adder { i32 add(1: i32 a, 2: i32 b) }";
//! let schema = idl::parse("adder.thrift", text, &mut |path| Err(format!("{path} is not to be had"))).unwrap();
//! let add = schema.service("Adder").unwrap().method("add").unwrap();
//! assert_eq!(schema.structure(add.arguments).field("b").unwrap().id, 2);
//!
//! let mistakes = idl::parse("adder.thrift", "struct A { 1: i23 a }", &mut |_| unreachable!()).unwrap_err();
//! assert_eq!(mistakes.0[0].text, "unknown type `i23`");
//! ```
//!
//! # Where the language leaves a choice
//!
//! - **Fields without a number** get -1, -2 and so on, in the order of the file. A number that is written must be 1 to 32767.
//! - **Fields of a union** are optional, whatever is said of them; so is what a method returns and throws.
//! - **Numbers of an enum** begin with 0 and go on behind the last one; two members may have the same.
//! - **A type may be used before it is defined**, also in constants.
//! - **Names of included files** are the file's name without folder and ending: `include "a/shared.thrift"` gives `shared.Type`.
//! - **`cpp_include`, `cpp_type`, `&`, namespaces and annotations** are read and have no meaning; `senum` and `slist` are mistakes.

mod constant;
mod lexer;
mod resolve;
mod syntax;

use super::schema::Schema;
use crate::mistake::{Mistake, Mistakes};

/// Longest text of all files together, bytes.
pub const TEXT_MAX_BYTES: usize = 4 << 20;

/// Most files that one file may include, with those that these include.
pub const FILES_MAX: usize = 256;

/// Reads the IDL file `text`, whose name in messages is `source`. `include` gives the text of an included file from its path as it is written
/// there, or says why it cannot; it is asked once for each path.
///
/// # Errors
///
/// All mistakes of the file and of what it includes.
pub fn parse(
    source: &str,
    text: &str,
    include: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<Schema, Mistakes> {
    let mut mistakes = Vec::new();
    let schema = resolve::resolve(source, text, include, &mut mistakes);
    if mistakes.is_empty() { Ok(schema) } else { Err(Mistakes(mistakes)) }
}

/// A mistake at a byte of a file.
fn mistake_at(source: &str, file: &str, at: usize, text: String, hint: Option<String>) -> Mistake {
    let (line, column) = config::place::line_and_column(file, at);
    Mistake { source: source.to_owned(), line, column, text, hint }
}
