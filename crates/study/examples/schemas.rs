//! Writes the schemas of this crate: `cargo run -p quintain-study --example schemas`. A test holds the files to it.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    for (name, text) in study::schema::schemas() {
        std::fs::write(folder.join(format!("{name}.json")), text)?;
    }
    Ok(())
}
