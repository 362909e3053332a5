use config::units;

/// Exact, in the largest unit with a whole part above 0.
pub fn time_text(ns: u64) -> String {
    let units = [("s", 9usize), ("ms", 6), ("us", 3)];
    for (unit, digits) in units {
        let size = 10u64.pow(digits as u32);
        if ns >= size {
            let rest = format!("{:0digits$}", ns % size);
            let rest = rest.trim_end_matches('0');
            let point = if rest.is_empty() { "" } else { "." };
            return format!("{}{point}{rest}{unit}", ns / size);
        }
    }
    format!("{ns}ns")
}

pub(crate) fn memory_text(bytes: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("GB", 1_000_000_000), ("MB", 1_000_000)];
    let whole = units.into_iter().find(|(_, size)| bytes > 0 && bytes.is_multiple_of(*size));
    whole.map_or_else(|| format!("{bytes}B"), |(unit, size)| format!("{}{unit}", bytes / size))
}

pub(crate) fn share_text(share: f64) -> String {
    let percent = format!("{}%", (share * 1e12).round() / 1e10);
    if units::fraction(&percent) == Ok(share) { percent } else { format!("{share}") }
}
