//! Containers and companions of a design point, with their CPU time and memory.

use study::record::{Record, SubjectUse};

use crate::findings::{HostedFinding, MedianRange, Row};
use crate::number::ratio;

/// Number of digits of a container ID that reports show, the same as in container engines.
const ID_DIGITS: usize = 12;

pub(crate) fn hosted(row: &Row, records: &[&Record]) -> Vec<HostedFinding> {
    if row.n == 0 {
        return Vec::new();
    }
    let measured = records.iter().copied().filter(|record| record.measurement().is_some()).collect::<Vec<_>>();
    let servers = measured.iter().map(|record| (*record, &record.subject, record.ready_ns)).collect::<Vec<_>>();
    let mut found = vec![one(&row.label, None, &servers)];
    for companion in measured.first().into_iter().flat_map(|record| &record.companions) {
        let uses = measured.iter().filter_map(|record| {
            let one = record.companions.iter().find(|one| one.name == companion.name)?;
            Some((*record, &one.used, one.ready_ns))
        });
        found.push(one(&row.label, Some(companion.name.clone()), &uses.collect::<Vec<_>>()));
    }
    found
}

type OfUse<'a> = &'a dyn Fn(&Record, &SubjectUse, Option<u64>) -> Option<f64>;

fn one(label: &str, companion: Option<String>, uses: &[(&Record, &SubjectUse, Option<u64>)]) -> HostedFinding {
    let range = |value: OfUse<'_>| {
        MedianRange::of(uses.iter().filter_map(|(record, used, ready_ns)| value(record, used, *ready_ns)))
    };
    let group = |used: &SubjectUse| used.container.as_ref()?.cgroup.clone();
    HostedFinding {
        label: label.to_owned(),
        companion,
        runs_as: uses.last().map_or_else(String::new, |(_, used, _)| runs_as(used)),
        ready_ns: range(&|_, _, ready_ns| ready_ns.map(|ns| ns as f64)),
        cpu_per_request_ns: range(&|record, used, _| ratio(used.cpu_ns(), record.measurement()?.requests as f64)),
        rss_max_bytes: range(&|_, used, _| used.rss_max_bytes.map(|bytes| bytes as f64)),
        charged_max_bytes: range(&|_, used, _| group(used)?.memory_max_bytes.map(|bytes| bytes as f64)),
        io_bytes: range(&|_, used, _| {
            let group = group(used)?;
            group.read_bytes.zip(group.written_bytes).map(|(read, written)| read.saturating_add(written) as f64)
        }),
    }
}

fn runs_as(used: &SubjectUse) -> String {
    let Some(container) = &used.container else { return "process".to_owned() };
    let id = container.image_id.strip_prefix("sha256:").unwrap_or(&container.image_id);
    let id = id.get(..ID_DIGITS).unwrap_or(id);
    let network = container.published.map_or_else(String::new, |inside| format!(", port {inside} published"));
    format!("{}, {} ({id}){network}", container.engine, container.image)
}

#[cfg(test)]
mod tests {
    use study::record::{CgroupUse, ContainerUse, ProxyUse};

    use super::*;
    use crate::example;

    #[test]
    fn lists_all_servers_if_one_is_in_a_container() {
        let (run, mut records) = example::volley();
        assert!(crate::analyze(&run, &records).hosted.is_empty());
        let cgroup = CgroupUse {
            memory_max_bytes: Some(5_000_000),
            read_bytes: Some(4_096),
            written_bytes: Some(1),
            ..CgroupUse::default()
        };
        let container = ContainerUse {
            engine: "podman 4.3.1".to_owned(),
            image: "mine".to_owned(),
            image_id: "sha256:0123456789abcdef".to_owned(),
            published: Some(80),
            cgroup: Some(cgroup),
        };
        let point = records[0].point;
        for record in records.iter_mut().filter(|record| record.point == point) {
            record.subject.container = Some(Box::new(container.clone()));
            let used = SubjectUse { user_ns: 7_000, rss_max_bytes: Some(9), ..SubjectUse::default() };
            record.companions = vec![ProxyUse { name: "db".to_owned(), used, ..ProxyUse::default() }];
        }
        let found = crate::analyze(&run, &records).hosted;
        let in_container =
            found.iter().filter(|one| one.companion.is_none() && one.runs_as != "process").collect::<Vec<_>>();
        assert_eq!(in_container.len(), 1);
        assert_eq!(in_container[0].runs_as, "podman 4.3.1, mine (0123456789ab), port 80 published");
        assert_eq!(in_container[0].io_bytes.map(|range| range.median), Some(4_097.0));
        assert!(found.iter().any(|one| one.runs_as == "process" && one.charged_max_bytes.is_none()));
        let beside = found.iter().filter(|one| one.companion.is_some()).collect::<Vec<_>>();
        assert_eq!((beside.len(), beside[0].rss_max_bytes.map(|range| range.max)), (1, Some(9.0)));
    }
}
