//! Replaces `schemars` unless the feature `schema` is on. Only the generator of the files in
//! `schemas/` needs the real derive, which makes builds longer.

use proc_macro::TokenStream;

/// Accepts the attributes of `schemars::JsonSchema` and implements nothing.
#[proc_macro_derive(JsonSchema, attributes(schemars))]
pub fn no_schema(_: TokenStream) -> TokenStream {
    TokenStream::new()
}
