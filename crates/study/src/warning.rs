//! What a reader should know of a trial, by kind, so that a hundred trials that say the same can be told in one line.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// One warning of one trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// One sentence, without full stop.
    pub text: String,
}

/// What a warning is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WarningKind {
    /// Trials ran under two idle policies.
    IdlePolicies,
    /// Trials of points that the plan does not have.
    StrangeTrials,
    /// The machine has fewer processors than a point would use.
    FewerCpus,
    /// A point has no numbers.
    NotMeasured,
    /// Some trials of a point failed.
    Failed,
    /// Another lab ran at the same time.
    OtherLab,
    /// The trial was about the generator.
    GeneratorBound,
    /// Processors were shared.
    SharedCpus,
    /// The network between generators and server was the limit.
    NetworkBound,
    /// Generators of a cluster are not alike.
    GeneratorsDiffer,
    /// The clock of a generator's machine moved, or it began late.
    AgentClock,
    /// Generator and subject were both busy.
    BothBusy,
    /// The subject, or what stands before it, waited for a processor.
    SubjectWaited,
    /// A thread of the generator waited for a CPU.
    GeneratorWaited,
    /// The engine is not the one that was asked for.
    Backend,
    /// All connections were silent at the end.
    Silent,
    /// Some connections were silent at the end.
    SilentConnections,
    /// A pause without any answer.
    Pause,
    /// Requests went wrong.
    Errors,
    /// Requests went wrong before measuring began.
    WarmupErrors,
    /// Answers after the timeout.
    LateAnswers,
    /// Intended requests that were never sent.
    Unsent,
    /// Connections were opened again.
    Reconnects,
    /// Clients were in back-off.
    BackOff,
    /// Requests were asked again.
    AskedAgain,
    /// Latencies beyond the histogram.
    Saturated,
    /// Little's law does not hold.
    Little,
    /// TCP segments were sent again.
    Retransmits,
    /// An accept queue was full.
    ListenOverflows,
    /// Connection requests were dropped.
    ListenDrops,
    /// Something that is read after a trial could not be.
    NotRead,
    /// A process did not end when asked to.
    IgnoredSigterm,
    /// A container was reached through a published port.
    PublishedPort,
    /// Trials had not reached a steady state.
    NotSteady,
    /// A trial is unlike the others of its point.
    Outlier,
    /// The machine changed its speed during the run.
    States,
    /// Another process had a processor in use before or after trials.
    Contended,
    /// Anything else, of older stores too.
    #[default]
    #[serde(other)]
    Other,
}

impl WarningKind {
    /// What warnings of this kind have in common, in words that a count can follow: `no steady state` (in 5 of 80 trials). `None`: each says
    /// something of its own, and only those of one text go together.
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
            WarningKind::Saturated => "latencies above 1 h: counted, in the highest bucket",
            WarningKind::Little => "Little's law is off: requests in flight, rate and latency are inconsistent",
            WarningKind::Retransmits => "TCP segments retransmitted",
            WarningKind::ListenOverflows => "the server's accept queue was full (ListenOverflows)",
            WarningKind::ListenDrops => "connection requests dropped (ListenDrops)",
            WarningKind::IgnoredSigterm => "a process did not exit on SIGTERM",
            WarningKind::NotSteady => "no steady state",
            WarningKind::Outlier => "outliers (flagged, not removed)",
            WarningKind::IdlePolicies
            | WarningKind::StrangeTrials
            | WarningKind::FewerCpus
            | WarningKind::NotMeasured
            | WarningKind::Failed
            | WarningKind::GeneratorsDiffer
            | WarningKind::Backend
            | WarningKind::NotRead
            | WarningKind::States
            | WarningKind::Contended
            | WarningKind::Other => return None,
        })
    }

    /// A warning of this kind.
    pub fn says(self, text: impl Into<String>) -> Warning {
        Warning { kind: self, text: text.into() }
    }
}

/// As it stands in a record: records from before there were kinds have the text alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum Told {
    Text(String),
    Warning {
        #[serde(default)]
        kind: WarningKind,
        text: String,
    },
}

impl<'de> Deserialize<'de> for Warning {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Told::deserialize(deserializer)? {
            Told::Text(text) => WarningKind::Other.says(text),
            Told::Warning { kind, text } => kind.says(text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_and_newer_stores_read() {
        let read = |text: &str| serde_json::from_str::<Warning>(text).unwrap();
        assert_eq!(read(r#""3 segments sent again""#), WarningKind::Other.says("3 segments sent again"));
        assert_eq!(read(r#"{"kind": "kinds-of-tomorrow", "text": "x"}"#), WarningKind::Other.says("x"));
        let warning = WarningKind::Retransmits.says("3 segments sent again");
        let text = serde_json::to_string(&warning).unwrap();
        assert_eq!(text, r#"{"kind":"retransmits","text":"3 segments sent again"}"#);
        assert_eq!(read(&text), warning);
    }
}
