//! Suggestions for misspelled words.

/// The candidate closest to `word` by optimal string alignment, or the first if several tie. `None` if the distance
/// exceeds both 1 and a third of the length of `word`, or is not less than the length of the longer word.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let length = word.chars().count();
    let limit = (length / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= limit)
        .map(|candidate| (strsim::osa_distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|&(slips, candidate)| slips <= limit && slips < candidate.len().max(length))
        .min_by_key(|&(slips, _)| slips)
        .map(|(_, candidate)| candidate)
}

/// Returns "did you mean `X`?" if a candidate is close; otherwise `None`.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|near| format!("did you mean `{near}`?"))
}

/// Returns "did you mean `X`?" if a candidate is close; otherwise lists all candidates.
pub fn suggestion<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    suggestion_of(usize::MAX, word, candidates)
}

/// Returns the string of [`suggestion`], but lists at most the first `most` candidates.
pub fn suggestion_of<'a>(most: usize, word: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    did_you_mean(word, candidates.clone()).unwrap_or_else(|| {
        let all = candidates.into_iter().take(most).map(|candidate| format!("`{candidate}`")).collect::<Vec<_>>();
        if all.is_empty() { "nothing available".to_owned() } else { format!("available: {}", all.join(", ")) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 5] = ["clients", "cpus", "command", "warmup", "x"];

    #[test]
    fn finds_close_words() {
        assert_eq!(nearest("client", KEYS), Some("clients"));
        assert_eq!(nearest("warmpu", KEYS), Some("warmup"));
        assert_eq!(nearest("Command", KEYS), Some("command"));
        assert_eq!(nearest("cpu", KEYS), Some("cpus"));
        assert_eq!(nearest("threads", KEYS), None);
        assert_eq!(nearest("", KEYS), None);
        assert_eq!(nearest("clients", []), None);
    }

    #[test]
    fn lists_all_candidates_without_a_close_one() {
        assert_eq!(suggestion("wrmup", KEYS), "did you mean `warmup`?");
        assert_eq!(suggestion("threads", ["a", "b"]), "available: `a`, `b`");
        assert_eq!(suggestion("threads", []), "nothing available");
        assert_eq!(suggestion_of(1, "threads", ["a", "b"]), "available: `a`");
        assert_eq!(
            suggestion_of(1, "thread", ["a", "threads"]),
            "did you mean `threads`?",
            "near ones are sought among all"
        );
    }
}
