//! Files that import each other in a circle: to change one a reader needs all of them.
//!
//! A file may use what the files above it in its own folder offer (`super::`): that is what being a part of something means. What
//! remains must have no circle.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

/// A file of a crate as a module: `["protocol", "http"]`; empty: the root.
type Module = Vec<String>;

/// The circles among the files of one crate, `path -> text`, paths from its `src/`; each with its files in order.
pub fn circles(files: &BTreeMap<String, String>) -> Result<Vec<Vec<String>>, String> {
    let modules = files.keys().map(|path| (module_of(path), path.clone())).collect::<BTreeMap<_, _>>();
    let mut arrows = BTreeMap::<&str, BTreeSet<&str>>::new();
    for (path, text) in files {
        let own = module_of(path);
        let file = syn::parse_file(text).map_err(|error| format!("{path}: {error}"))?;
        let parts = file.items.iter().filter_map(|item| match item {
            syn::Item::Mod(part) if part.content.is_none() => Some(part.ident.to_string()),
            _ => None,
        });
        let mut found = Found { own: own.clone(), parts: parts.collect(), inner: Vec::new(), paths: Vec::new() };
        found.visit_file(&file);
        let targets = found.paths.iter().filter_map(|wanted| nearest(wanted, &modules));
        let others = targets.filter(|(module, _)| !own.starts_with(module)).map(|(_, path)| path);
        arrows.entry(path).or_default().extend(others);
    }
    Ok(components(&arrows))
}

fn module_of(path: &str) -> Module {
    let stem = path.trim_end_matches(".rs");
    let stem = stem.strip_suffix("/mod").unwrap_or(stem);
    if stem == "lib" || stem == "main" { Vec::new() } else { stem.split('/').map(str::to_owned).collect() }
}

/// The file in which a path ends: the longest beginning of it that is one.
fn nearest<'m>(wanted: &[String], modules: &'m BTreeMap<Module, String>) -> Option<(&'m Module, &'m str)> {
    (1..=wanted.len()).rev().find_map(|length| {
        let (module, path) = modules.get_key_value(&wanted[..length])?;
        Some((module, path.as_str()))
    })
}

/// Paths from the root of the crate that a file names.
struct Found {
    own: Module,
    /// The files that are parts of this one.
    parts: BTreeSet<String>,
    /// Modules within the file that are open.
    inner: Module,
    paths: Vec<Module>,
}

impl Found {
    /// A path as it is written; what begins with none of the three words is a name in scope, or another crate's.
    fn add(&mut self, written: &[String]) {
        let here = || self.own.iter().chain(&self.inner).cloned().collect::<Module>();
        let (mut from, rest) = match written {
            [first, rest @ ..] if first == "crate" => (Vec::new(), rest),
            [first, rest @ ..] if first == "self" => (here(), rest),
            [first, ..] if first == "super" => (here(), written),
            [first, _, ..] if self.parts.contains(first) => (self.own.clone(), written),
            _ => return,
        };
        let up = rest.iter().take_while(|word| *word == "super").count();
        from.truncate(from.len().saturating_sub(up));
        from.extend_from_slice(&rest[up..]);
        self.paths.push(from);
    }

    fn tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.tree(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) => self.add(&with(&name.ident)),
            syn::UseTree::Rename(name) => self.add(&with(&name.ident)),
            syn::UseTree::Glob(_) => self.add(before),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(before, tree)),
        }
    }
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        // What tests import is no part of the house.
        if module.attrs.iter().any(is_of_tests) {
            return;
        }
        self.inner.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.inner.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !item.attrs.iter().any(is_of_tests) {
            self.tree(&[], &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add(&path.segments.iter().map(|segment| segment.ident.to_string()).collect::<Vec<_>>());
        visit::visit_path(self, path);
    }

    /// What is handed to a macro is not parsed; its paths are looked for among its words.
    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        let text = called.tokens.to_string().replace(" :: ", "::");
        for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
            self.add(&word.split("::").map(str::to_owned).collect::<Vec<_>>());
        }
        visit::visit_macro(self, called);
    }
}

fn is_of_tests(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Ident>().is_ok_and(|ident| ident == "test")
}

/// Files that reach each other, two and more.
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
        circles(&files).expect("it parses")
    }

    #[test]
    fn circles_are_found() {
        let none = Vec::<Vec<String>>::new();
        let two = vec![vec!["a.rs".to_owned(), "b.rs".to_owned()]];
        assert_eq!(of(&[("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::X;"), ("b.rs", "")]), none);
        assert_eq!(of(&[("a.rs", "use crate::b::X;"), ("b.rs", "use super::a::{Y, Z};")]), two);
        assert_eq!(
            of(&[("a.rs", "fn f() -> crate::b::X { loop {} }"), ("b.rs", "fn g() { vec![crate::a::f()] }")]),
            two
        );
        assert_eq!(of(&[("a.rs", "use crate::b::X;"), ("b.rs", "#[cfg(test)] mod tests { use crate::a::Y; }")]), none);
    }

    #[test]
    fn a_part_may_use_what_it_is_a_part_of() {
        let part = [("a.rs", "mod b; use self::b::X; pub struct Y;"), ("a/b.rs", "use super::Y; pub struct X;")];
        assert_eq!(of(&part), Vec::<Vec<String>>::new());
        let through =
            [("a.rs", "mod b; use self::b::X;"), ("a/b.rs", "use crate::c::Z;"), ("c.rs", "use crate::a::Y;")];
        assert_eq!(of(&through), [["a.rs", "a/b.rs", "c.rs"].map(str::to_owned).to_vec()]);
    }

    #[test]
    fn modules_within_a_file_count_for_it() {
        let files = [("a.rs", "mod inner { use super::super::b::X; }"), ("b.rs", "use crate::a::Y;")];
        assert_eq!(of(&files), [["a.rs", "b.rs"].map(str::to_owned).to_vec()]);
    }
}
