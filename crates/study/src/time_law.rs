//! Distributions of random times in studies and flags, such as `2s`, `exponential:2s` or `lognormal:1s,0.5`.

use config::{Invalid, units};
use stats::Distribution;

use crate::metric::time_text;
use crate::spec::ThinkTime;

/// Longest median of a client's pause.
const THINK_MEDIAN_MAX_NS: f64 = 3.6e12;

const FORMS: &str = "`TIME`, `constant:TIME`, `exponential:MEAN`, `uniform:LOW,HIGH`, `lognormal:MEDIAN,SIGMA`, \
     `bimodal:LOW,HIGH,SHARE`";

/// Parses a time distribution and returns it in ns. A plain time is a constant. Fails at an invalid form or parameter.
pub fn parse(text: &str) -> Result<Distribution, Invalid> {
    // A name without parameters is not a time.
    let is_time = text.bytes().any(|byte| !byte.is_ascii_alphabetic());
    let (name, rest) = text.split_once(':').unwrap_or((if is_time { "constant" } else { "" }, text));
    let words = rest.split(',').map(str::trim).collect::<Vec<_>>();
    let time = |text: &str| units::duration_ns(text).map(|ns| ns as f64);
    let law = match (name, words.as_slice()) {
        ("constant", [value]) => Distribution::Constant { value: time(value)? },
        ("exponential", [mean]) => Distribution::Exponential { mean: time(mean)? },
        ("uniform", [low, high]) => Distribution::Uniform { low: time(low)?, high: time(high)? },
        ("lognormal", [median, sigma]) => {
            let wrong = |_| Invalid::new(format!("`{}` is not a number", sigma.escape_debug()));
            Distribution::Lognormal { median: time(median)?, sigma: sigma.parse().map_err(wrong)? }
        }
        ("bimodal", [low, high, share]) => {
            Distribution::Bimodal { low: time(low)?, high: time(high)?, high_share: units::fraction(share)? }
        }
        _ => return Err(Invalid::new(format!("`{}` is not one of {FORMS}", text.escape_debug()))),
    };
    if law.check().is_ok() {
        return Ok(law);
    }
    let hint = "numbers are not negative, and the lower bound comes first";
    Err(Invalid::new(format!("`{}` has invalid parameters", text.escape_debug())).hint(hint))
}

/// Parses a client's pause, in the syntax of [`parse`]. Fails if the median is above 1 h.
pub fn think(text: &str) -> Result<ThinkTime, Invalid> {
    let law = parse(text)?;
    if law.quantile(0.5) > THINK_MEDIAN_MAX_NS {
        return Err(Invalid::new(format!("`{}` has a median above 1h", text.escape_debug())));
    }
    Ok(if let Distribution::Constant { value } = law {
        ThinkTime::Constant(value as u64)
    } else {
        ThinkTime::Random(law)
    })
}

/// Formats a distribution of times in ns, as [`parse`] reads it.
pub fn text(law: &Distribution) -> String {
    let time = |ns: f64| time_text(ns as u64);
    match *law {
        Distribution::Constant { value } => time(value),
        Distribution::Exponential { mean } => format!("exponential:{}", time(mean)),
        Distribution::Uniform { low, high } => format!("uniform:{},{}", time(low), time(high)),
        Distribution::Lognormal { median, sigma } => format!("lognormal:{},{sigma}", time(median)),
        Distribution::Bimodal { low, high, high_share } => {
            format!("bimodal:{},{},{high_share}", time(low), time(high))
        }
        Distribution::Gamma { .. } | Distribution::Gev { .. } | Distribution::Pareto { .. } => format!("{law:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_laws() {
        for (text, law) in [
            ("1ms", Distribution::Constant { value: 1e6 }),
            ("constant:1ms", Distribution::Constant { value: 1e6 }),
            ("exponential:50us", Distribution::Exponential { mean: 5e4 }),
            ("uniform:1ms, 2ms", Distribution::Uniform { low: 1e6, high: 2e6 }),
            ("lognormal:1ms,0.5", Distribution::Lognormal { median: 1e6, sigma: 0.5 }),
            ("bimodal:100us,5ms,2%", Distribution::Bimodal { low: 1e5, high: 5e6, high_share: 0.02 }),
        ] {
            assert_eq!(parse(text), Ok(law), "{text}");
            assert_eq!(parse(&super::text(&law)), Ok(law), "{text}");
        }
        assert_eq!(think("constant:1s").unwrap(), ThinkTime::Constant(1_000_000_000));
        let incomplete = parse("exponential").unwrap_err().to_string();
        assert!(incomplete.starts_with("`exponential` is not one of `TIME`, `constant:TIME`"), "{incomplete}");
        for wrong in [
            "",
            "null:1",
            "constant",
            "constant:",
            "constant:1",
            "uniform:2ms,1ms",
            "uniform:1ms",
            "lognormal:1ms",
            "lognormal:1ms,x",
            "lognormal:1ms,-1",
            "bimodal:1ms,2ms,3",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
