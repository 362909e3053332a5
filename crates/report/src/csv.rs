//! Findings as CSV, with one row per design point or trial. Numbers have full precision (ns, 1/s, bytes).

use std::collections::BTreeMap;

use study::plan::Level;

use analysis::enum_words_and_lists::serde_name;
use analysis::findings::{
    EffectChange, Estimate, Findings, InteractionEffect, LevelEffect, ProbedTrial, Row, TrialFinding,
};

/// Renders one row per design point, with `_mean`, `_low`, `_high` and `_stddev` per metric. Unknown values are empty.
pub fn csv(findings: &Findings) -> String {
    let metrics = findings.metrics.iter().map(|metric| format!("{0}_mean,{0}_low,{0}_high,{0}_stddev,", metric.name));
    let mut out = format!(
        "run,point,{}idle,state,n,failures,requests,errors_total,limited_by,marks,clock,{}stop_reason,warnings,errors,\
         statuses,cpus,cpus_wanted,at_least,in_flight,unsent,run_state\n",
        factor_heads(findings),
        metrics.collect::<String>()
    );
    for row in findings.all_rows() {
        let mut cells = vec![findings.run.clone(), row.point.to_string()];
        cells.extend(levels(findings, row));
        cells.extend([row.idle.map_or(String::new(), serde_name), row.state.word().to_owned(), row.n.to_string()]);
        cells.push(row.failures.iter().map(|failure| failure.count).sum::<usize>().to_string());
        cells.extend([row.requests, row.errors_total()].map(|count| count.to_string()));
        cells.push(row.limited_by.as_ref().map_or(String::new(), |found| serde_name(found.limit)));
        cells.extend([list(row.marks.iter().map(|mark| mark.text())), row.clock.map_or(String::new(), serde_name)]);
        for metric in &findings.metrics {
            let found = row.metrics.get(metric.name);
            let [_, low, high] = ends(found.and_then(|found| found.estimate.as_ref()));
            cells.extend([number(found.and_then(|found| found.mean)), low, high]);
            cells.push(number(found.and_then(|found| found.stddev)));
        }
        cells.push(row.state.reason().filter(|_| row.n == 0).unwrap_or(&row.stop_reason).to_owned());
        cells.push(list(row.warnings.iter().map(|warning| warning.text.as_str())));
        cells.extend([counts(&row.errors), counts(&row.statuses), row.cpus.to_string()]);
        cells.push(row.cpus_wanted.map_or(String::new(), |wanted| wanted.to_string()));
        cells.push(list(row.metrics.iter().filter(|(_, found)| found.at_least).map(|(name, _)| name.as_str())));
        let all = |count: fn(&TrialFinding) -> u64| analysis::number::total(row.trials.iter().map(count)).to_string();
        cells.extend([all(|trial| trial.in_flight), all(|trial| trial.unsent), run_state(findings)]);
        out += &line(cells);
    }
    out
}

/// Returns `interrupted` or `running`, or an empty string if the run ended properly.
fn run_state(findings: &Findings) -> String {
    findings.unfinished.as_ref().map_or("", |unfinished| unfinished.state.word()).to_owned()
}

