//! Writes a document as Markdown.

use analysis::visible;

use crate::document::{Block, Cell, Document, Item, Table};

pub(crate) fn markdown(document: &Document) -> String {
    let mut out = format!("# {}\n\n", plain(&document.question));
    for banner in &document.banners {
        out += &format!("**{}**\n\n", plain(&banner.text));
        if !banner.command.is_empty() {
            out += &format!("Resume with:\n\n{}\n", code(&banner.command));
        }
    }
    out.extend(document.answer.iter().map(|(sentence, _)| format!("- {}\n", plain(sentence))));
    if document.answer.is_empty() {
        out += &format!("{}\n", plain(&document.no_answer));
    }
    out.push('\n');
    out += &pairs(&document.facts);
    out.extend(document.sections.iter().filter_map(|section| {
        let text = blocks(section.blocks.iter().map(|(_, block)| block));
        (!text.is_empty()).then(|| format!("\n## {}\n{text}", plain(&section.heading)))
    }));
    let (study, what) = (plain(&document.study), plain(&document.what));
    out + &format!("\nStudy {study}, {what}, {}.\n", document.started)
}

fn blocks<'a>(blocks: impl Iterator<Item = &'a Block>) -> String {
    let text = |block: &Block| match block {
        Block::Heading(text) => format!("\n### {}\n", plain(text)),
        Block::Text(text) | Block::Note(text) => format!("\n{}\n", plain(text)),
        Block::List(items) => format!("\n{}", items.iter().map(item).collect::<String>()),
        Block::Pairs(all) => format!("\n{}", pairs(all)),
        Block::Table(found) => table(found),
        Block::Code(text) => format!("\n{}", code(text)),
        Block::Fold(title, inner) => {
            let inner = self::blocks(inner.iter());
            format!("\n<details><summary>{}</summary>\n{inner}\n</details>\n", plain(title))
        }
        Block::Figures { .. } => String::new(),
    };
    blocks.map(text).collect()
}

fn item(item: &Item) -> String {
    let details = item.details.iter().map(|detail| format!("  - {}\n", plain(detail))).collect::<String>();
    format!("- {}\n{details}", plain(&item.text))
}

fn pairs(all: &[(String, String)]) -> String {
    all.iter().map(|(name, value)| format!("- {}: {}\n", plain(name), plain(value))).collect()
}

fn table(table: &Table) -> String {
    let title = if table.title.is_empty() { String::new() } else { format!("\n### {}\n", plain(&table.title)) };
    let heads = table.heads.iter().map(|head| plain(&head.text)).collect::<Vec<_>>().join(" | ");
    let rules = table.heads.iter().map(|head| if head.right { "---:" } else { "---" }).collect::<Vec<_>>().join("|");
    let row = |row: &Vec<Cell>| format!("| {} |\n", row.iter().map(cell).collect::<Vec<_>>().join(" | "));
    format!("{title}\n| {heads} |\n|{rules}|\n{}", table.rows.iter().map(row).collect::<String>())
}

fn cell(cell: &Cell) -> String {
    let tags = cell.tags.iter().map(|tag| format!(" ({})", plain(tag))).collect::<String>();
    plain(&cell.text) + &tags
}

/// Formats code by indentation, because its content could close a fence.
fn code(text: &str) -> String {
    visible(text).lines().map(|line| format!("    {}\n", line.trim_end())).collect()
}

