//! Git revisions of what was measured.

use std::path::Path;

use crate::process::capture;

/// The last commit that touched `folder`, twelve digits, with `-dirty` where the folder differs from it; `None` outside of a
/// checkout, without git, and for a folder that was never committed.
pub fn of(folder: &Path) -> Option<String> {
    let commit = capture(&["git", "log", "-1", "--format=%H", "--", "."], folder)?;
    let commit = commit.trim().get(..12)?.to_owned();
    let changes = capture(&["git", "status", "--porcelain", "--", "."], folder)?;
    Some(if changes.is_empty() { commit } else { format!("{commit}-dirty") })
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
    fn of_a_folder_by_its_state() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("go");
        std::fs::create_dir(&folder).unwrap();
        assert_eq!(of(&folder), None, "outside of a checkout");
        git(root.path(), &["init", "-q"]);
        assert_eq!(of(&folder), None, "no commit yet");
        std::fs::write(folder.join("main.go"), "1").unwrap();
        git(root.path(), &["add", "."]);
        git(root.path(), &["commit", "-q", "-m", "one"]);
        let clean = of(&folder).unwrap();
        assert!(clean.len() == 12 && clean.bytes().all(|byte| byte.is_ascii_hexdigit()), "{clean}");
        std::fs::write(root.path().join("elsewhere"), "1").unwrap();
        assert_eq!(of(&folder), Some(clean.clone()), "a change elsewhere is none here");
        std::fs::write(folder.join("main.go"), "2").unwrap();
        assert_eq!(of(&folder), Some(format!("{clean}-dirty")));
    }
}
