//! Licences of the packages linked into the binary: a check against `deny.toml`, and their texts. `cargo deny check`
//! checks more, but CI would need minutes to install it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::dist::TARGET;
use crate::tidy::{metadata, output};

const FILES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

/// A linked package from outside the workspace.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    /// Name and version: `serde 1.0.0`.
    name: String,
    licence: String,
    repository: String,
}

/// Returns a complaint for each licence that `deny.toml` does not allow.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(root.join("deny.toml")).map_err(|error| format!("deny.toml: {error}"))?;
    let list = text.lines().find(|line| line.starts_with("allow = [")).ok_or("deny.toml: no line `allow = [...]`")?;
    let allowed = list.split('"').skip(1).step_by(2).collect::<Vec<_>>();
    let refused = linked(root)?.into_iter().filter(|package| !is_allowed(&package.licence, &allowed));
    Ok(refused.map(|Package { name, licence, .. }| format!("{name}: deny.toml does not allow `{licence}`")).collect())
}

/// Whether `allowed` satisfies a licence expression. May refuse a valid expression with nested `AND` and `OR`, but
/// never accepts an invalid one.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    expression.split(" AND ").all(|part| {
        let names = part.split(" OR ").flat_map(|part| part.split('/'));
        let mut names = names.filter_map(|name| name.trim_matches(['(', ')', ' ']).split(' ').next());
        names.any(|name| allowed.contains(&name))
    })
}

/// Lists the licence of every linked package, followed by each distinct licence text.
pub(crate) fn page(root: &Path) -> Result<String, String> {
    let metadata = metadata(root, &[])?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata: no packages")?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let manifests = packages
        .iter()
        .map(|package| (format!("{} {}", text(&package["name"]), text(&package["version"])), package))
        .collect::<BTreeMap<_, _>>();
    let mut page =
        String::from("Licences of the libraries in quintain. Texts that several share stand once, at the end.\n\n");
    let mut texts = BTreeMap::<String, BTreeSet<String>>::new();
    for Package { name, licence, repository } in linked(root)? {
        page += &format!("{name}: {licence}  {repository}\n");
        let manifest = manifests.get(&name).ok_or(format!("cargo metadata: no `{name}`"))?;
        let manifest = text(&manifest["manifest_path"]);
        for text in licence_texts(Path::new(&manifest).parent().unwrap_or(root))? {
            texts.entry(text).or_default().insert(name.clone());
        }
    }
    for (text, names) in texts {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        page += &format!("\n{}\n{names}\n\n{}\n", "-".repeat(80), text.trim_end());
    }
    Ok(page)
}

fn licence_texts(folder: &Path) -> Result<BTreeSet<String>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let is_licence = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
        path.is_file() && FILES.iter().any(|begin| name.starts_with(begin))
    };
    let paths = entries.flatten().map(|entry| entry.path()).filter(|path| is_licence(path));
    Ok(paths.filter_map(|path| std::fs::read_to_string(path).ok()).collect())
}

/// The transitive normal dependencies of `quintain` for the release target.
fn linked(root: &Path) -> Result<BTreeSet<Package>, String> {
    let arguments = ["tree", "--package", "quintain", "--edges", "normal", "--prefix", "none", "--offline", "--locked"];
    let format = ["--target", TARGET, "--format", "{p}|{l}|{r}"];
    let text = output(root, env!("CARGO"), &[&arguments[..], &format].concat())?;
    let package = |line: &str| {
        let mut fields = line.trim_end_matches(" (*)").split('|');
        let (name, licence, repository) = (fields.next()?, fields.next()?, fields.next()?);
        // Only packages of the workspace are listed with a path, in parentheses.
        let name = name.trim_end_matches(" (proc-macro)").replacen(" v", " ", 1);
        (!name.contains('(')).then(|| Package { name, licence: licence.to_owned(), repository: repository.to_owned() })
    };
    Ok(text.lines().filter_map(package).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_expressions_of_allowed_licences() {
        for (expression, holds) in [
            ("MIT", true),
            ("MIT OR GPL-3.0", true),
            ("ISC/GPL-3.0", true),
            ("MIT AND GPL-3.0", false),
            ("(GPL-3.0 OR ISC) AND MIT", true),
            ("MIT WITH LLVM-exception OR GPL-3.0", true),
            ("", false),
        ] {
            assert_eq!(is_allowed(expression, &["MIT", "ISC"]), holds, "{expression}");
        }
    }
}