fn plain(text: &str) -> String {
    let mut out = String::new();
    for c in visible(text).chars() {
        if "\\`*_[]<>|#~&".contains(c) {
            out.push('\\');
        }
        out.push(if matches!(c, '\n' | '\r') { ' ' } else { c });
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::markdown;
    use analysis::analyze;
    use fixtures as example;
    use insta::assert_snapshot;

    #[test]
    fn the_example() {
        let (run, records) = example::volley();
        assert_snapshot!(markdown(&analyze(&run, &records)), @r#"
        # How does ping-pong latency scale with server cores and clients?

        - Too few blocks to name a winner, 8 of the 12 needed. Mean latency at cores 1, clients 40: c-epoll 573 ±17 µs, go 777 ±25 µs, rust-tokio 719 ±55 µs; at cores 1, clients 80: c-epoll 1.100 ±0.033 ms, go 1.505 ±0.045 ms, rust-tokio 1.364 ±0.040 ms; at cores 2, clients 40: c-epoll 358 ±11 µs, go 487 ±14 µs, rust-tokio 439 ±13 µs.
        - Not ranked: c-epoll, cores 2, clients 80 (generator-bound).
        - Not measured: go, cores 2, clients 80 (failed); rust-tokio, cores 2, clients 80 (unrunnable).

        - Measured: 10 of 12 design points, 79 trials, 9 failed, profile default
        - Intervals: 95 %, Student's t over trials, each with a fresh server
        - Load: pingpong, closed loop, 40 or 80 clients
        - Idle CPUs: the machine's own policy
        - Machine: example: Example CPU @ 2.50GHz, KVM, 4 CPUs

        ## Results

        | server | cores | clients | throughput | mean latency | p50 | p99 | errors | n | limited by | trials ended |
        |---|---:|---:|---:|---:|---:|---:|---:|---:|---|---|
        | c-epoll | 1 | 40 | 69.8 ±1.8 k/s | 573 ±17 µs | 533 ±16 µs | 1.280 ±0.042 ms | 0 | 8 | server | stopped early: ±3.1 % after 8 blocks |
        | c-epoll | 1 | 80 | 72.6 ±1.9 k/s | 1.100 ±0.033 ms | 1.026 ±0.031 ms | 2.46 ±0.08 ms | 0 | 8 | server | stopped early: ±3.1 % after 8 blocks |
        | c-epoll | 2 | 40 | 111.7 ±3.0 k/s | 358 ±11 µs | 333 ±10 µs | 797 ±26 µs | 0 | 8 | server | stopped early: ±3.1 % after 8 blocks |
        | c-epoll | 2 | 80 | 114.7 ±1.0 k/s\* | 697 ±6 µs\* | 650 ±6 µs\* | 1.548 ±0.016 ms\* | 0 | 8 | generator | stopped early: ±3.1 % after 8 blocks |
        | go | 1 | 40 | 51.5 ±1.5 k/s | 777 ±25 µs | 722 ±24 µs | 1.751 ±0.063 ms | 0 | 7 (1 failed) | server | partial: 1 of 8 trials failed: the subject did not listen within 5 s |
        | go | 1 | 80 | 53.2 ±1.4 k/s | 1.505 ±0.045 ms | 1.399 ±0.042 ms | 3.35 ±0.13 ms | 0 | 8 | server | stopped early: ±3.1 % after 8 blocks |
        | go | 2 | 40 | 82.1 ±2.2 k/s | 487 ±14 µs | 454 ±14 µs | 1.088 ±0.036 ms | 0 | 8 | server | stopped early: ±3.1 % after 8 blocks |
        | go (failed) | 2 | 80 |  |  |  |  |  | 0 (8 failed) |  | failed: all 8 trials failed: the subject ended while it was measured: signal 11 |
        | rust-tokio | 1 | 40 | 55.9 ±3.6 k/s | 719 ±55 µs | 671 ±53 µs | 1.604 ±0.121 ms | 0 | 8 | server | stopped early: ±3.1 % after 8 blocks |
        | rust-tokio | 1 | 80 | 58.6 ±1.5 k/s | 1.364 ±0.040 ms | 1.271 ±0.038 ms | 3.05 ±0.10 ms | 0 | 8 | server | stopped early: ±3.1 % after 8 blocks |
        | rust-tokio | 2 | 40 | 91.2 ±2.4 k/s | 439 ±13 µs | 409 ±12 µs | 981 ±32 µs | 0 | 8 | server | stopped early: ±3.1 % after 8 blocks |
        | rust-tokio (unrunnable) | 2 | 80 |  |  |  |  |  | 0 |  | unrunnable: needs 4096 open files, may have 1024 |

        Mean over n trials ± half-width of the 95 % confidence interval, each trial with a fresh server; \* generator-bound or shared CPUs. Absolute values are from this run, 2026-11-20 21:05 to 21:07 UTC; 7 to 8 starts per row: behavior of fewer than 35 % of starts may not have shown up.

        Trials: stopped early: ±3.1 % after 8 blocks.

        <details><summary>Other metrics</summary>

        | server | cores | clients | p90 | p95 | p99.9 | transfer | errors | error share | server CPU per request | generator CPU per request | server RSS | server memory |
        |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
        | c-epoll | 1 | 40 | 841 ±25 µs | 961 ±28 µs | 2.38 ±0.08 ms | 273 ±7 KiB/s | 0 ±0 | 0 ±0 | 13.90 ±0.41 µs | 10.17 ±0.30 µs | 2.680 ±0.006 MiB | 205 ±6 KiB |
        | c-epoll | 1 | 80 | 1.614 ±0.048 ms | 1.841 ±0.054 ms | 4.52 ±0.15 ms | 284 ±8 KiB/s | 0 ±0 | 0 ±0 | 13.36 ±0.40 µs | 9.78 ±0.29 µs | 2.685 ±0.006 MiB | 211 ±7 KiB |
        | c-epoll | 2 | 40 | 525 ±16 µs | 598 ±18 µs | 1.491 ±0.048 ms | 436 ±12 KiB/s | 0 ±0 | 0 ±0 | 17.37 ±0.52 µs | 6.36 ±0.19 µs | 2.686 ±0.008 MiB | 211 ±8 KiB |
        | c-epoll | 2 | 80 | 1.023 ±0.011 ms\* | 1.169 ±0.011 ms\* | 2.87 ±0.04 ms\* | 448 ±4 KiB/s\* | 0 ±0\* | 0 ±0\* | 8.02 ±0.07 µs\* | 8.63 ±0.07 µs\* | 2.679 ±0.005 MiB\* | 204 ±5 KiB\* |
        | go | 1 | 40 | 1.139 ±0.037 ms | 1.302 ±0.042 ms | 3.21 ±0.11 ms | 201 ±6 KiB/s | 0 ±0 | 0 ±0 | 18.85 ±0.62 µs | 13.80 ±0.45 µs | 2.683 ±0.007 MiB | 208 ±7 KiB |
        | go | 1 | 80 | 2.21 ±0.07 ms | 2.52 ±0.07 ms | 6.22 ±0.21 ms | 208 ±5 KiB/s | 0 ±0 | 0 ±0 | 18.26 ±0.54 µs | 13.37 ±0.40 µs | 2.679 ±0.006 MiB | 204 ±6 KiB |
        | go | 2 | 40 | 713 ±21 µs | 814 ±24 µs | 2.02 ±0.07 ms | 321 ±8 KiB/s | 0 ±0 | 0 ±0 | 23.6 ±0.7 µs | 8.65 ±0.26 µs | 2.688 ±0.006 MiB | 213 ±7 KiB |
        | rust-tokio | 1 | 40 | 1.054 ±0.079 ms | 1.201 ±0.090 ms | 2.99 ±0.22 ms | 218 ±14 KiB/s | 0 ±0 | 0 ±0 | 17.45 ±1.34 µs | 12.77 ±0.98 µs | 2.686 ±0.006 MiB | 212 ±7 KiB |
        | rust-tokio | 1 | 80 | 2.00 ±0.06 ms | 2.29 ±0.07 ms | 5.64 ±0.18 ms | 229 ±6 KiB/s | 0 ±0 | 0 ±0 | 16.56 ±0.49 µs | 12.12 ±0.36 µs | 2.676 ±0.006 MiB | 201 ±6 KiB |
        | rust-tokio | 2 | 40 | 643 ±19 µs | 732 ±21 µs | 1.806 ±0.058 ms | 356 ±9 KiB/s | 0 ±0 | 0 ±0 | 21.3 ±0.6 µs | 7.79 ±0.23 µs | 2.679 ±0.008 MiB | 204 ±8 KiB |

        </details>

        <details><summary>More trials or longer trials?</summary>

        Variation between trials (s\_B) and within a trial (s\_W) of mean latency determines the best trial length.

        | server | cores | clients | s\_B | s\_B over mean | s\_W, of one second | optimal trial length | target met |
        |---|---:|---:|---:|---:|---:|---:|---|
        | c-epoll | 1 | 40 | 13.06 µs | 2.3 % | 12.48 µs | 59.0 ms | yes |
        | c-epoll | 1 | 80 | 16.36 µs | 1.5 % | 24.2 µs | 90.0 ms | yes |
        | c-epoll | 2 | 40 | 3.34 µs | 0.93 % | 6.15 µs | 114.8 ms | yes |
        | c-epoll | 2 | 80 | 6.94 µs | 1.00 % | 12.42 µs | 103.8 ms | yes |
        | go | 1 | 40 | 14.73 µs | 1.9 % | 18.75 µs | 81.2 ms | no |
        | go | 1 | 80 | 39.2 µs | 2.6 % | 37.3 µs | 57.9 ms | yes |
        | go | 2 | 40 | 8.95 µs | 1.8 % | 9.31 µs | 59.1 ms | yes |
        | rust-tokio | 1 | 40 | 65.8 µs | 9.2 % | 17.79 µs | 16.24 ms | no |
        | rust-tokio | 1 | 80 | 10.05 µs | 0.74 % | 32.1 µs | 173.8 ms | yes |
        | rust-tokio | 2 | 40 | 10.47 µs | 2.4 % | 8.05 µs | 42.1 ms | yes |

        </details>

        ## Failures and errors

        | server | cores | clients | what | how |
        |---|---:|---:|---|---|
        | go | 1 | 40 | 1 trial: never ready | the subject did not listen within 5 s |
        | go | 2 | 80 | 8 trials: exited under load | the subject ended while it was measured: signal 11 |

        ## Warnings

        - other processes used these CPUs around 1 of 88 trials, for up to 44 % of the time: the trials are flagged and kept
        - c-epoll, cores 2, clients 80: generator-bound: it was saturated while the server had spare CPU
        - go, cores 1, clients 40: 1 of 8 trials failed: the subject did not listen within 5 s
        - go, cores 2, clients 80: failed: all 8 trials failed: the subject ended while it was measured: signal 11
        - rust-tokio, cores 1, clients 40: the trial in block 5 is an outlier in throughput, latency\_mean, latency\_p99: flagged, not removed
        - rust-tokio, cores 2, clients 80: unrunnable: needs 4096 open files, may have 1024
        - doctor: virtualisation: this is a virtual machine (KVM)

        ## Comparisons

        ### Mean latency, compared with the best

        | at | best | other | typical change | change of the mean | blocks | p (Holm) | shown |
        |---|---|---|---:|---:|---:|---:|---|
        | cores 1, clients 40 | c-epoll | go | +37 % \[+30, +40\] | +36 % \[+31, +41\] | 7 | 0.117 | no; about 5.5 % would have been |
        | cores 1, clients 40 | c-epoll | rust-tokio | +22 % \[+18, +39\] | +25 % \[+15, +36\] | 8 | 0.117 | no; about 13 % would have been |
        | cores 1, clients 80 | c-epoll | go | +35 % \[+33, +41\] | +37 % \[+33, +41\] | 8 | 0.117 | no; about 4.2 % would have been |
        | cores 1, clients 80 | c-epoll | rust-tokio | +24 % \[+22, +26\] | +24 % \[+22, +26\] | 8 | 0.117 | no; about 2.4 % would have been |
        | cores 2, clients 40 | c-epoll | go | +36 % \[+33, +39\] | +36 % \[+33, +39\] | 8 | 0.117 | no; about 3.0 % would have been |
        | cores 2, clients 40 | c-epoll | rust-tokio | +22 % \[+20, +25\] | +23 % \[+20, +25\] | 8 | 0.117 | no; about 3.1 % would have been |

        ### From the first to the last level

        | metric | from | to | at | typical change | change of the mean | blocks | p (Holm) | shown |
        |---|---|---|---|---:|---:|---:|---:|---|
        | mean latency | cores 1 | cores 2 | c-epoll, clients 40 | -37.5 % \[-38.4, -36.7\] | -37.5 % \[-38.2, -36.7\] | 8 | 0.117 | no; about 2.0 % would have been |
        | mean latency | cores 1 | cores 2 | go, clients 40 | -37 % \[-39, -36\] | -37 % \[-39, -36\] | 7 | 0.117 | no; about 3.9 % would have been |
        | mean latency | cores 1 | cores 2 | rust-tokio, clients 40 | -37 % \[-45, -35\] | -39 % \[-43, -34\] | 8 | 0.117 | no; about 12 % would have been |
        | mean latency | clients 40 | clients 80 | c-epoll, cores 1 | +93 % \[+87, +99\] | +92 % \[+87, +97\] | 8 | 0.117 | no; about 4.8 % would have been |
        | mean latency | clients 40 | clients 80 | go, cores 1 | +94 % \[+90, +99\] | +94 % \[+90, +98\] | 7 | 0.117 | no; about 3.8 % would have been |
        | mean latency | clients 40 | clients 80 | rust-tokio, cores 1 | +96 % \[+73, +99\] | +90 % \[+77, +105\] | 8 | 0.117 | no; about 11 % would have been |

        <details><summary>By other metrics</summary>

        ### Throughput, compared with the best

        | at | best | other | typical change | change of the mean | blocks | p (Holm) | shown |
        |---|---|---|---:|---:|---:|---:|---|
        | cores 1, clients 40 | c-epoll | go | -27 % \[-29, -23\] | -26 % \[-29, -24\] | 7 | 0.070 | no; about 5.4 % would have been |
        | cores 1, clients 40 | c-epoll | rust-tokio | -18 % \[-28, -15\] | -20 % \[-26, -13\] | 8 | 0.070 | no; about 13 % would have been |
        | cores 1, clients 80 | c-epoll | go | -26 % \[-29, -25\] | -27 % \[-29, -25\] | 8 | 0.070 | no; about 4.2 % would have been |
        | cores 1, clients 80 | c-epoll | rust-tokio | -20 % \[-21, -18\] | -19 % \[-21, -18\] | 8 | 0.070 | no; about 2.4 % would have been |
        | cores 2, clients 40 | c-epoll | go | -26 % \[-28, -25\] | -27 % \[-28, -25\] | 8 | 0.070 | no; about 3.0 % would have been |
        | cores 2, clients 40 | c-epoll | rust-tokio | -18 % \[-20, -17\] | -18 % \[-20, -17\] | 8 | 0.070 | no; about 3.1 % would have been |

        </details>

        Block by block: the typical ratio (Hodges and Lehmann) with the exact interval of Wilcoxon's signed-rank test, next to the ratio of geometric means with Student's t interval. p is adjusted for all comparisons by one metric (Holm). In each group the best by typical ratios is compared with all others; the JSON has every pair.

        ## Effects of the factors

        Effects on mean latency: none computed, because 2 of 12 design points have no trial: the factors are not fully crossed.

        Effects on throughput: none computed, because 2 of 12 design points have no trial: the factors are not fully crossed.

        ## States of the machine

        Over all trials in run order: neighbouring trials are no more alike in mean latency than by chance (p = 0.33); that does not prove that the machine's speed was constant.

        ## Machine

        - Name: example
        - Processor: Example CPU @ 2.50GHz
        - CPUs used: 4 CPUs, on 4 cores in 1 package, 1 NUMA node
        - Caches: L1d 48 KiB, L2 2 MiB, L3 32 MiB
        - Memory: 8.00 GiB, 0 B of swap in use
        - Kernel: Linux 6.12.0
        - System: Debian GNU/Linux 13
        - Hypervisor: KVM
        - Frequency governor: unknown
        - Turbo, SMT: unknown, off
        - Clock source, idle: tsc, haltpoll/menu
        - Load before: 0.08
        - Network, all trials: 0 segments retransmitted, 0 accept-queue overflows, 0 connection requests dropped
        - Speed probe: median CPU time 8.24 ms, before and after 88 trials
        - Could not be read: governor: this machine has none

        ### Generator calibration

        At most 212 k/s with 80 clients on 1 thread (pingpong, io\_uring), 4.60 µs of its CPU time per request; with one client, p50 54.0 µs and p99 81.0 µs. Measured 2026-11-20T21:00:00Z.

        ### Host checks

        | check | state | observed | fix |
        |---|---|---|---|
        | clock | good | the clock source is tsc |  |
        | virtualisation | warning | this is a virtual machine (KVM) | others may take its time |
        | governor | not checked | the kernel shows no frequency governor |  |

        ### Builds

        | build | outcome | took | why |
        |---|---|---|---|
        | make -C subjects/c-epoll c-epoll | ready | 1.400 s |  |
        | make -C subjects/go go | ready | 1.400 s |  |
        | make -C subjects/rust-tokio rust-tokio | ready | 1.400 s |  |

        <details><summary>Versions, kernel settings, mitigations</summary>

        - cc: 14.2.0
        - go: 1.24.4
        - net.core.somaxconn: 4096

        </details>

        ## Method

        Load: pingpong, closed loop, 40 or 80 clients.

        Each trial starts a fresh server process; replication is by trial, not by request. Trials ran in blocks: each block has every design point once, in an order shuffled from the seed 1, so machine drift affects all design points equally.

        An estimate is the mean over trials with a Student's t interval, no narrower than the scatter pooled over all design points implies, at confidence level 95 %. Whole blocks were added until each latency\_mean was known to ±3.0 %, at least 8 and at most 30. Outliers are flagged and never removed.

        Two points are compared on the blocks they share, by exact signed-rank tests adjusted for all comparisons (Holm): the state of the machine in a block affects both. The ratio shown compares typical starts (Hodges \& Lehmann). With fewer than 12 common blocks the report claims nothing.

        Every absolute interval covers only the states this machine was in during this run, 2026-11-20 21:05 to 21:07 UTC: another day it may be faster or slower, and a run says nothing about states it did not see. A test over all trials in run order checks whether neighbouring trials are alike; the absence of an alarm proves nothing. Ratios compare trials of the same blocks. A short fixed piece of work on the CPUs in use, before and after each trial, flags a trial if another process used one of them; no value is adjusted.

        Closed loop: a client waits for its response before it sends again; latency is service time, from write to response. Quantiles come from the histogram of a whole trial (three significant digits) and are then averaged over trials like any other value; within a trial they are never averaged. A quantile is given only if every trial has enough responses.

        Each trial has a verdict on its bottleneck, from the CPU time of generator and server, the generator's send lag and the offered load. A row is marked if the generator was the bottleneck, or shared the server's CPUs, in half of the trials: its numbers do not measure the server, and it is not ranked.

        Idle CPUs followed the machine's power management (idle policy \`machine\`).

        ## Reproduce

        Command of this run. Seed 1 reproduces the order of trials, the requests and their arrival times.

            quintain run volley --seed 1

        Measured by quintain 0.1.0, study revision 0123abc.

        load pingpong, closed loop, 40 or 80 clients

        run volley-20261120-210500 on example (Example CPU @ 2.50GHz, 4 CPUs, Linux 6.12.0)

        <details><summary>The study file</summary>

            question = "How does ping-pong latency scale with server cores and clients?"

        </details>

        Study volley, run volley-20261120-210500, 2026-11-20T21:05:00Z.
        "#);
    }

    #[test]
    fn tables_of_the_study_and_what_went_wrong() {
        let (run, records) = example::threads();
        let text = markdown(&analyze(&run, &records));
        let of = |heading: &str| {
            let behind = text.split(&format!("# {heading}\n")).nth(1).unwrap_or_default();
            behind.split("\n#").next().unwrap_or_default().to_owned()
        };
        assert_snapshot!(of("Valid responses per second"), @r"

        | threads | cpus | n | sample mean, k/s | sample standard deviation, k/s | 95 % interval, k/s | limited by |
        |---:|---:|---:|---:|---:|---:|---|
        | 1 | 1 | 8 | 19.71 | 0.13 | 19.48 to 19.94 | server |
        | 2 | 2 | 8 | 37.31 | 0.56 | 36.84 to 37.78 | server |
        | 4 | 4 | 8 | 66.42 | 1.24 | 65.38 to 67.46 | server |
        | 8 | 8 | 8 | 104.56 | 1.72 | 103.12 to 105.99 | server |
        | 16 | 16 | 8 | 127.38 | 1.53 | 125.88 to 128.88 | server |
        | 24 | 24 | 8 | 125.39 | 1.21 | 123.91 to 126.87 | server |
        | 32 | 24 of 32 | 8 | 114.25 | 1.87 | 112.69 to 115.82 | server |
        | 40 | 24 of 40 | 8 | 102.91\* | 1.63 | 101.55 to 104.28 | generator |

        <details><summary>Other metrics</summary>

        | threads | cpus | p90 | p95 | p99.9 | transfer | errors | error share | server CPU per request | generator CPU per request | server RSS | server memory |
        |---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
        | 1 | 1 | 5.92 ±0.08 ms | 6.76 ±0.09 ms | 17.02 ±0.61 ms | 2.09 ±0.02 MiB/s | 0 ±0 | 0 ±0 | 45.7 ±0.5 µs | 30.4 ±0.4 µs | 2.681 ±0.007 MiB | 206 ±8 KiB |
        | 2 | 2 | 3.15 ±0.05 ms | 3.59 ±0.05 ms | 8.90 ±0.20 ms | 3.95 ±0.05 MiB/s | 0 ±0 | 0 ±0 | 48.3 ±0.6 µs | 16.08 ±0.21 µs | 2.681 ±0.007 MiB | 206 ±7 KiB |
        | 4 | 4 | 1.762 ±0.029 ms | 2.01 ±0.04 ms | 4.99 ±0.14 ms | 7.03 ±0.11 MiB/s | 1.625 ±3.843 | 0.000098 ±0.000232 | 54.2 ±0.9 µs | 9.04 ±0.14 µs | 2.682 ±0.007 MiB | 207 ±7 KiB |
        | 8 | 8 | 1.121 ±0.014 ms | 1.280 ±0.019 ms | 3.17 ±0.07 ms | 11.07 ±0.15 MiB/s | 0 ±0 | 0 ±0 | 68.9 ±0.9 µs | 5.74 ±0.08 µs | 2.682 ±0.007 MiB | 207 ±7 KiB |
        | 16 | 16 | 922 ±12 µs | 1.053 ±0.013 ms | 2.59 ±0.06 ms | 13.48 ±0.16 MiB/s | 0 ±0 | 0 ±0 | 113.1 ±1.3 µs | 4.71 ±0.06 µs | 2.682 ±0.007 MiB | 208 ±7 KiB |
        | 24 | 24 | 935 ±12 µs | 1.068 ±0.014 ms | 2.66 ±0.06 ms | 13.27 ±0.16 MiB/s | 0 ±0 | 0 ±0 | 172.3 ±2.0 µs | 4.79 ±0.06 µs | 2.683 ±0.007 MiB | 208 ±7 KiB |
        | 32 | 24 of 32 | 1.026 ±0.015 ms | 1.171 ±0.017 ms | 2.91 ±0.07 ms | 12.09 ±0.17 MiB/s | 0 ±0 | 0 ±0 | 252 ±3 µs | 5.25 ±0.07 µs | 2.683 ±0.007 MiB | 209 ±8 KiB |
        | 40 | 24 of 40 | 1.142 ±0.015 ms\* | 1.304 ±0.019 ms\* | 3.19 ±0.07 ms\* | 10.89 ±0.14 MiB/s\* | 0 ±0\* | 0 ±0\* | 116.6 ±1.5 µs\* | 9.62 ±0.13 µs\* | 2.681 ±0.007 MiB\* | 206 ±8 KiB\* |

        </details>

        <details><summary>More trials or longer trials?</summary>

        Variation between trials (s\_B) and within a trial (s\_W) of throughput determines the best trial length.

        | threads | cpus | s\_B | s\_B over mean | s\_W, of one second | optimal trial length | target met |
        |---:|---:|---:|---:|---:|---:|---|
        | 1 | 1 | 49.4 /s | 0.25 % | 1.027 k/s | 973 ms | yes |
        | 2 | 2 | 534 /s | 1.4 % | 1.329 k/s | 128.9 ms | yes |
        | 4 | 4 | 1.219 k/s | 1.8 % | 1.640 k/s | 78.0 ms | yes |
        | 8 | 8 | 1.695 k/s | 1.6 % | 2.01 k/s | 64.7 ms | yes |
        | 16 | 16 | 1.493 k/s | 1.2 % | 2.27 k/s | 85.1 ms | yes |
        | 24 | 24 | 1.166 k/s | 0.93 % | 2.21 k/s | 109.7 ms | yes |
        | 32 | 24 of 32 | 1.847 k/s | 1.6 % | 2.05 k/s | 67.8 ms | yes |
        | 40 | 24 of 40 | 1.608 k/s | 1.6 % | 2.01 k/s | 69.4 ms | yes |

        </details>
        ");
        assert_snapshot!(of("Failures and errors"), @"
        | threads | cpus | what | how |
        |---:|---:|---|---|
        | 4 | 4 | request errors | 13 of 132,855 requests failed (0.010 %): 12 status 503, 1 truncated; first status: 503 to GET / |
        | 4 | 4 | responses by status | responses: 132842 with status 200, 12 with status 503 |
        ");
    }

    #[test]
    fn machines_and_generators_of_a_cluster() {
        let (run, records) = example::cluster();
        let text = markdown(&analyze(&run, &records));
        let of = |heading: &str| {
            let behind = text.split(&format!("# {heading}\n")).nth(1).unwrap_or_default();
            behind.split("\n#").next().unwrap_or_default().to_owned()
        };
        assert_snapshot!(of("Generators, median over trials \\[least, largest\\]"), @r"

        | design point | generator | p50 | p99 | rate | share of requests | busy | limited by |
        |---|---|---:|---:|---:|---:|---:|---|
        | c-epoll | l1 | 790.5 \[766.0, 798.7\] µs | 1.87 \[1.83, 1.91\] ms | 23.7 \[23.4, 24.1\] k/s | 33 \[33, 34\] % | 40 \[40, 40\] % | server |
        | c-epoll | l2 | 778.2 \[766.0, 798.7\] µs | 1.85 \[1.81, 1.94\] ms | 23.8 \[23.2, 24.3\] k/s | 33 \[33, 34\] % | 40 \[40, 40\] % | server |
        | c-epoll | l3 | 778.2 \[766.0, 790.5\] µs | 1.89 \[1.81, 2.04\] ms | 23.8 \[23.5, 24.2\] k/s | 33 \[33, 34\] % | 40 \[40, 40\] % | server |
        | go | l1 | 1.04 \[1.03, 1.06\] ms | 2.57 \[2.44, 2.64\] ms | 17.8 \[17.5, 18.1\] k/s | 39 \[39, 40\] % | 40 \[40, 40\] % | latency |
        | go | l2 | 1.05 \[1.04, 1.06\] ms | 2.56 \[2.44, 2.70\] ms | 17.7 \[17.5, 17.9\] k/s | 39 \[39, 39\] % | 40 \[40, 40\] % | latency |
        | go | l3 | 1.89 \[1.86, 1.91\] ms | 4.59 \[4.23, 4.69\] ms | 9.88 \[9.70, 9.98\] k/s | 22 \[21, 22\] % | 40 \[40, 40\] % | network |
        | rust-tokio | l1 | 950.3 \[929.8, 954.4\] µs | 2.24 \[2.09, 2.38\] ms | 19.6 \[19.5, 20.0\] k/s | 43 \[42, 43\] % | 40 \[40, 40\] % | latency |
        | rust-tokio | l2 | 2.80 \[2.77, 2.87\] ms | 6.91 \[5.93, 7.77\] ms | 6.57 \[6.48, 6.77\] k/s | 14 \[14, 15\] % | 40 \[40, 40\] % | network |
        | rust-tokio | l3 | 933.9 \[929.8, 954.4\] µs | 2.28 \[2.21, 2.34\] ms | 19.9 \[19.6, 20.0\] k/s | 43 \[42, 43\] % | 40 \[40, 40\] % | latency |

        <details><summary>Other metrics</summary>

        | server | p90 | p95 | p99.9 | transfer | errors | error share | server CPU per request | generator CPU per request | server RSS | server memory |
        |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
        | c-epoll | 1.234 ±0.006 ms | 1.409 ±0.008 ms | 3.50 ±0.04 ms | 279 ±1 KiB/s | 0 ±0 | 0 ±0 | 13.45 ±0.07 µs | 16.82 ±0.09 µs | 2.681 ±0.007 MiB | 206 ±8 KiB |
        | go | 2.13 ±0.02 ms\* | 2.57 ±0.02 ms\* | 6.27 ±0.78 ms\* | 177.3 ±0.8 KiB/s\* | 0 ±0\* | 0 ±0\* | 11.01 ±0.05 µs\* | 26.4 ±0.1 µs\* | 2.681 ±0.007 MiB\* | 206 ±7 KiB\* |
        | rust-tokio | 2.44 ±0.02 ms\* | 3.31 ±0.03 ms\* | 7.96 ±1.27 ms\* | 1.07890 ±\<0.00001 GiB/s\* | 0 ±0\* | 0 ±0\* | 10.86 ±0.03 µs\* | 26.07 ±0.08 µs\* | 2.682 ±0.007 MiB\* | 207 ±7 KiB\* |

        </details>

        <details><summary>More trials or longer trials?</summary>

        Variation between trials (s\_B) and within a trial (s\_W) of mean latency determines the best trial length.

        | server | s\_B | s\_B over mean | s\_W, of one second | optimal trial length | target met |
        |---|---:|---:|---:|---:|---|
        | c-epoll | 4.00 µs | 0.48 % | 18.47 µs | 332 ms | yes |
        | go | 4.64 µs | 0.35 % | 37.4 µs | 504 ms | yes |
        | rust-tokio | 1.502 µs | 0.12 % | 44.3 µs | 1.265 s | yes |

        </details>
        ");
        assert_snapshot!(of("Cluster").split("<details>").next().unwrap_or_default(), @"

        | machine | role | address | processor | CPUs | interface speed | received from the server | round trip |
        |---|---|---|---|---:|---:|---:|---:|
        | s1 | subject | 10.77.0.1 | Example CPU @ 2.50GHz | 32 | – | – | – |
        | l1 | load | 10.77.0.2 | Example CPU @ 2.50GHz | 8 | – | 1.090 GiB/s | 40.0 µs |
        | l2 | load | 10.77.0.3 | Example CPU @ 2.50GHz | 8 | – | 1.090 GiB/s | 44.0 µs |
        | l3 | load | 10.77.0.4 | Example CPU @ 2.50GHz | 8 | – | 1.090 GiB/s | 48.0 µs |
        ");
    }

    #[test]
    fn escapes_hostile_text() {
        let (mut run, records) = example::volley();
        run.plan.question = "a | b\n# <script>*".to_owned();
        let text = markdown(&analyze(&run, &records));
        assert!(text.starts_with("# a \\| b \\# \\<script\\>\\*\n"), "{text}");
    }
}
