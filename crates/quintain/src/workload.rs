//! `quintain workload show`: samples a workload and tests the samples against its distributions.

use std::collections::HashSet;
use std::path::Path;

use load::operation_stream::{Stream, Texts};
use report::workload_samples::{Curves, FitFound, Head, KINDS, Lengths, Spread, WORKLOAD_VERSION, WorkloadDrawn};
use stats::goodness_of_fit::{Fit, chi_square};
use stats::{Sizes, Zipf};
use study::Workload;
use study::workload::{NewKey, PRESETS, Popularity};

use crate::cli::WorkloadShowArgs;
use crate::command_result::{Result, usage};
use crate::{output, study_file};

/// Number of lengths that the test distinguishes. Longer keys and values share one cell.
const CELLS: u64 = 8192;
const RANKS: u64 = 1000;

pub(crate) fn show(args: &WorkloadShowArgs) -> Result<()> {
    let (name, workload) = named(args)?;
    if workload.trace.is_some() {
        return Err(usage(format!("`{name}` replays a trace, which has no distribution to test against"))
            .hint("drop `trace` to see the distributions of its keys and values"));
    }
    let drawn = draw(name, &workload, args.operations, args.seed).map_err(usage)?;
    if let Some(path) = &args.svg {
        output::file(path, report::workload_samples::workload_svg(&drawn))?;
    }
    if let Some(path) = &args.html {
        output::file(path, report::workload_samples::workload_html(&drawn))?;
    }
    output::json_or(args.json, &drawn, || report::workload_samples::workload_terminal(&drawn))
}

fn named(args: &WorkloadShowArgs) -> Result<(String, Workload)> {
    if let Some(study) = &args.study {
        let path = Path::new(study);
        let text = output::read(path)?;
        let workload = study::parse_workload(&text).map_err(|found| study_file::mistaken(path, &text, &found))?;
        return Ok((path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), workload));
    }
    let name = args.preset.as_deref().unwrap_or("etc-2012");
    // Parsing the name as part of a study gives the best error message for a misspelled preset.
    let text = format!("load.workload.preset = {}\n", serde_json::Value::from(name));
    let workload =
        study::parse_workload(&text).map_err(|found| usage(&found[0].message).hint_if(found[0].hint.as_ref()))?;
    Ok((name.to_owned(), workload))
}

