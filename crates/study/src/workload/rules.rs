use super::{Gaps, NewKey, Popularity, Problem, Trace, Ttl, Workload, trace};
use crate::keys::WORKLOAD;

impl Workload {
    /// All errors: numbers out of range and incompatible parts. A workload without any can be sampled.
    pub fn problems(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        let mut add = |key, message: String, hint| found.push(Problem { key, message, hint });
        let share = |share: f64| (0.0..=1.0).contains(&share);
        let (operations, keys) = (&self.operations, &self.keys);
        let (exponent, hot_share) = match keys.popularity {
            Popularity::Zipf { exponent } => (Some(exponent), None),
            Popularity::HotSet { share, .. } => (None, Some(share)),
            _ => (None, None),
        };
        for (key, value) in [
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
        ] {
            if let Some(Err(message)) = value.map(|value| WORKLOAD.at(key).kind.check_range(value)) {
                add(key, message, None);
            }
        }
        if operations.total() == 0.0 {
            let hint = Some("for example `operations = { get = 0.9, set = 0.1 }`");
            add("operations", "no operation has a weight".to_owned(), hint);
        }
        let ttl_fine = |ttl: &Ttl| share(ttl.share) && (1..=trace::TTL_MAX_S).contains(&ttl.seconds);
        if !self.ttl.iter().all(ttl_fine) || self.ttl.iter().map(|ttl| ttl.share).sum::<f64>() > 1.0 + 1e-9 {
            add("ttl", "times to live must be 1s to 30 days, and their shares must sum to at most 1".to_owned(), None);
        }
        if let Some(Trace { format, gaps, speed, .. }) = &self.trace {
            if *gaps == Gaps::Recorded && *format == trace::Format::Plain {
                add("trace.gaps", "a `plain` trace has no times".to_owned(), Some("drop `gaps`"));
            }
            if *gaps == Gaps::None && *speed != 1.0 {
                let hint = Some("add `gaps = \"recorded\"`");
                add("trace.speed", "only works with recorded gaps".to_owned(), hint);
            }
        }
        if keys.count == 0 && keys.reuse.is_none() {
            add("keys.count", "must be at least 1 without `keys.reuse`".to_owned(), None);
        }
        match keys.popularity {
            Popularity::Recency if keys.reuse.is_none() => {
                let hint = Some("add `reuse = 0.96`, or choose `zipf`");
                let message = "`recency` needs `keys.reuse`: only keys created during the load have ages";
                add("keys.popularity", message.to_owned(), hint);
            }
            Popularity::HotSet { keys: hot, .. } => {
                if keys.reuse.is_some() {
                    add("keys.popularity", "`hot-set` cannot be combined with `keys.reuse`".to_owned(), None);
                }
                if hot == 0 || hot > keys.count {
                    add("keys.hot_keys", format!("must be 1 to {}, the number of keys, not {hot}", keys.count), None);
                }
            }
            Popularity::Loop if keys.reuse.is_some() => {
                add("keys.popularity", "`loop` cannot be combined with `keys.reuse`".to_owned(), None);
            }
            _ => {}
        }
        if keys.shift_every.is_some() && keys.reuse.is_some() {
            let hint = Some("with `reuse` the popular keys change anyway");
            add("keys.shift_every", "cannot be combined with `keys.reuse`".to_owned(), hint);
        }
        if keys.new == NewKey::Set && keys.reuse.is_none() {
            add("keys.new", "only works with `keys.reuse`".to_owned(), None);
        }
        for (key, size) in [("keys.size", &keys.size), ("values.size", &self.values.size)] {
            if let Err(must) = size.law() {
                add(key, must, None);
            }
        }
        found
    }
}
