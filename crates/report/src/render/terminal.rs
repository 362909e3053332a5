//! Writes a document for a terminal.

use std::fmt::Write as _;

use analysis::visible;

use crate::document::{Block, Document, Item, Reach, Room, Section, Table};
use crate::terminal_style_and_wrap::{Style, columns, wrap};

/// Renders the question, the answer and the short blocks of every section. Tables list the columns that do not fit.
pub(crate) fn terminal(document: &Document, style: &Style) -> String {
    let mut out = wrap(&format!("{}\n", style.bold(&document.question)), style.width, 0);
    for banner in &document.banners {
        out += &wrap(&format!("{}\n", style.warn(&banner.text)), style.width, 2);
        if !banner.command.is_empty() {
            // The command is never wrapped, so that it can be copied.
            let _ = writeln!(out, "Resume with: {}", banner.command);
        }
    }
    out.extend(document.answer.iter().map(|(sentence, _)| wrap(&format!("{sentence}\n"), style.width, 2)));
    document.sections.iter().for_each(|section| self::section(&mut out, section, style));
    out
}

fn section(out: &mut String, section: &Section, style: &Style) {
    let (mut headed, mut noted) = (false, false);
    for (_, block) in section.blocks.iter().filter(|(reach, _)| *reach == Reach::All) {
        // Only text and lists need the heading: tables have their own titles, and notes need none.
        let is_words = matches!(block, Block::Text(_) | Block::List(_));
        if is_words && !headed {
            let _ = writeln!(out, "\n{}", style.bold(&section.heading));
            headed = true;
        }
        match block {
            Block::Text(text) => *out += &wrap(&format!("  {text}\n"), style.width, 4),
            Block::List(items) => {
                let line = |item: &Item| wrap(&format!("  {}\n", style.warn(&item.text)), style.width, 4);
                out.extend(items.iter().map(line));
            }
            Block::Table(found) => {
                out.push('\n');
                if !found.title.is_empty() {
                    *out += &wrap(&format!("{}\n", style.bold(&found.title)), style.width, 0);
                }
                *out += &table(found, style);
            }
            Block::Note(text) => {
                if !noted {
                    out.push('\n');
                }
                *out += &wrap(&format!("{}\n", style.dim(text)), style.width, 2);
            }
            Block::Code(text) => text.lines().for_each(|line| *out += &format!("    {line}\n")),
            Block::Heading(_) | Block::Pairs(_) | Block::Fold(..) | Block::Figures { .. } => {}
        }
        noted = matches!(block, Block::Note(_));
    }
}

