//! `cargo xtask dist`: a release archive with the static binary, manual pages, completions, licences and a checksum.
//! The build is reproducible: the binary contains no paths of this machine, and the archive no times or owners.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::licences;
use crate::tidy::{output, root};

pub(crate) const TARGET: &str = "x86_64-unknown-linux-musl";

pub(crate) fn run(target: &str) -> Result<(), String> {
    let root = root();
    let out = root.join("target/dist");
    fs::create_dir_all(&out).map_err(|error| format!("error: {}: {error}", out.display()))?;
    let epoch = output(&root, "git", &["log", "-1", "--format=%ct"])?.trim().to_owned();
    let binary = build(&root, target, &out.join("build"), &epoch)?;

    let name = format!("quintain-{}-{target}", env!("CARGO_PKG_VERSION"));
    let folder = out.join(&name);
    let _ = fs::remove_dir_all(&folder);
    fill(&root, &folder, &binary)?;
    let archive = format!("{name}.tar.gz");
    let packed = format!(
        "tar --sort=name --mtime=@{epoch} --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -cf - {name} | gzip -9n > {archive} && \
         sha256sum {archive} > {archive}.sha256"
    );
    output(&out, "sh", &["-c", &packed])?;
    let size = |path: &Path| fs::metadata(path).map(|data| data.len() as f64 / 1e6).unwrap_or_default();
    println!("{}", output(&out, "cat", &[&format!("{archive}.sha256")])?.trim());
    println!("quintain {:.1} MB, {archive} {:.1} MB", size(&binary), size(&out.join(&archive)));
    Ok(())
}

fn build(root: &Path, target: &str, place: &Path, epoch: &str) -> Result<PathBuf, String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo"))).ok_or("error: no HOME")?;
    let paths = [(root, "/quintain"), (home.as_path(), "/cargo"), (place, "/build")];
    let of_rust = paths.map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    let of_c = paths.map(|(from, to)| format!("-ffile-prefix-map={}={to}", from.display())).join(" ");
    // musl targets link statically by default, glibc targets only on request.
    let rust = of_rust.into_iter().chain(["-Ctarget-feature=+crt-static".to_owned()]).collect::<Vec<_>>().join("\x1f");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--profile", "dist", "--locked", "--package", "quintain", "--target", target, "--target-dir"])
        .arg(place)
        .current_dir(root)
        .env("CARGO_ENCODED_RUSTFLAGS", rust)
        .env("CFLAGS", of_c)
        .env("SOURCE_DATE_EPOCH", epoch)
        .env("CARGO_INCREMENTAL", "0")
        .status()
        .map_err(|error| format!("error: cargo: {error}"))?;
    if !status.success() {
        return Err(format!(
            "error: no build for {target}\n  = help: `rustup target add {target}`, and musl-gcc for the C in it (Debian: musl-tools)"
        ));
    }
    Ok(place.join(target).join("dist/quintain"))
}

fn fill(root: &Path, folder: &Path, binary: &Path) -> Result<(), String> {
    let wrong = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| format!("error: {path}: {error}")
    };
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    for folder in [&man, &completions] {
        fs::create_dir_all(folder).map_err(wrong(folder))?;
    }
    fs::copy(binary, folder.join("quintain")).map_err(wrong(binary))?;
    for name in ["LICENSE", "README.md", "CHANGELOG.md"] {
        fs::copy(root.join(name), folder.join(name)).map_err(wrong(&root.join(name)))?;
    }
    let page = folder.join("LICENSES-OF-LIBRARIES.txt");
    fs::write(&page, licences::page(root)?).map_err(wrong(&page))?;
    let quintain = binary.display().to_string();
    output(root, &quintain, &["man", &man.display().to_string()])?;
    for (shell, name) in [("bash", "quintain.bash"), ("zsh", "_quintain"), ("fish", "quintain.fish")] {
        let path = completions.join(name);
        fs::write(&path, output(root, &quintain, &["completions", shell])?).map_err(wrong(&path))?;
    }
    Ok(())
}
