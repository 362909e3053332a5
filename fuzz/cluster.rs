//! Assertions for any list of machines.

use lab::cluster::file::{HOSTS_MAX, Hosts, STUDY, parse, short};
use study::record::Role;

/// Checks that a list of machines gives errors, or a cluster that has one server and at least one generator and no word
/// that ssh would parse as an option.
pub(crate) fn cluster_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match parse(text, STUDY) {
        Ok(hosts) => holds(&hosts),
        Err(mistakes) => assert!(!mistakes.is_empty()),
    }
    match short(text, STUDY) {
        Ok(hosts) => holds(&hosts),
        Err(mistakes) => assert!(!mistakes.is_empty()),
    }
}

fn holds(hosts: &Hosts) {
    let count = |role| hosts.hosts.iter().filter(|host| host.role == role).count();
    assert!(count(Role::Subject) == 1 && (1..HOSTS_MAX).contains(&count(Role::Load)), "{hosts:?}");
    let words = hosts.hosts.iter().flat_map(|host| [Some(&host.name), Some(&host.address), host.ssh.as_ref()]);
    assert!(words.flatten().all(|word| !word.starts_with('-') && !word.contains(' ')), "{hosts:?}");
}
