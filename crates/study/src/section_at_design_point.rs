//! A table of a study at one design point, with the point's levels filled into its templates.

use config::{Fill, Filled, Invalid, Place};
use serde::de::DeserializeOwned;

use crate::factor_placeholders;
use crate::plan::Level;

/// Maximum length of a value after its templates are filled, bytes.
const VALUE_MAX_BYTES: usize = 4096;

pub(crate) type Section<'a> = config::Section<'a, Settings<'a>>;

/// Reads a declared word that is the name of a value in JSON. `None` as for [`config::Section::word`].
pub(crate) fn named<T: DeserializeOwned>(section: &Section, key: &str) -> Option<T> {
    let word = section.word(key)?;
    Some(serde_json::from_value(word.into()).expect("words are names in JSON"))
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) factor: &'a str,
    pub(crate) level: &'a Level,
    pub(crate) place: Place,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings<'a>(pub(crate) &'a [Setting<'a>]);

impl Fill for Settings<'_> {
    fn fill(&self, key: &str, text: &str) -> Result<Filled, Option<Invalid>> {
        let setting = |name: &str| self.0.iter().find(|setting| setting.factor == name);
        let filled = factor_placeholders::fill(text, |name| setting(name).map(|setting| setting.level.to_string()));
        if filled.len() > VALUE_MAX_BYTES {
            let error = Invalid::new(format!("is longer than {VALUE_MAX_BYTES} bytes"));
            return Err(Some(if key == "body" { error.hint("put it in a file and set `body_file`") } else { error }));
        }
        let is_ours = |name: &str| !factor_placeholders::is_reserved(name);
        // An error in `"{clients}"` is reported at the level itself. Missing factors have already been reported.
        let from = match factor_placeholders::names(text).first() {
            Some(factor) if text.len() == factor.len() + 2 && is_ours(factor) => {
                let setting = setting(factor).ok_or(None)?;
                Some((setting.place, format!("level `{}` of `{factor}`", setting.level)))
            }
            Some(_) if factor_placeholders::names(&filled).into_iter().any(is_ours) => return Err(None),
            _ => None,
        };
        Ok(Filled { text: filled, from })
    }
}
