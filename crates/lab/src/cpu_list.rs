//! CPU lists in the kernel's format: `0-3,8`.

use std::collections::BTreeSet;

/// Parses `0-3,8` into an ascending list without duplicates; an empty string is valid. Errors name the invalid part.
pub fn parse(text: &str) -> Result<Vec<u32>, String> {
    let mut cpus = BTreeSet::new();
    for part in text.trim().split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let not_a_number = |_| format!("`{part}` is not a CPU number or range");
        let number = |text: &str| text.trim().parse::<u32>().map_err(not_a_number);
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last > 65_535 {
            return Err(format!("`{part}` is not a valid CPU range"));
        }
        cpus.extend(first..=last);
    }
    Ok(cpus.into_iter().collect())
}

/// Formats a list as `0-3,8`, which [`parse`] and the kernel accept.
pub fn format(cpus: &[u32]) -> String {
    let sorted = cpus.iter().copied().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
    let format_run = |run: &[u32]| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    };
    sorted.chunk_by(|low, high| low + 1 == *high).map(format_run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, cpus: &[u32], written: &str) {
        assert_eq!(parse(text).as_deref(), Ok(cpus), "{text}");
        assert_eq!(format(cpus), written);
    }

    #[test]
    fn empty() {
        check("\n", &[], "");
    }
    #[test]
    fn one() {
        check("7", &[7], "7");
    }
    #[test]
    fn ranges_and_singles() {
        check("0-3,8,10-11\n", &[0, 1, 2, 3, 8, 10, 11], "0-3,8,10-11");
    }
    #[test]
    fn disorder_and_doubles() {
        check("3,1,2,2-3", &[1, 2, 3], "1-3");
    }
    #[test]
    fn mistakes() {
        for text in ["a", "3-1", "1-", "-1", "0-99999999"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
