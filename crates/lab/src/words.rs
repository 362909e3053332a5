//! A command as a study writes it, split into words as a shell would, without a shell.

/// Splits at blanks; `'...'` is literal, `"..."` knows `\"` and `\\`, a backslash outside of quotes takes the next
/// character literally. Nothing is expanded: no variables, globs, pipes or redirections.
///
/// Errors: a quote that does not end, a backslash at the end, no word at all.
pub(crate) fn split(command: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = command.chars();
    while let Some(letter) = rest.next() {
        match letter {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next() {
                        Some('\'') => break,
                        Some(letter) => word.push(letter),
                        None => return Err(format!("a `'` does not end in `{command}`")),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next() {
                        Some('"') => break,
                        Some('\\') => match rest.next() {
                            Some(letter @ ('"' | '\\')) => word.push(letter),
                            Some(letter) => word.extend(['\\', letter]),
                            None => return Err(format!("a `\"` does not end in `{command}`")),
                        },
                        Some(letter) => word.push(letter),
                        None => return Err(format!("a `\"` does not end in `{command}`")),
                    }
                }
            }
            '\\' => match rest.next() {
                Some(letter) => word.get_or_insert_default().push(letter),
                None => return Err(format!("a backslash ends `{command}`")),
            },
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    if words.is_empty() { Err("the command is empty".to_owned()) } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, words: &[&str]) {
        assert_eq!(split(command).unwrap(), words, "{command}");
    }

    #[test]
    fn plain() {
        check("  subjects/go/go -p  7000\n", &["subjects/go/go", "-p", "7000"]);
    }
    #[test]
    fn quotes_keep_blanks_and_join() {
        check(r#"java "-Dname=a b" 'c d'e"#, &["java", "-Dname=a b", "c de"]);
    }
    #[test]
    fn empty_word() {
        check("x '' \"\"", &["x", "", ""]);
    }
    #[test]
    fn backslashes() {
        check(r#"a\ b "\"\\\n" '\'"#, &["a b", r#""\\n"#, r"\"]);
    }
    #[test]
    fn nothing_is_expanded() {
        check("echo $HOME *.rs | cat", &["echo", "$HOME", "*.rs", "|", "cat"]);
    }
    #[test]
    fn mistakes() {
        for command in ["", "  ", "a 'b", "a \"b", "a \\", "a \"b\\"] {
            assert!(split(command).is_err(), "{command}");
        }
    }
}
