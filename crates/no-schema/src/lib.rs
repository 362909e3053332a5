//! Replaces `schemars` unless the feature `schema` is on. Only the program that generates `schemas/` needs the real
//! derive, which slows builds down.

use proc_macro::TokenStream;

/// Accepts the attributes of `schemars::JsonSchema` and generates no code.
#[proc_macro_derive(JsonSchema, attributes(schemars))]
pub fn no_schema(_: TokenStream) -> TokenStream {
    TokenStream::new()
}
