//! Packs the studies and the files that they name into the binary, so that it works on its own.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::path::Path;

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

const FOLDERS: [&str; 4] = ["studies", "subjects", "contracts/contract/contracts", "contracts/codecs/schemas"];

/// Seed of the hash that names the packed files.
const SEED: u64 = 0;

/// Hash of the sources that turn trials into findings. Results cached in a store have one.
fn analysis_hash(root: &Path) -> Result<u64, Box<dyn Error>> {
    let mut files = BTreeMap::new();
    for name in ["analysis", "stats", "study"] {
        let folder = root.join("crates").join(name).join("src");
        println!("cargo::rerun-if-changed={}", folder.display());
        for entry in ignore::WalkBuilder::new(folder).build() {
            let entry = entry?;
            if entry.path().extension().is_some_and(|extension| extension == "rs") {
                files.insert(
                    entry.path().strip_prefix(root)?.display().to_string(),
                    std::fs::read_to_string(entry.path())?,
                );
            }
        }
    }
    Ok(rapidhash_v3_seeded(&serde_json::to_vec(&files)?, &RapidSecrets::seed(SEED)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", root.join("studies").display());
    let mut files = BTreeMap::new();
    for folder in FOLDERS {
        // Skip build outputs, which git ignores. The user's own git settings must not matter.
        let mut walk = ignore::WalkBuilder::new(root.join(folder));
        walk.hidden(false).ignore(false).git_global(false).git_exclude(false).require_git(false);
        for entry in walk.build() {
            let entry = entry?;
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let path = entry.path();
            // List single files: in a directory, Cargo would also watch build outputs of servers.
            println!("cargo::rerun-if-changed={}", path.display());
            let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            files.insert(path.strip_prefix(&root)?.display().to_string(), text);
        }
    }
    let text = serde_json::to_vec(&files)?;
    let hash = rapidhash_v3_seeded(&text, &RapidSecrets::seed(SEED));
    println!("cargo::rustc-env=BUILT_IN_HASH={hash:016x}");
    println!("cargo::rustc-env=ANALYSIS_HASH={:016x}", analysis_hash(&root)?);
    // Without a time and a file name in the header, equal sources give equal bytes.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&text)?;
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    std::fs::write(Path::new(&out).join("built_in.json.gz"), packed.finish()?)?;
    Ok(())
}