/// Samples `n` operations, `n` lengths of keys and `n` lengths of values.
fn draw(name: String, workload: &Workload, n: u64, seed: u64) -> Result<WorkloadDrawn, String> {
    let mut stream = Stream::new(workload, seed, 0, 1)?;
    let texts = Texts::new(workload, seed)?;
    let keys = &workload.keys;
    let is_ranked = keys.reuse.is_none() && keys.shift_every.is_none() && keys.popularity != Popularity::Loop;
    let ranked = is_ranked.then_some(keys.count);
    let mut kinds = [0_u64; KINDS.len()];
    let (mut touched, mut footprint_bytes, mut fresh) = (HashSet::new(), 0, 0);
    let mut ranks = vec![0_u64; ranked.map_or(0, |count| count.min(1 << 24)) as usize];
    let (mut value_lengths, per_key) = (Vec::new(), stream.value_bytes(0).is_some());
    for _ in 0..n {
        let operation = stream.next_operation();
        kinds[operation.kind as usize] += 1;
        fresh += u64::from(operation.new);
        if touched.insert(operation.key) {
            footprint_bytes += u64::from(texts.key_bytes(operation.key)) + u64::from(operation.value_bytes);
        }
        if !per_key {
            value_lengths.push(operation.value_bytes);
        }
        if let Some(count) = ranks.get_mut(stream.rank_of(operation.key).map_or(usize::MAX, |rank| rank as usize)) {
            *count += 1;
        }
    }
    // Frequent keys would dominate the lengths, so each key number counts once.
    let mut key_lengths = (0..n).map(|key| texts.key_bytes(key)).collect::<Vec<_>>();
    if per_key {
        value_lengths = (0..n).map(|key| stream.value_bytes(key).unwrap_or(0)).collect();
    }
    let (key_sizes, value_sizes) = (workload.key_sizes()?, workload.value_sizes()?);
    // Share of key numbers with each digit count. A key is at least as long as its number.
    let needs = (1..=13_u32).map(|digits| {
        let up_to = |digits: u32| 32_u64.saturating_pow(digits).min(n);
        (u64::from(digits), (up_to(digits) - if digits == 1 { 0 } else { up_to(digits - 1) }) as f64 / n as f64)
    });
    let keys_law = LengthLaw { sizes: &key_sizes, least: needs.filter(|(_, share)| *share > 0.0).collect() };
    let values_law = LengthLaw { sizes: &value_sizes, least: vec![(0, 1.0)] };
    key_lengths.sort_unstable();
    value_lengths.sort_unstable();
    let mut fits = Vec::new();
    let mut fit = |of: &str, found: Option<Fit>| {
        if let Some(found) = found {
            let [of, test, words] = [of, "chi-square", found.conclusion()].map(str::to_owned);
            let Fit { statistic, degrees, p, .. } = found;
            fits.push(FitFound { of, test, statistic, degrees, p, words });
        }
    };
    fit("lengths of keys", keys_law.test(&key_lengths));
    fit("lengths of values", values_law.test(&value_lengths));
    let operations = workload.operations;
    if keys.invalidation == 0.0 && keys.new == NewKey::Any {
        let weights = [operations.get, operations.set, operations.delete, operations.read_modify_write];
        let shares = weights.map(|weight| weight / operations.total());
        fit("operations", chi_square(&kinds, &shares));
    }
    if let (Some(reuse), true) = (keys.reuse, keys.one_hit == 0.0 && keys.count > 0 || n > 1000) {
        // The first operation on an empty population always creates a key.
        let must = u64::from(keys.count == 0);
        let new = keys.one_hit + (1.0 - keys.one_hit) * (1.0 - reuse);
        fit("new keys", chi_square(&[fresh - must.min(fresh), n - fresh], &[new, 1.0 - new]));
    }
    let mut curves =
        vec![keys_law.curves("Key lengths", &key_lengths), values_law.curves("Value lengths", &value_lengths)];
    let mut head = None;
    if let Some(count) = ranked.filter(|count| ranks.len() as u64 == *count) {
        let mass = |ranks: u64| head_mass(keys.popularity, count, ranks);
        let drawn = ranks.iter().sum::<u64>();
        let told = count.min(RANKS);
        let mut counts = ranks[..told as usize].to_vec();
        counts.push(drawn - counts.iter().sum::<u64>());
        let shares = (0..told).map(|rank| mass(rank + 1) - mass(rank)).chain([(1.0 - mass(told)).max(0.0)]);
        fit("popularity", chi_square(&counts, &shares.collect::<Vec<_>>()));
        let top = count.div_ceil(100);
        let up_to = |ranks_: u64| ranks[..ranks_ as usize].iter().sum::<u64>() as f64 / drawn.max(1) as f64;
        head = Some(Head { keys: top, drawn: up_to(top), exact: mass(top) });
        let points = grid(1, count).map(|ranks| (ranks as f64, up_to(ranks), mass(ranks))).collect();
        let [title, x, y] = ["Popularity", "most popular keys", "share of operations"].map(str::to_owned);
        curves.push(Curves { title, x, unit: "1", y, points });
    }
    let kinds = KINDS.into_iter().map(str::to_owned).zip(kinds).filter(|(_, count)| *count > 0);
    let about = PRESETS.iter().find(|preset| preset.name == name).map(|preset| preset.about.to_owned());
    Ok(WorkloadDrawn {
        version: WORKLOAD_VERSION,
        name,
        about,
        seed,
        operations: n,
        kinds: kinds.collect(),
        distinct_keys: touched.len() as u64,
        first_touches: touched.len() as u64,
        footprint_bytes,
        head,
        hit_ratio_of_mix: workload.hit_ratio_of_mix(),
        lengths: vec![keys_law.lengths("keys", &key_lengths), values_law.lengths("values", &value_lengths)],
        fits,
        curves,
    })
}

