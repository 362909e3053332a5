//! Parses Apache Thrift's interface definition language into a `Schema` of a file and its includes. Source:
//! <https://thrift.apache.org/docs/idl>, or Apache Thrift's compiler if the grammar is silent.
//! ```
//! use codecs::thrift::idl;
//! let text = "service Adder { i32 add(1: i32 a, 2: i32 b) }";
//! let schema = idl::parse("adder.thrift", text, &mut |path| Err(format!("{path} not found"))).unwrap();
//! let add = schema.service("Adder").unwrap().method("add").unwrap();
//! assert_eq!(schema.structure(add.arguments).field("b").unwrap().id, 2);
//! let mistakes = idl::parse("adder.thrift", "struct A { 1: i23 a }", &mut |_| unreachable!()).unwrap_err();
//! assert_eq!(mistakes.0[0].text, "unknown type `i23`");
//! ```
//! # Choices that the language leaves open
//! - **Fields without a number** get -1, -2 and so on, in file order. Explicit numbers must be 1 to 32767.
//! - **Fields of a union** are always optional; so are results and exceptions of methods.
//! - **Enum members** without a number start at 0 or continue after the previous member. Numbers may repeat.
//! - **Types** may be used before their definition, including in constants.
//! - **Names from included files** start with the file's base name: `include "a/shared.thrift"` gives `shared.Type`.
//! - **`cpp_include`, `cpp_type`, `&`, namespaces and annotations** are ignored; `senum` and `slist` are errors.

mod constant;
mod lexer;
mod parse;
mod resolve;

pub use resolve::parse;

/// Maximum size of all files together, in bytes.
pub const TEXT_MAX_BYTES: usize = 4 << 20;

/// Maximum number of included files, including indirect includes.
pub const FILES_MAX: usize = 256;
