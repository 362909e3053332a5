//! Checks the language reference: its examples are valid, and its tables list every function and rule.

use contract::check;

fn document() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/contracts.md")).unwrap()
}

#[test]
fn every_example_is_a_contract() {
    let text = document();
    let examples =
        text.split("```contract\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect::<Vec<_>>();
    assert_eq!(examples.len(), 4);
    for example in examples {
        let checked = check(example, None);
        assert!(checked.contract.is_some(), "{}", contract::to_text("docs", &checked.findings));
    }
}

#[test]
fn every_function_of_the_table_exists() {
    let text = document();
    let table = text.split("## Functions").nth(1).unwrap().split("\n## ").next().unwrap();
    let names = table
        .split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|word| word.split_once('('))
        .map(|(name, _)| name)
        .filter(|name| !name.is_empty());
    let names = names.collect::<std::collections::BTreeSet<_>>();
    assert_eq!(names.len(), 26, "{names:?}");
    for name in names {
        let text = format!("contract 1 service S {{ f(a) {{ requires {name}(a) == 1 }} }}");
        let unknown = check(&text, None).findings.iter().any(|finding| finding.rule == "unknown-function");
        assert!(!unknown, "{name}");
    }
}

#[test]
fn every_rule_is_in_the_table() {
    let text = document();
    let table = text.split("## Checker rules").nth(1).unwrap();
    let sources = ["token", "parse", "parse/expression", "compile", "compile/expression", "compile/signature", "lint"];
    let mut rules = std::collections::BTreeSet::new();
    for source in sources {
        let path = format!("{}/src/{source}.rs", env!("CARGO_MANIFEST_DIR"));
        let source = std::fs::read_to_string(path).unwrap();
        let source = source.split_whitespace().collect::<String>();
        for call in ["mistake(\"", "mistake_hint(\"", "warn(\"", "note(\""] {
            rules.extend(source.split(call).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()));
        }
    }
    assert!(rules.len() > 20, "{rules:?}");
    for rule in rules {
        assert!(table.contains(&format!("`{rule}`")), "{rule}");
    }
}
