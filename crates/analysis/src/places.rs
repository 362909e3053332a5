//! Where contenders meet: design points that differ in one factor alone.

use study::plan::{Level, Plan};

use crate::label::{label, varied};

/// Design points that differ in one factor alone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    /// Levels of the other factors that vary, `clients 40`; empty where none does.
    pub(crate) label: String,
    /// The points, in the order of the factor's levels in the plan.
    pub(crate) points: Vec<usize>,
}

/// Whether a point has trials that repeat each other: those of searches are steps.
pub(crate) fn is_repeated(plan: &Plan, point: usize) -> bool {
    plan.points.get(point).is_some_and(|found| found.load.search.is_none()) && !plan.comes_first(point)
}

/// The places of a factor, in the order of the plan.
pub(crate) fn places(plan: &Plan, factor: &str) -> Vec<Place> {
    let others = plan.factors.iter().filter(|name| *name != factor).collect::<Vec<_>>();
    // Only what varies tells places apart for a reader.
    let varied = varied(plan).into_iter().filter(|name| name != factor).collect::<Vec<_>>();
    let mut places = Vec::<(Vec<Option<&Level>>, Place)>::new();
    for (index, point) in plan.points.iter().enumerate().filter(|(index, _)| is_repeated(plan, *index)) {
        let key = others.iter().map(|name| point.factors.get(*name)).collect::<Vec<_>>();
        match places.iter_mut().find(|(known, _)| *known == key) {
            Some((_, place)) => place.points.push(index),
            None => {
                let label = if varied.is_empty() { String::new() } else { label(&varied, &point.factors) };
                places.push((key, Place { label, points: vec![index] }));
            }
        }
    }
    places.into_iter().map(|(_, place)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn points_of_a_place_differ_in_the_factor_alone() {
        let (run, _) = example::volley();
        let words = |factor: &str| {
            let of = |place: &Place| format!("{}: {:?}", place.label, place.points);
            places(&run.plan, factor).iter().map(of).collect::<Vec<_>>().join("; ")
        };
        let servers = "cores 1, clients 40: [0, 4, 8]; cores 1, clients 80: [1, 5, 9]; cores 2, clients 40: [2, 6, 10]; cores 2, clients 80: [3, 7, 11]";
        assert_eq!(words("server"), servers);
        assert!(words("cores").starts_with("c-epoll, clients 40: [0, 2]; c-epoll, clients 80: [1, 3]; go"));
        let (run, _) = example::capacity();
        assert!(
            places(&run.plan, "load").iter().all(|place| place.points.iter().all(|&at| is_repeated(&run.plan, at)))
        );
    }
}
