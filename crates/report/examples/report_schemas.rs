//! Writes the schemas of this crate; CI checks them: `cargo run -p report --features schema --example report_schemas`.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    for (name, text) in report::schema::schemas() {
        std::fs::write(folder.join(format!("{name}.json")), text)?;
    }
    Ok(())
}