/// Renders one row per trial, in execution order.
pub fn csv_trials(findings: &Findings) -> String {
    let metrics = findings.metrics.iter().map(|metric| format!("{},", metric.name)).collect::<String>();
    let mut out = format!(
        "run,order,block,started,point,{}idle,limited_by,marks,outlier_in,{metrics}failed,at_least,in_flight,unsent,\
         contended,probe_cpu_ns,run_state\n",
        factor_heads(findings)
    );
    let probed = findings.probes.iter().flat_map(|probed| &probed.trials);
    let cpu_ns = |trial: &ProbedTrial| trial.probes.all().map(|probe| probe.cpu_ns as f64).collect::<Vec<_>>();
    let probed = probed.map(|trial| (trial.order, stats::interval::average(&cpu_ns(trial))));
    let probed = probed.collect::<BTreeMap<_, _>>();
    let mut trials =
        findings.all_rows().flat_map(|row| row.trials.iter().map(move |trial| (row, trial))).collect::<Vec<_>>();
    trials.sort_by_key(|(_, trial)| trial.order);
    for (row, trial) in trials {
        let mut cells = vec![findings.run.clone(), trial.order.to_string(), trial.block.to_string()];
        cells.extend([trial.started.clone(), row.point.to_string()]);
        cells.extend(levels(findings, row));
        cells.extend([row.idle.map_or(String::new(), serde_name), trial.limited_by.map_or(String::new(), serde_name)]);
        cells.extend([list(trial.marks.iter().map(|mark| mark.text())), trial.outlier_in.join("; ")]);
        cells.extend(findings.metrics.iter().map(|metric| number(trial.values.get(metric.name))));
        let bounds = study::METRICS.iter().map(|metric| metric.name).filter(|name| trial.at_least.contains(name));
        cells.extend([trial.failed.clone().unwrap_or_default(), list(bounds)]);
        cells.extend([trial.in_flight.to_string(), trial.unsent.to_string(), trial.contended.to_string()]);
        cells.extend([number(probed.get(&trial.order).copied().flatten()), run_state(findings)]);
        out += &line(cells);
    }
    out
}

/// Renders one row per source of variation, effect of a level, interaction of two levels, and change, for each metric
/// and scale (`ratio` or `difference`). Fields that do not apply are empty.
pub fn csv_effects(findings: &Findings) -> String {
    let mut out = "run,metric,idle,design,scale,what,factor,level,to,other,other_level,share,squares,df,f,p_adjusted,\
                   point,low,high\n"
        .to_owned();
    for effects in &findings.effects {
        for found in &effects.analyses {
            let (idle, design, scale) = (serde_name(effects.idle), serde_name(effects.design), serde_name(found.scale));
            let start = [findings.run.clone(), effects.metric.clone(), idle, design, scale];
            let mut row = |what: String, names: [&str; 5], numbers: [Option<f64>; 5], estimate: Option<&Estimate>| {
                let names = names.map(str::to_owned);
                out += &line([start.as_slice(), &[what], &names, &numbers.map(number), &ends(estimate)].concat());
            };
            for source in &found.sources {
                let name = |index: usize| source.factors.get(index).map_or("", String::as_str);
                let (share, squares, df) = (Some(source.share), Some(source.squares), Some(source.df as f64));
                let numbers = [share, squares, df, source.f, source.p_adjusted];
                row(serde_name(source.kind), [name(0), "", "", name(1), ""], numbers, None);
            }
            for LevelEffect { factor, level, effect } in &found.levels {
                row("level".to_owned(), [factor, &level.to_string(), "", "", ""], [None; 5], Some(effect));
            }
            for InteractionEffect { factors: [a, b], levels, effect } in &found.interactions {
                let [of_a, of_b] = levels.each_ref().map(ToString::to_string);
                row("levels".to_owned(), [a, &of_a, "", b, &of_b], [None; 5], Some(effect));
            }
            for EffectChange { factor, from, to, at, change, p_adjusted, .. } in &found.changes {
                let [from, to] = [from, to].map(ToString::to_string);
                let other = at.as_ref().map_or("", |at| &at.factor);
                let level = at.as_ref().map_or(String::new(), |at| at.level.to_string());
                let numbers = [None, None, None, None, *p_adjusted];
                row("change".to_owned(), [factor, &from, &to, other, &level], numbers, Some(change));
            }
        }
    }
    out
}

