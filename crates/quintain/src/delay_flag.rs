//! Delay distributions of `serve calibrate`, parsed from flags.

use stats::Distribution;
use study::units;

/// A random delay, in ns; `None` for no delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Law(pub(crate) Option<Distribution>);

/// Parses `null`, `constant:1ms`, `exponential:1ms`, `lognormal:1ms,0.5`, `bimodal:100us,5ms,0.02`.
pub(crate) fn law(text: &str) -> Result<Law, String> {
    const FORMS: &str =
        "expected `null`, `constant:TIME`, `exponential:MEAN`, `lognormal:MEDIAN,SIGMA` or `bimodal:LOW,HIGH,SHARE`";
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let words = rest.split(',').map(str::trim).collect::<Vec<_>>();
    let time = |text: &str| units::duration_ns(text).map(|ns| ns as f64).map_err(|error| error.to_string());
    let number = |text: &str| text.parse::<f64>().map_err(|_| format!("`{text}` is not a number"));
    let law = match (name, words.as_slice()) {
        ("null", [""]) => return Ok(Law(None)),
        ("constant", [value]) => Distribution::Constant { value: time(value)? },
        ("exponential", [mean]) => Distribution::Exponential { mean: time(mean)? },
        ("lognormal", [median, sigma]) => Distribution::Lognormal { median: time(median)?, sigma: number(sigma)? },
        ("bimodal", [low, high, share]) => Distribution::Bimodal {
            low: time(low)?,
            high: time(high)?,
            high_share: units::fraction(share).map_err(|error| error.to_string())?,
        },
        _ => return Err(FORMS.to_owned()),
    };
    if law.is_valid() { Ok(Law(Some(law))) } else { Err("invalid distribution parameters".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_are_read() {
        assert_eq!(law("null"), Ok(Law(None)));
        assert_eq!(law("constant:1ms"), Ok(Law(Some(Distribution::Constant { value: 1e6 }))));
        assert_eq!(law("exponential:50us"), Ok(Law(Some(Distribution::Exponential { mean: 5e4 }))));
        assert_eq!(law("lognormal:1ms,0.5"), Ok(Law(Some(Distribution::Lognormal { median: 1e6, sigma: 0.5 }))));
        assert_eq!(
            law("bimodal:100us,5ms,2%"),
            Ok(Law(Some(Distribution::Bimodal { low: 1e5, high: 5e6, high_share: 0.02 })))
        );
        for wrong in [
            "",
            "null:1",
            "constant",
            "constant:",
            "constant:1",
            "lognormal:1ms",
            "lognormal:1ms,x",
            "bimodal:1ms,2ms,3",
        ] {
            assert!(law(wrong).is_err(), "{wrong}");
        }
    }
}
