//! Splits the commands of a study into words by the quoting rules of a shell.

use config::Invalid;

use crate::journey::placeholders::is_name;

/// Represents a quoted character in [`Word::bare`]. Strings of a study cannot contain it.
const QUOTED: char = '\0';

const BUILTINS: [&str; 5] = ["exec", "export", "set", "source", "ulimit"];

#[derive(Default)]
struct Word {
    text: String,
    /// The word with [`QUOTED`] in place of each character that a shell would take literally.
    bare: String,
}

impl Word {
    fn push(&mut self, letter: char, bare: char) {
        self.text.push(letter);
        self.bare.push(bare);
    }
}

/// Splits the arguments of a command; a blank string has none. Fails as [`split`] does.
pub fn arguments(text: &str) -> Result<Vec<String>, Invalid> {
    if text.trim().is_empty() { Ok(Vec::new()) } else { split(text) }
}

/// Splits a command by a shell's quoting rules, but `"..."` allows only the escapes `\"` and `\\`. Variables, globs,
/// pipes and redirections are literal; [`check`] reports them. Fails on an open quote, a final backslash, or no word.
pub fn split(command: &str) -> Result<Vec<String>, Invalid> {
    Ok(scan(command)?.into_iter().map(|word| word.text).collect())
}

/// Quotes words so that [`split`] and shells return the same words.
pub fn join(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=@_".contains(c);
    let quoted = |word: &String| match word.is_empty() || !word.chars().all(plain) {
        true => format!("'{}'", word.replace('\'', "'\\''")),
        false => word.clone(),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Checks that [`split`] accepts a command, and that no unquoted part needs a shell. Fails at the first problem.
pub fn check(command: &str) -> Result<(), Invalid> {
    let words = scan(command)?;
    let of_shell = words.iter().enumerate().find_map(|(index, word)| of_shell(index == 0, word));
    of_shell.map_or(Ok(()), Err)
}

fn scan(command: &str) -> Result<Vec<Word>, Invalid> {
    let unclosed = |quote: char| {
        let hint = format!("close it, or write `\\{quote}` for the character itself");
        Invalid::new(format!("unclosed `{quote}` in `{command}`")).hint(hint)
    };
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut rest = command.chars();
    while let Some(letter) = rest.next() {
        match letter {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            quote @ ('\'' | '"') => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next().ok_or_else(|| unclosed(quote))? {
                        end if end == quote => break,
                        '\\' if quote == '"' => match rest.next().ok_or_else(|| unclosed(quote))? {
                            letter @ ('"' | '\\') => word.push(letter, QUOTED),
                            letter => ['\\', letter].into_iter().for_each(|letter| word.push(letter, QUOTED)),
                        },
                        letter => word.push(letter, QUOTED),
                    }
                }
            }
            '\\' => {
                let ends =
                    || Invalid::new(format!("`{command}` ends with a backslash")).hint("write `\\\\` for a backslash");
                word.get_or_insert_default().push(rest.next().ok_or_else(ends)?, QUOTED);
            }
            letter => word.get_or_insert_default().push(letter, letter),
        }
    }
    words.extend(word);
    if words.is_empty() { Err(Invalid::new("the command is empty")) } else { Ok(words) }
}

