//! Licences of everything that is linked into the binary: whether `deny.toml` allows them, and their texts.
//!
//! cargo-deny says the same and more, but installing it costs minutes of every run of CI; `cargo metadata` is there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use spdx::{Expression, ParseMode};

/// What a package's licence files begin with.
const FILES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

/// A package that is linked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
    licence: String,
    repository: String,
    folder: String,
}

/// Complaints about licences that are not allowed.
pub fn check(root: &Path) -> Result<Vec<String>, String> {
    Ok(complaints(&linked(&metadata(root)?)?, &allowed(root)?))
}

/// A page with the licence of every package that is linked, and the texts that they come with, each once.
pub fn page(root: &Path) -> Result<String, String> {
    let packages = linked(&metadata(root)?)?;
    let mut page =
        String::from("Licences of the libraries in quintain. Texts that several share stand once, at the end.\n\n");
    let mut texts = BTreeMap::<String, BTreeSet<String>>::new();
    for package in &packages {
        let name = format!("{} {}", package.name, package.version);
        page += &format!("{name}: {}  {}\n", package.licence, package.repository);
        for text in texts_of(Path::new(&package.folder))? {
            texts.entry(text).or_default().insert(name.clone());
        }
    }
    for (text, names) in texts {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        page += &format!("\n{}\n{names}\n\n{}\n", "-".repeat(80), text.trim_end());
    }
    Ok(page)
}

fn texts_of(folder: &Path) -> Result<BTreeSet<String>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let is_licence = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
        path.is_file() && FILES.iter().any(|begin| name.starts_with(begin))
    };
    let paths = entries.flatten().map(|entry| entry.path()).filter(|path| is_licence(path));
    Ok(paths.filter_map(|path| std::fs::read_to_string(path).ok()).collect())
}

fn metadata(root: &Path) -> Result<Value, String> {
    // What other systems need is not here, and is not handed out.
    let platform = ["--filter-platform", "x86_64-unknown-linux-musl"];
    let words = [&["metadata", "--format-version", "1", "--offline", "--locked"][..], &platform].concat();
    let text = crate::tidy::output(root, env!("CARGO"), &words)?;
    serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))
}

/// The licences that are allowed, from the one place that names them.
fn allowed(root: &Path) -> Result<BTreeSet<String>, String> {
    let text = std::fs::read_to_string(root.join("deny.toml")).map_err(|error| format!("deny.toml: {error}"))?;
    let table = text.parse::<toml::Table>().map_err(|error| format!("deny.toml: {error}"))?;
    let list = table.get("licenses").and_then(|licences| licences.get("allow")?.as_array());
    let list = list.ok_or("deny.toml: no list `licenses.allow`")?;
    Ok(list.iter().filter_map(|licence| licence.as_str().map(str::to_owned)).collect())
}

/// What is linked into `quintain`: its normal dependencies and theirs, without the packages of this workspace.
fn linked(metadata: &Value) -> Result<BTreeSet<Package>, String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages = list(&metadata["packages"]);
    let nodes = list(&metadata["resolve"]["nodes"]);
    let nodes = nodes.iter().map(|node| (text(&node["id"]), node)).collect::<BTreeMap<_, _>>();
    let root = packages.iter().find(|package| package["name"] == "quintain").ok_or("cargo metadata: no `quintain`")?;
    let (mut seen, mut next) = (BTreeSet::new(), vec![text(&root["id"])]);
    while let Some(id) = next.pop() {
        if let Some(node) = nodes.get(&id).filter(|_| seen.insert(id.clone())) {
            let is_normal = |to: &&Value| list(&to["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
            next.extend(list(&node["deps"]).iter().filter(is_normal).map(|to| text(&to["pkg"])));
        }
    }
    let foreign =
        packages.iter().filter(|package| !package["source"].is_null() && seen.contains(&text(&package["id"])));
    let package = |package: &Value| Package {
        name: text(&package["name"]),
        version: text(&package["version"]),
        licence: text(&package["license"]),
        repository: text(&package["repository"]),
        folder: Path::new(&text(&package["manifest_path"]))
            .parent()
            .map(|path| path.display().to_string())
            .unwrap_or_default(),
    };
    Ok(foreign.map(package).collect())
}

fn complaints(packages: &BTreeSet<Package>, allowed: &BTreeSet<String>) -> Vec<String> {
    let complaint = |package: &Package| {
        let Package { name, version, licence, .. } = package;
        let Ok(expression) = Expression::parse_mode(licence, ParseMode::LAX) else {
            return Some(format!("{name} {version}: `{licence}` is no SPDX expression"));
        };
        let is_fine = expression.evaluate(|asked| asked.license.id().is_some_and(|id| allowed.contains(id.name)));
        (!is_fine).then(|| format!("{name} {version}: `{licence}` is not allowed by deny.toml"))
    };
    packages.iter().filter_map(complaint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_held_to_the_list() {
        let allowed = ["MIT", "ISC"].map(str::to_owned).into();
        for (licence, fine) in [
            ("MIT", true),
            ("MIT OR GPL-3.0", true),
            ("Apache-2.0/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("(GPL-3.0 OR ISC) AND MIT", true),
            ("", false),
        ] {
            let package = Package {
                name: "a".to_owned(),
                version: "1".to_owned(),
                licence: licence.to_owned(),
                repository: String::new(),
                folder: String::new(),
            };
            assert_eq!(complaints(&[package].into(), &allowed).is_empty(), fine, "{licence}");
        }
    }

    #[test]
    fn only_what_is_linked_counts() {
        let package = |name: &str, source: Value| serde_json::json!({"name": name, "id": name, "source": source, "license": "MIT"});
        let to = |name: &str, kind: Value| serde_json::json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = serde_json::json!({
            "packages": [package("quintain", Value::Null), package("used", "r".into()), package("tests", "r".into()), package("deep", "r".into())],
            "resolve": {"nodes": [
                {"id": "quintain", "deps": [to("used", Value::Null), to("tests", "dev".into())]},
                {"id": "used", "deps": [to("deep", Value::Null)]},
                {"id": "deep", "deps": []},
                {"id": "tests", "deps": []},
            ]},
        });
        let names = linked(&metadata).unwrap().into_iter().map(|package| package.name).collect::<Vec<_>>();
        assert_eq!(names, ["deep", "used"]);
    }
}
