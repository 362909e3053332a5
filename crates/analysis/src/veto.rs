//! Determines which marks of a design point prevent comparisons by which metric. The order of both sides of a block is
//! random. A disturbance that ignores the side (another process on the CPUs) leaves values exchangeable (Fisher 1935):
//! the signed-rank test keeps its error and only loses power. A limit common to both sides, a busy generator,
//! determines throughput and latency, but not the server's CPU time per request.

use study::Metric;

use crate::findings::{Mark, Row};

impl Mark {
    /// Whether the mark prevents comparing servers by this metric.
    pub fn forbids(self, metric: &Metric) -> bool {
        match self {
            Mark::Shared => false,
            Mark::GeneratorBound | Mark::NetworkBound => is_pace(metric),
            Mark::Hung => !is_size(metric) && !matches!(metric.name, "errors" | "error_share"),
        }
    }
}

/// Whether a metric is a speed: a rate, or a time other than CPU time.
fn is_pace(metric: &Metric) -> bool {
    matches!(metric.unit, "1/s" | "bytes/s" | "ns") && !metric.name.ends_with("_cpu_per_request")
}

fn is_size(metric: &Metric) -> bool {
    metric.unit == "bytes" && !metric.name.ends_with("_per_request")
}

/// The marks that prevent comparing a row by a metric. `is_broken`: the claim is that an absolute limit is exceeded,
/// for which other work on the CPUs may be the reason.
pub(crate) fn forbidding(row: &Row, metric: &Metric, is_broken: bool) -> Option<String> {
    let forbids = |mark: &&Mark| mark.forbids(metric) || **mark == Mark::Shared && is_broken && is_pace(metric);
    let marks = row.marks.iter().filter(forbids).map(|mark| mark.text()).collect::<Vec<_>>();
    (!marks.is_empty()).then(|| marks.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_forbid_the_metrics_they_determine() {
        let forbidden = |mark: Mark| {
            let names =
                ["throughput", "latency_p99", "subject_cpu_per_request", "subject_rss", "error_share", "hit_ratio"];
            names.into_iter().filter(|name| mark.forbids(Metric::named(name).unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(forbidden(Mark::Shared), [""; 0]);
        assert_eq!(forbidden(Mark::GeneratorBound), ["throughput", "latency_p99"]);
        assert_eq!(forbidden(Mark::NetworkBound), ["throughput", "latency_p99"]);
        assert_eq!(forbidden(Mark::Hung), ["throughput", "latency_p99", "subject_cpu_per_request", "hit_ratio"]);
    }
}
