//! `cargo xtask tidy`: automatic checks of the architecture, the documents and the sources. Each check is a function
//! from text to complaints, so that tests can make each one fail.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::import_cycles;

/// Workspace crates that each crate imports, by name.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Runs every check from the root of the repository; the error lists every complaint.
pub(crate) fn run() -> Result<(), String> {
    let root = root();
    let read = |path: &str| std::fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"));
    let architecture = read("docs/contributing/architecture.md")?;
    let files = tracked_files(&root)?;

    let mut complaints = Vec::new();
    complaints
        .extend(check_arrows(&table_arrows(&architecture)?, &metadata_arrows(&metadata(&root, &["--no-deps"])?)?));
    complaints.extend(check_terms(&read("docs/contributing/terms.md")?, &all_text(&root, &files)));
    for file in &files {
        let path = file.as_str();
        let text = || read(path);
        if path.ends_with(".md") {
            complaints.extend(check_document(path, &text()?, &files));
        }
        if path.ends_with(".rs") && !path.starts_with("xtask/src/tidy.rs") {
            complaints.extend(check_source(path, &text()?));
        }
        if is_of_crate(path) && path.ends_with("Cargo.toml") {
            complaints.extend(check_manifest(path, &text()?));
        }
    }
    complaints.extend(check_summary(&read("docs/SUMMARY.md")?, &files));
    complaints.extend(crate::prose_phrases_and_sentences::check(&files, read)?);
    complaints.extend(check_circles(&root, &files)?);
    complaints.extend(crate::licences::check(&root)?);
    if complaints.is_empty() {
        println!("tidy: {} files, nothing to complain about", files.len());
        return Ok(());
    }
    Err(complaints.join("\n"))
}

fn check_circles(root: &Path, files: &[String]) -> Result<Vec<String>, String> {
    let mut crates = BTreeMap::<&str, BTreeMap<String, String>>::new();
    for path in files.iter().filter(|path| path.ends_with(".rs")) {
        let Some((name, file)) = path.split_once("/src/").filter(|_| is_of_crate(path)) else {
            continue;
        };
        if file.ends_with("tests.rs") || file.contains("tests/") {
            continue;
        }
        let text = std::fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
        crates.entry(name).or_default().insert(file.to_owned(), text);
    }
    let mut complaints = Vec::new();
    for (name, files) in &crates {
        complaints.extend(import_cycles::circles(files).iter().map(|circle| {
            format!(
                "{name}/src: {} import each other in a circle: move their common parts below them",
                circle.join(", ")
            )
        }));
    }
    Ok(complaints)
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the repository").to_path_buf()
}

/// Returns the stdout of a program; if the program fails, the error contains its stderr.
pub(crate) fn output(root: &Path, program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{program}: {error}"))
}

fn is_of_crate(path: &str) -> bool {
    path.starts_with("crates/") || path.starts_with("contracts/")
}

pub(crate) fn metadata(root: &Path, arguments: &[&str]) -> Result<serde_json::Value, String> {
    let words = [&["metadata", "--format-version", "1", "--offline"][..], arguments].concat();
    let text = output(root, env!("CARGO"), &words)?;
    serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))
}

fn tracked_files(root: &Path) -> Result<Vec<String>, String> {
    let text = output(root, "git", &["ls-files", "--cached", "--others", "--exclude-standard"])?;
    Ok(text.lines().filter(|path| root.join(path).is_file()).map(str::to_owned).collect())
}

fn all_text(root: &Path, files: &[String]) -> String {
    let wanted = |path: &&String| path.ends_with(".rs") || path.ends_with(".md") || path.ends_with(".toml");
    let texts = files.iter().filter(wanted).filter(|path| *path != "docs/contributing/terms.md");
    texts.filter_map(|path| std::fs::read_to_string(root.join(path)).ok()).collect::<Vec<_>>().join("\n").to_lowercase()
}

/// The words between backticks in `text`, outside indented and fenced code, with their line numbers.
fn quoted_words(text: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    let mut fenced = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced || line.starts_with("    ") {
            continue;
        }
        words.extend(line.split('`').skip(1).step_by(2).map(|word| (number + 1, word.to_owned())));
    }
    words
}

/// Parses the arrow table of docs/contributing/architecture.md: `| crate | may import | ...`.
fn table_arrows(text: &str) -> Result<Arrows, String> {
    let tables = text.split("| Crate | May import").skip(1).collect::<Vec<_>>();
    if tables.is_empty() {
        return Err("docs/contributing/architecture.md: no table that begins with `| Crate | May import`".to_owned());
    }
    let rows = tables.iter().flat_map(|table| table.lines().skip(2).take_while(|line| line.starts_with('|')));
    let words = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<_>>();
    let mut arrows = Arrows::new();
    for row in rows {
        let cells = row.split('|').collect::<Vec<_>>();
        let name = words(cells[1])
            .into_iter()
            .next()
            .ok_or(format!("docs/contributing/architecture.md: no crate in row {row}"))?;
        arrows.insert(name, words(cells[2]));
    }
    Ok(arrows)
}