/// Exact share of requests for the `ranks` most popular keys of a fixed population.
fn head_mass(popularity: Popularity, count: u64, ranks: u64) -> f64 {
    let all_alike = ranks.min(count) as f64 / count as f64;
    match popularity {
        Popularity::Zipf { exponent } => Zipf::new(count, exponent).head_mass(ranks),
        Popularity::HotSet { keys, share } => share * ranks.min(keys) as f64 / keys as f64 + (1.0 - share) * all_alike,
        _ => all_alike,
    }
}

fn grid(low: u64, high: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(low), move |at| (*at < high).then(|| (at + (at / 24).max(1)).min(high)))
}

/// Length distribution in which short lengths are raised to a minimum, so that keys stay distinct.
struct LengthLaw<'a> {
    sizes: &'a Sizes,
    /// Minimum lengths in bytes, each with the share of lengths that it applies to.
    least: Vec<(u64, f64)>,
}

impl LengthLaw<'_> {
    fn cdf(&self, size: u64) -> f64 {
        self.least.iter().filter(|(least, _)| size >= *least).map(|(_, share)| share * self.sizes.cdf(size)).sum()
    }

    fn mean(&self) -> f64 {
        let moved = |least: u64| (0..least).map(|size| self.sizes.cdf(size)).sum::<f64>();
        self.sizes.mean() + self.least.iter().map(|(least, share)| share * moved(*least)).sum::<f64>()
    }

    fn quantile(&self, p: f64) -> u64 {
        let mut size = self.sizes.quantile(p);
        while self.cdf(size) < p && size < self.sizes.bounds().1 {
            size += 1;
        }
        size
    }

    fn test(&self, sorted: &[u32]) -> Option<Fit> {
        let last = self.sizes.bounds().1.min(CELLS);
        let mut counts = vec![0_u64; last as usize + 1];
        sorted.iter().for_each(|&length| counts[u64::from(length).min(last) as usize] += 1);
        let mut below = 0.0;
        let shares = (0..=last).map(|size| {
            let up_to = if size == last { 1.0 } else { self.cdf(size) };
            let share = (up_to - below).max(0.0);
            below = up_to;
            share
        });
        chi_square(&counts, &shares.collect::<Vec<_>>())
    }

    fn lengths(&self, of: &str, sorted: &[u32]) -> Lengths {
        let n = sorted.len();
        let at = |p: f64| u64::from(sorted[((p * n as f64).ceil() as usize).clamp(1, n) - 1]);
        let mean = sorted.iter().map(|&length| f64::from(length)).sum::<f64>() / n as f64;
        let drawn = Spread { mean, p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1.0) };
        let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|p| self.quantile(p));
        let exact = Spread { mean: self.mean(), p50, p90, p99, max: self.sizes.bounds().1 };
        Lengths { of: of.to_owned(), count: n as u64, drawn, exact }
    }

    fn curves(&self, title: &str, sorted: &[u32]) -> Curves {
        let largest = u64::from(sorted[sorted.len() - 1]).max(2);
        let mut points = Vec::new();
        let mut before = (0.0, 0.0);
        for size in grid(1, largest) {
            let share = sorted.partition_point(|&length| u64::from(length) <= size) as f64 / sorted.len() as f64;
            let now = (share, self.cdf(size));
            if size <= 24 {
                // Up to 24 bytes, the curve rises in vertical steps, because sizes are whole numbers.
                points.push((size as f64, before.0, before.1));
            }
            points.push((size as f64, now.0, now.1));
            before = now;
        }
        let (x, y) = ("bytes".to_owned(), "fraction at most this long".to_owned());
        Curves { title: title.to_owned(), x, unit: "1", y, points }
    }
}
