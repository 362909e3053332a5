use crate::document::{Head, Table};
use analysis::findings::{Findings, Row};
use analysis::number::drawable;

pub(crate) fn table(findings: &Findings) -> Option<Table> {
    let causes = || study::METRICS.iter().filter_map(|metric| Some((metric.name, metric.name.strip_prefix("miss_")?)));
    let mean = |row: &Row, metric: &str| row.mean(metric).filter(|mean| drawable(*mean));
    let rows = findings.rows.iter().filter(|row| mean(row, "hit_ratio").is_some());
    let cells = |row: &Row| {
        let share = |found: f64, half: Option<f64>| match half {
            Some(half) => format!("{:.2} ±{:.2}", found * 100.0, half * 100.0),
            None => format!("{:.2}", found * 100.0),
        };
        let half =
            |metric: &str| row.estimate(metric).map(|estimate| estimate.half_width()).filter(|half| drawable(*half));
        let misses = mean(row, "hit_ratio").map(|ratio| share(1.0 - ratio, half("hit_ratio")));
        let causes = causes().map(|(metric, _)| mean(row, metric).map(|found| share(found, half(metric))));
        let cells = [misses].into_iter().chain(causes).map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
        [row.label.clone()].into_iter().chain(cells).collect()
    };
    let numbers = ["misses"].into_iter().chain(causes().map(|(_, cause)| cause)).map(Head::number);
    let heads = [Head::text("design point")].into_iter().chain(numbers);
    Table::plain("Why GETs missed, % of GETs", heads, rows.map(cells)).unless_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::analyze;
    use fixtures as example;
    use study::record::{CacheCounts, CacheMeasurement, MissCauses, Outcome};

    #[test]
    fn causes_add_up_to_the_misses() {
        let (run, mut records) = example::volley();
        assert_eq!(table(&analyze(&run, &records)), None, "no cache");
        for record in records.iter_mut().filter(|record| record.point == 1) {
            let Outcome::Measured(measurement) = &mut record.outcome else { continue };
            let causes = MissCauses { compulsory: 4, capacity: 6, invalidation: 3, expiry: 2, refused: 5 };
            let counts = CacheCounts { hits: 60, misses: 20, causes, ..CacheCounts::default() };
            measurement.cache = Some(Box::new(CacheMeasurement { counts, ..CacheMeasurement::default() }));
        }
        let table = table(&analyze(&run, &records)).unwrap();
        assert_eq!(table.rows.len(), 1);
        let cells = ["25.00 ±0.00", "5.00 ±0.00", "7.50 ±0.00", "3.75 ±0.00", "2.50 ±0.00", "6.25 ±0.00"];
        assert_eq!(table.rows[0][1..].iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>(), cells);
        assert_eq!(table.rows[0].len(), table.heads.len());
    }
}