/// Renders one row per metric of each design point through proxies, with its difference from `direct`.
pub fn csv_added(findings: &Findings) -> String {
    let mut out = "run,through,place,metric,unit,blocks,direct_mean,through_mean,difference,difference_low,\
                   difference_high,ratio,ratio_low,ratio_high,p_adjusted,shown\n"
        .to_owned();
    let metrics = findings.added.iter().flat_map(|found| found.metrics.iter().map(move |metric| (found, metric)));
    for (found, metric) in metrics {
        let unit = findings.unit(&metric.metric);
        let mut cells = [&findings.run, &found.through, &found.place, &metric.metric, unit].map(str::to_owned).to_vec();
        cells.push(metric.blocks.to_string());
        cells.extend([Some(metric.direct), Some(metric.through)].map(number));
        cells.extend([&metric.difference, &metric.ratio].into_iter().flat_map(|estimate| ends(estimate.as_ref())));
        cells.push(number(metric.p_adjusted));
        cells.push(metric.p_adjusted.map_or(String::new(), |_| metric.shown.to_string()));
        out += &line(cells);
    }
    out
}

/// Renders one row per point of each series over requests. Every row repeats the slope of its series.
pub fn csv_over_requests(findings: &Findings) -> String {
    let mut out = "run,point,label,what,unit,requests,mean,low,high,slope_per_1000,slope_low,slope_high\n".to_owned();
    let points = findings.over_requests.iter().flat_map(|found| found.points.iter().map(move |point| (found, point)));
    for (found, point) in points {
        let row = &findings.rows[found.row];
        let mut cells = vec![findings.run.clone(), row.point.to_string(), row.label.clone()];
        cells.extend([found.what.clone(), found.unit.clone()]);
        cells.extend([Some(point.requests), Some(point.mean), point.low, point.high].map(number));
        let slope = found.slope_per_1000.as_ref();
        cells.extend([Some(found.slope_per_1000_mean), slope.map(|e| e.low), slope.map(|e| e.high)].map(number));
        out += &line(cells);
    }
    out
}

/// Renders one row per point of each miss-ratio curve. Fields that do not apply are empty.
pub fn csv_miss_ratios(findings: &Findings) -> String {
    let mut out = "run,panel,what,series,capacity_bytes,footprint_share,memory_bytes,n,miss_ratio,low,high,policy,\
                   simulated,difference,difference_low,difference_high,p_adjusted,strays\n"
        .to_owned();
    for found in &findings.miss_ratios {
        let start = |what: &str, series: &str| [&findings.run, &found.panel, what, series].map(str::to_owned).to_vec();
        for (curve, point) in found.curves.iter().flat_map(|curve| curve.points.iter().map(move |point| (curve, point)))
        {
            let mut cells = start("measured", &curve.label);
            cells.push(point.capacity_bytes.to_string());
            cells.extend([point.footprint_share, point.memory_bytes].map(number));
            cells.push(findings.rows[point.row].n.to_string());
            let [_, low, high] = ends(point.estimate.as_ref());
            cells.extend([number(Some(point.miss_ratio)), low, high, curve.policy.clone().unwrap_or_default()]);
            cells.push(number(point.simulated));
            cells.extend(ends(point.difference.as_ref()));
            cells.push(number(point.p_adjusted));
            cells.push(point.p_adjusted.map_or(String::new(), |_| point.strays.to_string()));
            out += &line(cells);
        }
        let points = found.policies.iter().flat_map(|policy| policy.points.iter().map(move |point| (policy, point)));
        for (policy, point) in points {
            let mut cells = start("simulated", &policy.name);
            cells.extend([point.capacity_bytes.to_string(), String::new(), String::new(), point.replays.to_string()]);
            cells.push(number(Some(point.miss_ratio)));
            cells.resize(18, String::new());
            out += &line(cells);
        }
    }
    out
}

fn counts<K: std::fmt::Display>(counts: &BTreeMap<K, u64>) -> String {
    counts.iter().map(|(key, count)| format!("{key}: {count}")).collect::<Vec<_>>().join("; ")
}

/// Names of reserved columns. A factor with such a name gets a different column name.
const FIXED: &str = "run,point,order,block,started,idle,state,n,limited_by,marks,failed,errors,statuses,cpus";

