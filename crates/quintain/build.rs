//! Packs the studies and the files that they name into the binary, so that it needs no other files.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{ErrorKind, Write};
use std::path::Path;

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

const FOLDERS: [&str; 4] = ["studies", "subjects", "contracts/contract/contracts", "contracts/codecs/schemas"];

/// Sources that turn trials into findings. A store caches findings under their hash.
const ANALYSIS: [&str; 3] = ["crates/analysis/src", "crates/stats/src", "crates/study/src"];

const SEED: u64 = 0;

/// Directories of build results in `subjects`, as listed in its `.gitignore`.
const BUILT: [&str; 7] = ["__pycache__", "classes", "lib", "node_modules", "run", "target", "venv"];

/// Adds the content of every text file in `folder`, keyed by its path relative to `root`. Skips build results.
fn add_files(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // `make` names the executable of a subject after its directory. Executables are not packed.
        let is_executable = folder.file_name().is_some_and(|folder| folder == name);
        if path.is_dir() {
            if !BUILT.contains(&name) {
                add_files(root, &path, files)?;
            }
        } else if !is_executable {
            // Files are listed one by one, because Cargo would also watch the build results in a directory.
            println!("cargo::rerun-if-changed={}", path.display());
            match std::fs::read_to_string(&path) {
                Ok(text) => drop(files.insert(path.strip_prefix(root)?.display().to_string(), text)),
                Err(error) if error.kind() == ErrorKind::InvalidData => (), // a build result, because sources are text
                Err(error) => return Err(format!("{}: {error}", path.display()).into()),
            }
        }
    }
    Ok(())
}

/// Returns the text files in `folders` as JSON, and its hash.
fn packed(root: &Path, folders: &[&str]) -> Result<(Vec<u8>, u64), Box<dyn Error>> {
    let mut files = BTreeMap::new();
    folders.iter().try_for_each(|folder| add_files(root, &root.join(folder), &mut files))?;
    let text = serde_json::to_vec(&files)?;
    let hash = rapidhash_v3_seeded(&text, &RapidSecrets::seed(SEED));
    Ok((text, hash))
}

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    println!("cargo::rerun-if-changed=build.rs");
    for folder in ANALYSIS.iter().chain(&["studies"]) {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
    }
    let (text, hash) = packed(&root, &FOLDERS)?;
    println!("cargo::rustc-env=BUILT_IN_HASH={hash:016x}");
    println!("cargo::rustc-env=ANALYSIS_HASH={:016x}", packed(&root, &ANALYSIS)?.1);
    // The gzip header contains no time or file name, so equal sources give equal bytes.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&text)?;
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    std::fs::write(Path::new(&out).join("built_in.json.gz"), packed.finish()?)?;
    Ok(())
}