/// The arrows in the manifests. Dependencies of tests are not arrows.
fn metadata_arrows(metadata: &serde_json::Value) -> Result<Arrows, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata: no packages")?;
    let names = packages.iter().filter_map(|package| package["name"].as_str()).collect::<BTreeSet<_>>();
    let mut arrows = Arrows::new();
    for package in packages {
        let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
        let imports = dependencies
            .iter()
            .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
            .filter_map(|dependency| dependency["name"].as_str())
            .filter(|name| names.contains(name))
            .map(str::to_owned)
            .collect();
        arrows.insert(package["name"].as_str().unwrap_or_default().to_owned(), imports);
    }
    Ok(arrows)
}

fn check_arrows(allowed: &Arrows, real: &Arrows) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, imports) in real {
        let Some(may) = allowed.get(name) else {
            complaints.push(format!("docs/contributing/architecture.md: crate `{name}` has no row in the table"));
            continue;
        };
        complaints.extend(imports.difference(may).map(|import| {
            format!("`{name}` imports `{import}`, which its row in docs/contributing/architecture.md does not allow")
        }));
        complaints.extend(may.difference(imports).map(|import| {
            format!(
                "docs/contributing/architecture.md: the table lets `{name}` import `{import}`, which it does not: drop the arrow"
            )
        }));
    }
    complaints.extend(
        allowed
            .keys()
            .filter(|name| !real.contains_key(*name))
            .map(|name| format!("docs/contributing/architecture.md: the table has a crate `{name}` that is not there")),
    );
    complaints
}

/// Checks that a document names only existing files and wraps its prose.
fn check_document(path: &str, text: &str, files: &[String]) -> Vec<String> {
    const FOLDERS: [&str; 12] = [
        "crates/",
        "contracts/",
        "docs/",
        "studies/",
        "subjects/",
        "schemas/",
        "fuzz/",
        "xtask/",
        "experiments/",
        ".ci/",
        ".cargo/",
        "examples/",
    ];
    // The style guide has placeholders instead of file names.
    if path == "docs/contributing/style.md" {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for (line, word) in quoted_words(text) {
        let named = word.split(|c: char| c.is_whitespace() || c == ':').next().unwrap_or_default();
        let is_path = FOLDERS.iter().any(|folder| named.starts_with(folder)) && !named.contains(['{', '*', '<']);
        let folder = format!("{}/", named.trim_end_matches('/'));
        if is_path && !files.iter().any(|file| file == named || file.starts_with(&folder)) {
            complaints.push(format!("{path}:{line}: names `{named}`, which does not exist"));
        }
    }
    for (number, line) in text.lines().enumerate() {
        for target in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = target.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let base = Path::new(path).parent().unwrap_or(Path::new(""));
            let wanted = normal(&base.join(target));
            if !files.iter().any(|file| *file == wanted || file.starts_with(&format!("{wanted}/"))) {
                complaints.push(format!("{path}:{}: links to `{target}`, which does not exist", number + 1));
            }
        }
    }
    complaints
}

/// Checks that every page is in the table of contents of the book. Links are checked as in any document.
fn check_summary(summary: &str, files: &[String]) -> Vec<String> {
    let pages = files.iter().filter_map(|path| path.strip_prefix("docs/")).filter(|page| page.ends_with(".md"));
    let missing = pages.filter(|page| *page != "SUMMARY.md" && !summary.contains(&format!("]({page})")));
    missing.map(|page| format!("docs/SUMMARY.md: `{page}` is not listed")).collect()
}

