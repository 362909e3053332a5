//! Checks out git revisions side by side, in directories that are removed when the process ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use study::shell_words;

use crate::lab_clocks;
use crate::process_start_and_stop::{Supervisor, command};

const PREFIX: &str = "quintain-";

const REMOVAL_MAX: Duration = Duration::from_secs(10);

/// A git repository and a directory inside it.
#[derive(Clone, Debug)]
pub struct Repository {
    top: PathBuf,
    /// Directory inside the repository, relative to the root of the repository.
    inside: PathBuf,
}

impl Repository {
    /// Finds the repository that contains `directory`. Fails if there is none or git is not installed.
    pub fn of(directory: &Path) -> Result<Self, String> {
        let no_repository = |_| format!("`{}` is not in a git repository", directory.display());
        let ask = |words: &[&str]| git(directory, words).map_err(no_repository);
        let top = PathBuf::from(ask(&["rev-parse", "--show-toplevel"])?);
        Ok(Self { top, inside: PathBuf::from(ask(&["rev-parse", "--show-prefix"])?) })
    }

    /// Resolves a revision to the hash of a commit. Fails if the revision does not name a commit.
    pub fn commit(&self, revision: &str) -> Result<String, String> {
        let named = format!("{revision}^{{commit}}");
        git(&self.top, &["rev-parse", "--verify", "--quiet", "--end-of-options", &named])
            .map_err(|_| format!("`{revision}` names no commit of `{}`", self.top.display()))
    }
}

/// Worktrees in one directory. A watchdog removes them when this value is dropped or the process dies.
pub struct Worktrees {
    repository: Repository,
    /// Directory that contains the worktrees, one subdirectory each.
    pub folder: PathBuf,
    _watchdog: Supervisor,
}

impl Worktrees {
    /// Creates `folder`, or a new temporary directory, for worktrees; `exe` is the quintain binary. Waits while the
    /// watchdog of an earlier process removes `folder`. Fails if the directory or the watchdog cannot be created.
    pub fn begin(repository: Repository, folder: Option<PathBuf>, exe: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("cannot create a directory for revisions: {error}");
        let folder = folder.unwrap_or_else(|| {
            std::env::temp_dir().join(format!("{PREFIX}{}-{}", std::process::id(), lab_clocks::stamp()))
        });
        let begun = lab_clocks::now();
        while folder.exists() && lab_clocks::now() - begun < REMOVAL_MAX {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let watchdog = Supervisor::start(exe).map_err(failed)?;
        let paths = [&repository.top, &folder].map(|path| path.display().to_string());
        watchdog.register(&format!("worktrees {}", shell_words::join(&paths))).map_err(failed)?;
        Ok(Self { repository, folder, _watchdog: watchdog })
    }

    /// Checks out a commit as worktree `name`, replacing any earlier one. Returns the repository's directory in it.
    pub fn check_out(&self, name: &str, commit: &str) -> Result<PathBuf, String> {
        let place = self.folder.join(name);
        let refused = |message| format!("cannot check `{commit}` out: {message}");
        remove(&self.repository.top, &place);
        let path = place.to_string_lossy().into_owned();
        git(&self.repository.top, &["worktree", "add", "--quiet", "--force", "--detach", &path, commit])
            .map_err(refused)?;
        Ok(place.join(&self.repository.inside))
    }
}

/// Removes the worktrees named in a watchdog line, which has the paths of the repository and their directory.
pub(crate) fn remove_all(line: &str) {
    let paths = shell_words::split(line).unwrap_or_default();
    let [repository, folder] = paths.iter().map(Path::new).collect::<Vec<_>>()[..] else { return };
    // This check protects all other directories from removal.
    if !folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX)) {
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            true => drop(std::fs::remove_file(entry.path())),
            false => remove(repository, &entry.path()),
        }
    }
    let _ = std::fs::remove_dir(folder);
    let _ = git(repository, &["worktree", "prune"]);
}

fn remove(repository: &Path, place: &Path) {
    if place.exists() {
        let _ = git(repository, &["worktree", "remove", "--force", &place.to_string_lossy()]);
        // This also removes a worktree that git does not list.
        let _ = std::fs::remove_dir_all(place);
    }
}

fn git(directory: &Path, words: &[&str]) -> Result<String, String> {
    let mut git: Command = command("git");
    // Hooks of the repository and variables of an outer hook must not apply here.
    let git = git.arg("-C").arg(directory).args(["-c", "core.hooksPath=/dev/null"]).args(words);
    let git = git.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env_remove("GIT_INDEX_FILE").stdin(Stdio::null());
    let output = git.output().map_err(|error| format!("cannot run git: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(folder: &Path) -> Repository {
        let run = |words: &[&str]| git(folder, words).unwrap();
        run(&["init", "--quiet", "--initial-branch", "main"]);
        std::fs::create_dir(folder.join("server")).unwrap();
        for text in ["one", "two"] {
            std::fs::write(folder.join("server/file"), text).unwrap();
            run(&["add", "."]);
            run(&["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "--quiet", "-m", text]);
        }
        Repository::of(&folder.join("server")).unwrap()
    }

    #[test]
    fn checks_out_revisions_side_by_side() {
        let folder = tempfile::tempdir().unwrap();
        let repository = repository(folder.path());
        let [old, new] = ["HEAD~1", "main"].map(|revision| repository.commit(revision).unwrap());
        assert_ne!(old, new);
        let exe = crate::tests::stand_in(folder.path(), "quintain");
        let worktrees = Worktrees::begin(repository.clone(), None, &exe).unwrap();
        let place = worktrees.folder.clone();
        for (name, commit, text) in [("base", &old, "one"), ("head", &new, "two"), ("base", &old, "one")] {
            let directory = worktrees.check_out(name, commit).unwrap();
            assert!(directory.ends_with("server"), "{directory:?}");
            assert_eq!(std::fs::read_to_string(directory.join("file")).unwrap(), text);
        }
        drop(worktrees);
        assert!(!place.exists());
        assert_eq!(git(&repository.top, &["worktree", "list"]).unwrap().lines().count(), 1);
    }

    #[test]
    fn rejects_missing_repositories_and_revisions() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Repository::of(folder.path()).unwrap_err().to_string().contains("is not in a git repository"));
        let repository = repository(folder.path());
        for revision in ["nothing", "", "--all", "HEAD:server"] {
            let error = repository.commit(revision).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{revision}` names no commit of")), "{error}");
        }
    }

    #[test]
    fn removes_only_its_own_directories() {
        let folder = tempfile::tempdir().unwrap();
        let mine = folder.path().join("mine");
        std::fs::create_dir(&mine).unwrap();
        std::fs::write(mine.join("file"), "").unwrap();
        remove_all(&shell_words::join(&[folder.path(), &mine].map(|path| path.display().to_string())));
        assert!(mine.join("file").exists());
    }
}
