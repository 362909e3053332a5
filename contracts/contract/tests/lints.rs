//! Tests of the linter: contracts with and without warnings.

use contract::{Severity, check, to_text};

fn of(clauses: &str) -> String {
    let text = format!("contract 1 service S {{ f(a, b) {{ {clauses} }} }}");
    let findings = check(&text, None).findings;
    assert!(findings.iter().all(|finding| finding.severity != Severity::Mistake), "{}", to_text("", &findings));
    let said = findings.iter().filter(|finding| finding.rule != "unused-service");
    said.map(|finding| format!("{} {}", finding.rule, &text[finding.span.clone()])).collect::<Vec<_>>().join("; ")
}

#[test]
fn warns_of_constant_clauses() {
    for (clauses, expected) in [
        ("requires true", "constant true"),
        ("requires 1 < 2", "constant 1 < 2"),
        ("requires a > 1 || true", "constant a > 1 || true"),
        ("requires false", "contradiction false"),
        ("requires len(a) < 0", "contradiction len(a) < 0"),
        ("requires 0 <= len(a)", "constant 0 <= len(a)"),
        ("requires len(a) != -1", "constant len(a) != -1"),
        ("requires \"a\" + \"b\" == \"ab\"", "constant \"a\" + \"b\" == \"ab\""),
        ("requires a > 3 && a < 3", "contradiction requires a > 3 && a < 3"),
        ("requires a >= 4 && a < 4", "contradiction requires a >= 4 && a < 4"),
        ("requires len(a) > 3 && len(a) < 4", "contradiction requires len(a) > 3 && len(a) < 4"),
        ("requires a == 1 && a != 1", "contradiction requires a == 1 && a != 1"),
        ("requires a == \"x\" && \"y\" == a", "contradiction requires a == \"x\" && \"y\" == a"),
        ("requires a > 3 requires b == 1 requires a < 2", "contradiction requires a < 2"),
        ("requires a > 3 requires a > 3", "repeated a > 3"),
        ("index 1", "constant 1"),
    ] {
        let found = of(clauses);
        let found =
            found.replace("; index-nobody-identifies index 1", "").replace("index-nobody-identifies index 1; ", "");
        assert_eq!(found, expected, "{clauses}");
    }
}

#[test]
fn warns_of_unreachable_and_hidden_parts() {
    for (clauses, expected) in [
        ("requires true ? a == 1 : b == 1", "unreachable b == 1"),
        ("ensures a == 1 || (false && b == 1)", "unreachable b == 1"),
        ("request identifies S at a for x in []", "unreachable []"),
        ("request identifies S at a when 1 == 2", "unreachable 1 == 2"),
        ("request identifies S at a when true", "constant true"),
        ("requires all(a in b : a == 1)", "shadowed a"),
        ("requires let b = 2; a == b", "shadowed b"),
        ("requires let len = 2; a == len", "shadowed len"),
        ("request identifies S at a for b in b", "shadowed b"),
    ] {
        assert_eq!(of(clauses), expected, "{clauses}");
    }
}

#[test]
fn warns_of_undefined_and_constant_operations() {
    let clauses = r#"
        requires a != a
        requires a.x[1] < a.x[1]
        requires len(a) == 1 && len(b) == len(b)
        requires a / 0 == 1
        requires a % (3 - 3) == 1 || 1.0 / 0 > 1.0
        requires 9223372036854775807 + 1 == a
        requires 4611686018427387904 * 2 == a
        requires (-9223372036854775807 - 1) / -1 == a
        requires a in []
        requires all(x in a : !(x in []))
        requires [1, 2][2] == a
        requires [1][-1] == a || [][0] == b
        requires (a, b)[7] == 1
    "#;
    let text = format!("contract 1\nservice S {{ f(a, b) {{ {clauses} }} }}");
    let findings = check(&text, None).findings;
    assert!(findings.iter().all(|finding| finding.severity != Severity::Mistake), "{}", to_text("", &findings));
    insta::assert_snapshot!(to_text("c", &findings));
}

#[test]
fn accepts_meaningful_clauses() {
    for clauses in [
        "requires a > 3 && a < 4",
        "requires a > 3 requires b < 3",
        "requires 7 % 2 == a && 1.5 / 0 > a && a / 1 == 0",
        "requires a in [1] && [1, 2][1] == a && (a, b)[0] == 1",
        "requires 9223372036854775806 + 1 == a && has(a) == has(b)",
        "requires a == 1 || a == 2",
        "requires !(a > 3) && a > 3 - 1",
        "requires len(a) > 0 ensures len(a) < 1",
        "requires a >= 1 && a <= 1",
        "requires a != 1 && a != 2",
        "request identifies S at a for x in b when x == 1",
    ] {
        assert_eq!(of(clauses), "", "{clauses}");
    }
}

#[test]
fn services_and_templates() {
    let text = r#"contract 1
service Empty {}
service Told { f(a) { reply identifies Plain at a index a } }
service Plain { g(a); }
service Alone { h(a) { index a } }
service Web { GET "/u/{id}"(id); GET "/u/me"(); POST "/u/me"(); GET "/u/{id}/x"(id); }
"#;
    insta::assert_snapshot!(to_text("c", &check(text, None).findings));
}

#[test]
fn shipped_contracts() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("contracts");
    let mut paths = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>();
    paths.sort();
    let mut all = String::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let checked = check(&text, None);
        assert!(checked.contract.is_some());
        let name = path.file_name().unwrap().to_str().unwrap();
        all += &to_text(name, &checked.findings);
        let other = format!("# A comment.\n{}", text.replace('\n', "\n\n").replace("    ", "\t"));
        let hash = check(&other, None).contract.unwrap().hash;
        assert_eq!(hash, checked.contract.unwrap().hash, "layout and comments do not change the hash");
    }
    insta::assert_snapshot!(all);
}
