//! Parses study files (TOML) and reports all errors at once. [`crate::keys`] declares the keys.

pub use crate::journey::parse::{
    STEPS_MAX as JOURNEY_STEPS_MAX, TEXT_MAX_BYTES as JOURNEY_MAX_BYTES, parse as parse_journey,
    preset as preset_journey,
};
use config::{Diagnostic, Report, node};

use crate::expand::{self, ExpandOptions};
use crate::study_and_profiles::in_profile;
pub use crate::study_and_profiles::{Profile, Study, TEXT_MAX_BYTES};

/// Parses a study and checks syntax, names, types, units, ranges and references in all profiles. Fails with all errors.
pub fn parse(text: &str) -> Result<Study, Vec<Diagnostic>> {
    let report = Report::new("the study", text, &[]);
    report.check_length("a study", TEXT_MAX_BYTES)?;
    let root = node::document(text, &report);
    for profile in Profile::ALL {
        if profile == Profile::Default || root.get(profile.name()).is_some() {
            // Assumes two CPUs, since the number of CPUs is unknown here; no error depends on it.
            let options = ExpandOptions { profile, ..ExpandOptions::default() };
            expand::plan_of(&in_profile(&root, profile, &report), text, &options, &report);
        }
    }
    expand::check_variants(&root, &report);
    report.finish()?;
    Ok(Study { text: text.to_owned(), root })
}
