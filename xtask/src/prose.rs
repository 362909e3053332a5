//! Counts phrases that read as translated, and long sentences, against a budget per directory that
//! may only shrink. The patterns are those with the fewest false alarms.

use std::collections::BTreeMap;

/// Number of phrases allowed in documents and comments below each directory; the longest prefix
/// counts. Lower a number when `cargo xtask tidy` says so; never raise one.
const BUDGET: [(&str, usize); 8] = [
    ("", 0),
    ("contracts/", 0),
    ("crates/", 0),
    ("docs/", 0),
    ("experiments/", 0),
    ("fixtures/", 0),
    ("subjects/", 0),
    ("xtask/", 0),
];

/// Longest sentence of a document, in words.
const SENTENCE_MAX: usize = 35;

const BE: [&str; 8] = ["is", "are", "was", "were", "be", "been", "being", "not"];
const TOLD: [&str; 7] = ["told", "said", "asked", "believed", "meant", "heard", "owed"];
const STANDS: [&str; 6] = ["stands", "stand", "stood", "lies", "lie", "lay"];
const PLACES: [&str; 7] = ["in", "beside", "behind", "before", "below", "above", "at"];
const TRAILING: [&str; 4] = ["alone", "anew", "likewise", "meanwhile"];
const OLD: [&str; 16] = [
    "bears",
    "borne",
    "mends",
    "mended",
    "heeds",
    "strays",
    "strayed",
    "owes",
    "dealt",
    "processor",
    "processors",
    "folder",
    "folders",
    "timetable",
    "middles",
    "whoever",
];

/// Compares the counts of all files with the budget. `text` returns the content of a file.
pub(crate) fn check(files: &[String], text: impl Fn(&str) -> Result<String, String>) -> Result<Vec<String>, String> {
    let mut found = BTreeMap::<&str, Vec<String>>::new();
    let mut complaints = Vec::new();
    for path in files.iter().filter(|path| path.ends_with(".md") || path.ends_with(".rs")) {
        let prefixes = BUDGET.iter().filter(|(prefix, _)| path.starts_with(prefix));
        let (prefix, _) = prefixes.max_by_key(|(prefix, _)| prefix.len()).expect("the root is a prefix of all");
        let content = text(path)?;
        let is_document = path.ends_with(".md");
        for (line, prose) in if is_document { document(&content) } else { comments(&content) } {
            let phrases = phrases(&prose);
            found.entry(prefix).or_default().extend(phrases.iter().map(|phrase| format!("{path}:{line}: {phrase}")));
            if is_document && sentences(&prose).any(|words| words > SENTENCE_MAX) {
                complaints.push(format!("{path}:{line}: a sentence of more than {SENTENCE_MAX} words"));
            }
        }
    }
    for (prefix, allowed) in BUDGET {
        let found = found.remove(prefix).unwrap_or_default();
        let place = if prefix.is_empty() { "files in other directories" } else { prefix };
        if found.len() > allowed {
            complaints.push(format!(
                "{place}: {} phrases to reword (docs/contributing/style.md), {allowed} allowed:\n  {}",
                found.len(),
                found.join("\n  ")
            ));
        } else if found.len() < allowed {
            complaints.push(format!("{place}: lower its budget in xtask/src/prose.rs to {}", found.len()));
        }
    }
    Ok(complaints)
}

/// Paragraphs of a document without code, tables and headings, with the number of their first line.
fn document(text: &str) -> Vec<(usize, String)> {
    let mut is_code = false;
    let prose = text.lines().map(|line| {
        is_code ^= line.trim_start().starts_with("```");
        let is_prose = !is_code && !line.starts_with("    ") && !line.starts_with(['|', '#', '<', '`']);
        // An item of a list is a paragraph of its own.
        let item = line.trim_start().strip_prefix("- ");
        (is_prose.then_some(item.unwrap_or(line)), item.is_some())
    });
    paragraphs(prose)
}

/// Runs of comment lines, with the number of their first line.
fn comments(text: &str) -> Vec<(usize, String)> {
    paragraphs(text.lines().map(|line| {
        let comment = line.trim_start().strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!']));
        (comment, false)
    }))
}

