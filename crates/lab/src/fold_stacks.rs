//! Folds the output of `perf script`: counts equal stacks and keeps the most frequent ones. Memory is bounded.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use study::cpu_profile::{CpuProfile, SampledFunction, SampledStack};

/// Fields for `perf script -F` that [`Fold`] parses.
pub const FIELDS: &str = "comm,event,ip,sym,dso";

/// Maximum number of stacks in a profile.
pub const STACKS_KEPT: usize = 400;
/// Maximum number of functions in a profile that do not occur in its stacks.
pub const HOTTEST_KEPT: usize = 60;
/// Maximum number of frames in a stack. A deeper stack keeps its innermost frames and the outermost one.
pub const DEPTH_MAX: usize = 80;
/// Maximum length of a function name, in characters.
pub const NAME_MAX: usize = 160;
/// Maximum number of distinct stacks, and of distinct functions. All further ones are counted together.
const DISTINCT_MAX: usize = 50_000;
const LINE_MAX: usize = 4096;

const OTHERS: &str = "[others]";

/// Profile under construction from the output of `perf script`, which may arrive in pieces of any size.
#[derive(Debug, Default)]
pub struct Fold {
    line: Vec<u8>,
    event: Option<String>,
    /// Frames of the current sample, innermost first.
    frames: Vec<u32>,
    /// Index in `functions` of each function, by its name and whether it is in the kernel.
    ids: HashMap<(String, bool), u32>,
    functions: Vec<SampledFunction>,
    stacks: HashMap<Vec<u32>, u64>,
    events: BTreeMap<String, u64>,
    samples: u64,
    others: u64,
}

impl Fold {
    /// Parses the next piece of the output, which may end within a line.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut lines = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = lines.next() {
            let room = LINE_MAX.saturating_sub(self.line.len());
            self.line.extend(&part[..part.len().min(room)]);
            if lines.peek().is_some() {
                let line = std::mem::take(&mut self.line);
                self.read(&String::from_utf8_lossy(&line));
            }
        }
    }

    fn read(&mut self, line: &str) {
        if line.trim().is_empty() {
            self.end_sample();
        } else if !line.starts_with([' ', '\t']) {
            // The line is `comm event:`; a thread name may contain any characters.
            self.end_sample();
            let event = line.trim_end().strip_suffix(':').and_then(|line| line.rsplit(' ').next());
            self.event = event.filter(|event| !event.is_empty()).map(|event| clean(event, NAME_MAX));
        } else if self.event.is_some()
            && let Some((name, kernel)) = frame(line)
        {
            let id = self.id(name, kernel);
            if self.frames.len() < DEPTH_MAX {
                self.frames.push(id);
            } else if let Some(last) = self.frames.last_mut() {
                *last = id;
            }
        }
    }

    fn id(&mut self, name: String, kernel: bool) -> u32 {
        let mut key = (name, kernel);
        if self.ids.len() >= DISTINCT_MAX && !self.ids.contains_key(&key) {
            key = (OTHERS.to_owned(), false);
        }
        *self.ids.entry(key).or_insert_with_key(|(name, kernel)| {
            self.functions.push(SampledFunction { name: name.clone(), kernel: *kernel, self_samples: 0 });
            self.functions.len() as u32 - 1
        })
    }

    fn end_sample(&mut self) {
        let Some(event) = self.event.take() else { return };
        let mut frames = std::mem::take(&mut self.frames);
        if frames.is_empty() {
            frames.push(self.id("[unknown]".to_owned(), false));
        }
        self.samples += 1;
        if self.events.len() < 8 || self.events.contains_key(&event) {
            *self.events.entry(event).or_default() += 1;
        }
        self.functions[frames[0] as usize].self_samples += 1;
        frames.reverse();
        if self.stacks.len() < DISTINCT_MAX || self.stacks.contains_key(&frames) {
            *self.stacks.entry(frames).or_default() += 1;
        } else {
            self.others += 1;
        }
    }

    /// Returns the profile of everything parsed so far, with the heaviest stacks first.
    pub fn finish(mut self) -> CpuProfile {
        let line = std::mem::take(&mut self.line);
        self.read(&String::from_utf8_lossy(&line));
        self.end_sample();
        let mut stacks = self.stacks.into_iter().collect::<Vec<_>>();
        // Ties are broken by content, so that the result is reproducible.
        stacks.sort_unstable_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
        let left_out = stacks.split_off(stacks.len().min(STACKS_KEPT));
        let other_samples = self.others + left_out.iter().map(|(_, samples)| samples).sum::<u64>();

        let functions = self.functions;
        let rank = |id: u32| (Reverse(functions[id as usize].self_samples), id);
        let hottest =
            (0..functions.len() as u32).map(rank).filter(|(samples, _)| samples.0 > 0).collect::<BTreeSet<_>>();
        let used = stacks.iter().flat_map(|(frames, _)| frames).copied().map(rank);
        let kept = hottest.into_iter().take(HOTTEST_KEPT).chain(used).collect::<BTreeSet<_>>();
        let places = kept.iter().zip(0u32..).map(|((_, id), place)| (*id, place)).collect::<HashMap<_, _>>();
        let stack = |(frames, samples): (Vec<u32>, u64)| SampledStack {
            frames: frames.iter().filter_map(|id| places.get(id).copied()).collect(),
            samples,
        };
        let (event, _) = self.events.into_iter().max_by_key(|(_, samples)| *samples).unwrap_or_default();
        let stacks = stacks.into_iter().map(stack).collect();
        let functions = kept.iter().map(|(_, id)| functions[*id as usize].clone()).collect();
        CpuProfile { event, samples: self.samples, functions, stacks, other_samples, ..CpuProfile::default() }
    }
}

