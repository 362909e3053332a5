//! Quantities with units in files and flags, such as `300ms`, `64KiB`, `50k`, `3%` or `1_000_000`.

use crate::diagnostic::Invalid;

const S: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400_000_000_000;
const COUNT_UNITS: &str = "k, M, G";
const BYTE_UNITS: &str = "B, kB, MB, GB, KiB, MiB, GiB";

/// Parses a duration such as `250ns`, `5us`, `1.5s`, `2m` or `1h` and returns it in ns. Fails without a unit.
pub fn duration_ns(text: &str) -> Result<u64, Invalid> {
    time_ns(text, "ns, us, ms, s, m, h")
}

/// Parses a duration such as `1.5s` or `30d` and returns it in ns. Fails without a unit.
pub fn long_duration_ns(text: &str) -> Result<u64, Invalid> {
    time_ns(text, "ns, us, ms, s, m, h, d")
}

fn time_ns(text: &str, units: &str) -> Result<u64, Invalid> {
    let (number, unit) = split(text)?;
    let ns = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" if units.ends_with('d') => DAY_NS,
        "" => return Err(Invalid::new(format!("`{text}` needs a unit: {units}"))),
        _ => return Err(unknown(text, unit, "time", units)),
    };
    whole(text, number, ns, "nanoseconds")
}

/// Formats a duration as a whole number of the largest possible unit.
pub(crate) fn duration_text(ns: u64) -> String {
    let units =
        [(3_600_000_000_000, "h"), (60_000_000_000, "m"), (S, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let (unit, name) = units.into_iter().find(|(unit, _)| ns > 0 && ns.is_multiple_of(*unit)).unwrap_or((S, "s"));
    format!("{}{name}", ns / unit)
}

pub(crate) fn long_duration_text(ns: u64) -> String {
    if ns > 0 && ns.is_multiple_of(DAY_NS) { format!("{}d", ns / DAY_NS) } else { duration_text(ns) }
}

/// Formats a number of bytes as a whole number of the largest possible power of 1,024.
pub(crate) fn bytes_text(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let (unit, name) = units.into_iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit)).unwrap_or((1, "B"));
    format!("{} {name}", bytes / unit)
}

/// Parses a count, such as `40`, `1_000_000`, `50k` or `1.5M`. Fails if it is not a whole number.
pub fn count(text: &str) -> Result<u64, Invalid> {
    let (number, unit) = split(text)?;
    whole(text, number, thousands(text, unit, "a count")?, "things")
}

/// Parses a number of bytes, such as `512`, `64KiB` or `10MB`. `M` stands for a power of ten, `Mi` for a power of two.
pub fn bytes(text: &str) -> Result<u64, Invalid> {
    let (number, unit) = split(text)?;
    let bytes = match unit {
        "" | "B" => 1,
        "kB" | "KB" | "k" => 1_000,
        "MB" | "M" => 1_000_000,
        "GB" | "G" => 1_000_000_000,
        "KiB" | "Ki" => 1 << 10,
        "MiB" | "Mi" => 1 << 20,
        "GiB" | "Gi" => 1 << 30,
        _ => return Err(unknown(text, unit, "memory", BYTE_UNITS)),
    };
    whole(text, number, bytes, "bytes")
}

/// Parses a rate per second, such as `50k`, `50k/s` or `0.5`. Fails unless it is above 0.
pub fn rate_per_s(text: &str) -> Result<f64, Invalid> {
    let (number, unit) = split(text)?;
    let unit = unit.strip_suffix("/s").unwrap_or(unit);
    let rate = float(text, number)? * thousands(text, unit, "a rate")? as f64;
    if rate > 0.0 && rate <= 1e9 { Ok(rate) } else { Err(out_of_range(text, "above 0, at most 1G per second")) }
}

/// Parses a fraction from 0 to 1, such as `3%` or `0.03`. Fails if it is out of range.
pub fn fraction(text: &str) -> Result<f64, Invalid> {
    let (number, unit) = split(text)?;
    let divisor = match unit {
        "" => 1.0,
        "%" => 100.0,
        _ => return Err(unknown(text, unit, "a fraction", "%")),
    };
    let value = float(text, number)? / divisor;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(out_of_range(text, "0 to 1, or 0% to 100%")) }
}

