//! Finds long sentences in documents, and phrases that read as translated in documents and comments. Only
//! patterns with few false alarms are included.

/// Maximum length of a sentence in a document, in words.
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

/// Checks all documents and Rust files. `text` returns the content of a file.
pub(crate) fn check(files: &[String], text: impl Fn(&str) -> Result<String, String>) -> Result<Vec<String>, String> {
    let mut complaints = Vec::new();
    for path in files.iter().filter(|path| path.ends_with(".md") || path.ends_with(".rs")) {
        let content = text(path)?;
        let is_document = path.ends_with(".md");
        for (line, prose) in if is_document { document(&content) } else { comments(&content) } {
            complaints.extend(
                phrases(&prose).iter().map(|phrase| {
                    format!("{path}:{line}: reword `{phrase}` (docs/contributing/style.md, section Prose)")
                }),
            );
            if is_document && sentences(&prose).any(|words| words > SENTENCE_MAX) {
                complaints.push(format!("{path}:{line}: a sentence of more than {SENTENCE_MAX} words"));
            }
        }
    }
    Ok(complaints)
}

/// Paragraphs of a document without code, tables and headings, each with the number of its first line.
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

/// Runs of comment lines, each with the number of its first line.
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

/// Number of words of each sentence. Colons and semicolons end a sentence as full stops do.
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
    fn each_phrase_is_a_complaint_with_its_place() {
        let text = |path: &str| Ok(if path == "a.rs" { "\n// It is told." } else { "It is fine." }.to_owned());
        let found = check(&["a.rs", "b.rs", "c.md"].map(str::to_owned), text).unwrap();
        assert_eq!(found, ["a.rs:2: reword `is told` (docs/contributing/style.md, section Prose)"]);
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
