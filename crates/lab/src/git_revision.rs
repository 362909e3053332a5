//! Git revisions of measured servers.

use std::path::Path;

use crate::process_start_and_stop::capture;

/// First twelve digits of a commit hash; the whole hash if it is shorter.
pub fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// Last commit that touched `folder`: 12 digits, plus `-dirty` if there are changes. `None` without git or a commit.
pub fn of(folder: &Path) -> Option<String> {
    let commit = capture(&["git", "log", "-1", "--format=%H", "--", "."], folder)?;
    marked(&commit, &["git", "status", "--porcelain", "--", "."], folder)
}

/// Commit of the repository that contains `folder`, in the format of [`of`]. Ignores untracked files, such as reports.
pub fn commit(folder: &Path) -> Option<String> {
    let commit = capture(&["git", "rev-parse", "--verify", "HEAD"], folder)?;
    marked(&commit, &["git", "status", "--porcelain", "--untracked-files=no"], folder)
}

fn marked(commit: &str, changes: &[&str], folder: &Path) -> Option<String> {
    let commit = commit.trim().get(..12)?;
    Some(if capture(changes, folder)?.is_empty() { commit.to_owned() } else { format!("{commit}-dirty") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(folder: &Path, arguments: &[&str]) {
        let identity = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
        let words = [&identity[..], arguments].concat();
        assert!(capture(&words, folder).is_some(), "{arguments:?}");
    }

    #[test]
    fn describes_the_state_of_a_directory() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("go");
        std::fs::create_dir(&folder).unwrap();
        assert_eq!((of(&folder), commit(&folder)), (None, None), "outside of a checkout");
        git(root.path(), &["init", "-q"]);
        assert_eq!((of(&folder), commit(&folder)), (None, None), "no commit yet");
        std::fs::write(folder.join("main.go"), "1").unwrap();
        git(root.path(), &["add", "."]);
        git(root.path(), &["commit", "-q", "-m", "one"]);
        let clean = of(&folder).unwrap();
        assert!(clean.len() == 12 && clean.bytes().all(|byte| byte.is_ascii_hexdigit()), "{clean}");
        std::fs::write(root.path().join("elsewhere"), "1").unwrap();
        assert_eq!(of(&folder), Some(clean.clone()), "a change elsewhere is none here");
        assert_eq!(commit(&folder), Some(clean.clone()), "files that git does not know");
        std::fs::write(folder.join("main.go"), "2").unwrap();
        assert_eq!(of(&folder), Some(format!("{clean}-dirty")));
        assert_eq!(commit(root.path()), Some(format!("{clean}-dirty")));
        git(root.path(), &["commit", "-q", "-m", "two", "."]);
        std::fs::write(root.path().join("other"), "1").unwrap();
        git(root.path(), &["add", "other"]);
        git(root.path(), &["commit", "-q", "-m", "three"]);
        assert_ne!(commit(&folder), of(&folder), "the last commit did not touch this directory");
        assert!(commit(&folder).is_some_and(|commit| !commit.ends_with("-dirty")));
    }
}