/// Splits a quantity into number and unit, with optional blanks around each. Underscores may separate digits.
fn split(text: &str) -> Result<(&str, &str), Invalid> {
    let text_trimmed = text.trim();
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '_' | '-' | '+');
    let end = text_trimmed.find(|c| !is_number(c)).unwrap_or(text_trimmed.len());
    let (number, unit) = text_trimmed.split_at(end);
    let groups_are_fine =
        number.split(['.', '-', '+']).all(|part| part.split('_').all(|group| !group.is_empty()) || part.is_empty());
    if !number.contains(|c: char| c.is_ascii_digit()) || !groups_are_fine {
        return Err(not_a_number(text));
    }
    Ok((number, unit.trim_start()))
}

fn thousands(text: &str, unit: &str, quantity: &str) -> Result<u64, Invalid> {
    match unit {
        "" => Ok(1),
        "k" | "K" => Ok(1_000),
        "M" => Ok(1_000_000),
        "G" => Ok(1_000_000_000),
        _ => Err(unknown(text, unit, quantity, COUNT_UNITS)),
    }
}

fn unknown(text: &str, unit: &str, quantity: &str, units: &str) -> Invalid {
    let meant = units.split(", ").find(|known| known.eq_ignore_ascii_case(unit));
    let error = Invalid::new(format!("`{unit}` in `{text}` is not a unit of {quantity}: {units}"));
    Invalid { hint: meant.map(|meant| format!("did you mean `{meant}`?")), ..error }
}

fn not_a_number(text: &str) -> Invalid {
    Invalid::new(format!("`{text}` is not a number"))
}

fn out_of_range(text: &str, range: &str) -> Invalid {
    Invalid::new(format!("`{text}` is out of range: {range}"))
}

fn float(text: &str, number: &str) -> Result<f64, Invalid> {
    number.replace('_', "").parse().map_err(|_| not_a_number(text))
}

