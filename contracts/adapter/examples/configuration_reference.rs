//! Writes the keys in docs/reference/adapter.md. Usage: `cargo run -p adapter --example configuration_reference`.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/adapter.md");
    let text = std::fs::read_to_string(&path)?;
    let (before, rest) = text.split_once("\n## Every key\n").expect("the page has the section");
    let after = rest.find("\n## ").map_or("", |at| &rest[at..]);
    std::fs::write(path, format!("{before}\n## Every key\n\n{}{after}", adapter::config::reference()))
}
