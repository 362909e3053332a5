//! Counters of the network stack in the namespace of a process, from `/proc/PID/net`.

use std::path::Path;

use study::record::NetworkCounters;

pub(crate) fn read(net: &Path) -> Option<NetworkCounters> {
    let snmp = std::fs::read_to_string(net.join("snmp")).ok()?;
    let netstat = std::fs::read_to_string(net.join("netstat")).ok()?;
    Some(NetworkCounters {
        retransmits: counter(&snmp, "Tcp", "RetransSegs")?,
        listen_overflows: counter(&netstat, "TcpExt", "ListenOverflows")?,
        listen_drops: counter(&netstat, "TcpExt", "ListenDrops")?,
    })
}

pub(crate) fn between(before: NetworkCounters, after: NetworkCounters) -> NetworkCounters {
    NetworkCounters {
        retransmits: after.retransmits.saturating_sub(before.retransmits),
        listen_overflows: after.listen_overflows.saturating_sub(before.listen_overflows),
        listen_drops: after.listen_drops.saturating_sub(before.listen_drops),
    }
}

fn counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(": ")).filter(|(head, _)| *head == group);
    let (names, values) = (lines.next()?.1, lines.next()?.1);
    let place = names.split_whitespace().position(|word| word == name)?;
    values.split_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETSTAT: &str = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 17 19\nIpExt: In\nIpExt: 5\n";

    #[test]
    fn finds_counters_by_name() {
        assert_eq!(counter(NETSTAT, "TcpExt", "ListenDrops"), Some(19));
        assert_eq!(counter(NETSTAT, "TcpExt", "Missing"), None);
        assert_eq!(counter(NETSTAT, "Tcp", "ListenDrops"), None);
        assert_eq!(counter("", "Tcp", "RetransSegs"), None);
    }

    #[test]
    fn of_this_machine() {
        let before = read(Path::new("/proc/self/net")).unwrap();
        assert_eq!(between(before, before), NetworkCounters::default());
    }
}
