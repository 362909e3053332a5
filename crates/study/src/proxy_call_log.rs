//! The log of a proxy's calls: CSV with a header and one line per call. docs/guides/adapter.md describes the columns.
//! `operation` and `own_ns` are required. Other columns may be missing; unrecognized columns are ignored.
//!
//! If a file has lines of both sides, `client` and `server`, one process serves both. The nth line of each side then
//! describes the same call: its self times are added, and the other columns are the client's, as in Whip.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of calls in a log; [`Calls::parse`] fails at the next one.
pub const CALLS_MAX: usize = 200_000;
const OPS_MAX: usize = 1_000;

/// The calls through a proxy in the order of its log, one vector per column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Calls {
    /// Names of the operations, each once, in the order of their first calls.
    pub ops: Vec<String>,
    /// Index of each call's operation in [`Calls::ops`].
    pub op: Vec<u16>,
    /// Self time of the proxy in each call, without waiting for its upstream, ns.
    pub own_ns: Vec<u64>,
    /// Time that the proxy waited for its upstream in each call, ns; empty if not reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waited_ns: Vec<u64>,
    /// Size of the metadata by Whip's formula, without peer addresses (M1a), bytes per call; empty if not reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub m1a_bytes: Vec<u64>,
    /// Size of the metadata by Whip's formula, with peer addresses (M1b), bytes per call; empty if not reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub m1b_bytes: Vec<u64>,
    /// Size of the proxy's own metadata on the wire in both directions (M2), bytes per call; empty if not reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub m2_bytes: Vec<u64>,
    /// All bytes between proxies minus the original request and reply (M3), bytes per call; empty if not reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub m3_bytes: Vec<i64>,
    /// Number of service entries after each call; empty if not reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<u64>,
    /// Size of the store's content after each call, bytes; empty if not reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub store_bytes: Vec<u64>,
    /// Samples of the proxy's memory in the order of the log; the last one was taken when the proxy ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<MemoryAt>,
}

/// Memory and store size of a proxy at one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryAt {
    /// Number of calls logged up to the sample.
    pub calls: u64,
    /// Time since the first sample, ns.
    pub at_ns: u64,
    /// Resident set size of the process, bytes.
    pub rss_bytes: u64,
    /// Size of the store's content, bytes; `None` if not reported.
    pub store_bytes: Option<u64>,
    /// Size of the store's file, bytes; `None` if not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_file_bytes: Option<u64>,
}

impl MemoryAt {
    /// Size of the store's file or, if not reported, of its content, bytes; `None` if neither is reported.
    pub fn store_size_bytes(&self) -> Option<u64> {
        self.store_file_bytes.or(self.store_bytes)
    }
}

impl Calls {
    /// Number of calls in the log.
    pub fn len(&self) -> usize {
        self.own_ns.len()
    }

    /// Whether the log has no calls.
    pub fn is_empty(&self) -> bool {
        self.own_ns.is_empty()
    }

