//! HPACK: compression of fields. Source: RFC 7541.

mod decoder;
mod encoder;
mod huffman;
mod static_table;

pub use decoder::Decoder;
pub use encoder::{Indexing, push_field, push_indexed, push_literal_name, push_string, push_table_size, push_text};

/// Overhead of a field in the dynamic table, in bytes. Source: RFC 7541, section 4.1.
pub const FIELD_OVERHEAD_BYTES: usize = 32;

/// Index of the newest field of the dynamic table. Source: RFC 7541, section 2.3.3.
pub const DYNAMIC_FIRST: usize = static_table::FIELDS.len() + 1;

/// An error in a field block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HpackError {
    /// A block that ends inside a field.
    #[error("it ends inside a field")]
    Truncated,
    /// An integer above 2^31 - 1, or one with superfluous bytes. Source: RFC 7541, section 5.1.
    #[error("an integer above 2147483647, or of more than 5 bytes")]
    Integer,
    /// An index that is in neither table. Contains the index. Source: RFC 7541, sections 2.3.3 and 6.1.
    #[error("index {0}, which is in neither table")]
    Index(usize),
    /// A string with EOS, more than 7 bits of padding, or padding other than ones. Source: RFC 7541, section 5.2.
    #[error("invalid Huffman code")]
    Huffman,
    /// A table size above the allowed maximum. Contains the size, in bytes. Source: RFC 7541, section 6.3.
    #[error("a dynamic table of {0} bytes, more than the setting allows")]
    TableSize(usize),
    /// A table size after the first field, or none after the setting was reduced. Source: RFC 7541, section 4.2.
    #[error("a change of the dynamic table size at the wrong place, or missing")]
    TableSizePlace,
    /// More fields than the limit allows. Contains the limit. Source: RFC 9113, section 10.5.1.
    #[error("more than {0} fields")]
    TooManyFields(usize),
    /// Decoded fields that exceed the limit. Contains the limit, in bytes. Source: RFC 9113, section 10.5.1.
    #[error("fields of more than {0} bytes")]
    FieldsTooLarge(usize),
}
