//! Writes the schemas of this crate, docs/reference/study.md and the keys in docs/reference/verify.md: `cargo run -p
//! study --features schema --example schemas`. CI fails if the files are out of date.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    for (name, text) in study::schema::schemas() {
        std::fs::write(folder.join(format!("{name}.json")), text)?;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/study.md");
    std::fs::write(page, study::keys::page())?;
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/verify.md");
    let text = std::fs::read_to_string(&page)?;
    std::fs::write(page, study::cases::keys::page(&text))
}