pub(crate) fn table(table: &Table, style: &Style) -> String {
    // Columns are as wide as the escaped text, because levels of a factor may contain any characters.
    let text_of = |text: &String| visible(text).replace('\n', "\\n");
    let heads = table.heads.iter().map(|head| text_of(&head.text)).collect::<Vec<_>>();
    let rows = table.rows.iter().map(|row| row.iter().map(|cell| text_of(&cell.text)).collect::<Vec<_>>());
    let rows = rows.collect::<Vec<_>>();
    let width_of = |at: usize| rows.iter().chain([&heads]).map(|row| columns(&row[at])).max().unwrap_or(0);
    let there = |at: &usize| table.heads[*at].room != Room::Long;
    let mut shown = (0..heads.len()).filter(there).map(|at| (at, width_of(at))).collect::<Vec<_>>();
    let mut dropped = Vec::new();
    while style.width > 0 && shown.iter().map(|(_, width)| width + 2).sum::<usize>() > style.width {
        let rank = |(nth, (at, _)): (usize, &(usize, usize))| match table.heads[*at].room {
            Room::Ranked(rank) => Some((usize::from(rank), nth)),
            Room::Drop => Some((usize::MAX - nth, nth)),
            Room::Keep | Room::Long => None,
        };
        let Some((_, next)) = shown.iter().enumerate().filter_map(rank).min() else { break };
        dropped.push(shown.remove(next).0);
    }
    dropped.sort_unstable();
    let line = |cells: &[String], paint: &dyn Fn(&str) -> String| {
        let cell = |&(at, width): &(usize, usize)| {
            let (pad, text) = (" ".repeat(width - columns(&cells[at])), paint(&cells[at]));
            if table.heads[at].right { pad + &text } else { text + &pad }
        };
        let line = shown.iter().map(cell).collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    let mut out = line(&heads, &|text| style.bold(text));
    for (index, row) in rows.iter().enumerate() {
        out += &line(row, &str::to_owned);
        let below = table.below.iter().filter(|(at, _)| *at == index);
        out.extend(below.map(|(_, text)| wrap(&format!("    {text}\n"), style.width, 6)));
    }
    if !dropped.is_empty() {
        let name = |&at: &usize| match rows.as_slice() {
            [first, rest @ ..] if !rest.is_empty() && rest.iter().all(|row| row[at] == first[at]) => {
                format!("{} (all {})", table.heads[at].text, first[at])
            }
            _ => table.heads[at].text.clone(),
        };
        let names = dropped.iter().map(name).collect::<Vec<_>>().join(", ");
        out += &wrap(&format!("Columns hidden (terminal too narrow): {names}.\n"), style.width, 2);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::Style;
    use crate::terminal;
    use crate::terminal_style_and_wrap::columns;
    use analysis::analyze;
    use fixtures as example;
    use insta::assert_snapshot;

    fn example_text(width: usize) -> String {
        let (run, records) = example::volley();
        terminal(&analyze(&run, &records), &Style { colour: false, width })
    }

    #[test]
    fn a_cluster() {
        let (run, records) = example::cluster();
        assert_snapshot!(terminal(&analyze(&run, &records), &Style { colour: false, width: 120 }), @"
        How does ping-pong latency scale with server cores and clients?
        2 of 3 design points do not measure the server: network-bound.
        c-epoll: mean latency 840 ±4 µs, throughput 71.4 ±0.4 k/s, p99 latency 1.876 ±0.028 ms.
        Not ranked: go (network-bound); rust-tokio (network-bound).

        cluster: s1 subject (32 CPUs), l1 l2 l3 load (8 each); round trips 40.0 to 48.0 µs; clocks within 23.0 µs

        server          throughput      mean latency               p50              p99  errors  n  limited by
        c-epoll      71.4 ±0.4 k/s         840 ±4 µs         782 ±5 µs  1.876 ±0.028 ms       0  8  server
        go          45.4 ±0.2 k/s*  1.320 ±0.006 ms*  1.157 ±0.004 ms*   3.71 ±0.07 ms*       0  8  network
        rust-tokio  46.0 ±0.1 k/s*  1.302 ±0.004 ms*  1.016 ±0.003 ms*   4.79 ±0.07 ms*       0  8  network

        Mean over n trials ± half-width of the 95 % confidence interval, each trial with a fresh server; * generator-bound,
          network-bound or shared CPUs. All rows: cores = 1, clients = 60. Absolute values are from this run, 2026-11-20 21:05
          UTC; 8 starts per row: behavior of fewer than 31 % of starts may not have shown up.
        Trials: stopped early: ±0.44 % after 8 blocks.

        Generators, median over trials [least, largest]
        design point  generator                      p50                   p99                   rate  limited by
        c-epoll       l1         790.5 [766.0, 798.7] µs  1.87 [1.83, 1.91] ms  23.7 [23.4, 24.1] k/s  server
        c-epoll       l2         778.2 [766.0, 798.7] µs  1.85 [1.81, 1.94] ms  23.8 [23.2, 24.3] k/s  server
        c-epoll       l3         778.2 [766.0, 790.5] µs  1.89 [1.81, 2.04] ms  23.8 [23.5, 24.2] k/s  server
        go            l1            1.04 [1.03, 1.06] ms  2.57 [2.44, 2.64] ms  17.8 [17.5, 18.1] k/s  latency
        go            l2            1.05 [1.04, 1.06] ms  2.56 [2.44, 2.70] ms  17.7 [17.5, 17.9] k/s  latency
        go            l3            1.89 [1.86, 1.91] ms  4.59 [4.23, 4.69] ms  9.88 [9.70, 9.98] k/s  network
        rust-tokio    l1         950.3 [929.8, 954.4] µs  2.24 [2.09, 2.38] ms  19.6 [19.5, 20.0] k/s  latency
        rust-tokio    l2            2.80 [2.77, 2.87] ms  6.91 [5.93, 7.77] ms  6.57 [6.48, 6.77] k/s  network
        rust-tokio    l3         933.9 [929.8, 954.4] µs  2.28 [2.21, 2.34] ms  19.9 [19.6, 20.0] k/s  latency
        Columns hidden (terminal too narrow): share of requests, busy (all 40 [40, 40] %).

        Warnings
          l2: its p50 is 3.0 times that of l1 and l3 in 8 of 24 trials: its link was full, 1.08 of 1.09 GiB/s
          l3: its p50 is 1.8 times that of l1 and l2 in 8 of 24 trials: another path, or a slow machine
          network-bound in 16 of 24 trials (2 design points)
          doctor: virtualisation: this is a virtual machine (KVM)
          doctor on s1, l1, l2, l3: virtualisation: this is a virtual machine (KVM)

        load pingpong, closed loop, 60 clients
        run cluster-20261120-210500 on example (Example CPU @ 2.50GHz, 3 CPUs, Linux 6.12.0)
        ");
    }

    #[test]
    fn a_narrow_terminal() {
        assert_snapshot!(example_text(72), @"
        How does ping-pong latency scale with server cores and clients?
        Too few blocks to name a winner, 8 of the 12 needed. Mean latency at
          cores 1, clients 40: c-epoll 573 ±17 µs, go 777 ±25 µs, rust-tokio 719
          ±55 µs; at cores 1, clients 80: c-epoll 1.100 ±0.033 ms, go 1.505
          ±0.045 ms, rust-tokio 1.364 ±0.040 ms; at cores 2, clients 40: c-epoll
          358 ±11 µs, go 487 ±14 µs, rust-tokio 439 ±13 µs.
        Not ranked: c-epoll, cores 2, clients 80 (generator-bound).
        Not measured: go, cores 2, clients 80 (failed); rust-tokio, cores 2,
          clients 80 (unrunnable).

        server      cores  clients     mean latency  n  limited by
        c-epoll         1       40       573 ±17 µs  8  server
        c-epoll         1       80  1.100 ±0.033 ms  8  server
        c-epoll         2       40       358 ±11 µs  8  server
        c-epoll         2       80       697 ±6 µs*  8  generator
        go              1       40       777 ±25 µs  7  server
        go              1       80  1.505 ±0.045 ms  8  server
        go              2       40       487 ±14 µs  8  server
        go              2       80                   0
            failed: all 8 trials failed: the subject ended while it was
              measured: signal 11
        rust-tokio      1       40       719 ±55 µs  8  server
        rust-tokio      1       80  1.364 ±0.040 ms  8  server
        rust-tokio      2       40       439 ±13 µs  8  server
        rust-tokio      2       80                   0
            unrunnable: needs 4096 open files, may have 1024
        Columns hidden (terminal too narrow): throughput, p50, p99, errors.

        Mean over n trials ± half-width of the 95 % confidence interval, each
          trial with a fresh server; * generator-bound or shared CPUs. Absolute
          values are from this run, 2026-11-20 21:05 to 21:07 UTC; 7 to 8 starts
          per row: behavior of fewer than 35 % of starts may not have shown up.
        Trials: stopped early: ±3.1 % after 8 blocks.

        Warnings
          other processes used these CPUs around 1 of 88 trials, for up to 44 %
            of the time: the trials are flagged and kept
          c-epoll, cores 2, clients 80: generator-bound: it was saturated while
            the server had spare CPU
          go, cores 1, clients 40: 1 of 8 trials failed: the subject did not
            listen within 5 s
          go, cores 2, clients 80: failed: all 8 trials failed: the subject
            ended while it was measured: signal 11
          rust-tokio, cores 1, clients 40: the trial in block 5 is an outlier in
            throughput, latency_mean, latency_p99: flagged, not removed
          rust-tokio, cores 2, clients 80: unrunnable: needs 4096 open files,
            may have 1024
          doctor: virtualisation: this is a virtual machine (KVM)

        load pingpong, closed loop, 40 or 80 clients
        run volley-20261120-210500 on example (Example CPU @ 2.50GHz, 4 CPUs,
          Linux 6.12.0)
        ");
    }

    #[test]
    fn threads_study_has_its_table_and_lists_omissions() {
        let (run, records) = example::threads();
        let findings = analyze(&run, &records);
        assert_snapshot!(terminal(&findings, &Style { colour: false, width: 120 }), @"
        How does the throughput of an HTTP server scale with its threads?
        From threads 1 to 32 throughput went from 19.71 k/s to 114.3 k/s: too few blocks for a claim.
        Over threads: throughput falls beyond ~18 threads: coherency cost (σ 0.050 [0.046, 0.052], κ 0.0030 [0.0029, 0.0031], N*
          17.8 [17.4, 18.2]); left out: threads 40 (generator-bound); the server has only 24 CPUs here at threads 32, 40, so it
          cannot scale.
        Not ranked: threads 40 (generator-bound).

        threads      cpus       throughput     mean latency              p50               p99        errors  n  limited by
              1         1  19.71 ±0.23 k/s    4.05 ±0.05 ms    3.76 ±0.05 ms     9.08 ±0.16 ms             0  8  server
              2         2    37.3 ±0.5 k/s    2.14 ±0.03 ms  1.992 ±0.026 ms     4.72 ±0.08 ms             0  8  server
              4         4    66.4 ±1.0 k/s  1.204 ±0.019 ms  1.120 ±0.016 ms     2.71 ±0.06 ms  13 (0.010 %)  8  server
              8         8   104.6 ±1.4 k/s       765 ±10 µs        713 ±9 µs   1.706 ±0.028 ms             0  8  server
             16        16   127.4 ±1.5 k/s        628 ±7 µs        584 ±7 µs   1.407 ±0.023 ms             0  8  server
             24        24   125.4 ±1.5 k/s        638 ±8 µs        594 ±7 µs   1.428 ±0.023 ms             0  8  server
             32  24 of 32   114.3 ±1.6 k/s        700 ±9 µs        652 ±9 µs   1.572 ±0.033 ms             0  8  server
             40  24 of 40  102.9 ±1.4 k/s*      777 ±10 µs*      724 ±10 µs*  1.736 ±0.028 ms*             0  8  generator

        Mean over n trials ± half-width of the 95 % confidence interval, each trial with a fresh server; * generator-bound or
          shared CPUs. Absolute values are from this run, 2026-11-20 21:05 to 21:08 UTC; 8 starts per row: behavior of fewer
          than 31 % of starts may not have shown up.
        Trials: stopped early: ±1.2 % after 8 blocks.

        Valid responses per second
        threads      cpus  n  sample mean, k/s  sample standard deviation, k/s  95 % interval, k/s  limited by
              1         1  8             19.71                            0.13      19.48 to 19.94  server
              2         2  8             37.31                            0.56      36.84 to 37.78  server
              4         4  8             66.42                            1.24      65.38 to 67.46  server
              8         8  8            104.56                            1.72    103.12 to 105.99  server
             16        16  8            127.38                            1.53    125.88 to 128.88  server
             24        24  8            125.39                            1.21    123.91 to 126.87  server
             32  24 of 32  8            114.25                            1.87    112.69 to 115.82  server
             40  24 of 40  8           102.91*                            1.63    101.55 to 104.28  generator

        Warnings
          this machine leaves 24 CPUs for the server, fewer than 2 design points would use (up to 40)
          threads 4: 13 of 16,533 requests failed (0.079 %): 12 status 503, 1 truncated (1 of 8 trials)
          threads 40: generator-bound: it was saturated while the server had spare CPU
          doctor: virtualisation: this is a virtual machine (KVM)

        load http, GET /, closed loop, 80 clients
        run http-threads-20261121-090000 on example (Example CPU @ 2.50GHz, 42 CPUs, Linux 6.12.0)
        ");
        for width in [60, 80, 100] {
            for line in terminal(&findings, &Style { colour: false, width }).lines() {
                assert!(columns(line) <= width.max(68), "{width}: {line}");
            }
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [68, 80, 100, 140] {
            for line in example_text(width).lines() {
                assert!(columns(line) <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let (run, records) = example::volley();
        let findings = analyze(&run, &records);
        let coloured = terminal(&findings, &Style { colour: true, width: 100 });
        assert!(coloured.contains("\x1b[1m"));
        let mut bare = String::new();
        let mut code = false;
        for c in coloured.chars() {
            match c {
                '\x1b' => code = true,
                'm' if code => code = false,
                _ if code => {}
                c => bare.push(c),
            }
        }
        assert_eq!(bare, terminal(&findings, &Style { colour: false, width: 100 }));
    }

    #[test]
    fn quick_runs_are_labeled_and_one_trial_has_no_interval() {
        let (mut run, mut records) = example::volley();
        run.plan.trials.quick = true;
        run.plan.points.truncate(2);
        records.retain(|record| record.point < 2 && record.block == 0);
        assert_snapshot!(terminal(&analyze(&run, &records), &Style::PLAIN), @"
        How does ping-pong latency scale with server cores and clients?
        QUICK RUN: few, short trials. Intervals have no stated confidence.
        From clients 40 to 80 mean latency went from 554 µs to 1.103 ms: a quick run.

        clients   throughput  mean latency          p50          p99  errors  n  limited by
             40  72.2 k/s ±?     554 µs ±?    515 µs ±?  1.259 ms ±?       0  1  server
             80  72.4 k/s ±?   1.103 ms ±?  1.030 ms ±?   2.45 ms ±?       0  1  server

        Mean over n trials ± half-width of a quick run (no stated confidence), each trial with a fresh server. All rows: server = c-epoll, cores = 1. Absolute values are from this run, 2026-11-20 21:05 UTC; 1 start per row.
        Trials: ended after 1 block.

        Warnings
          doctor: virtualisation: this is a virtual machine (KVM)

        load pingpong, closed loop, 40 or 80 clients
        run volley-20261120-210500 on example (Example CPU @ 2.50GHz, 4 CPUs, Linux 6.12.0)
        ");
    }
}
