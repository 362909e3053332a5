//! Assertions that hold for any input. libFuzzer runs them with any bytes, `cargo test` with seeds and random bytes.
#![allow(dead_code, reason = "each target uses one function")]

mod cache;
mod http1;

use study::{ExpandOptions, LoadSpec, Profile};

/// Checks that a study text gives a plan or errors with valid locations.
pub(crate) fn study_parse(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let study = match study::parse(text) {
        Ok(study) => study,
        Err(mistakes) => {
            assert!(!mistakes.is_empty());
            for mistake in mistakes {
                assert!(text.get(mistake.span.clone()).is_some() || text.len() > study::TEXT_MAX_BYTES, "{mistake:?}");
                let lines = text.split('\n').count();
                assert!((1..=lines).contains(&mistake.line) && mistake.column >= 1, "{mistake:?}");
            }
            return;
        }
    };
    assert_eq!(study.text(), text);
    for (profile, machine_cpus) in [(Profile::Default, 1), (Profile::Quick, 2), (Profile::Full, 80)] {
        let options = ExpandOptions {
            name: "fuzz".to_owned(),
            seed: 1,
            profile,
            machine_cpus,
            generators_apart: false,
            sets: Vec::new(),
        };
        // Because of `auto`, a valid study may still be too large for this number of CPUs.
        let Ok(plan) = study::expand(&study, &options) else { continue };
        let own = (0..plan.points.len()).filter(|point| !plan.comes_first(*point)).count();
        assert!((1..=study::expand::POINTS_MAX).contains(&own));
        for share in plan.points.iter().filter_map(|point| point.load.share) {
            assert!(plan.comes_first(share.point) && share.share > 0.0, "{share:?}");
        }
        assert_eq!(plan.order_of_block(0).len(), plan.points.len());
        let effort = plan.estimate();
        assert!(effort.trials_min <= effort.trials_max && effort.seconds_min <= effort.seconds_max, "{effort:?}");
    }
}

/// Checks that an objective parses or gives errors with valid locations.
pub(crate) fn objective(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match study::Objective::parse(text) {
        Ok(objective) => {
            assert!(!objective.conditions.is_empty());
            assert_eq!(study::Objective::parse(&objective.to_string()), Ok(objective));
        }
        Err(mistakes) => {
            assert!(!mistakes.is_empty());
            assert!(mistakes.iter().all(|(span, _)| text.get(span.clone()).is_some()), "{mistakes:?}");
        }
    }
}

/// Checks that the decoded words encode to the input and do not depend on how the stream is cut.
pub(crate) fn pingpong(bytes: &[u8]) {
    let words = words_of(bytes);
    assert_eq!(words.len(), bytes.len() / wire::pingpong::WORD_BYTES);
    let composed = words.iter().flat_map(|&word| wire::pingpong::compose(word)).collect::<Vec<_>>();
    assert_eq!(composed, bytes[..composed.len()]);
    let cut = bytes.first().map_or(0, |&byte| usize::from(byte) % (bytes.len() + 1));
    let used = words_of(&bytes[..cut]).len() * wire::pingpong::WORD_BYTES;
    assert_eq!([words_of(&bytes[..cut]), words_of(&bytes[used..])].concat(), words, "cut at {cut}");
    for word in words {
        assert_eq!(u64::from(wire::pingpong::answer(word)), (u64::from(word) + 1) % (1 << 32));
    }
}

fn words_of(mut bytes: &[u8]) -> Vec<u32> {
    let mut words = Vec::new();
    while let Some((word, used)) = wire::pingpong::parse(bytes) {
        words.push(word);
        bytes = &bytes[used..];
    }
    words
}

pub(crate) fn http1_response(bytes: &[u8]) {
    http1::response(bytes);
}

pub(crate) fn http1_request(bytes: &[u8]) {
    http1::request(bytes);
}

pub(crate) fn memcached_request(bytes: &[u8]) {
    cache::memcached_request(bytes);
}

pub(crate) fn memcached_response(bytes: &[u8]) {
    cache::memcached_response(bytes);
}

pub(crate) fn resp_request(bytes: &[u8]) {
    cache::resp_request(bytes);
}

pub(crate) fn resp_reply(bytes: &[u8]) {
    cache::resp_reply(bytes);
}

pub(crate) fn cache_http(bytes: &[u8]) {
    cache::cache_http(bytes);
}

pub(crate) fn detect_protocol(bytes: &[u8]) {
    cache::detect_protocol(bytes);
}

