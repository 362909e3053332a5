//! Network interfaces of this machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use study::record::Interface;

/// All interfaces with their addresses.
pub fn all() -> Vec<(Interface, Vec<String>)> {
    let mut addresses: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // Without addresses, the interface in use cannot be identified.
    for interface in if_addrs::get_if_addrs().unwrap_or_default() {
        addresses.entry(interface.name.clone()).or_default().push(interface.ip().to_string());
    }
    let class = Path::new("/sys/class/net");
    addresses.into_iter().map(|(name, addresses)| (read(&class.join(&name), name), addresses)).collect()
}

fn read(folder: &Path, name: String) -> Interface {
    let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<i64>().ok();
    let queues = fs::read_dir(folder.join("queues")).into_iter().flatten().flatten();
    let receive = queues.filter(|queue| queue.file_name().to_string_lossy().starts_with("rx-")).count();
    let driver = fs::read_link(folder.join("device/driver")).ok();
    Interface {
        name,
        // Drivers without this information report -1 or an error.
        speed_mbit_per_s: number("speed").and_then(|speed| u64::try_from(speed).ok()),
        mtu_bytes: number("mtu").and_then(|mtu| u64::try_from(mtu).ok()),
        driver: driver.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())),
        receive_queues: u32::try_from(receive).ok().filter(|count| *count > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found_with_its_address() {
        let all = all();
        let (loopback, _) = all.iter().find(|(_, addresses)| addresses.iter().any(|ip| ip == "127.0.0.1")).unwrap();
        assert_eq!((loopback.name.as_str(), loopback.driver.as_deref()), ("lo", None));
        assert!(loopback.mtu_bytes.is_some_and(|bytes| bytes >= 1500), "{loopback:?}");
    }

    #[test]
    fn unreported_values_are_unknown() {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in [("speed", "-1\n"), ("mtu", "9000\n")] {
            fs::write(folder.path().join(file), text).unwrap();
        }
        fs::create_dir_all(folder.path().join("queues/rx-0")).unwrap();
        let read = read(folder.path(), "eth0".to_owned());
        let expected = Interface {
            name: "eth0".to_owned(),
            mtu_bytes: Some(9000),
            receive_queues: Some(1),
            ..Interface::default()
        };
        assert_eq!(read, expected);
    }
}
