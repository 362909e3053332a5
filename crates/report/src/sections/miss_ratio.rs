//! Curves of misses over capacity, as tables.

use analysis::findings::{CurvePolicy, Findings, MissRatioCurve, MissRatioPoint, MissRatios};
use analysis::miss_ratio::{capacity, points};
use analysis::number::{percent, quantity};

use crate::table::Sheet;

/// A table for each panel: every measured point, and what the policies make of its capacity.
pub(crate) fn sheets(findings: &Findings) -> Vec<Sheet> {
    findings.miss_ratios.iter().map(|found| sheet(findings, found)).collect()
}

fn sheet(findings: &Findings, found: &MissRatios) -> Sheet {
    let place = if found.panel.is_empty() { String::new() } else { format!(", {}", found.panel) };
    let heads =
        [("", false), (&*found.x, true), ("of the footprint", true), ("memory used", true), ("misses over GETs", true)];
    let mut heads = heads.map(|(head, right)| (head.to_owned(), right)).to_vec();
    heads.push(("less its policy, points".to_owned(), true));
    heads.extend(found.policies.iter().map(|policy| (format!("simulated {}", policy.name), true)));
    let row = |curve: &MissRatioCurve, point: &MissRatioPoint| {
        let missing = || "-".to_owned();
        let mut cells = vec![curve.label.clone(), capacity(point.capacity_bytes)];
        cells.push(point.footprint_share.map_or_else(missing, percent));
        cells.push(point.memory_bytes.map_or_else(missing, |bytes| quantity(bytes, "bytes")));
        cells.push(match point.estimate {
            Some(estimate) => format!("{:.4} ± {:.4}", estimate.point, estimate.half_width()),
            None => format!("{:.4}", point.miss_ratio),
        });
        cells.push(point.difference.map_or_else(missing, |difference| {
            let ends = if findings.quick {
                String::new()
            } else {
                format!(" [{}, {}]", points(difference.low), points(difference.high))
            };
            let policy = curve.policy.as_deref().unwrap_or_default();
            format!("{}{ends} {policy}{}", points(difference.point), if point.strays { " *" } else { "" })
        }));
        let at = |policy: &CurvePolicy| {
            policy
                .points
                .iter()
                .find(|known| known.capacity_bytes == point.capacity_bytes)
                .map(|known| known.miss_ratio)
        };
        cells
            .extend(found.policies.iter().map(|policy| at(policy).map_or_else(missing, |ratio| format!("{ratio:.4}"))));
        cells
    };
    let rows = found.curves.iter().flat_map(|curve| curve.points.iter().map(move |point| (curve, point)));
    Sheet {
        title: format!("Misses by capacity{place} (*: strays from its policy)"),
        heads,
        rows: rows.map(|(curve, point)| row(curve, point)).collect(),
    }
}
