//! Findings as JSON (schemas/findings.json).

use analysis::findings::Findings;

/// Pretty-prints the findings; numbers that are not finite become `null`.
///
/// # Errors
/// [`serde_json::Error`] if serialization fails.
pub fn json(findings: &Findings) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(findings)
}
