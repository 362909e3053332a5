//! HdrHistogram's two formats: percentiles in a text file (`.hgrm`) and histograms in a log (`.hlog`). With three
//! significant digits, starting at 1, an HdrHistogram has the buckets of [`stats::Histogram`] at its default precision:
//! one per integer below 2048, then 1024 per octave. Values in coarser buckets count at the midpoint. No count is lost.

use std::fmt::Write;
use std::time::Duration;

use analysis::Findings;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use study::record::{Censored, Measurement, Record};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{File, file_name, measured, name, word};

const SIGNIFICANT_DIGITS: u8 = 3;
/// Largest value that Java readers accept, because they count in signed numbers.
const VALUE_MAX: u64 = i64::MAX as u64;
/// Number of percentile steps per halving of the distance to 100 %, HdrHistogram's default.
const TICKS: u32 = 5;
/// Nanoseconds per unit of the text: percentiles are in milliseconds, as in wrk2 and HdrHistogram's plotter.
const TEXT_UNIT_NS: f64 = 1e6;

fn hdr(histogram: &stats::Histogram) -> Histogram<u64> {
    let highest = histogram.max().unwrap_or(0).clamp(stats::histogram::HIGHEST_NS, VALUE_MAX);
    let mut hdr = Histogram::new_with_bounds(1, highest, SIGNIFICANT_DIGITS).expect("three digits from 1 on");
    let (min, max) = (histogram.min().unwrap_or(0), histogram.max().unwrap_or(0));
    for (low, high, count) in histogram.iter_buckets() {
        // The only known bound on a saturated value is the maximum.
        let value = if low > stats::histogram::HIGHEST_NS { high } else { (low + (high - low) / 2).clamp(min, max) };
        hdr.record_n(value.min(highest), count).expect("the largest value is in range");
    }
    hdr
}

/// Renders the format of HdrHistogram's outputPercentileDistribution, with nanosecond precision.
fn percentiles(histogram: &stats::Histogram, unanswered: u64) -> String {
    let hdr = hdr(histogram);
    let ms = |ns: f64| ns / TEXT_UNIT_NS;
    let mut text = format!("{:>14} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    let mut total = 0_u64;
    for step in hdr.iter_quantiles(TICKS) {
        total = total.saturating_add(step.count_since_last_iteration());
        let quantile = step.quantile_iterated_to();
        let _ = write!(text, "{:14.6} {quantile:14.12} {total:10}", ms(step.value_iterated_to() as f64));
        let _ = if quantile < 1.0 { writeln!(text, " {:14.2}", 1.0 / (1.0 - quantile)) } else { writeln!(text) };
    }
    let (mean, stddev) = (histogram.mean().unwrap_or(0.0), histogram.stddev().unwrap_or(0.0));
    let _ = writeln!(text, "#[Mean    = {:14.6}, StdDeviation   = {:14.6}]", ms(mean), ms(stddev));
    let max = ms(histogram.max().unwrap_or(0) as f64);
    let _ = writeln!(text, "#[Max     = {max:14.6}, Total count    = {:14}]", histogram.len());
    let _ = writeln!(text, "#[Buckets = {:14}, SubBuckets     = {:14}]", hdr.buckets(), 2048);
    text.extend(without(unanswered).map(|words| format!("# {words}\n")));
    text
}

/// Describes the requests missing from a histogram, if any. Quintain's own quantiles account for them.
fn without(unanswered: u64) -> Option<String> {
    let requests = analysis::number::count(unanswered, "request");
    (unanswered > 0).then(|| format!("{requests} without a response when measuring ended: not counted here"))
}

fn read(stored: &study::record::Histogram) -> Option<stats::Histogram> {
    stats::Histogram::try_from(stored).ok().filter(|histogram| !histogram.is_empty())
}

pub(super) fn hgrm(findings: &Findings) -> Vec<File> {
    let one = |(name, row): (String, &analysis::findings::Row)| {
        let latency = read(row.latency.as_ref()?)?;
        let text = percentiles(&latency, row.censored.as_deref().map_or(0, Censored::len));
        Some(File { name: file_name(&name, row, "hgrm"), text })
    };
    measured(findings).filter_map(one).collect()
}

struct Interval<'a> {
    tag: String,
    /// Start of the interval, since 1970-01-01 UTC.
    start: Duration,
    measurement: &'a Measurement,
}

pub(super) fn hlog<'r>(findings: &Findings, records: &'r [Record]) -> Vec<File> {
    let mut records = records.iter().collect::<Vec<_>>();
    records.sort_by_key(|record| record.order);
    let interval = |record: &'r Record| {
        let is_of = |row: &&analysis::findings::Row| row.point == record.point && row.idle == Some(record.idle);
        let row = findings.rows.iter().find(is_of)?;
        let start = Duration::from_secs(unix_seconds(&record.started)?);
        let start = start.saturating_add(Duration::from_nanos(record.subject.measured_from_ns));
        Some(Interval { tag: name(findings, row), start, measurement: record.measurement()? })
    };
    let intervals = records.into_iter().filter_map(interval);
    let name = format!("{}.hlog", word(&findings.run));
    log(&intervals.collect::<Vec<_>>()).map(|text| File { name, text }).into_iter().collect()
}

