//! Findings as JSON (schemas/findings.json).

use analysis::findings::Findings;

/// Pretty-printed, the keys as in the schema.
///
/// # Errors
/// [`serde_json::Error`]; a number that is not finite is written as `null`.
pub fn json(findings: &Findings) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(findings)
}

#[cfg(test)]
mod tests {
    use crate::json;
    use analysis::{Findings, analyze, example};

    #[test]
    fn what_is_written_reads_back() {
        for (run, records) in [example::volley(), example::sweep()] {
            let findings = analyze(&run, &records);
            assert_eq!(serde_json::from_str::<Findings>(&json(&findings).unwrap()).unwrap(), findings);
        }
    }
}
