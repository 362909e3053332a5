//! Flame graphs of CPU profiles, with callers below callees and widths in proportion to samples.

use std::collections::BTreeMap;

use super::{Detail, Drawing};
use crate::panel::text_width_and_wrap::{pieces, width};
use crate::panel::{FONT, WIDTH};
use crate::svg::{self, rounded};
use analysis::findings::{Findings, ProfileFinding};
use analysis::number;

/// Width of a flame graph in user units: three panels with gaps.
const WIDE: f64 = WIDTH * 3.0 + 36.0;
const ROW: f64 = 17.0;
const BOX: f64 = 16.0;
const BOXES_MAX: usize = 500;
const NARROW: f64 = 1.0;
const NAME_ROOM: f64 = 24.0;
const OWN: &str = "c5";
const KERNEL: &str = "c4";
const REST: &str = "c7";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Flame {
    boxes: Vec<Frame>,
    depth: usize,
}

#[derive(Clone, Debug, PartialEq)]
struct Frame {
    /// Left end as a fraction of the width; `to` is the right end.
    from: f64,
    to: f64,
    depth: usize,
    class: &'static str,
    name: String,
    tip: String,
}

pub(super) fn flames(findings: &Findings, detail: Detail) -> Vec<Drawing> {
    let sampled = findings.cpu_profiles.iter().filter(|profile| profile.samples > 0).collect::<Vec<_>>();
    let shown = sampled.len().min(detail.panels);
    let boxes = (detail.curve_points / 5 / shown.max(1)).min(BOXES_MAX);
    let draw = |profile: &&ProfileFinding| {
        let words = profile.label.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let words = words.collect::<Vec<_>>();
        let others = number::percent(profile.other_samples as f64 / profile.samples as f64);
        let others = format!("Stacks left out are \"other stacks\": {others} of the samples.");
        Drawing {
            caption: format!(
                "{}. Width: fraction of the samples in a function and what it calls. Callers are below. Orange: the program; blue: the kernel. Boxes too narrow to \
                 see are left out.",
                profile.sentence
            ),
            flames: vec![Flame::new(profile, boxes, detail)],
            notes: (profile.other_samples > 0).then_some(others).into_iter().collect(),
            ..Drawing::new(format!("flame-{:.60}", words.join("-")), format!("CPU profile: {}", profile.label))
        }
    };
    let mut drawings = sampled.iter().take(shown).map(draw).collect::<Vec<_>>();
    let left_out = super::left_out(sampled.len() - shown, "flame graphs are not drawn; the table has their functions");
    if let Some(last) = drawings.last_mut() {
        last.notes.extend(left_out);
    }
    drawings
}

#[derive(Default)]
struct Call {
    samples: f64,
    /// Callees by name, so that neighbors have the same order in every graph.
    calls: BTreeMap<(String, bool), Call>,
}

