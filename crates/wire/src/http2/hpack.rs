//! HPACK: compression of fields. Source: RFC 7541.

mod decoder;
mod encoder;
mod huffman;
mod static_table;

pub(super) use decoder::BlockUse;
pub use decoder::Decoder;
pub use encoder::{Indexing, push_field, push_indexed, push_literal_name, push_string, push_table_size, push_text};

/// Overhead of a field in the dynamic table, in bytes. Source: RFC 7541 section 4.1.
pub const FIELD_OVERHEAD_BYTES: usize = 32;

/// Number of the newest field of the dynamic table. Source: RFC 7541 section 2.3.3.
pub const DYNAMIC_FIRST: usize = static_table::FIELDS.len() + 1;

/// An error in a field block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HpackError {
    /// The block ends inside a field.
    #[error("it ends inside a field")]
    Truncated,
    /// Section 5.1: an integer above 2^31 - 1, or with needless bytes.
    #[error("an integer above 2147483647, or of more than 5 bytes")]
    Integer,
    /// Sections 2.3.3 and 6.1: no such field in the tables. Contains the index.
    #[error("index {0}, which is in neither table")]
    Index(usize),
    /// Section 5.2: padding of more than 7 bits, not of ones, or the EOS symbol.
    #[error("invalid Huffman code")]
    Huffman,
    /// Section 6.3: a table size above the setting. Contains the size, in bytes.
    #[error("a dynamic table of {0} bytes, more than the setting allows")]
    TableSize(usize),
    /// Section 4.2: a table size after the first field, or none after the setting was reduced.
    #[error("a change of the dynamic table size at the wrong place, or missing")]
    TableSizePlace,
    /// RFC 9113 10.5.1: more fields than the limit. Contains the limit.
    #[error("more than {0} fields")]
    TooManyFields(usize),
    /// RFC 9113 10.5.1: the decoded block exceeds the limit. Contains the limit, in bytes.
    #[error("fields of more than {0} bytes")]
    FieldsTooLarge(usize),
}
