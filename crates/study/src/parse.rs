//! A study file becomes a [`Study`]: read, with every mistake named in one go.
//!
//! # The file
//!
//! TOML. Times, counts, rates and fractions are read by [`crate::units`]. Wherever a value of `[subject]` or `[load]`
//! may stand, a text may stand whose `{factor}` is replaced by the level of that factor.
//!
//! [`crate::keys`] has every key; docs/STUDY.md is made of it.

mod journey;

use config::{Diagnostic, Report, node};

use crate::expand::{self, ExpandOptions};
use crate::source::in_profile;
pub use crate::source::{Profile, Study, TEXT_MAX_BYTES};
pub use journey::{TEXT_MAX_BYTES as JOURNEY_MAX_BYTES, parse as parse_journey, preset as preset_journey};

/// Reads a study: syntax, names, types, units, ranges and references, in every profile.
///
/// # Errors
/// Every mistake in it, in the order of the text.
pub fn parse(text: &str) -> Result<Study, Vec<Diagnostic>> {
    let report = Report::new("the study", text, &[]);
    report.check_length("a study", TEXT_MAX_BYTES)?;
    let root = node::document(text, &report);
    for profile in Profile::ALL {
        if profile == Profile::Default || root.get(profile.name()).is_some() {
            // How many processors there will be is not known yet; with two, nothing that depends on it is a mistake.
            let options = ExpandOptions { profile, ..ExpandOptions::default() };
            expand::plan_of(&in_profile(&root, profile, &report), text, &options, &report);
        }
    }
    expand::check_variants(&root, &report);
    report.finish()?;
    Ok(Study { text: text.to_owned(), root })
}