fn normal(path: &Path) -> String {
    let mut parts = Vec::new();
    for part in path.iter().filter_map(|part| part.to_str()) {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Checks that every term of docs/contributing/terms.md is used in another file.
fn check_terms(terms: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in terms.lines().enumerate().filter(|(_, line)| line.starts_with("- ")) {
        for term in line.split("**").skip(1).step_by(2) {
            let spellings = [term.to_lowercase(), term.to_lowercase().replace([' ', '-'], "_")];
            if !spellings.iter().any(|spelling| text.contains(spelling.as_str())) {
                complaints.push(format!("docs/contributing/terms.md:{}: nothing uses the term `{term}`", number + 1));
            }
        }
    }
    complaints
}

/// Checks that only `net` contains `unsafe`, and that no leftovers such as `todo!` exist.
fn check_source(path: &str, text: &str) -> Vec<String> {
    const LEFTOVERS: [&str; 5] = ["todo!(", "unimplemented!(", "dbg!(", "FIXME", "#[ignore"];
    let mut complaints = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        if code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe")
            && !path.starts_with("crates/net/")
        {
            complaints.push(format!("{path}:{}: `unsafe` outside crates/net", number + 1));
        }
        complaints.extend(
            LEFTOVERS
                .iter()
                .filter(|word| line.contains(**word) && !line.contains("#[ignore = \"slow: "))
                .map(|word| format!("{path}:{}: left over: {word}", number + 1)),
        );
    }
    complaints
}

/// Checks that each crate uses the workspace's lints; `net` has its own table, which differs only in `unsafe`.
fn check_manifest(path: &str, text: &str) -> Vec<String> {
    let inherits = text.split("[lints]").nth(1).is_some_and(|rest| rest.trim_start().starts_with("workspace = true"));
    match (path == "crates/net/Cargo.toml", inherits) {
        (false, false) => vec![format!("{path}: `[lints] workspace = true` is missing")],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str =
        "\n| Crate | May import | What |\n|---|---|---|\n| `a` | | pure |\n| `b` | `a` | uses |\n\ntext";

    fn arrows(rows: &[(&str, &[&str])]) -> Arrows {
        rows.iter().map(|(name, to)| ((*name).to_owned(), to.iter().map(|to| (*to).to_owned()).collect())).collect()
    }

    #[test]
    fn reads_the_arrow_table() {
        assert_eq!(table_arrows(TABLE).unwrap(), arrows(&[("a", &[]), ("b", &["a"])]));
        assert!(table_arrows("no table").is_err());
    }

    #[test]
    fn ignores_dependencies_of_tests() {
        let metadata = serde_json::json!({"packages": [
            {"name": "a", "dependencies": [{"name": "serde", "kind": null}]},
            {"name": "b", "dependencies": [{"name": "a", "kind": null}, {"name": "c", "kind": "dev"}]},
            {"name": "c", "dependencies": []},
        ]});
        assert_eq!(metadata_arrows(&metadata).unwrap(), arrows(&[("a", &[]), ("b", &["a"]), ("c", &[])]));
    }

    #[test]
    fn reports_extra_and_missing_arrows() {
        let allowed = table_arrows(TABLE).unwrap();
        assert_eq!(check_arrows(&allowed, &allowed), Vec::<String>::new());
        assert_eq!(check_arrows(&allowed, &arrows(&[("a", &["b"]), ("b", &["a"])])).len(), 1);
        assert_eq!(check_arrows(&allowed, &arrows(&[("a", &[]), ("b", &[])])).len(), 1);
        assert_eq!(check_arrows(&allowed, &arrows(&[("a", &[]), ("b", &["a"]), ("c", &[])])).len(), 1);
        assert_eq!(check_arrows(&allowed, &arrows(&[("a", &[])])).len(), 1);
    }

    #[test]
    fn documents_name_only_existing_files() {
        let files = ["docs/A.md".to_owned(), "crates/net/src/lib.rs".to_owned()];
        let check = |text: &str| check_document("docs/B.md", text, &files).len();
        assert_eq!(
            check("see `docs/A.md`, `crates/net` and `crates/net/src/lib.rs:12`, [there](A.md), [out](https://x.org)"),
            0
        );
        assert_eq!(check("see `docs/GONE.md`"), 1);
        assert_eq!(check("see [gone](GONE.md)"), 1);
        assert_eq!(check("    a sketch: `docs/GONE.md`"), 0);
    }

    #[test]
    fn every_page_is_in_the_table_of_contents() {
        let files = ["docs/SUMMARY.md", "docs/a/b.md", "README.md"].map(str::to_owned);
        assert_eq!(check_summary("- [B](a/b.md)", &files).len(), 0);
        assert_eq!(check_summary("- [B](a/c.md)", &files), ["docs/SUMMARY.md: `a/b.md` is not listed"]);
    }

    #[test]
    fn unused_terms_unsafe_and_leftovers_are_complaints() {
        assert_eq!(check_terms("- **trial**: x\n- **think time**: y", "a trial; think_time_ns").len(), 0);
        assert_eq!(check_terms("- **quark**: x", "a trial").len(), 1);
        assert_eq!(check_source("crates/load/src/a.rs", "unsafe { x }").len(), 1);
        assert_eq!(check_source("crates/load/src/a.rs", "// says unsafe\nlet unsafe_code = 1;").len(), 0);
        assert_eq!(check_source("crates/net/src/a.rs", "unsafe { x }").len(), 0);
        assert_eq!(check_source("crates/net/src/a.rs", "todo!()").len(), 1);
        assert_eq!(check_manifest("crates/load/Cargo.toml", "[lints]\nworkspace = true").len(), 0);
        assert_eq!(check_manifest("crates/load/Cargo.toml", "[lints.rust]").len(), 1);
    }
}