/// Checks that stored numbers are rejected or give a histogram that has ordered quantiles and is stored unchanged.
pub(crate) fn histogram_from_parts(bytes: &[u8]) {
    let Ok(stored) = serde_json::from_slice::<study::record::Histogram>(bytes) else { return };
    let Ok(histogram) = stats::Histogram::try_from(&stored) else { return };
    assert_eq!(study::record::Histogram::from(&histogram), stored);
    assert_eq!(histogram.len(), stored.count);
    let quantiles = [0.0, 0.5, 0.9, 0.99, 1.0].map(|q| histogram.quantile(q));
    assert!(quantiles.is_sorted(), "{quantiles:?}");
    if let (Some(min), Some(max)) = (stored.min, stored.max) {
        let inside = |value: f64| (min as f64..=max as f64).contains(&value);
        assert!(quantiles.into_iter().all(|value| value.is_some_and(inside)), "{quantiles:?} outside {min}..={max}");
        assert!(histogram.mean().is_some_and(|mean| mean.is_finite()));
    }
}

/// Checks that a load specification is rejected or survives a round trip.
pub(crate) fn load_spec_json(bytes: &[u8]) {
    let Ok(spec) = serde_json::from_slice::<LoadSpec>(bytes) else { return };
    let written = serde_json::to_vec(&spec).expect("a parsed value can be serialized");
    assert_eq!(serde_json::from_slice::<LoadSpec>(&written).expect("a serialized value can be parsed"), spec);
}

/// Checks that a URL is rejected with a message, or survives a round trip and has a target that keeps the framing.
pub(crate) fn url(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let url = match study::url::parse(text) {
        Ok(url) => url,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let _ = error.hint;
            return;
        }
    };
    assert!(!url.host.is_empty() && url.port > 0 && url.address().ends_with(&format!(":{}", url.port)));
    assert!(url.target.bytes().all(|byte| byte.is_ascii_graphic()));
    let again = study::url::parse(&url.to_string()).expect("a serialized value can be parsed");
    assert_eq!(again, study::url::Url { fragment: None, ..url });
}

/// Checks that the parts of a string with values form that string again.
pub(crate) fn request_values(bytes: &[u8]) {
    use study::request_values::{Part, parts};
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(parts) = parts(text) else { return };
    let again = parts.iter().map(|part| match part {
        Part::Text(text) => (*text).to_owned(),
        Part::Field(field, _) => format!("{{{{{field}}}}}"),
    });
    assert_eq!(again.collect::<String>(), text);
}

/// Checks that the values of a CSV column fit into a header.
pub(crate) fn csv_column(bytes: &[u8]) {
    let mut values = 0;
    let read = study::csv_column::values(bytes, "users.csv", "id", true, |value| {
        assert!(!value.contains(['\r', '\n', '\0']), "{value:?}");
        values += 1;
    });
    match read {
        Ok(()) => assert!(values > 0),
        Err(error) => assert!(error.starts_with("users.csv:"), "{error}"),
    }
}

/// Checks that a shape gives stages within the limits or an error.
pub(crate) fn load_shape(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(stages) = study::load_shape::parse(text) {
        assert!(
            study::load_shape::check(&stages).is_ok()
                && study::load_shape::duration_ns(&stages) <= study::load_shape::SHAPE_MAX_NS
        );
        assert!(study::load_shape::mean_per_s(&stages) > 0.0);
    }
}

/// Checks that a file of URLs gives a list with one origin or errors with valid locations.
pub(crate) fn request_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match study::request_file::parse(text) {
        Ok(entries) => {
            let first = &entries.first().expect("no file is empty and right").url;
            assert!(entries.iter().all(|entry| entry.weight > 0 && entry.url.same_origin(first)));
        }
        Err(mistakes) => {
            assert!(!mistakes.is_empty());
            let lines = text.split('\n').count();
            for mistake in mistakes {
                assert!(text.get(mistake.span.clone()).is_some(), "{mistake:?}");
                assert!((1..=lines).contains(&mistake.line) && mistake.column >= 1, "{mistake:?}");
            }
        }
    }
}

/// Checks that a case file gives cases with values that depend only on the seed, or errors with valid locations.
pub(crate) fn cases_parse(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match study::cases::parse(text) {
        Ok(cases) => {
            assert!(!cases.is_empty());
            for case in &cases {
                let drawn = |name: &String| (case.draw(3, 1).get(name), case.draw(3, 1).get(name));
                assert!(case.random.iter().map(|(name, _)| drawn(name)).all(|(one, other)| one == other));
                assert!(!case.requests.is_empty() && case.repeat > 0);
            }
        }
        Err(mistakes) => {
            assert!(!mistakes.is_empty());
            let fine = |mistake: &study::Diagnostic| text.get(mistake.span.clone()).is_some();
            assert!(mistakes.iter().all(fine) || text.len() > study::cases::TEXT_MAX_BYTES, "{mistakes:?}");
        }
    }
}

