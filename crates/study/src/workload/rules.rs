use super::{Gaps, NewKey, Popularity, Problem, Trace, Ttl, Workload, trace};
use crate::keys::WORKLOAD;

impl Workload {
    /// All errors: numbers out of range and incompatible parts. A workload without any can be sampled.
    pub fn problems(&self) -> Vec<Problem> {
        let (operations, keys) = (&self.operations, &self.keys);
        let (exponent, hot_share) = match keys.popularity {
            Popularity::Zipf { exponent } => (Some(exponent), None),
            Popularity::HotSet { share, .. } => (None, Some(share)),
            _ => (None, None),
        };
        let checked = |(key, value): (_, Option<f64>)| {
            let message = WORKLOAD.at(key).kind.check_range(value?).err()?;
            Some(Problem { key, message, hint: None })
        };
        let ranges = [
            ("operations.get", Some(operations.get)),
            ("operations.set", Some(operations.set)),
            ("operations.delete", Some(operations.delete)),
            ("operations.read_modify_write", Some(operations.read_modify_write)),
            ("trace.speed", self.trace.as_ref().map(|trace| trace.speed)),
            ("keys.count", Some(keys.count as f64)),
            ("keys.exponent", exponent),
            ("keys.hot_share", hot_share),
            ("keys.shift_every", keys.shift_every.map(|every| every as f64)),
            ("keys.reuse", keys.reuse),
            ("keys.one_hit", Some(keys.one_hit)),
            ("keys.invalidation", Some(keys.invalidation)),
            ("keys.max", Some(keys.max_bytes as f64)),
            ("values.max", Some(self.values.max_bytes as f64)),
        ];
        let mut found = ranges.into_iter().filter_map(checked).collect::<Vec<_>>();
        let mut rule = |broken: bool, key, message: &str, hint| {
            if broken {
                found.push(Problem { key, message: message.to_owned(), hint });
            }
        };
        let hint = Some("for example `operations = { get = 0.9, set = 0.1 }`");
        rule(operations.total() == 0.0, "operations", "no operation has a weight", hint);
        let is_fine = |ttl: &Ttl| (0.0..=1.0).contains(&ttl.share) && (1..=trace::TTL_MAX_S).contains(&ttl.seconds);
        let shares = self.ttl.iter().map(|ttl| ttl.share).sum::<f64>();
        let message = "times to live must be 1s to 30 days, and their shares must sum to at most 1";
        rule(!self.ttl.iter().all(is_fine) || shares > 1.0 + 1e-9, "ttl", message, None);
        let trace = |is_wrong: fn(&Trace) -> bool| self.trace.as_ref().is_some_and(is_wrong);
        let has_no_times = trace(|trace| trace.gaps == Gaps::Recorded && trace.format == trace::Format::Plain);
        rule(has_no_times, "trace.gaps", "a `plain` trace has no times", Some("drop `gaps`"));
        let is_idle = trace(|trace| trace.gaps == Gaps::None && trace.speed != 1.0);
        rule(is_idle, "trace.speed", "only works with recorded gaps", Some("add `gaps = \"recorded\"`"));
        let (law, reuses) = (keys.popularity, keys.reuse.is_some());
        rule(keys.count == 0 && !reuses, "keys.count", "must be at least 1 without `keys.reuse`", None);
        let message = "`recency` needs `keys.reuse`: only keys created during the load have ages";
        let hint = Some("add `reuse = 0.96`, or choose `zipf`");
        rule(law == Popularity::Recency && !reuses, "keys.popularity", message, hint);
        if let Popularity::HotSet { keys: hot, .. } = law {
            rule(reuses, "keys.popularity", "`hot-set` cannot be combined with `keys.reuse`", None);
            let message = format!("must be 1 to {}, the number of keys, not {hot}", keys.count);
            rule(hot == 0 || hot > keys.count, "keys.hot_keys", &message, None);
        }
        let is_loop = law == Popularity::Loop;
        rule(is_loop && reuses, "keys.popularity", "`loop` cannot be combined with `keys.reuse`", None);
        let hint = Some("with `reuse` the popular keys change anyway");
        let is_shifted = keys.shift_every.is_some();
        rule(is_shifted && reuses, "keys.shift_every", "cannot be combined with `keys.reuse`", hint);
        rule(keys.new == NewKey::Set && !reuses, "keys.new", "only works with `keys.reuse`", None);
        for (key, size) in [("keys.size", &keys.size), ("values.size", &self.values.size)] {
            if let Err(must) = size.law() {
                rule(true, key, &must, None);
            }
        }
        found
    }
}
