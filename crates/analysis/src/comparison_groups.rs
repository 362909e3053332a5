//! Groups of design points within which contenders compete.

use study::plan::Plan;

use crate::group_by_key::grouped;
use crate::label::{label, varied};

pub(crate) struct ContenderGroup {
    /// Levels of the other factors that vary, such as `clients 40`; empty if none of them varies.
    pub(crate) label: String,
    /// Indices of the points in the plan, in the order of the factor's levels.
    pub(crate) points: Vec<usize>,
}

/// Whether the trials of a point repeat one configuration; trials of a search are steps at different rates.
pub(crate) fn is_repeated(plan: &Plan, point: usize) -> bool {
    plan.points.get(point).is_some_and(|found| found.load.search.is_none()) && !plan.comes_first(point)
}

pub(crate) fn contender_groups(plan: &Plan, factor: &str) -> Vec<ContenderGroup> {
    let others = plan.factors.iter().filter(|name| *name != factor).collect::<Vec<_>>();
    let varied = varied(plan).into_iter().filter(|name| name != factor).collect::<Vec<_>>();
    let key = |point: usize| others.iter().map(|name| plan.points[point].factors.get(*name)).collect::<Vec<_>>();
    let repeated = (0..plan.points.len()).filter(|point| is_repeated(plan, *point));
    let group = |(_, points): (_, Vec<usize>)| {
        let label = if varied.is_empty() { String::new() } else { label(&varied, &plan.points[points[0]].factors) };
        ContenderGroup { label, points }
    };
    grouped(repeated.map(|point| (key(point), point))).into_iter().map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn points_of_a_group_differ_only_in_the_factor() {
        let (run, _) = example::volley();
        let words = |factor: &str| {
            let of = |place: &ContenderGroup| format!("{}: {:?}", place.label, place.points);
            contender_groups(&run.plan, factor).iter().map(of).collect::<Vec<_>>().join("; ")
        };
        let servers = "cores 1, clients 40: [0, 4, 8]; cores 1, clients 80: [1, 5, 9]; cores 2, clients 40: [2, 6, 10]; cores 2, clients 80: [3, 7, 11]";
        assert_eq!(words("server"), servers);
        assert!(words("cores").starts_with("c-epoll, clients 40: [0, 2]; c-epoll, clients 80: [1, 3]; go"));
        let (run, _) = example::capacity();
        assert!(
            contender_groups(&run.plan, "load")
                .iter()
                .all(|place| place.points.iter().all(|&at| is_repeated(&run.plan, at)))
        );
    }
}
