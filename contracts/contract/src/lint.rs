//! Finds suspicious parts of a valid contract.

mod constants_and_bounds;

use std::collections::BTreeSet;

use self::constants_and_bounds::{Bounds, constant, is_empty, is_true};
use crate::finding::{Findings, Rule, Severity, Span};
use crate::functions;
use crate::monitor::report::Kind;
use crate::syntax::{Binary, Clause, ClauseKind, Expr, ExprKind, File, Identifies, Name, Operation, Step};

pub(crate) fn lint(file: &File, text: &str, found: &mut Findings) {
    let mut lint = Lint { text, found };
    lint.services(file);
    for service in &file.services {
        let mut templates: Vec<(&Operation, Vec<&str>)> = Vec::new();
        for operation in &service.operations {
            if operation.method.is_some() {
                lint.template(operation, &mut templates);
            }
            lint.operation(operation);
        }
    }
}

struct Lint<'f> {
    text: &'f str,
    found: &'f mut Findings,
}

impl Lint<'_> {
    fn warn(&mut self, rule: Rule, span: Span, message: impl Into<String>, hint: &str) {
        self.found.push(Severity::Warning, rule, span, message.into(), Some(hint.to_owned()));
    }

    fn note(&mut self, rule: Rule, span: Span, message: impl Into<String>, hint: &str) {
        self.found.push(Severity::Note, rule, span, message.into(), Some(hint.to_owned()));
    }

    fn written(&self, expr: &Expr) -> String {
        self.text[expr.span.range()].split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn services(&mut self, file: &File) {
        let names = |is_meant: &dyn Fn(&Identifies) -> bool| {
            let meant = file.identifies().filter(|identifies| is_meant(identifies));
            meant.map(|identifies| identifies.service.text.as_str()).collect::<BTreeSet<_>>()
        };
        let (named, indexed) = (names(&|_| true), names(&|identifies| identifies.index.is_some()));
        for service in &file.services {
            let Name { text: name, span } = &service.name;
            let mut own = service.operations.iter().flat_map(|operation| &operation.clauses);
            let index = own.find(|clause| matches!(clause.kind, ClauseKind::Expression(Kind::Index, _)));
            if service.operations.is_empty() {
                let message = format!("the service `{name}` has no operations, so nothing is checked");
                self.warn("empty-service", *span, message, "add operations, or remove it");
            } else if !named.contains(name.as_str()) {
                let message = format!("no message introduces a `{name}`: only a configuration can");
                self.note("unused-service", *span, message, "expected if a configuration introduces it");
            }
            if let Some(clause) = index.filter(|_| !indexed.contains(name.as_str())) {
                let message = format!(
                    "no message introduces a `{name}` with an index, so its callers vouch for every member, unless a \
                     configuration does"
                );
                let hint = "add an index to an `identifies` clause, or remove this one";
                self.warn("index-nobody-identifies", clause.span, message, hint);
            }
            let member = file.identifies().find(|each| each.service.text == *name && each.index.is_some());
            if let (None, Some(identifies)) = (index, member) {
                let message = format!("members of `{name}` are distinguished here, but no operation has an `index`");
                let hint = "a call then uses the default member, which no clause here vouches for";
                self.warn("index-nobody-uses", identifies.service.span, message, hint);
            }
        }
    }

    /// Warns of a path template that an earlier template of the same method hides.
    fn template<'f>(&mut self, operation: &'f Operation, before: &mut Vec<(&'f Operation, Vec<&'f str>)>) {
        let parts = operation.name.text.split('/').collect::<Vec<_>>();
        let is_variable = |part: &str| part.starts_with('{') && part.ends_with('}');
        let hides = |(earlier, earlier_parts): &&(&Operation, Vec<&str>)| {
            let mut pairs = earlier_parts.iter().zip(&parts);
            earlier.method.as_ref().map(|method| &method.text) == operation.method.as_ref().map(|method| &method.text)
                && earlier_parts.len() == parts.len()
                && pairs.all(|(earlier, later)| earlier == later || is_variable(earlier))
        };
        if let Some((earlier, _)) = before.iter().find(hides) {
            let message = format!("`{}` above matches every path that this one would", earlier.name.text);
            self.warn("shadowed", operation.name.span, message, "templates are tried in order: put this one first");
        }
        before.push((operation, parts));
    }

    fn operation(&mut self, operation: &Operation) {
        let mut texts = BTreeSet::new();
        let (mut required, mut ensured) = (Bounds::default(), Bounds::default());
        let names = operation.params.iter().map(|param| param.name.text.clone()).collect::<Vec<_>>();
        for clause in &operation.clauses {
            let (kind, expr) = match &clause.kind {
                ClauseKind::Identifies(identifies) => {
                    self.identifies(identifies, &names);
                    continue;
                }
                ClauseKind::Expression(kind, expr) => (*kind, expr),
                ClauseKind::Untyped => continue,
            };
            self.inside(expr, &names);
            if kind == Kind::Index {
                if constant(expr).is_some() {
                    let index = self.written(expr);
                    let message = format!("this index is always `{index}`, so all calls use one member");
                    let hint = "an index distinguishes calls: derive it from an argument";
                    self.warn("constant", expr.span, message, hint);
                }
                continue;
            }
            if !texts.insert((kind.keyword(), expr.without_place())) {
                self.warn("repeated", expr.span, "duplicate clause", "remove one of them");
                continue;
            }
            let bounds = match kind {
                Kind::Precondition => Some(&mut required),
                Kind::Postcondition => Some(&mut ensured),
                _ => None,
            };
            self.decides(clause, expr, bounds);
        }
    }

    fn decides(&mut self, clause: &Clause, expr: &Expr, together: Option<&mut Bounds>) {
        let (span, message) = match is_true(expr) {
            Some(true) => {
                return self.warn("constant", expr.span, "this clause always holds", "it checks nothing: remove it");
            }
            Some(false) => (expr.span, "this clause can never hold".to_owned()),
            None => {
                let alone = Bounds::default().add(expr).map(|term| (term, "this clause can never hold"));
                let with_others = "this clause and those before it can never hold together";
                let never = alone.or_else(|| Some((together?.add(expr)?, with_others)));
                let Some((term, never)) = never else { return };
                (clause.span, format!("{never}: no value is left for `{}`", self.written(term)))
            }
        };
        self.warn("contradiction", span, message, "every call would be reported");
    }

    fn identifies(&mut self, identifies: &Identifies, names: &[String]) {
        let mut names = names.to_vec();
        for step in &identifies.steps {
            let (name, expr) = match step {
                Step::For(local, expr) | Step::Let(local, expr) => (Some(&local.name), expr),
                Step::When(expr) => (None, expr),
            };
            self.inside(expr, &names);
            if let Some(name) = name {
                self.shadows(name, &names);
                names.push(name.text.clone());
            }
            let never = match (step, is_true(expr)) {
                (Step::When(_), Some(true)) => {
                    self.warn("constant", expr.span, "this condition always holds", "remove it");
                    continue;
                }
                (Step::When(_), Some(false)) => "this condition never holds",
                (Step::For(..), _) if is_empty(expr) => "this list is empty",
                _ => continue,
            };
            let message = format!("{never}, so nothing is ever introduced here");
            self.warn("unreachable", expr.span, message, "remove the clause");
        }
        self.inside(&identifies.at, &names);
        identifies.index.iter().for_each(|index| self.inside(index, &names));
    }

    fn shadows(&mut self, name: &Name, names: &[String]) {
        if names.contains(&name.text) {
            let message = format!("`{}` shadows another `{}`", name.text, name.text);
            self.warn("shadowed", name.span, message, "rename it");
        } else if functions::find(&name.text).is_some() {
            let message = format!("`{}` is also a function", name.text);
            self.note("shadowed", name.span, message, "allowed, but confusing; rename it");
        }
    }

    fn inside(&mut self, expr: &Expr, names: &[String]) {
        let mut unreachable = |part: &Expr, why: &str| {
            let message = format!("`{}` is never evaluated: {why}", self.written(part));
            self.warn("unreachable", part.span, message, "remove it");
        };
        match &expr.kind {
            ExprKind::If(condition, yes, no) => match is_true(condition) {
                Some(true) => unreachable(no, "the condition always holds"),
                Some(false) => unreachable(yes, "the condition never holds"),
                None => {}
            },
            ExprKind::Binary(Binary::And, a, b) if is_true(a) == Some(false) => {
                unreachable(b, "the operand before it never holds");
            }
            ExprKind::Binary(Binary::Or, a, b) if is_true(a) == Some(true) => {
                unreachable(b, "the operand before it always holds");
            }
            ExprKind::Binary(operator, a, b) => self.operands(expr, *operator, a, b),
            ExprKind::Index(of, at) => self.position(expr, of, at),
            _ => {}
        }
        let mut within = names.to_vec();
        if let ExprKind::Quantifier(_, local, first, _) | ExprKind::Let(local, first, _) = &expr.kind {
            self.shadows(&local.name, names);
            within.push(local.name.text.clone());
            self.inside(first, names);
            return self.inside(expr.parts().pop().expect("the body is its last part"), &within);
        }
        expr.parts().into_iter().for_each(|part| self.inside(part, names));
    }

    fn operands(&mut self, expr: &Expr, operator: Binary, a: &Expr, b: &Expr) {
        let shown = self.written(expr);
        let values = (constant(a), constant(b));
        if operator.is_comparison() && values.0.is_none() && a.without_place() == b.without_place() {
            let message = format!("`{shown}` compares a value with itself");
            let hint = "compare it with another value; `has(x)` checks whether `x` is present";
            self.warn("same-sides", expr.span, message, hint);
        }
        if operator == Binary::In
            && matches!(&b.kind, ExprKind::List(items) | ExprKind::Tuple(items) if items.is_empty())
        {
            let message = format!("`{shown}` never holds: the list is empty");
            self.warn("empty-list", expr.span, message, "add the allowed values to the list");
        }
        match values {
            // A float divided by zero is infinite, which is a value.
            (Some(ExprKind::Float(_)), _) => {}
            (_, Some(ExprKind::Int(0))) if matches!(operator, Binary::Divided | Binary::Remainder) => {
                let message = format!("`{shown}` divides by zero: with whole numbers that gives no verdict");
                self.warn("division-by-zero", b.span, message, "divide by something else");
            }
            (Some(ExprKind::Int(a)), Some(ExprKind::Int(b)))
                if operator.sign().1 > Binary::COMPARISON && operator.checked(a, b).is_none() =>
            {
                let message = format!("`{shown}` does not fit in 64 bits, so the clause has no verdict");
                self.warn("overflow", expr.span, message, "use smaller numbers, or floats: `1e19`");
            }
            _ => {}
        }
    }

    fn position(&mut self, expr: &Expr, of: &Expr, at: &Expr) {
        let (ExprKind::List(items) | ExprKind::Tuple(items)) = &of.kind else { return };
        let Some(ExprKind::Int(position)) = constant(at) else { return };
        if usize::try_from(position).is_ok_and(|position| position < items.len()) {
            return;
        }
        let (shown, count) = (self.written(expr), items.len());
        let s = if count == 1 { "" } else { "s" };
        let message = format!("`{shown}` is out of range: the list has {count} item{s}, so the clause has no verdict");
        let hint = match count {
            0 => "add items to the list".to_owned(),
            1 => "its only index is 0".to_owned(),
            _ => format!("valid indexes are 0 to {}", count - 1),
        };
        self.warn("out-of-range", at.span, message, &hint);
    }
}
