//! `quintain serve`: reference servers.

use std::sync::Arc;

use servers::{Calibrate, Hostile, Listen, Pauses, Pingpong, ServeError, Shutdown};
use stats::{Distribution, Histogram};
use study::units;

use crate::cli::{Backend, Hostility, ListenArgs, ServeArgs, ServeKind};
use crate::message::{Done, Exit, Problem};
use crate::{output, signals};

/// The law of the delays of `serve calibrate`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Law {
    /// No delay at all.
    Null,
    /// Drawn, ns.
    Drawn(Distribution),
}

/// Reads `null`, `constant:1ms`, `exponential:1ms`, `lognormal:1ms,0.5`, `bimodal:100us,5ms,0.02`.
pub(crate) fn law(text: &str) -> Result<Law, String> {
    const FORMS: &str =
        "expected `null`, `constant:TIME`, `exponential:MEAN`, `lognormal:MEDIAN,SIGMA` or `bimodal:LOW,HIGH,SHARE`";
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let words = rest.split(',').map(str::trim).collect::<Vec<_>>();
    let time = |text: &str| units::duration_ns(text).map(|ns| ns as f64).map_err(|error| error.to_string());
    let number = |text: &str| text.parse::<f64>().map_err(|_| format!("`{text}` is no number"));
    let law = match (name, words.as_slice()) {
        ("null", [""]) => return Ok(Law::Null),
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
    if law.is_valid() { Ok(Law::Drawn(law)) } else { Err("these values make no distribution".to_owned()) }
}

/// What `serve calibrate` prints when it ends: its own service times, the truth.
#[derive(Debug, serde::Serialize)]
struct CalibrateLog {
    requests: u64,
    service_ns: Times,
    /// The whole histogram, as records have it.
    histogram: study::record::Histogram,
}

#[derive(Debug, serde::Serialize)]
struct Times {
    mean: Option<f64>,
    p50: Option<f64>,
    p90: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
    max: Option<u64>,
}

pub(crate) fn serve(args: ServeArgs) -> Done {
    let shutdown = Arc::new(Shutdown::default());
    signals::on_end({
        let shutdown = Arc::clone(&shutdown);
        move || shutdown.ask()
    })?;
    match args.kind {
        ServeKind::Pingpong(listen) => {
            servers::serve(&listen.into(), |_| Pingpong::default(), &shutdown, ready)?;
        }
        ServeKind::Calibrate(args) => {
            let delay_ns = match args.delay {
                Law::Null => None,
                Law::Drawn(law) => Some(law),
            };
            let pauses = args.pause.zip(args.pause_every).map(|(length, every)| Pauses {
                length_ns: length.as_nanos() as u64,
                every_ns: every.as_nanos() as u64,
            });
            if pauses.is_some_and(|pauses| pauses.length_ns >= pauses.every_ns) {
                return Err(Problem::text(Exit::Usage, "`--pause` must be shorter than `--pause-every`"));
            }
            let handler = |thread| Calibrate::new(delay_ns, pauses, args.seed, thread);
            let handlers = servers::serve(&args.listen.into(), handler, &shutdown, ready)?;
            let mut service = Histogram::new();
            handlers.iter().for_each(|handler| service.merge(&handler.log().service));
            output::json_line(&CalibrateLog {
                requests: handlers.iter().map(|handler| handler.log().requests).sum(),
                service_ns: Times {
                    mean: service.mean(),
                    p50: service.quantile(0.5),
                    p90: service.quantile(0.9),
                    p95: service.quantile(0.95),
                    p99: service.quantile(0.99),
                    p999: service.quantile(0.999),
                    max: service.max(),
                },
                histogram: (&service).into(),
            })?;
        }
        ServeKind::Hostile(args) => {
            let kind = match args.kind {
                Hostility::WrongWords => servers::Kind::WrongWords,
                Hostility::EndlessData => servers::Kind::EndlessData,
                Hostility::OneByteAtATime => servers::Kind::OneByteAtATime,
                Hostility::NeverAnswer => servers::Kind::NeverAnswer,
                Hostility::CloseAtOnce => servers::Kind::CloseAtOnce,
            };
            let address = std::net::SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, args.port));
            let listen = Listen { address, threads: 1, backend: Backend::Auto.into() };
            servers::serve(&listen, |_| Hostile::new(kind), &shutdown, ready)?;
        }
    }
    Ok(Exit::Fine)
}

fn ready(address: std::net::SocketAddr) {
    // Whoever started it without a reader knows the port already.
    let _ = output::data(&format!("ready {}", address.port()));
}

impl From<ListenArgs> for Listen {
    fn from(args: ListenArgs) -> Self {
        Listen { address: args.address(), threads: args.threads, backend: args.backend.into() }
    }
}

impl From<ServeError> for Problem {
    fn from(error: ServeError) -> Self {
        let taken =
            matches!(&error, ServeError::Listen { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse);
        let problem = Problem::new(if taken { Exit::Usage } else { Exit::Machine }, error);
        if taken { problem.hint("`-p 0` lets the kernel choose a free port") } else { problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_are_read() {
        assert_eq!(law("null"), Ok(Law::Null));
        assert_eq!(law("constant:1ms"), Ok(Law::Drawn(Distribution::Constant { value: 1e6 })));
        assert_eq!(law("exponential:50us"), Ok(Law::Drawn(Distribution::Exponential { mean: 5e4 })));
        assert_eq!(law("lognormal:1ms,0.5"), Ok(Law::Drawn(Distribution::Lognormal { median: 1e6, sigma: 0.5 })));
        assert_eq!(
            law("bimodal:100us,5ms,2%"),
            Ok(Law::Drawn(Distribution::Bimodal { low: 1e5, high: 5e6, high_share: 0.02 }))
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