    /// Parses a log and ignores an incomplete last line. Fails at an invalid line, a missing column or too many calls.
    pub fn parse(text: &str) -> Result<Calls, String> {
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = whole.lines();
        let header = lines.next().ok_or("no header")?;
        let names = header.split(',').map(str::trim).collect::<Vec<_>>();
        let column = |name: &str| names.iter().position(|known| *known == name);
        let needed = |name: &str| column(name).ok_or_else(|| format!("no column `{name}`"));
        let mut calls = Calls::default();
        let (op, own, side) = (needed("operation")?, needed("own_ns")?, column("side"));
        let counts = ["waited_ns", "whip_bytes", "whip_bytes_with_peers", "metadata_bytes", "entries", "store_bytes"];
        let (counts, extra) = (counts.map(column), column("extra_bytes"));
        let (rss, at, store) = (column("rss_bytes"), column("at_ns"), column("store_bytes"));
        let store_file = column("store_file_bytes");
        let is_client = |line: &str| {
            let side = side.and_then(|side| line.split(',').nth(side)).map(str::trim);
            !matches!(side, Some("server" | "end"))
        };
        let servers_alone = !lines.clone().filter(|line| !line.trim().is_empty()).any(is_client);
        let mut looked_from_ns = None;
        let mut told = [(); 6].map(|()| Vec::new());
        let mut of_server = Vec::new();
        for (index, line) in lines.enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            if calls.len().max(of_server.len()) == CALLS_MAX {
                return Err(format!("more than {CALLS_MAX} calls"));
            }
            let cells = line.split(',').map(str::trim).collect::<Vec<_>>();
            let line = Line { number: index + 2, names: &names, cells: &cells };
            let side = side.and_then(|side| cells.get(side).copied());
            if !servers_alone && side == Some("server") {
                of_server.push(line.number::<u64>(own)?);
            } else if side != Some("end") {
                calls.own_ns.push(line.number(own)?);
                let name = cells.get(op).copied().unwrap_or_default();
                let known = calls.ops.iter().position(|known| known == name);
                if known.is_none() && calls.ops.len() == OPS_MAX {
                    return Err(format!("line {}: more than {OPS_MAX} operations", line.number));
                }
                let place = known.unwrap_or_else(|| {
                    calls.ops.push(name.to_owned());
                    calls.ops.len() - 1
                });
                calls.op.push(u16::try_from(place).expect("their number is bounded"));
                for (column, values) in counts.iter().zip(&mut told) {
                    values.extend(line.optional::<u64>(*column)?);
                }
                calls.m3_bytes.extend(line.optional::<i64>(extra)?);
            }
            if let Some(rss) = rss.filter(|rss| cells.get(*rss).is_some_and(|cell| !cell.is_empty())) {
                let at_ns = line.optional::<u64>(at)?.unwrap_or(0);
                calls.memory.push(MemoryAt {
                    calls: calls.len() as u64,
                    at_ns: at_ns.saturating_sub(*looked_from_ns.get_or_insert(at_ns)),
                    rss_bytes: line.number(rss)?,
                    store_bytes: line.optional(store)?,
                    store_file_bytes: line.optional(store_file)?,
                });
            }
        }
        calls.own_ns.iter_mut().zip(of_server).for_each(|(own, other)| *own = own.saturating_add(other));
        [calls.waited_ns, calls.m1a_bytes, calls.m1b_bytes, calls.m2_bytes, calls.entries, calls.store_bytes] = told;
        Ok(calls)
    }
}

struct Line<'a> {
    number: usize,
    names: &'a [&'a str],
    cells: &'a [&'a str],
}