fn paragraphs<'t>(lines: impl Iterator<Item = (Option<&'t str>, bool)>) -> Vec<(usize, String)> {
    let mut paragraphs = Vec::<(usize, String)>::new();
    let mut is_open = false;
    for (at, (line, begins)) in lines.enumerate() {
        let Some(line) = line.filter(|line| !line.trim().is_empty()) else {
            is_open = false;
            continue;
        };
        if !std::mem::replace(&mut is_open, true) || begins {
            paragraphs.push((at + 1, String::new()));
        }
        let (_, paragraph) = paragraphs.last_mut().expect("one was just added");
        // Code between backticks is one word.
        let mut is_code = paragraph.matches('`').count() % 2 == 1;
        paragraph.extend(line.chars().map(|c| {
            is_code ^= c == '`';
            if is_code && c == ' ' { '_' } else { c }
        }));
        paragraph.push(' ');
    }
    paragraphs
}

fn phrases(prose: &str) -> Vec<String> {
    let words = prose.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>();
    let bare = |word: &str| word.trim_matches(|c: char| c.is_ascii_punctuation() && c != '`').to_owned();
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let (this, next) = (bare(word), words.get(at + 1).map(|next| bare(next)).unwrap_or_default());
        let pair_is = |first: &[&str], second: &[&str]| {
            first.contains(&this.as_str()) && second.contains(&next.as_str()) && !word.ends_with(['.', ',', ';', ':'])
        };
        if OLD.contains(&this.as_str()) || (TRAILING.contains(&this.as_str()) && word.ends_with(['.', ',', ';', ':'])) {
            found.push(this);
        } else if pair_is(&BE, &TOLD) || pair_is(&STANDS, &PLACES) {
            found.push(format!("{this} {next}"));
        }
    }
    found
}

/// Number of words of each sentence; so do colons and semicolons.
fn sentences(prose: &str) -> impl Iterator<Item = usize> {
    let words = prose.split_whitespace().collect::<Vec<_>>();
    let counts = words.split_inclusive(|word| word.ends_with(['.', '?', '!', ':', ';']));
    counts
        .map(|words| words.iter().filter(|word| word.contains(char::is_alphanumeric)).count())
        .collect::<Vec<_>>()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_phrases_in_prose_only() {
        let text =
            "# Heading is told\n\nIt is told, and stands\nin a folder. `is told` is code alone.\n\n```\nis told\n```\n";
        let found = document(text).iter().flat_map(|(_, prose)| phrases(prose)).collect::<Vec<_>>();
        assert_eq!(found, ["is told", "stands in", "folder", "alone"]);
        let source = "/// Nothing anew.\nlet told = \"is told\"; // not read\nfn f() {}\n";
        assert_eq!(comments(source).iter().flat_map(|(_, prose)| phrases(prose)).collect::<Vec<_>>(), ["anew"]);
    }

    #[test]
    fn a_count_above_or_below_the_budget_is_a_complaint() {
        let files = ["docs/a.md".to_owned()];
        let allowed = BUDGET.iter().find(|(prefix, _)| *prefix == "docs/").unwrap().1;
        let complaints = |times: usize| {
            let text = "It is told. ".repeat(times);
            let all = check(&files, |_| Ok(text.clone())).unwrap();
            all.into_iter().filter(|complaint| complaint.starts_with("docs/")).collect::<Vec<_>>()
        };
        assert!(complaints(allowed + 1)[0].contains("phrases to reword"));
        assert_eq!(complaints(allowed), Vec::<String>::new());
    }

    #[test]
    fn long_sentences_are_complaints() {
        let text = |words: usize| format!("{}end. Short one.", "word ".repeat(words - 1));
        let complaints = |words: usize| {
            let all = check(&["README.md".to_owned()], |_| Ok(text(words))).unwrap();
            all.iter().filter(|complaint| complaint.contains("a sentence of")).count()
        };
        assert_eq!((complaints(SENTENCE_MAX), complaints(SENTENCE_MAX + 1)), (0, 1));
    }
}
