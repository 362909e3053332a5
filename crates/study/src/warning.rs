//! Warnings about trials. Each has a kind, by which a report summarizes many trials in one line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One warning about one trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Kind of warning, by which reports merge warnings.
    pub kind: WarningKind,
    /// One sentence without a full stop.
    pub text: String,
}

/// Kinds of warnings. A report merges all warnings of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WarningKind {
    /// Trials ran under two idle policies.
    IdlePolicies,
    /// Trials belong to points that are not in the plan.
    StrangeTrials,
    /// The machine has fewer CPUs than a point would use.
    FewerCpus,
    /// A point has no results.
    NotMeasured,
    /// Some trials of a point failed.
    Failed,
    /// Another lab ran at the same time.
    OtherLab,
    /// The trial measured the generator, not the server.
    GeneratorBound,
    /// Server and generator shared CPUs.
    SharedCpus,
    /// The network between generators and server was the limit.
    NetworkBound,
    /// Generators of a cluster measured different results.
    GeneratorsDiffer,
    /// The clock of a generator's machine moved, or the generator started late.
    AgentClock,
    /// Generator and server were both busy.
    BothBusy,
    /// The server, or a proxy in front of it, waited for a CPU.
    SubjectWaited,
    /// A thread of the generator waited for a CPU.
    GeneratorWaited,
    /// The generator's backend is not the requested one.
    Backend,
    /// All connections were silent at the end.
    Silent,
    /// Some connections were silent at the end.
    SilentConnections,
    /// No response came for a while.
    Pause,
    /// Requests failed.
    Errors,
    /// Requests failed before measuring began.
    WarmupErrors,
    /// Responses came after the timeout.
    LateAnswers,
    /// Requests that were due were never sent.
    Unsent,
    /// Connections were reopened.
    Reconnects,
    /// Clients waited in back-off before reconnecting.
    BackOff,
    /// Requests were sent again.
    AskedAgain,
    /// The server allows fewer requests in flight than the load would use.
    StreamLimit,
    /// Latencies exceeded the range of the histogram.
    Saturated,
    /// Little's law does not hold.
    Little,
    /// TCP segments were retransmitted.
    Retransmits,
    /// An accept queue was full.
    ListenOverflows,
    /// Connection requests were dropped.
    ListenDrops,
    /// A value could not be read after a trial.
    NotRead,
    /// A process did not end on SIGTERM.
    IgnoredSigterm,
    /// A container was reached through a published port.
    PublishedPort,
    /// Trials had not reached a steady state.
    NotSteady,
    /// A trial differs from the other trials of its point.
    Outlier,
    /// The machine's speed changed during the run.
    States,
    /// Another process used a CPU before or after trials.
    Contended,
    /// Any other warning, including kinds that this version does not know.
    #[default]
    #[serde(other)]
    Other,
}

impl WarningKind {
    /// Text shared by all warnings of this kind, to precede a count of trials; `None` if each warning has its own text.
    pub fn text(self) -> Option<&'static str> {
        Some(match self {
            WarningKind::OtherLab => "another lab was running on this machine and competed for CPUs",
            WarningKind::GeneratorBound => "generator-bound",
            WarningKind::SharedCpus => "shared CPUs",
            WarningKind::NetworkBound => "network-bound",
            WarningKind::AgentClock => "a generator began late, or its clock moved",
            WarningKind::BothBusy => "the generator was nearly as busy as the server",
            WarningKind::SubjectWaited => "the server waited for its CPU: another process had it",
            WarningKind::GeneratorWaited => "the generator waited for a CPU",
            WarningKind::Silent => "no responses at the end, on any connection",
            WarningKind::SilentConnections => "no responses at the end, on some connections",
            WarningKind::Pause => "a pause without any response",
            WarningKind::Errors => "requests failed",
            WarningKind::WarmupErrors => "requests failed during warm-up",
            WarningKind::PublishedPort => {
                "a container was reached through a published port, whose forwarding was measured with it"
            }
            WarningKind::LateAnswers => "responses arrived after the timeout (included in the quantiles)",
            WarningKind::Unsent => "intended requests could not be sent before the end: no connection was free",
            WarningKind::Reconnects => "connections had to be reopened",
            WarningKind::BackOff => "clients were in the generator's back-off after lost connections",
            WarningKind::AskedAgain => "requests had to be resent",
            WarningKind::StreamLimit => "the server allowed fewer requests in flight per connection than the load",
            WarningKind::Saturated => "latencies above 1 h: counted, in the highest bucket",
            WarningKind::Little => "Little's law is off: requests in flight, rate and latency are inconsistent",
            WarningKind::Retransmits => "TCP segments retransmitted",
            WarningKind::ListenOverflows => "the server's accept queue was full (ListenOverflows)",
            WarningKind::ListenDrops => "connection requests dropped (ListenDrops)",
            WarningKind::IgnoredSigterm => "a process did not exit on SIGTERM",
            WarningKind::NotSteady => "no steady state",
            WarningKind::Outlier => "outliers (flagged, not removed)",
            _ => return None,
        })
    }

    /// Creates a warning of this kind with the given sentence.
    pub fn says(self, text: impl Into<String>) -> Warning {
        Warning { kind: self, text: text.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_newer_stores() {
        let read = |text: &str| serde_json::from_str::<Warning>(text).unwrap();
        assert_eq!(read(r#"{"kind": "kinds-of-tomorrow", "text": "x"}"#), WarningKind::Other.says("x"));
        let warning = WarningKind::Retransmits.says("3 segments sent again");
        let text = serde_json::to_string(&warning).unwrap();
        assert_eq!(text, r#"{"kind":"retransmits","text":"3 segments sent again"}"#);
        assert_eq!(read(&text), warning);
    }
}