/// Parses `<address> <symbol> (<object>)` into the function's name and whether it is in the kernel; `None` if invalid.
fn frame(line: &str) -> Option<(String, bool)> {
    let (address, rest) = line.trim().split_once(' ')?;
    if address.is_empty() || !address.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    // A symbol may contain `operator()(int)`, and the name of a replaced file ends in ` (deleted)`.
    let rest = rest.trim_end();
    let of_deleted = rest.strip_suffix(" (deleted))");
    let named = of_deleted.or(rest.strip_suffix(')')).and_then(|rest| rest.rsplit_once(" ("));
    let (symbol, object) = named.unwrap_or((rest, ""));
    let kernel = object.starts_with("[kernel") || object.starts_with("[guest.kernel") || object.ends_with(".ko");
    let symbol = match symbol.trim() {
        "[unknown]" | "" if kernel => "[kernel]".to_owned(),
        "[unknown]" | "" if object.is_empty() || object == "[unknown]" => "[unknown]".to_owned(),
        "[unknown]" | "" => format!("[{}]", object.rsplit('/').next().unwrap_or(object).trim_matches(['[', ']'])),
        symbol => without_hash(symbol).to_owned(),
    };
    Some((clean(&symbol, NAME_MAX), kernel))
}

/// Removes the hash that rustc appends to a symbol, because it differs between builds of the same function.
fn without_hash(symbol: &str) -> &str {
    match symbol.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => symbol,
    }
}