impl Line<'_> {
    fn optional<T: std::str::FromStr>(&self, column: Option<usize>) -> Result<Option<T>, String> {
        column.map(|column| self.number(column)).transpose()
    }

    fn number<T: std::str::FromStr>(&self, column: usize) -> Result<T, String> {
        let cell = self.cells.get(column).copied().unwrap_or_default();
        cell.parse().map_err(|_| {
            let shown = cell.chars().take(40).collect::<String>();
            format!("line {}: `{}` is `{}`, not a count", self.number, self.names[column], shown.escape_debug())
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "call,side,operation,own_ns,whip_bytes,whip_bytes_with_peers,metadata_bytes,extra_bytes,entries,store_bytes,verdict\n\
                        1,client,get,5000,118,141,20,64,2,4096,checked\n2,client,find,3000,17,17,6,-5,2,4096,checked\n\
                        3,client,get,4000,120,143,20,64,4,8192,checked\n";

    #[test]
    fn identifies_columns_by_name() {
        let calls = Calls::parse(TEXT).unwrap();
        assert_eq!((calls.len(), calls.ops.as_slice()), (3, &["get".to_owned(), "find".to_owned()][..]));
        assert_eq!((calls.op.as_slice(), calls.own_ns.as_slice()), (&[0, 1, 0][..], &[5000, 3000, 4000][..]));
        assert_eq!((calls.m1a_bytes[2], calls.m3_bytes[1], calls.entries[2], calls.store_bytes[0]), (120, -5, 4, 4096));
        assert_eq!((calls.m1b_bytes[0], calls.m2_bytes[1]), (141, 6));
        assert!(calls.waited_ns.is_empty());
        let other = Calls::parse("own_ns, operation ,waited_ns,more\n7,x,8,9\n").unwrap();
        assert_eq!((other.own_ns, other.waited_ns, other.m2_bytes), (vec![7], vec![8], vec![]));
    }

    #[test]
    fn adds_self_times_of_both_sides_of_one_process() {
        let head = "side,operation,own_ns,entries\n";
        let both = Calls::parse(&format!("{head}server,a,5,1\nclient,a,7,2\nserver,b,11,3\nclient,b,13,4\n")).unwrap();
        assert_eq!((both.own_ns.as_slice(), both.entries.as_slice()), (&[12, 24][..], &[2, 4][..]));
        let server = Calls::parse(&format!("{head}server,a,5,1\n")).unwrap();
        assert_eq!((server.own_ns, server.entries), (vec![5], vec![1]), "it counts only on that side");
    }

    #[test]
    fn samples_memory_between_calls_and_at_the_end() {
        let head = "side,operation,own_ns,store_bytes,at_ns,rss_bytes\n";
        let both =
            "server,a,5,1,1000,4096\nclient,a,7,2,,\nserver,b,11,3,,\nclient,b,13,4,1500,8192\nend,,0,60,1700,8000\n";
        let calls = Calls::parse(&format!("{head}{both}")).unwrap();
        assert_eq!(calls.own_ns, [12, 24], "the end is not a call");
        let at = |calls, at_ns, rss_bytes, store| MemoryAt {
            calls,
            at_ns,
            rss_bytes,
            store_bytes: Some(store),
            ..MemoryAt::default()
        };
        assert_eq!(calls.memory, [at(0, 0, 4096, 1), at(2, 500, 8192, 4), at(2, 700, 8000, 60)]);
        let server = Calls::parse(&format!("{head}server,a,5,1,1000,4096\nend,,0,60,1700,8000\n")).unwrap();
        assert_eq!((server.own_ns, server.memory), (vec![5], vec![at(1, 0, 4096, 1), at(1, 700, 8000, 60)]));
        let wrong = Calls::parse(&format!("{head}end,,0,60,1700,-8\n"));
        assert_eq!(wrong, Err("line 2: `rss_bytes` is `-8`, not a count".to_owned()));
    }

    #[test]
    fn errors_name_the_line() {
        for (text, problem) in [
            ("", "no header"),
            ("operation,own_ns", "no header"),
            ("operation,entries\n", "no column `own_ns`"),
            ("own_ns\n", "no column `operation`"),
            ("operation,own_ns\na,1\na,-1\n", "line 3: `own_ns` is `-1`, not a count"),
            ("operation,own_ns\na\n", "line 2: `own_ns` is ``, not a count"),
            ("operation,own_ns,entries\na,1,x\n", "line 2: `entries` is `x`, not a count"),
        ] {
            assert_eq!(Calls::parse(text), Err(problem.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn skips_an_incomplete_last_line() {
        assert_eq!(Calls::parse(&TEXT[..TEXT.len() - 1]).unwrap().len(), 2);
        assert_eq!(Calls::parse("operation,own_ns\n").unwrap(), Calls::default());
    }

    #[test]
    fn rejects_too_many_calls() {
        let text = format!("operation,own_ns\n{}", "a,1\n".repeat(CALLS_MAX + 1));
        assert_eq!(Calls::parse(&text), Err(format!("more than {CALLS_MAX} calls")));
    }

    proptest! {
        #[test]
        fn parsing_never_panics_and_columns_have_one_length(text in "(operation,own_ns|entries|[a-z0-9,\n]*)\n[a-c0-9,\n]*") {
            if let Ok(calls) = Calls::parse(&text) {
                prop_assert_eq!(calls.op.len(), calls.len());
                prop_assert!(calls.entries.is_empty() || calls.entries.len() == calls.len());
            }
        }
    }
}
