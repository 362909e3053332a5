//! `quintain init --har`: converts a browser's recording into a journey.

use std::path::{Path, PathBuf};

use study::har::{FILE_MAX_BYTES, Imported, import};
use study::shell_words;

use crate::command_result::{Done, Exit, Problem, cannot, usage};
use crate::output;

pub(super) fn init(recording: &Path, given: Option<&Path>) -> Done {
    let place = match given {
        Some(folder) if folder.is_dir() => folder.join(file_name(recording)),
        Some(file) => file.to_path_buf(),
        None => file_name(recording),
    };
    if place.exists() {
        let hint = "choose another name: `quintain init --har RECORDING NAME.toml`";
        return Err(usage(format!("`{}` exists", place.display())).hint(hint));
    }
    let bytes = std::fs::metadata(recording).map_err(cannot(Exit::Usage, "read", recording))?.len();
    if bytes > FILE_MAX_BYTES {
        let message = format!("`{}` has {bytes} bytes, at most {FILE_MAX_BYTES} allowed", recording.display());
        return Err(usage(message).hint("record fewer steps"));
    }
    let text = std::fs::read_to_string(recording).map_err(cannot(Exit::Usage, "read", recording))?;
    let name = place.file_stem().unwrap_or_default().to_string_lossy();
    let Imported { text, recorded, steps, values } = import(&name, text.trim_start_matches('\u{feff}'))
        .map_err(|error| Problem::from(error.of(&format!("`{}`", recording.display()))))?;
    output::file(&place, &text)?;
    let (place, runnable) = (place.display(), shell_words::join(&[place.display().to_string()]));
    output::text(&format!(
        "wrote  {place}: {steps} of {recorded} requests, {values} values from responses\n\n\
         quintain load --journey {runnable} --trace-session    run it once and show everything\n\
         quintain load --journey {runnable}                    load\n"
    ))?;
    Ok(Exit::Fine)
}

fn file_name(recording: &Path) -> PathBuf {
    Path::new(recording.file_stem().unwrap_or_default()).with_extension("toml")
}
