//! The release build of quintain that lies beside the build of this program.

use std::path::{Path, PathBuf};

pub(crate) fn quintain() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| format!("error: the path of this program: {error}"))?;
    let target = program.parent().and_then(Path::parent).ok_or("error: this program lies in no target folder")?;
    let server = target.join("release/quintain");
    if server.is_file() {
        return Ok(server);
    }
    Err(format!("error: {} is not there\n\nhint: `cargo build --release`", server.display()))
}
