//! Findings as JSON (schemas/findings.json).

use analysis::findings::Findings;

/// Pretty-printed, the keys as in the schema.
///
/// # Errors
/// [`serde_json::Error`]; a number that is not finite is written as `null`.
pub fn json(findings: &Findings) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(findings)
}
