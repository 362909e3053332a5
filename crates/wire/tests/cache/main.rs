//! Table tests: a case has a name, a stream, and its meaning, which must hold for any split and between valid messages.

#[path = "../../../../fuzz/cache.rs"]
#[allow(
    dead_code,
    reason = "bodies of fuzz targets, which crates/study/tests/fuzz_targets.rs runs; here their readers are used"
)]
mod bodies;

mod cache_http;
mod memcached;
mod properties;
mod resp;

type Case = (&'static str, &'static [u8], &'static str);

fn cuts(bytes: &[u8]) -> Vec<Vec<&[u8]>> {
    let mut cuts = vec![vec![bytes], bytes.chunks(1).collect()];
    cuts.extend((1..bytes.len()).map(|at| vec![&bytes[..at], &bytes[at..]]));
    cuts
}

/// Checks each case at every split and between copies of `good`, which must still parse after a case of known extent.
fn check_all(cases: &[Case], good: &[u8], good_means: &str, read: impl Fn(&[&[u8]]) -> Vec<String>) {
    let mut wrong = Vec::new();
    for (name, bytes, expect) in cases {
        let around = [good, bytes, good].concat();
        let is_open = expect.ends_with("more") || expect.contains("close") || expect.contains("error ");
        let tail = if is_open { String::new() } else { format!("; {good_means}") };
        let between = if expect.is_empty() { String::new() } else { format!("; {expect}") };
        let meant = format!("{good_means}{between}{tail}");
        for (stream, expect) in [(*bytes, (*expect).to_owned()), (&around, meant)] {
            if is_open && expect.ends_with("more") && stream.len() != bytes.len() {
                continue;
            }
            for pieces in cuts(stream) {
                let found = read(&pieces).join("; ");
                if found != expect {
                    let lengths = pieces.iter().map(|piece| piece.len()).collect::<Vec<_>>();
                    wrong.push(format!("{name}, cut {lengths:?}:\n  {found}\n  {expect} expected"));
                    break;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    let names = cases.iter().map(|case| case.0).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(names.len(), cases.len(), "each case has a name of its own");
}