fn of_shell(first: bool, word: &Word) -> Option<Invalid> {
    let bare = word.bare.as_str();
    let shell = "start a shell yourself, `sh -c '...'`, or quote it to pass it through unchanged";
    let operator = ["&&", "||"].into_iter().find(|operator| bare.contains(operator));
    let operator = operator.or_else(|| ["|", "&", ";"].into_iter().find(|operator| bare == *operator));
    let operator = operator.or_else(|| bare.ends_with(';').then_some(";"));
    let redirected = bare.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches('&');
    let begins_name = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '{' | '(');
    let variable = bare.match_indices('$').any(|(at, _)| bare[at + 1..].starts_with(begins_name));
    // `*:80` is an address, not a pattern.
    let is_pattern = bare.match_indices('*').any(|(at, _)| !bare[at + 1..].starts_with(':'));
    let text = word.text.as_str();
    let (what, hint) = match bare {
        _ if let Some(operator) = operator => (operator, shell),
        _ if redirected.starts_with(['<', '>']) => (text, shell),
        _ if variable || bare.contains('`') => (text, "write out the value, or start a shell: `sh -c '...'`"),
        _ if is_pattern || bare == "~" || bare.starts_with("~/") => {
            (text, "write out the names, or start a shell: `sh -c '...'`")
        }
        _ if first && bare.split_once('=').is_some_and(|(before, _)| is_name(before)) => {
            (text, "set variables in the `environment` table")
        }
        "cd" if first => (bare, "set the working directory with `directory`"),
        _ if first && BUILTINS.contains(&bare) => (bare, shell),
        _ => return None,
    };
    Some(Invalid::new(format!("`{what}` needs a shell, and commands are started without one")).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn splits(command: &str, words: &[&str]) {
        assert_eq!(split(command).unwrap(), words, "{command}");
    }

    #[test]
    fn plain() {
        splits("  subjects/go/go -p  7000\n", &["subjects/go/go", "-p", "7000"]);
    }
    #[test]
    fn quoted_blanks_do_not_split() {
        splits(r#"java "-Dname=a b" 'c d'e"#, &["java", "-Dname=a b", "c de"]);
    }
    #[test]
    fn empty_word() {
        splits("x '' \"\"", &["x", "", ""]);
    }
    #[test]
    fn backslashes() {
        splits(r#"a\ b "\"\\\n" '\'"#, &["a b", r#""\\n"#, r"\"]);
    }
    #[test]
    fn variables_and_globs_are_not_expanded() {
        splits("echo $HOME *.rs | cat", &["echo", "$HOME", "*.rs", "|", "cat"]);
    }
    #[test]
    fn mistakes() {
        for command in ["", "  ", "a 'b", "a \"b", "a \\", "a \"b\\"] {
            assert!(split(command).is_err(), "{command}");
            assert!(check(command).is_err(), "{command}");
        }
        assert_eq!(split("a 'b").unwrap_err().message, "unclosed `'` in `a 'b`");
    }

    #[test]
    fn joined_words_split_to_the_same_words() {
        let words =
            ["quintain", "", "a b", "it's", "--set", "clients=1,2", "$HOME", "\\", "\"", "é"].map(str::to_owned);
        assert_eq!(split(&join(&words)).unwrap(), words);
        assert_eq!(join(&words[..4]), r"quintain '' 'a b' 'it'\''s'");
    }

    #[test]
    fn reports_shell_syntax() {
        for (command, what) in [
            ("make -C x && ./x -p {port}", "`&&`"),
            ("a||b", "`||`"),
            ("x -p {port} | tee log", "`|`"),
            ("x -p {port} &", "`&`"),
            ("a; b", "`;`"),
            ("a ; b", "`;`"),
            ("x > log", "`>`"),
            ("x >>log", "`>>log`"),
            ("x 2>&1", "`2>&1`"),
            ("x &>log", "`&>log`"),
            ("x </dev/null", "`</dev/null`"),
            ("x -p $PORT", "`$PORT`"),
            ("x --home=${HOME}", "`--home=${HOME}`"),
            ("x $(nproc)", "`$(nproc)`"),
            ("x `nproc`", "``nproc``"),
            ("java -jar target/*.jar", "`target/*.jar`"),
            ("~/bin/x", "`~/bin/x`"),
            ("PORT=7000 x", "`PORT=7000`"),
            ("cd x", "`cd`"),
        ] {
            let mistake = check(command).unwrap_err();
            let expected = format!("{what} needs a shell, and commands are started without one");
            assert_eq!(mistake.message, expected, "{command}");
            assert!(mistake.hint.is_some(), "{command}");
        }
    }

    #[test]
    fn accepts_arguments_without_shell_syntax() {
        for command in [
            "sh -c 'exec x -p $PORT > log; done'",
            "sh -c \"a && b | c\"",
            r"x \$HOME a\;b '*' \*",
            "curl http://[::1]:{port}/?a=1&b=2",
            "x --bind *:80 -Dkey=value a=b 5$ ~user [a] ?",
            "nginx -g 'daemon off;'",
            "./cd x",
        ] {
            assert_eq!(check(command), Ok(()), "{command}");
        }
    }
}
