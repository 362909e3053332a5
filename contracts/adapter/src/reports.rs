//! Reports of broken clauses, without frequent repeats and at a limited rate. Suppressed reports are counted.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use config::printable;
use contract::monitor::VERDICTS;
use contract::monitor::report::{Kind, Report};

use crate::config::{Format, ReportSettings};
use crate::message_queue_thread::Worker;
use crate::metrics::Metrics;

/// Maximum number of reports waiting for a slow reader. Further reports are dropped and counted.
const WAITING_MAX: usize = 1024;
const KNOWN_MAX: usize = 4096;

type Out = Box<dyn Write + Send>;

pub(crate) type Note = Arc<dyn Fn(String) + Send + Sync>;

pub(crate) struct Reports {
    worker: Worker<Message>,
    pub(crate) metrics: Arc<Metrics>,
}

enum Message {
    Report(Box<Report>, u64),
    Note(String),
    Flush(SyncSender<()>),
}

struct Gate {
    settings: ReportSettings,
    /// The time when each report last passed and how often it has been suppressed since, by what makes it equal.
    known: HashMap<String, (Instant, u64)>,
    second: Instant,
    this_second: u32,
    /// Reports that the rate limit has suppressed since the last report that passed.
    left_out: u64,
}

impl Gate {
    fn new(settings: ReportSettings, now: Instant) -> Self {
        Self { settings, known: HashMap::new(), second: now, this_second: 0, left_out: 0 }
    }

    /// Returns how many equal reports have been suppressed since the last one passed; `None` to suppress this one too.
    fn pass(&mut self, report: &Report, now: Instant) -> Option<u64> {
        if now.duration_since(self.second) >= Duration::from_secs(1) {
            (self.second, self.this_second) = (now, 0);
        }
        let Report { kind, found, clause, endpoint, index, blamed, vouched_for_by, .. } = report;
        let same = format!("{:?}", (kind, found, clause, endpoint, index, blamed, vouched_for_by));
        let again = match self.known.get_mut(&same) {
            Some((since, again)) if now.duration_since(*since) < self.settings.repeat_after => {
                *again += 1;
                return None;
            }
            Some((_, again)) => *again,
            None => 0,
        };
        if self.this_second == self.settings.per_s {
            self.left_out += 1;
            return None;
        }
        self.this_second += 1;
        if self.known.len() >= KNOWN_MAX {
            self.known.retain(|_, (since, _)| now.duration_since(*since) < self.settings.repeat_after);
            if self.known.len() >= KNOWN_MAX {
                self.known.clear();
            }
        }
        self.known.insert(same, (now, 0));
        Some(again)
    }
}

impl Reports {
    pub(crate) fn start(settings: ReportSettings, metrics: Arc<Metrics>, out: Out) -> std::io::Result<Self> {
        let counts = metrics.clone();
        let worker = Worker::start("reports", WAITING_MAX, move |from| write(settings, &counts, out, from))?;
        Ok(Self { worker, metrics })
    }

    pub(crate) fn tell(&self, report: Report, call: u64) {
        self.send(Message::Report(Box::new(report), call));
    }

    pub(crate) fn note(&self, text: String) {
        self.send(Message::Note(text));
    }

    fn send(&self, message: Message) {
        if self.worker.messages.try_send(message).is_err() {
            self.metrics.reports_left_out.inc();
        }
    }

    pub(crate) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.worker.messages.send(Message::Flush(done)).is_ok() {
            let _ = wait.recv_timeout(Duration::from_secs(2));
        }
    }
}

fn write(settings: ReportSettings, metrics: &Metrics, mut out: Out, from: &Receiver<Message>) {
    let format = settings.format;
    let mut gate = Gate::new(settings, crate::clock::now());
    // Calls must pass even if the reader is gone, so write errors are ignored.
    while let Ok(message) = from.recv() {
        match message {
            Message::Report(report, call) => match gate.pass(&report, crate::clock::now()) {
                Some(again) => {
                    let left_out = std::mem::take(&mut gate.left_out);
                    let text = render(format, &report, call, again, left_out);
                    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
                    if written.is_ok() { &metrics.reports } else { &metrics.reports_left_out }.inc();
                }
                None => _ = metrics.reports_left_out.inc(),
            },
            Message::Note(text) => {
                let line = match format {
                    Format::Text => format!("[Whip] {}\n\n", printable::line(&text)),
                    Format::Json => {
                        let line = serde_json::json!({ "time_ms": crate::clock::unix_ms(), "note": text });
                        printable::text(&line.to_string()).into_owned() + "\n"
                    }
                };
                let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
            }
            Message::Flush(done) => drop(done.send(())),
        }
    }
    let left_out = metrics.reports_left_out.get();
    if left_out > 0 && format == Format::Text {
        let _ = writeln!(out, "[Whip] Suppressed as repeats or by the rate limit: {left_out}");
    }
}

#[derive(serde::Serialize)]
struct Line<'r> {
    time_ms: u64,
    call: u64,
    /// Number of equal reports suppressed since the last equal one that passed.
    repeated: u64,
    /// Number of reports that the rate limit has suppressed since the last report that passed.
    left_out: u64,
    verdict: &'static str,
    #[serde(flatten)]
    report: &'r Report,
}

