//! Infers the question of a plan from its factors and figures.

use std::fmt;

use crate::group_by_key::distinct;
use crate::plan::{Asked, AskedKind, Design, FigureKind, Level, Plan};
use crate::process_plan::{DIRECT, THROUGH};

impl Plan {
    /// The stated question, or else the first one that the factors, searches and figures of the plan suggest.
    pub fn asked(&self) -> Asked {
        let of = |kind, factor: Option<&str>| Asked { kind, factor: factor.map(str::to_owned) };
        let is_varied = |name: &str| self.levels(name).len() > 1;
        let direct = Level::Text(DIRECT.to_owned());
        let can_add = || is_varied(THROUGH) && self.levels(THROUGH).contains(&&direct);
        // If the selected levels leave the stated question unanswerable, infer a different one.
        let can_be_answered = |asked: &&Asked| match asked.kind {
            AskedKind::Added => can_add(),
            AskedKind::Best | AskedKind::Growth => asked.factor.as_deref().is_some_and(is_varied),
            AskedKind::Capacity | AskedKind::Effects | AskedKind::Values | AskedKind::Gate => true,
        };
        let mut own = (0..self.points.len()).filter(|&at| !self.comes_first(at)).map(|at| &self.points[at]).peekable();
        let is_searched = own.peek().is_some() && own.all(|point| point.load.search.is_some());
        let figure = |kind| self.figures.iter().find(|figure| figure.kind == kind);
        let has_words = |name: &&String| self.levels(name).iter().any(|level| level.as_f64().is_none());
        let mut factors = self.factors.iter().filter(|name| is_varied(name));
        match &self.gate {
            Some(gate) => of(AskedKind::Gate, Some(&gate.of)),
            None if let Some(asked) = self.answer.as_ref().filter(can_be_answered) => asked.clone(),
            None if can_add() => of(AskedKind::Added, Some(THROUGH)),
            None if is_searched => of(AskedKind::Capacity, None),
            None if let Some(curve) = figure(FigureKind::MissRatio) => of(AskedKind::Growth, curve.x.as_deref()),
            None if figure(FigureKind::Interaction).is_some() || self.effects.design == Design::OneAtATime => {
                of(AskedKind::Effects, None)
            }
            None if let Some(contender) = factors.clone().find(has_words) => of(AskedKind::Best, Some(contender)),
            None => {
                factors.next().map_or_else(|| of(AskedKind::Values, None), |number| of(AskedKind::Growth, Some(number)))
            }
        }
    }

    /// The levels of a factor that at least one design point has, in the order of the plan.
    pub fn levels(&self, factor: &str) -> Vec<&Level> {
        distinct(self.points.iter().filter_map(|point| point.factors.get(factor)))
    }

    /// The factor whose levels compete: the factor in question if its levels include a word, or else the first such
    /// factor. `None` if every factor has only numbers, which have no winner.
    pub fn contender(&self) -> Option<&str> {
        let is_contender = |name: &&String| {
            let levels = self.levels(name);
            levels.len() > 1 && levels.iter().any(|level| level.as_f64().is_none())
        };
        let asked = self.asked().factor;
        let of_question = self.factors.iter().find(|name| asked.as_ref() == Some(name)).filter(is_contender);
        of_question.or_else(|| self.factors.iter().find(is_contender)).map(String::as_str)
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let factor = self.factor.as_deref().unwrap_or("design point");
        match self.kind {
            AskedKind::Best => write!(f, "which {factor} is best"),
            AskedKind::Added => write!(f, "what a proxy adds to `{DIRECT}`"),
            AskedKind::Growth => write!(f, "how it grows with {factor}"),
            AskedKind::Capacity => f.write_str("the highest rate that meets the objective"),
            AskedKind::Effects => f.write_str("which factors matter, and how they interact"),
            AskedKind::Values => f.write_str("the values"),
            AskedKind::Gate => write!(f, "whether a {factor} is worse than the baseline"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Profile;
    use crate::{ExpandOptions, expand, parse};

    fn asked(text: &str) -> String {
        let study = parse(text).unwrap();
        let options = ExpandOptions {
            name: "s".into(),
            seed: 1,
            profile: Profile::Default,
            machine_cpus: 4,
            generators_apart: false,
            sets: Vec::new(),
        };
        let plan = expand(&study, &options).unwrap();
        format!("{}; contenders {}", plan.asked(), plan.contender().unwrap_or("none"))
    }

    fn study(rest: &str) -> String {
        format!(
            "question = \"?\"\n[subject]\ncommand = \"a {{x}} -p {{port}}\"\n[load]\nprotocol = \"pingpong\"\nclients = \"{{clients}}\"\nstop = \"1s\"\n{rest}"
        )
    }

    #[test]
    fn infers_the_question_from_factors_and_figures() {
        let words = "[factors]\nclients = [1, 2]\nx = [\"a\", \"b\"]\n";
        assert_eq!(asked(&study(words)), "which x is best; contenders x");
        let numbers = "[factors]\nclients = [1, 2]\nx = [1]\n";
        assert_eq!(asked(&study(numbers)), "how it grows with clients; contenders none");
        let nothing = "[factors]\nclients = [1]\nx = [\"a\"]\n";
        assert_eq!(asked(&study(nothing)), "the values; contenders none");
        let together = "[[figure]]\nkind = \"interaction\"\nx = \"clients\"\nseries = \"x\"\ny = \"throughput\"\n";
        let text = study(&format!("{words}{together}"));
        assert_eq!(asked(&text), "which factors matter, and how they interact; contenders x");
    }

    #[test]
    fn stated_question_comes_first() {
        let words = "[factors]\nclients = [1, 2]\nx = [\"a\", \"b\"]\n";
        let said = |answer: &str| asked(&study(&format!("{words}[answer]\n{answer}")));
        assert_eq!(said("asks = \"growth\""), "how it grows with clients; contenders x");
        assert_eq!(said("asks = \"best\"\nof = \"x\""), "which x is best; contenders x");
        let wrong = |answer: &str| {
            let text = study(&format!("{words}[answer]\n{answer}"));
            parse(&text).unwrap_err()[0].message.clone()
        };
        assert_eq!(wrong("asks = \"growth\"\nof = \"x\""), "growth with `x` is undefined: its levels are words");
        assert!(wrong("asks = \"added\"").starts_with("needs `direct`"));
        assert!(wrong("asks = \"most\"").contains("`most`"), "{}", wrong("asks = \"most\""));
    }
}
