//! Parses Apache Thrift's interface definition language into a `Schema` of a file and its includes. Source:
//! <https://thrift.apache.org/docs/idl>, or Apache Thrift's compiler if the grammar is silent.
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