/// Multiplies exactly, since a float could be off by a nanosecond. Fails unless the product is a valid `u64`.
fn whole(text: &str, number: &str, unit: u64, of: &str) -> Result<u64, Invalid> {
    float(text, number)?;
    if number.starts_with('-') {
        return Err(out_of_range(text, "not below 0"));
    }
    let too_large = || out_of_range(text, "at most 64 bits");
    let not_whole = || Invalid::new(format!("`{text}` is not a whole number of {of}"));
    let digits = number.replace(['_', '+'], "");
    let (integer, decimals) = digits.split_once('.').unwrap_or((&digits, ""));
    let decimals = decimals.trim_end_matches('0');
    if decimals.len() > 18 {
        return Err(not_whole());
    }
    let parse = |digits: &str| if digits.is_empty() { Ok(0) } else { digits.parse::<u64>().map_err(|_| too_large()) };
    let (integer, scale) = (parse(integer)?, 10u128.pow(decimals.len() as u32));
    let part = u128::from(parse(decimals)?) * u128::from(unit);
    if part % scale != 0 {
        return Err(not_whole());
    }
    let sum = u128::from(integer) * u128::from(unit) + part / scale;
    u64::try_from(sum).map_err(|_| too_large())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check<T: PartialEq + std::fmt::Debug>(read: fn(&str) -> Result<T, Invalid>, text: &str, expect: T) {
        assert_eq!(read(text), Ok(expect), "{text}");
    }

    fn fails<T: PartialEq + std::fmt::Debug>(read: fn(&str) -> Result<T, Invalid>, text: &str, expect: &str) {
        assert_eq!(read(text).unwrap_err().to_string(), expect);
    }

    #[test]
    fn durations() {
        check(duration_ns, "5s", 5_000_000_000);
        check(duration_ns, "300ms", 300_000_000);
        check(duration_ns, "0.3 s", 300_000_000);
        check(duration_ns, "1.000000001s", 1_000_000_001);
        check(duration_ns, "5us", 5_000);
        check(duration_ns, "5µs", 5_000);
        check(duration_ns, "8m", 480_000_000_000);
        check(duration_ns, "1_000ns", 1_000);
        check(duration_ns, "0s", 0);
        fails(duration_ns, "5", "`5` needs a unit: ns, us, ms, s, m, h");
        fails(duration_ns, "5sec", "`sec` in `5sec` is not a unit of time: ns, us, ms, s, m, h");
        fails(duration_ns, "1m30s", "`m30s` in `1m30s` is not a unit of time: ns, us, ms, s, m, h");
        fails(duration_ns, "0.5ns", "`0.5ns` is not a whole number of nanoseconds");
        fails(duration_ns, "-1s", "`-1s` is out of range: not below 0");
        fails(duration_ns, "6000000h", "`6000000h` is out of range: at most 64 bits");
        fails(duration_ns, "soon", "`soon` is not a number");
        fails(duration_ns, "", "`` is not a number");
        fails(duration_ns, "1.2.3s", "`1.2.3s` is not a number");
        fails(duration_ns, "1__0s", "`1__0s` is not a number");
        fails(duration_ns, "1d", "`d` in `1d` is not a unit of time: ns, us, ms, s, m, h");
    }

    #[test]
    fn long_durations_allow_days() {
        check(long_duration_ns, "1.5d", 129_600_000_000_000);
        check(long_duration_ns, "5s", 5_000_000_000);
        fails(long_duration_ns, "5", "`5` needs a unit: ns, us, ms, s, m, h, d");
        fails(long_duration_ns, "5w", "`w` in `5w` is not a unit of time: ns, us, ms, s, m, h, d");
        assert_eq!([DAY_NS, 3 * DAY_NS / 2, 0].map(long_duration_text), ["1d", "36h", "0s"]);
    }

    #[test]
    fn counts_and_bytes() {
        check(count, "1_000_000", 1_000_000);
        check(count, "50k", 50_000);
        check(count, "1.5M", 1_500_000);
        fails(count, "1.5", "`1.5` is not a whole number of things");
        fails(count, "5s", "`s` in `5s` is not a unit of a count: k, M, G");
        fails(count, "99999999999999999999", "`99999999999999999999` is out of range: at most 64 bits");
        check(bytes, "64KiB", 65_536);
        check(bytes, "1.5MiB", 1_572_864);
        check(bytes, "10 kB", 10_000);
        check(bytes, "7", 7);
        fails(bytes, "7b", "`b` in `7b` is not a unit of memory: B, kB, MB, GB, KiB, MiB, GiB");
    }

    #[test]
    fn rates_and_fractions() {
        check(rate_per_s, "50k", 50_000.0);
        check(rate_per_s, "50k/s", 50_000.0);
        check(rate_per_s, "0.5", 0.5);
        fails(rate_per_s, "0", "`0` is out of range: above 0, at most 1G per second");
        fails(rate_per_s, "5/m", "`/m` in `5/m` is not a unit of a rate: k, M, G");
        check(fraction, "3%", 0.03);
        check(fraction, "0.03", 0.03);
        check(fraction, "1", 1.0);
        fails(fraction, "3", "`3` is out of range: 0 to 1, or 0% to 100%");
        fails(fraction, "-1%", "`-1%` is out of range: 0 to 1, or 0% to 100%");
        fails(fraction, "3x", "`x` in `3x` is not a unit of a fraction: %");
    }

    proptest! {
        #[test]
        fn parses_whole_nanoseconds(ns: u64) {
            prop_assert_eq!(duration_ns(&format!("{ns}ns")), Ok(ns));
        }

        #[test]
        fn decimals_are_exact(s in 0u64..1_000_000_000, ns in 0u32..1_000_000_000) {
            prop_assert_eq!(duration_ns(&format!("{s}.{ns:09}s")), Ok(s * 1_000_000_000 + u64::from(ns)));
        }

        #[test]
        fn nothing_panics(text in "\\PC*|[-+0-9._]{0,40}[a-zA-Z%/]{0,3}") {
            let _ = (duration_ns(&text), long_duration_ns(&text), count(&text), bytes(&text), rate_per_s(&text), fraction(&text));
        }
    }
}