fn factor_heads(findings: &Findings) -> String {
    let prefix = |name: &str| if FIXED.split(',').any(|fixed| fixed == name) { "factor_" } else { "" };
    findings.factors.iter().map(|factor| quoted(&format!("{}{}", prefix(&factor.name), factor.name)) + ",").collect()
}

fn list<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.collect::<Vec<_>>().join("; ")
}

fn ends(estimate: Option<&Estimate>) -> [String; 3] {
    estimate.map_or([None; 3], |e| [e.point, e.low, e.high].map(Some)).map(number)
}

fn levels(findings: &Findings, row: &Row) -> impl Iterator<Item = String> {
    findings.factors.iter().map(|factor| row.factors.get(&factor.name).map_or(String::new(), Level::to_string))
}

/// Formats a float as the shortest string that parses to it; empty if the float is missing or not finite.
pub(crate) fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or(String::new(), |value| value.to_string())
}

/// Formats a line as in RFC 4180, but with LF at its end.
pub(crate) fn line(cells: impl IntoIterator<Item = String>) -> String {
    format!("{}\n", cells.into_iter().map(|cell| quoted(&cell)).collect::<Vec<_>>().join(","))
}

fn quoted(cell: &str) -> String {
    if cell.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::analyze;
    use fixtures as example;
    use insta::assert_snapshot;

    fn findings() -> Findings {
        let (run, records) = example::volley();
        analyze(&run, &records)
    }

    fn corner(text: &str, columns: usize, lines: usize) -> String {
        let short = |line: &str| line.split(',').take(columns).collect::<Vec<_>>().join(",");
        text.lines().take(lines).map(short).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn points() {
        let text = csv(&findings());
        assert_eq!(text.lines().count(), 13);
        assert_snapshot!(corner(&text, 18, 13), @"
        run,point,server,cores,clients,idle,state,n,failures,requests,errors_total,limited_by,marks,clock,throughput_mean,throughput_low,throughput_high,throughput_stddev
        volley-20261120-210500,0,c-epoll,1,40,machine,measured,8,0,139668,0,subject,,service,69834,67988.2497726105,71679.7502273895,1610.9993349293652
        volley-20261120-210500,1,c-epoll,1,80,machine,measured,8,0,145293,0,subject,,service,72646.5,70726.41388300755,74566.58611699245,1110.2533816334771
        volley-20261120-210500,2,c-epoll,2,40,machine,measured,8,0,223425,0,subject,,service,111712.5,108759.87846497053,114665.12153502947,1093.08985384159
        volley-20261120-210500,3,c-epoll,2,80,machine,measured,8,0,229492,0,generator,generator-bound,service,114746,113769.64536615387,115722.35463384613,1167.8590913046219
        volley-20261120-210500,4,go,1,40,machine,partial,7,1,90083,0,subject,,service,51476,49970.908293367305,52981.091706632695,1002.7508829880597
        volley-20261120-210500,5,go,1,80,machine,measured,8,0,106302,0,subject,,service,53151,51746.19044683136,54555.80955316864,1381.8509326262367
        volley-20261120-210500,6,go,2,40,machine,measured,8,0,164219,0,subject,,service,82109.5,79939.30169694079,84279.69830305921,1560.5185035750137
        volley-20261120-210500,7,go,2,80,machine,failed,0,8,0,0,,,,,,,
        volley-20261120-210500,8,rust-tokio,1,40,machine,measured,8,0,111869,0,subject,,service,55934.5,52286.47015389726,59582.52984610274,4363.562862746779
        volley-20261120-210500,9,rust-tokio,1,80,machine,measured,8,0,117153,0,subject,,service,58576.5,57028.29156006128,60124.70843993872,471.4739804970305
        volley-20261120-210500,10,rust-tokio,2,40,machine,measured,8,0,182330,0,subject,,service,91165,88755.45995532315,93574.54004467685,2170.126263607719
        volley-20261120-210500,11,rust-tokio,2,80,,unrunnable,0,0,0,0,,,,,,,
        ");
    }

    #[test]
    fn trials() {
        let text = csv_trials(&findings());
        assert_eq!(text.lines().count(), 1 + 88, "8 blocks of 11 points");
        assert_snapshot!(corner(&text, 15, 6), @r"
        run,order,block,started,point,server,cores,clients,idle,limited_by,marks,outlier_in,throughput,latency_mean,latency_p50
        volley-20261120-210500,0,0,2026-11-20T21:05:00Z,9,rust-tokio,1,80,machine,subject,,,58364,1369113.8756082517,1271295.5
        volley-20261120-210500,1,0,2026-11-20T21:05:02Z,4,go,1,40,machine,subject,,,51704,773096.4462323998,718079.5
        volley-20261120-210500,2,0,2026-11-20T21:05:04Z,0,c-epoll,1,40,machine,subject,,,72164,554166.8722354637,515199.5
        volley-20261120-210500,3,0,2026-11-20T21:05:06Z,7,go,2,80,machine,,,,,,
        volley-20261120-210500,4,0,2026-11-20T21:05:08Z,8,rust-tokio,1,40,machine,subject,,,57256,698298.1995948023,648447.5
        ");
    }

    #[test]
    fn trials_end_with_probes_and_other_processes() {
        let mut findings = findings();
        let text = csv_trials(&findings);
        let of = |text: &str, line: usize, places: usize| {
            text.lines().nth(line).unwrap().rsplit(',').skip(1).take(places).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(of(&text, 0, 2), ["probe_cpu_ns", "contended"]);
        let beside = of(&text, 1 + 41, 2);
        assert!(
            beside[1] == "true" && beside[0].parse::<f64>().is_ok_and(|ns| (8.0e6..8.5e6).contains(&ns)),
            "{beside:?}"
        );
        assert_eq!(text.lines().skip(1).filter(|line| line.rsplit(',').nth(2) == Some("true")).count(), 1);
        findings.probes = None;
        assert_eq!(of(&csv_trials(&findings), 1, 1), [""]);
    }

    #[test]
    fn errors_statuses_and_cpus_are_last() {
        let (run, records) = example::threads();
        let text = csv(&analyze(&run, &records));
        let ends = text.lines().map(|line| line.rsplit(',').skip(4).take(4).collect::<Vec<_>>()).collect::<Vec<_>>();
        assert_eq!(ends[0], ["cpus_wanted", "cpus", "statuses", "errors"]);
        assert_eq!(ends[3], ["", "4", "200: 132842; 503: 12", "status: 12; truncated: 1"]);
        assert_eq!(ends[8][..2], ["40", "24"]);
    }

    #[test]
    fn every_line_has_every_field() {
        for text in [csv(&findings()), csv_trials(&findings())] {
            let fields = |line: &str| {
                let mut quoted = false;
                let separators = line.chars().filter(|c| {
                    quoted ^= *c == '"';
                    *c == ',' && !quoted
                });
                separators.count()
            };
            let expected = fields(text.lines().next().unwrap());
            assert!(text.lines().all(|line| fields(line) == expected));
        }
    }

    #[test]
    fn numbers_read_back_exactly() {
        let findings = findings();
        let text = csv_trials(&findings);
        let column = text.lines().next().unwrap().split(',').position(|head| head == "latency_mean").unwrap();
        let first = text.lines().nth(1).unwrap().split(',').nth(column).unwrap().parse::<f64>().unwrap();
        let trial = findings.rows.iter().flat_map(|row| &row.trials).find(|trial| trial.order == 0).unwrap();
        assert_eq!(first, trial.values.get("latency_mean").unwrap());
    }

    #[test]
    fn quotes() {
        let cells = ["a", "b,c", "d\"e", "f\ng"].map(str::to_owned);
        assert_eq!(line(cells.clone()), "a,\"b,c\",\"d\"\"e\",\"f\ng\"\n");
    }
}
