//! The build of quintain beside the build of this program: the optimised one, else the one that tests run.

use std::path::{Path, PathBuf};

pub(crate) fn quintain() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| format!("error: the path of this program: {error}"))?;
    let target = program.parent().and_then(Path::parent).ok_or("error: this program lies in no target folder")?;
    let builds = ["release/quintain", "debug/quintain"].map(|build| target.join(build));
    let missing = || {
        format!(
            "error: neither {} nor {} exists\n\nhint: `cargo build --release`",
            builds[0].display(),
            builds[1].display()
        )
    };
    builds.iter().find(|build| build.is_file()).cloned().ok_or_else(missing)
}
