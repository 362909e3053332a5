//! Unique and stable names of rows for other tools, and of their files.

use analysis::Findings;
use analysis::findings::Row;
use study::record::IdlePolicy;

/// Maximum length of a file name without its extension, in bytes. File systems allow 255.
const FILE_MAX: usize = 200;

/// Returns a name made of the study and all levels, such as `volley/server=go/cores=2`, stable between runs and unique
/// in a run. It has no blank, comma, quote or control character, so that every format can hold it.
pub(super) fn name(findings: &Findings, row: &Row) -> String {
    let levels = findings.factors.iter().filter_map(|factor| Some((&factor.name, row.factors.get(&factor.name)?)));
    let levels = levels.map(|(name, level)| format!("/{}={}", word(name), word(&level.to_string())));
    let idle = if row.idle == Some(IdlePolicy::Spin) { "/idle=spin" } else { "" };
    format!("{}{}{idle}", word(&findings.study), levels.collect::<String>())
}

pub(super) fn measured(findings: &Findings) -> impl Iterator<Item = (String, &Row)> {
    findings.rows.iter().filter(|row| row.n > 0).map(|row| (name(findings, row), row))
}

pub(super) fn file(name: &str, row: &Row, ending: &str) -> String {
    let plain = name.replace('/', ",");
    if plain.len() <= FILE_MAX {
        return format!("{plain}.{ending}");
    }
    let end = (0..=FILE_MAX).rev().find(|&end| plain.is_char_boundary(end)).unwrap_or(0);
    format!("{}~{}.{ending}", &plain[..end], row.point)
}

/// Keeps letters, digits and `-_.+:@`, and percent-encodes all other bytes.
pub(super) fn word(text: &str) -> String {
    let is_kept = |letter: char| letter.is_alphanumeric() || "-_.+:@".contains(letter);
    let part =
        |letter: char| if is_kept(letter) { letter.to_string() } else { study::validate_http::percent_encoded(letter) };
    text.chars().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use percent_encoding::percent_decode_str;
    use proptest::prelude::*;
    use study::plan::Level;

    #[test]
    fn names_have_every_factor() {
        let (run, records) = fixtures::volley();
        let findings = analysis::analyze(&run, &records);
        assert_eq!(name(&findings, &findings.rows[4]), "volley/server=go/cores=1/clients=40");
        assert_eq!(
            file("volley/server=go", &findings.rows[4], "hgrm"),
            "volley,server=go.hgrm",
            "no directory, whatever the name"
        );
        assert_eq!(file(&"ä".repeat(300), &findings.rows[4], "hgrm"), format!("{}~4.hgrm", "ä".repeat(100)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn distinct_levels_have_distinct_names(first in ".*", second in ".*") {
            let (run, _) = fixtures::volley();
            let mut findings = analysis::analyze(&run, &[]);
            let names = [&first, &second].map(|level| {
                findings.rows[0].factors.insert("server".to_owned(), Level::Text(level.clone()));
                name(&findings, &findings.rows[0])
            });
            prop_assert_eq!(names[0] == names[1], first == second);
            for (name, level) in names.iter().zip([&first, &second]) {
                prop_assert!(!name.contains(|c: char| c.is_whitespace() || c.is_control() || "\",'\\;".contains(c)), "{}", name);
                let back = name.strip_prefix("volley/server=").unwrap().strip_suffix("/cores=1/clients=40").unwrap();
                prop_assert_eq!(&*percent_decode_str(back).decode_utf8().unwrap(), level.as_str());
                prop_assert!(file(name, &findings.rows[0], "hgrm").len() <= 255);
                prop_assert!(hdrhistogram::serialization::interval_log::Tag::new(name).is_some());
            }
        }
    }
}