fn clean(text: &str, most: usize) -> String {
    let shown = |c: char| if c.is_control() { '\u{FFFD}' } else { c };
    match text.chars().nth(most) {
        None => text.chars().map(shown).collect(),
        Some(_) => text.chars().take(most - 1).map(shown).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn samples_add_up(
            lines in proptest::collection::vec(
                prop_oneof![
                    "a b: ", "", "\tf{1,3} [a-c]{1,2} \\([xy]\\)", "\t[ -~]{0,20}", "[ -~]{0,20}",
                    Just("x cycles: \n\tff f (k)\n\tff [unknown] ([kernel.kallsyms])".to_owned()),
                ],
                0..60,
            ),
            cut in 1_usize..40,
        ) {
            let text = lines.join("\n");
            let mut fold = Fold::default();
            text.as_bytes().chunks(cut).for_each(|piece| fold.push(piece));
            let profile = fold.finish();
            prop_assert_eq!(&profile, &folded(&text));
            holds(&profile);
        }
    }

    fn holds(profile: &CpuProfile) {
        let of_stacks = profile.stacks.iter().map(|stack| stack.samples).sum::<u64>();
        assert_eq!(of_stacks + profile.other_samples, profile.samples);
        assert!(profile.functions.iter().map(|function| function.self_samples).sum::<u64>() <= profile.samples);
        assert!(profile.stacks.len() <= STACKS_KEPT);
        for stack in &profile.stacks {
            assert!((1..=DEPTH_MAX).contains(&stack.frames.len()));
            assert!(stack.frames.iter().all(|frame| (*frame as usize) < profile.functions.len()));
        }
    }

    fn folded(text: &str) -> CpuProfile {
        let mut fold = Fold::default();
        fold.push(text.as_bytes());
        fold.finish()
    }

    /// Stacks as `outer;inner samples`, the format of flame graph tools.
    fn lines(profile: &CpuProfile) -> Vec<String> {
        let name = |place: &u32| {
            let function = &profile.functions[*place as usize];
            format!("{}{}", function.name, if function.kernel { "_[k]" } else { "" })
        };
        let line = |stack: &SampledStack| {
            format!("{} {}", stack.frames.iter().map(name).collect::<Vec<_>>().join(";"), stack.samples)
        };
        profile.stacks.iter().map(line).collect()
    }

    // Output of perf 6.1.
    const PRINTED: &str = "python3 cpu-clock: \n\
        \t          170ebb gen_iternext (/usr/lib/libpython3.11.so.1.0)\n\
        \t    7fa67d857ce0 [unknown] ([unknown])\n\
        \n\
        tokio rt worker cpu-clock: \n\
        \tffffffff8172651a fsnotify_open ([kernel.kallsyms])\n\
        \t          10a17d <alloc::vec::Vec<T> as core::ops::Index<I>>::index::h0123456789abcdef (/opt/a b/server (deleted))\n\
        \t          10a17e operator()(int) const (/opt/server)\n\
        \n\
        python3 cpu-clock: \n\
        \t          170ebb gen_iternext (/usr/lib/libpython3.11.so.1.0)\n\
        \t    7fa67d857ce0 [unknown] ([unknown])\n\
        \n\
        python3 cpu-clock: \n\
        \t          11111b [unknown] (/usr/lib/libc.so.6)\n\
        \n";

    #[test]
    fn counts_equal_stacks() {
        let profile = folded(PRINTED);
        assert_eq!((profile.event.as_str(), profile.samples, profile.other_samples), ("cpu-clock", 4, 0));
        assert_eq!(
            lines(&profile),
            [
                "[unknown];gen_iternext 2",
                "operator()(int) const;<alloc::vec::Vec<T> as core::ops::Index<I>>::index;fsnotify_open_[k] 1",
                "[libc.so.6] 1"
            ]
        );
        assert_eq!(profile.functions[0].self_samples, 2);
    }

    #[test]
    fn skips_lines_that_are_not_frames() {
        for (text, samples) in [
            ("", 0),
            ("\n\n", 0),
            ("\tffff outside (x)\n", 0),
            ("no colon\n\tffff a (x)\n", 0),
            ("a b:\n", 1),
            ("a cycles:u: \n\tnot hex (x)\n\t12\n", 1),
            ("a cycles:u: \n\tff x", 1),
            ("a b:\n\tff x (y)\nc d:\n", 2),
        ] {
            assert_eq!(folded(text).samples, samples, "{text:?}");
        }
        assert_eq!(folded("a cycles:u: \n\tff x\n").event, "cycles:u");
    }

    #[test]
    fn keeps_the_heaviest_and_counts_the_rest() {
        let mut text = String::new();
        for stack in 0..STACKS_KEPT + 7 {
            for _ in 0..if stack < 3 { 2 } else { 1 } {
                text += &format!("a b:\n\tff f{stack} (x)\n\tff main (x)\n\n");
            }
        }
        let profile = folded(&text);
        assert_eq!((profile.stacks.len(), profile.other_samples), (STACKS_KEPT, 7));
        assert_eq!(profile.samples, STACKS_KEPT as u64 + 10);
        assert_eq!(lines(&profile)[0], "main;f0 2");
    }

    #[test]
    fn deep_stacks_keep_both_ends() {
        let mut text = "a b:\n".to_owned();
        (0..DEPTH_MAX + 50).for_each(|frame| text += &format!("\tff f{frame} (x)\n"));
        let profile = folded(&text);
        let frames = &profile.stacks[0].frames;
        assert_eq!(frames.len(), DEPTH_MAX);
        let name = |place: u32| profile.functions[place as usize].name.as_str();
        assert_eq!((name(frames[0]), name(frames[DEPTH_MAX - 1])), ("f129", "f0"));
    }

    #[test]
    fn truncates_and_cleans_names() {
        let profile = folded(&format!("a b:\n\tff \u{1b}[31m{} (x)\n", "n".repeat(9_000)));
        let name = &profile.functions[0].name;
        assert_eq!((name.chars().count(), name.chars().next()), (NAME_MAX, Some('\u{FFFD}')));
    }
}