impl Flame {
    fn new(profile: &ProfileFinding, boxes_max: usize, detail: Detail) -> Flame {
        let mut all = Call::default();
        for stack in &profile.stacks {
            let mut at = &mut all;
            at.samples += stack.samples as f64;
            for frame in &stack.frames {
                let Some(function) = profile.functions.get(*frame as usize) else { break };
                at = at.calls.entry((function.name.clone(), function.kernel)).or_default();
                at.samples += stack.samples as f64;
            }
        }
        let of_stacks = all.samples;
        all.samples += profile.other_samples as f64;
        let whole = all.samples.max(1.0);
        let frame = |name: &str, from: f64, samples: f64, depth: usize, class: &'static str| {
            let tip = detail.tip(|| format!("{name}\n{samples} samples, {}", number::percent(samples / whole)));
            Frame { from, to: from + samples / whole, depth, class, name: name.to_owned(), tip }
        };
        let mut boxes = vec![Frame { to: 1.0, ..frame("all", 0.0, all.samples, 0, REST) }];
        if profile.other_samples > 0 {
            let others = frame("other stacks", of_stacks / whole, all.samples - of_stacks, 1, REST);
            boxes.push(Frame { to: 1.0, ..others });
        }
        let mut open = vec![(&all, 0.0, 1)];
        while let Some((call, mut from, depth)) = open.pop() {
            for ((name, kernel), inner) in &call.calls {
                let to = from + inner.samples / whole;
                if (to - from) * WIDE >= NARROW {
                    boxes.push(frame(name, from, inner.samples, depth, if *kernel { KERNEL } else { OWN }));
                    open.push((inner, from, depth + 1));
                }
                from = to;
            }
        }
        // Only the widest boxes are kept. A box is never wider than its caller, so no callee loses its caller.
        let width = |frame: &Frame| frame.to - frame.from;
        boxes.sort_by(|a, b| width(b).total_cmp(&width(a)).then(a.depth.cmp(&b.depth)).then(a.from.total_cmp(&b.from)));
        boxes.truncate(boxes_max.max(1));
        boxes.sort_by(|a, b| a.depth.cmp(&b.depth).then(a.from.total_cmp(&b.from)));
        let depth = boxes.iter().map(|frame| frame.depth + 1).max().unwrap_or(1);
        Flame { boxes, depth }
    }

    pub(crate) fn height(&self) -> f64 {
        self.depth as f64 * ROW
    }

    pub(crate) fn draw(&self) -> String {
        let draw = |frame: &Frame| {
            let (x, width) = (frame.from * WIDE, (frame.to - frame.from) * WIDE);
            let y = self.height() - (frame.depth + 1) as f64 * ROW;
            // Subtracting the gap between neighbors must not hide narrow boxes.
            let [left, top, drawn_width] = [x, y, (width - 0.6).max(0.5)].map(rounded);
            let tip = svg::tip(&frame.tip);
            let mut content = format!(
                "{tip}<rect class=\"k fb\" x=\"{left}\" y=\"{top}\" width=\"{drawn_width}\" height=\"{BOX}\"/>"
            );
            if width >= NAME_ROOM {
                content += &svg::text("fx", x + 3.0, y + 12.0, &shortened(&frame.name, width - 6.0));
            }
            svg::group(frame.class, &content)
        };
        self.boxes.iter().map(draw).collect()
    }

    pub(crate) fn svg(&self, label: &str) -> String {
        svg::image((WIDE, self.height()), label, &self.draw())
    }
}

fn shortened(name: &str, room: f64) -> String {
    if width(name, FONT) <= room {
        return name.to_owned();
    }
    let left = room - width("…", FONT);
    let first = pieces(name, left, FONT)[0];
    if width(first, FONT) <= left { format!("{first}…") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use study::cpu_profile::{SampledFunction, SampledStack};

    use super::*;

    fn profile(other_samples: u64) -> ProfileFinding {
        let function = |name: &str, kernel| SampledFunction { name: name.to_owned(), kernel, self_samples: 0 };
        let stack = |frames: &[u32], samples| SampledStack { frames: frames.to_vec(), samples };
        let stacks =
            vec![stack(&[0, 1, 2], 60), stack(&[0, 3], 30), stack(&[0], 9), stack(&[0, 1], 1), stack(&[0, 9], 0)];
        ProfileFinding {
            label: "c-epoll, cores 1".to_owned(),
            problem: None,
            event: "cpu-clock".to_owned(),
            samples: 100 + other_samples,
            other_samples,
            rate_ratio: Some(0.97),
            functions: vec![
                function("main", false),
                function("<T as Read>::read", false),
                function("sys_read", true),
                function("parse", false),
            ],
            stacks,
            sentence: "100 samples".to_owned(),
        }
    }

    #[test]
    fn draws_callers_below_callees() {
        let flame = Flame::new(&profile(0), 500, Detail::FULL);
        insta::assert_snapshot!(flame.svg("c-epoll").replace("><", ">\n<"));
    }

    #[test]
    fn keeps_widest_boxes_and_their_callers() {
        for boxes_max in 1..8 {
            let flame = Flame::new(&profile(100), boxes_max, Detail::FULL);
            assert!(flame.boxes.len() <= boxes_max);
            for frame in flame.boxes.iter().filter(|frame| frame.depth > 0) {
                let below = |other: &&Frame| {
                    other.depth + 1 == frame.depth && other.from <= frame.from + 1e-9 && frame.to <= other.to + 1e-9
                };
                assert!(flame.boxes.iter().any(|other| below(&other)), "{boxes_max}: {frame:?}");
            }
        }
        let flame = Flame::new(&profile(100), 500, Detail::FULL);
        let others = flame.boxes.iter().find(|frame| frame.name == "other stacks").unwrap();
        assert_eq!((others.from, others.to), (0.5, 1.0));
    }

    #[test]
    fn shortens_names_to_fit() {
        assert_eq!(shortened("read", 100.0), "read");
        assert_eq!(shortened("a_long_name_of_a_function", 60.0), "a_long_…");
        assert_eq!(shortened("wide", 3.0), "");
    }
}
