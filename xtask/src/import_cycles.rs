//! Finds import cycles between the files of a crate: to change one file of a cycle, a reader needs all of them. A file
//! may import from its parent modules (`super::`); these imports do not count.

use std::collections::{BTreeMap, BTreeSet};

/// Module path of a file: `["protocol", "http"]`, empty for the root.
type Module<'t> = Vec<&'t str>;

/// Returns the cycles among the files of one crate, given as `path -> text` with paths from its `src/`.
pub(crate) fn circles(files: &BTreeMap<String, String>) -> Vec<Vec<String>> {
    let modules = files.keys().map(|path| (module_of(path), path.as_str())).collect::<BTreeMap<_, _>>();
    let mut arrows = BTreeMap::<&str, BTreeSet<&str>>::new();
    for (path, text) in files {
        let own = module_of(path);
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let named = named_modules(code, &own);
        let targets = named.iter().filter_map(|wanted| nearest(wanted, &modules));
        let others = targets.filter(|(module, _)| !own.starts_with(module)).map(|(_, path)| path);
        arrows.entry(path).or_default().extend(others);
    }
    components(&arrows)
}

fn module_of(path: &str) -> Module<'_> {
    let stem = path.trim_end_matches(".rs");
    let stem = stem.strip_suffix("/mod").unwrap_or(stem);
    if stem == "lib" || stem == "main" { Vec::new() } else { stem.split('/').collect() }
}

/// Finds the file that defines a path: the longest prefix that is a module.
fn nearest<'m>(wanted: &[&'m str], modules: &'m BTreeMap<Module<'m>, &'m str>) -> Option<(&'m [&'m str], &'m str)> {
    (1..=wanted.len()).rev().find_map(|length| {
        let (module, path) = modules.get_key_value(&wanted[..length])?;
        Some((module.as_slice(), *path))
    })
}

/// Paths that the code of module `own` names, from the root of the crate. Paths that do not begin with `crate`, `self`,
/// `super` or a child module are names in scope or belong to other crates.
fn named_modules<'t>(code: &'t str, own: &[&'t str]) -> Vec<Module<'t>> {
    let tokens = tokens(code);
    let parts = tokens.windows(3).filter(|three| three[0] == "mod" && three[2] == ";").map(|three| three[1]);
    let begins = parts.chain(["crate", "self", "super"]).collect::<BTreeSet<_>>();
    let mut paths = Vec::new();
    for at in 0..tokens.len() {
        let is_begin = begins.contains(tokens[at]) && tokens.get(at + 1) == Some(&"::");
        if is_begin && (at == 0 || tokens[at - 1] != "::") {
            add_paths(&tokens[at..], &[], &mut paths);
        }
    }
    let from_root = |path: Module<'t>| {
        let mut module = if path[0] == "crate" { Vec::new() } else { own.to_vec() };
        for word in path.into_iter().skip_while(|word| ["crate", "self"].contains(word)) {
            if word == "super" {
                module.pop();
            } else {
                module.push(word);
            }
        }
        module
    };
    paths.into_iter().map(from_root).collect()
}

/// Splits code into words, `::` and other single characters; skips comments.
fn tokens(code: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut tokens, mut rest) = (Vec::new(), code.trim_start());
    while let Some(first) = rest.chars().next() {
        let length = match first {
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ if rest.starts_with("//") => {
                rest = rest.split_once('\n').map_or("", |(_, next)| next.trim_start());
                continue;
            }
            _ if rest.starts_with("::") => 2,
            c => c.len_utf8(),
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// Adds the paths at the start of `tokens`, several for a group `{a, b::c}`; returns the remaining tokens.
fn add_paths<'a, 't>(mut tokens: &'a [&'t str], before: &[&'t str], paths: &mut Vec<Module<'t>>) -> &'a [&'t str] {
    let mut path = before.to_vec();
    while let [word, "::", rest @ ..] = tokens {
        path.push(word);
        tokens = rest;
    }
    let ["{", rest @ ..] = tokens else {
        path.extend(tokens.first());
        paths.push(path);
        return tokens.get(1..).unwrap_or_default();
    };
    tokens = rest;
    while !matches!(tokens, [] | ["}", ..]) {
        tokens = match tokens {
            [",", rest @ ..] => rest,
            // `use a as b`
            ["as", _, rest @ ..] => rest,
            _ => add_paths(tokens, &path, paths),
        };
    }
    tokens.get(1..).unwrap_or_default()
}

fn components(arrows: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<Vec<String>> {
    let reached = |from: &str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(at) = open.pop() {
            for next in arrows.get(at).into_iter().flatten().copied() {
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let all = arrows.keys().map(|from| (*from, reached(from))).collect::<BTreeMap<_, _>>();
    let mut circles = BTreeSet::new();
    for (from, to) in all.iter().filter(|(from, to)| to.contains(*from)) {
        let circle = to.iter().filter(|other| all.get(*other).is_some_and(|back| back.contains(from)));
        circles.insert(circle.map(|path| (*path).to_owned()).collect::<Vec<_>>());
    }
    circles.into_iter().filter(|circle| circle.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        circles(&files)
    }

    #[test]
    fn finds_import_cycles() {
        let none = Vec::<Vec<String>>::new();
        let two = vec![vec!["a.rs".to_owned(), "b.rs".to_owned()]];
        assert_eq!(of(&[("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::X;"), ("b.rs", "")]), none);
        assert_eq!(of(&[("a.rs", "use crate::b::X;"), ("b.rs", "use super::a::{Y, Z};")]), two);
        assert_eq!(
            of(&[("a.rs", "fn f() -> crate::b::X { loop {} }"), ("b.rs", "fn g() { vec![crate::a::f()] }")]),
            two
        );
        assert_eq!(of(&[("a.rs", "use crate::b::X;"), ("b.rs", "#[cfg(test)]\nmod tests { use crate::a::Y; }")]), none);
    }

    #[test]
    fn modules_may_import_from_their_parent() {
        let part = [("a.rs", "mod b; use self::b::X; pub struct Y;"), ("a/b.rs", "use super::Y; pub struct X;")];
        assert_eq!(of(&part), Vec::<Vec<String>>::new());
        let through =
            [("a.rs", "mod b; use self::b::X;"), ("a/b.rs", "use crate::c::Z;"), ("c.rs", "use crate::a::Y;")];
        assert_eq!(of(&through), [["a.rs", "a/b.rs", "c.rs"].map(str::to_owned).to_vec()]);
    }
}