/// Checks that a recording gives an error or a journey that parses and has the reported numbers of steps and values.
pub(crate) fn har(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match study::har::import("x", text) {
        Ok(imported) => {
            let journey = study::parse_journey(&imported.text).expect("it was checked");
            assert_eq!(journey.steps.len(), imported.steps);
            let values = journey.steps.iter().map(|step| step.take.len()).sum::<usize>();
            assert_eq!(values, imported.values);
        }
        Err(error) => assert!(!error.message.is_empty() && !error.message.contains("no valid journey"), "{error:?}"),
    }
}

/// Checks that a journey has valid templates and paths and survives JSON, or gives errors with valid locations.
pub(crate) fn journey_parse(bytes: &[u8]) {
    use study::journey::{placeholders, reply_path};
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match study::parse_journey(text) {
        Ok(journey) => {
            let operations = journey.operations();
            assert!(!journey.steps.is_empty() && !operations.is_empty());
            for step in &journey.steps {
                assert!(operations.contains(&step.operation.as_str()));
                assert!((1..=text.split('\n').count()).contains(&(step.line as usize)), "{step:?}");
                let texts = [&step.url].into_iter().chain(step.headers.iter().map(|header| &header.1));
                texts.for_each(|text| assert!(placeholders::parts(text).is_ok(), "{text}"));
                let root = step.call.reply_root();
                for (_, text) in &step.take {
                    assert!(reply_path::source(reply_path::optional(text).0, root).is_ok(), "{text}");
                }
                step.expect.iter().for_each(|(path, _)| assert!(reply_path::rooted(path, root).is_ok(), "{path}"));
            }
            let written = serde_json::to_string(&journey).expect("a parsed value can be serialized");
            let read = serde_json::from_str::<study::Journey>(&written).expect("a serialized value can be parsed");
            assert_eq!(read, journey);
        }
        Err(mistakes) => {
            assert!(!mistakes.is_empty());
            let fine = |mistake: &study::Diagnostic| text.get(mistake.span.clone()).is_some();
            assert!(mistakes.iter().all(fine) || text.len() > study::JOURNEY_MAX_BYTES, "{mistakes:?}");
        }
    }
}

/// Checks that a workload can be sampled or gives errors with valid locations.
pub(crate) fn workload_parse(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match study::parse_workload(text) {
        Ok(workload) => {
            assert_eq!(workload.problems(), []);
            let written = serde_json::to_string(&workload).expect("a parsed value can be serialized");
            assert_eq!(
                serde_json::from_str::<study::Workload>(&written).expect("a serialized value can be parsed"),
                workload
            );
            let keys = workload.key_sizes().expect("it has no problems");
            for bits in [0, 1, u64::MAX / 3, u64::MAX] {
                assert!((1..=study::workload::KEY_MAX_BYTES).contains(&keys.at(bits)));
            }
        }
        Err(mistakes) => {
            assert!(!mistakes.is_empty());
            let fine = |mistake: &study::Diagnostic| text.get(mistake.span.clone()).is_some();
            assert!(mistakes.iter().all(fine) || text.len() > study::TEXT_MAX_BYTES, "{mistakes:?}");
        }
    }
}

/// Checks that a trace gives one record per line or an error, even in small reads. The first byte chooses the format.
pub(crate) fn workload_trace(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let format = study::workload::trace::FORMATS[usize::from(first) % 4].1;
    let whole = trace_of(study::workload::trace::Reader::new(rest, format));
    let pieces = std::io::BufReader::with_capacity(7, rest);
    // The reader must recognize a compressed file even if one read returns less than its header.
    assert_eq!(trace_of(study::workload::trace::Reader::new(pieces, format)), whole);
    assert!(whole.len() <= rest.len() + 1);
}

fn trace_of<R: std::io::BufRead>(mut reader: study::workload::trace::Reader<R>) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        match reader.next() {
            Ok(Some(access)) => {
                assert!(!access.key.is_empty() && access.repeat > 0);
                all.push(format!("{access:?}"));
            }
            Ok(None) => return all,
            Err(error) => {
                all.push(format!("{error:?}"));
                return all;
            }
        }
    }
}
