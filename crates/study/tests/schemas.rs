//! Tests of generated references and schemas.

use std::path::Path;

#[test]
fn study_keys_page_is_up_to_date() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/study.md");
    let file = std::fs::read_to_string(&page).unwrap_or_default();
    let made = study::keys::page();
    assert!(
        file == made,
        "docs/reference/study.md is not what is declared; `cargo run -p study --features schema --example schemas` writes it"
    );
}

#[test]
fn verify_keys_page_is_up_to_date() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/verify.md");
    let file = std::fs::read_to_string(&page).unwrap_or_default();
    let made = study::cases::keys::page(&file);
    assert!(
        file == made,
        "docs/reference/verify.md is not what is declared; `cargo run -p study --features schema --example schemas` writes it"
    );
}

#[test]
fn schemas_list_required_fields_and_descriptions() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/measurement.json");
    let schema: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(schema["title"], "Measurement");
    let required = schema["required"].as_array().unwrap();
    assert!(required.contains(&"requests".into()) && !required.contains(&"response".into()));
    let properties = schema["properties"].as_object().unwrap();
    let undocumented = properties.iter().filter(|(_, property)| property["description"].is_null());
    assert_eq!(undocumented.map(|(name, _)| name.as_str()).collect::<Vec<_>>(), Vec::<&str>::new());
}
