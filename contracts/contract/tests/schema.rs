//! Tests of contracts that match a schema or contradict it.

use std::collections::BTreeMap;

use contract::{Field, Schema, Signature, Type, check, check_partly, to_text};

fn schema() -> Schema {
    let note = vec![
        Field::new("guid", Type::Text),
        Field::optional("parent", Type::Named("Note".to_owned())),
        Field::optional("tags", Type::List(Box::new(Type::Text))),
        Field::optional("counts", Type::Map(Box::new(Type::Int), Box::new(Type::Float))),
    ];
    let find = Signature {
        params: vec![Field::new("token", Type::Text), Field::new("offset", Type::Int)],
        result: Some(Type::List(Box::new(Type::Named("Note".to_owned())))),
    };
    let outcomes = ["Success", "NoDrawWasOffered", "InvalidGameID"].map(str::to_owned).to_vec();
    let play = Signature { params: Vec::new(), result: Some(Type::Choice(outcomes)) };
    Schema {
        types: BTreeMap::from([("Note".to_owned(), note)]),
        services: BTreeMap::from([(
            "Notes".to_owned(),
            BTreeMap::from([("find".to_owned(), find), ("play".to_owned(), play)]),
        )]),
    }
}

fn said(text: &str) -> String {
    to_text("c", &check(text, Some(&schema())).findings)
}

#[test]
fn accepts_matching_contracts() {
    let text = r#"contract 1
schema "notes.thrift"
service Notes {
    find(t, from) {
        index t
        requires from >= 0
        ensures all(n in result : n.parent.parent.guid != n.guid && "x" in n.tags && n.counts[7] < 1.5)
        reply identifies Notes at n.guid index (n.guid, from) for n in result
    }
    play() { ensures result != "NoDrawWasOffered" }
}"#;
    let checked = check(text, Some(&schema()));
    assert!(checked.contract.is_some(), "{}", to_text("c", &checked.findings));
    assert_eq!(checked.file.schemas[0].text, "notes.thrift");
    assert_eq!(said(text), "");
}

#[test]
fn reports_mismatches() {
    insta::assert_snapshot!(said(
        r#"contract 1
service Notes {
    find(t) { requires t > 0 }
    find2() ;
    play() {
        ensures result != "NoDrawWasOfered"
        ensures result + 1 == 2
    }
}
service Note { x(); }
service Other {
    f(n: Note, m: list<Nite>) -> Note {
        requires n.gid == "" || n.parent.tags.a == "" || n.counts["7"] == 1.0 || n == 1 || "a" in n.counts
        ensures result.parent.parent.tgs == []
        request identifies Notes at n index n
        request identifies Notes at n.guid for tag in n.guid
    }
}"#
    ));
}

#[test]
fn incomplete_schema_reports_no_missing_names() {
    let text = r#"contract 1
service Others { f(a: Missing) -> list<Absent> { requires a.b == 1  ensures result[0].c == a.d } }
service Notes { find(t, from) { requires from + "1" == 2 } }"#;
    let found = to_text("c", &check_partly(text, &schema()).findings);
    assert_eq!(found.lines().count(), 2, "{found}");
    assert!(found.contains("`+` does not take an int and text"), "{found}");
    assert!(
        said(text).contains("no service `Others`") && said(text).contains("unknown type `Missing`"),
        "{}",
        said(text)
    );
}
