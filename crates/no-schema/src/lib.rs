//! Replaces `schemars`'s derive, which slows builds down, unless the feature `schema` is on to generate `schemas/`.

use proc_macro::TokenStream;

/// Accepts the attributes of `schemars::JsonSchema` and generates no code.
#[proc_macro_derive(JsonSchema, attributes(schemars))]
pub fn no_schema(_: TokenStream) -> TokenStream {
    TokenStream::new()
}
