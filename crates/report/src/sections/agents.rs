use analysis::display_names::limit_word;
use analysis::findings::{AgentFinding, Findings, MedianRange, Row};
use analysis::number;

use crate::document::{Head, Table};

/// A line per generator, with its row; `None` if every load came from one machine.
pub(crate) fn table(f: &Findings) -> Option<Table> {
    let numbers = ["p50", "p99", "rate", "share of requests", "busy"].map(Head::number);
    let heads = ["design point", "generator"].map(Head::text).into_iter().chain(numbers);
    let line = |(row, agent): (&Row, &AgentFinding)| {
        vec![
            row.label.clone(),
            agent.node.clone(),
            range(&agent.latency_p50_ns, "ns"),
            range(&agent.latency_p99_ns, "ns"),
            range(&agent.rate_per_s, "1/s"),
            range(&agent.share, "%"),
            range(&agent.busy, "%"),
            limited_by(agent),
        ]
    };
    let rows = f.all_rows().flat_map(|row| row.agents.iter().map(move |agent| (row, agent))).map(line);
    let heads = heads.chain([Head::text("limited by")]);
    Table::plain("Generators, median over trials [least, largest]", heads, rows).unless_empty()
}

/// `1.27 [1.20, 1.31] ms`.
fn range(found: &Option<MedianRange>, unit: &str) -> String {
    let Some(MedianRange { median, min, max }) = found else { return "–".to_owned() };
    let (divisor, name) = if unit == "%" { (0.01, unit) } else { number::scale(unit, *median) };
    let decimals = usize::from(median / divisor < 10.0) + usize::from(unit != "%");
    let [median, min, max] = [median, min, max].map(|value| format!("{:.decimals$}", value / divisor));
    format!("{median} [{min}, {max}] {name}")
}

fn limited_by(agent: &AgentFinding) -> String {
    let Some((limit, most)) = agent.limits.iter().max_by_key(|(_, count)| **count) else { return String::new() };
    let all = agent.limits.values().sum::<usize>();
    let word = limit_word(*limit);
    if *most == all { word } else { format!("{word} ({most}/{all})") }
}