fn log(intervals: &[Interval<'_>]) -> Option<String> {
    let intervals = intervals.iter().filter_map(|found| Some((found, read(found.measurement.latency())?)));
    let intervals = intervals.collect::<Vec<_>>();
    let began = intervals.iter().map(|(found, _)| found.start).min()?;
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment("[Histogram log format version 1.3]");
    builder.add_comment("latency in ns, quintain");
    builder.with_start_time(std::time::SystemTime::UNIX_EPOCH.checked_add(began)?);
    builder.with_max_value_divisor(TEXT_UNIT_NS);
    // Writing to memory cannot fail, and the serializer accepts every valid histogram.
    let mut writer = builder.begin_log_with(&mut text, &mut serializer).ok()?;
    for (found, latency) in &intervals {
        let length = Duration::from_nanos(found.measurement.duration_ns);
        writer.write_histogram(&hdr(latency), found.start, length, Tag::new(&found.tag)).ok()?;
        if let Some(words) = without(found.measurement.censored.as_deref().map_or(0, Censored::len)) {
            writer.write_comment(&words).ok()?;
        }
    }
    drop(writer);
    String::from_utf8(text).ok()
}

/// Format of the file that `quintain load --hdr` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyFile {
    /// Percentiles in a text file, `.hgrm`.
    Percentiles,
    /// Log of one interval, `.hlog`.
    Log,
}

/// Renders the latencies of a load; `None` if there are none. `start` is the time from 1970-01-01 UTC to measuring.
pub fn latency_file(measurement: &Measurement, kind: LatencyFile, name: &str, start: Duration) -> Option<String> {
    match kind {
        LatencyFile::Percentiles => {
            let unanswered = measurement.censored.as_deref().map_or(0, Censored::len);
            Some(percentiles(&read(measurement.latency())?, unanswered))
        }
        LatencyFile::Log => log(&[Interval { tag: word(name), start, measurement }]),
    }
}

/// Seconds since 1970 of a time such as `2026-11-20T21:05:00Z`; `None` if it is not a time or earlier than 1970.
fn unix_seconds(text: &str) -> Option<u64> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    u64::try_from(time.unix_timestamp()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use proptest::prelude::*;

    fn of(values: &[u64], precision: u8) -> stats::Histogram {
        let mut histogram = stats::Histogram::with_precision(precision);
        values.iter().for_each(|&ns| histogram.record(ns));
        histogram
    }

    #[test]
    fn times() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:01Z", Some(951_825_601)),
            ("2026-11-20T21:05:00Z", Some(1_795_208_700)),
            ("2026-11-20T21:05:00", None),
            ("0000-01-01T00:00:00Z", None),
            ("", None),
            ("ääääääääää", None),
        ] {
            assert_eq!(unix_seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn percentiles_are_lines_of_four_columns() {
        let text = percentiles(&of(&(1..=1000).map(|ms| ms * 1_000_000).collect::<Vec<_>>(), 10), 2);
        let lines = text.lines().collect::<Vec<_>>();
        assert_eq!(lines[0], "         Value     Percentile TotalCount 1/(1-Percentile)");
        assert_eq!(lines[2], "      1.000447 0.000000000000          1           1.00");
        assert_eq!(lines[7], "    500.170751 0.500000000000        500           2.00");
        assert!(text.contains("   1000.341503 1.000000000000       1000\n#[Mean    =     500.500000, StdDeviation   =     288.819436]\n"), "{text}");
        assert!(text.ends_with("# 2 requests without a response when measuring ended: not counted here\n"), "{text}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn counts_stay_exact(
            values in prop::collection::vec(prop_oneof![0..5_000u64, 0..100_000_000u64, 0..=stats::histogram::HIGHEST_NS, any::<u64>()], 1..200),
            precision in 1..=14u8,
        ) {
            let ours = of(&values, precision);
            let mut bytes = Vec::new();
            hdrhistogram::serialization::Serializer::serialize(&mut V2DeflateSerializer::new(), &hdr(&ours), &mut bytes).unwrap();
            let theirs: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            prop_assert_eq!(theirs.len(), ours.len());
            let buckets = ours.iter_buckets().collect::<Vec<_>>();
            for (low, high, _) in buckets.iter().copied().filter(|bucket| bucket.1 <= stats::histogram::HIGHEST_NS) {
                // One bucket of HdrHistogram may contain several of the finer buckets.
                let (low, high) = if precision > 10 { (theirs.lowest_equivalent(low), theirs.highest_equivalent(high)) } else { (low, high) };
                let count = buckets.iter().filter(|bucket| low <= bucket.0 && bucket.1 <= high).map(|bucket| bucket.2).sum::<u64>();
                prop_assert_eq!(theirs.count_between(low, high), count, "{} to {}", low, high);
            }
            if precision == stats::Histogram::PRECISION {
                for q in [0.0, 0.5, 0.9, 0.99, 1.0] {
                    let quantile = ours.quantile(q).unwrap();
                    // Above `HIGHEST_NS`, floats cannot distinguish neighboring integers.
                    let is_exact = quantile <= stats::histogram::HIGHEST_NS as f64;
                    prop_assert!(!is_exact || theirs.equivalent(theirs.value_at_quantile(q), quantile as u64), "{} at {}", quantile, q);
                }
            }
        }
    }
}
