//! Writes the reference of cluster keys, docs/reference/cluster.md: `cargo run -p lab --example cluster_reference`.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cluster.md");
    let text = std::fs::read_to_string(&path)?;
    let (before, rest) = text.split_once("\n## Every key\n").expect("the page has the section");
    let after = rest.find("\n## ").map_or("", |at| &rest[at..]);
    std::fs::write(path, format!("{before}\n## Every key\n\n{}{after}", lab::cluster::file::reference()))
}