fn render(format: Format, report: &Report, call: u64, repeated: u64, left_out: u64) -> String {
    match format {
        Format::Text => {
            let mut text = report.to_string();
            if repeated > 0 {
                text += &format!("\t ({repeated} repeats suppressed)\n\n");
            }
            if left_out > 0 {
                text += &format!("\t ({left_out} others suppressed by the rate limit)\n\n");
            }
            text
        }
        Format::Json => {
            let is_conflict = report.kind == Kind::Conflict;
            let verdict = if is_conflict { "conflict" } else { VERDICTS[1 + report.found as usize] };
            let line = Line { time_ms: crate::clock::unix_ms(), call, repeated, left_out, verdict, report };
            serde_json::to_string(&line)
                .map_or_else(|_| String::new(), |line| printable::text(&line).into_owned() + "\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use contract::monitor::report::ReportVerdict;

    use super::*;

    fn report(clause: &str) -> Report {
        Report {
            adapter: "client".to_owned(),
            kind: Kind::Postcondition,
            found: ReportVerdict::Fails,
            reason: None,
            clause: clause.to_owned(),
            code: "result == a + b".to_owned(),
            line: 1,
            column: 1,
            service: "Adder".to_owned(),
            operation: "add".to_owned(),
            endpoint: "adder:8001".to_owned(),
            index: None,
            index_known: true,
            vouched_for_by: vec!["adder".to_owned()],
            blamed: vec!["adder".to_owned()],
            variables: Vec::new(),
            provenance: Vec::new(),
        }
    }

    #[test]
    fn repeated_reports_are_counted_not_repeated() {
        let now = crate::clock::now();
        let settings = ReportSettings {
            format: Format::Text,
            file: None,
            repeat_after: Duration::from_secs(60),
            per_s: 2,
            show_secrets: false,
        };
        let mut gate = Gate::new(settings, now);
        let at = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(gate.pass(&report("a"), now), Some(0));
        assert_eq!(gate.pass(&report("a"), at(1)), None);
        assert_eq!(gate.pass(&report("a"), at(59)), None);
        assert_eq!(gate.pass(&report("a"), at(60)), Some(2));
        assert_eq!(gate.pass(&report("b"), at(60)), Some(0));
        assert_eq!(gate.pass(&report("c"), at(60)), None, "a third in one second");
        assert_eq!(std::mem::take(&mut gate.left_out), 1);
        assert_eq!(
            gate.pass(&report("c"), at(61)),
            Some(0),
            "reports dropped by the rate limit do not count as repetitions"
        );
        for number in 0..3 * KNOWN_MAX as u64 {
            gate.pass(&report(&number.to_string()), at(100 + number));
        }
        assert!(gate.known.len() <= KNOWN_MAX);
    }

    #[test]
    fn reports_and_notes_stay_on_their_lines() {
        let forged = "x\n{\"note\": \"forged\"}\u{9b}2J\u{202e}";
        let report = Report { endpoint: forged.to_owned(), blamed: vec![forged.to_owned()], ..report("a") };
        for (format, lines) in [(Format::Json, 1), (Format::Text, 4)] {
            let text = render(format, &report, 7, 0, 0);
            assert_eq!(text.lines().count(), lines, "{text}");
            assert!(text.chars().all(|c| !c.is_control() || "\n\t".contains(c)), "{text:?}");
        }
        let line = serde_json::from_str::<serde_json::Value>(&render(Format::Json, &report, 7, 0, 0)).unwrap();
        assert_eq!(line["endpoint"], forged);
        let out = Arc::new(std::sync::Mutex::new(Vec::new()));
        #[derive(Debug)]
        struct Out(Arc<std::sync::Mutex<Vec<u8>>>);
        impl Write for Out {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.lock().unwrap().write(bytes)
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        for format in [Format::Text, Format::Json] {
            let settings =
                ReportSettings { format, file: None, repeat_after: Duration::ZERO, per_s: 1, show_secrets: false };
            let reports = Reports::start(settings, Arc::default(), Box::new(Out(out.clone()))).unwrap();
            reports.note(format!("Cannot reach the adapter at {forged}"));
            drop(reports);
            let text = String::from_utf8(std::mem::take(&mut *out.lock().unwrap())).unwrap();
            assert!(text.trim_end().lines().count() == 1 && !text.contains('\u{9b}'), "{text:?}");
        }
    }

    #[test]
    fn json_line_has_clause_blame_and_counts() {
        let line = render(Format::Json, &report("Adder.add.sum"), 7, 2, 1);
        let line = serde_json::from_str::<serde_json::Value>(&line).unwrap();
        assert_eq!((&line["clause"], &line["blamed"][0]), (&"Adder.add.sum".into(), &"adder".into()));
        assert_eq!((&line["call"], &line["repeated"], &line["verdict"]), (&7.into(), &2.into(), &"fails".into()));
        // `quintain contract explain` reads this line.
        assert!(serde_json::from_value::<Report>(line).is_ok());
    }
}
