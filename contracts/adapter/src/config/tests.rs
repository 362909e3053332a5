//! Tests of configurations: all errors at once, defaults, and examples of the declared keys.

use std::path::Path;

use super::*;
use crate::adapter_lifecycle::{StartError, check};

const CONTRACT: &str = "contract 1\nservice Any { GET \"/{item}\"(item) { ensures fine: result.code == 200 } }\n";

const WHOLE: &str = "name = 'a'\ncontract = 'any.contract'\n[protocols.Any]\nkind = 'rest'\n\
                     [[consuming]]\nservice = 'Any'\nendpoint = 'http://127.0.0.1:1'\n";

fn said(text: &str, files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let wrong = match check(&draft("a.toml", text, folder.path())) {
        Ok(_) => Vec::new(),
        Err(StartError::Wrong(wrong)) => wrong,
        Err(other) => panic!("{other}"),
    };
    let folder = format!("{}/", folder.path().display());
    wrong.into_iter().map(|text| text.replace(&folder, "")).collect()
}

#[test]
fn reports_all_errors_at_once() {
    let text = "name = 'unknown'\nadmin = 'nowhere'\ncontract = 'c.contract'\nlisten = 3\n\
                [protocols.Adder]\nkind = 'thrift'\nidl = 'adder.thrift'\n\
                [protocols.Pages]\nkind = 'tcp'\n\
                [protocols.Lost]\nkind = 'soap'\nwsdl = 'lost.wsdl'\n\
                [[consuming]]\nservice = 'Adder'\nendpoint = 'http://a/'\n\
                [[consuming]]\nservice = 'Pages'\nendpoint = 'http://b/'\n\
                [[consuming]]\nservice = 'Nobody'\nendpoint = 'c:1'\n\
                [[providing]]\nservice = 'Pages'\nendpoint = 'ftp://b'\nplain = '127.0.0.1:0'\n\
                [limits]\nidle = '10 parsecs'\nbody = '1GiB'\n\
                [tls.listen]\ncert = 'no.pem'\nkey = 'no.key'\n";
    let contract = "contract 1\nschema \"gone.thrift\"\n\
                    service Adder { add(a, b) { requires a > \"x  ensures result.of == nobody\n ensures nothing == 1 } }\n\
                    service Pages { GET \"/\"(args) { requires has(arg.count) } }\nservice Lost { f(a: Kind) { requires a + 1 == \"1\" } }\n";
    let idl = "service Adder {\n  i32 add(1: i33 a, 2: i32 b)\n}\n";
    insta::assert_snapshot!(said(text, &[("c.contract", contract), ("adder.thrift", idl)]).join("\n"));
}

#[test]
fn reports_only_the_syntax_error_itself() {
    let files = [("any.contract", CONTRACT)];
    assert_eq!(said(WHOLE, &files), [""; 0]);
    for (right, wrong) in [
        ("name = 'a'", "name = 'a"),
        ("name = 'a'", "name = a"),
        ("name = 'a'", "name 'a'"),
        ("contract = 'any.contract'", "contract = \"any.contract"),
        ("[protocols.Any]", "[protocols.Any"),
        ("kind = 'rest'", "kind = rest"),
        ("[protocols.Any]", "allow = ['a:1', 'b:2'\n[protocols.Any]"),
        ("[protocols.Any]", "allow = [\n  'a:1'\n  'b:2',\n]\n[protocols.Any]"),
        ("[protocols.Any]", "[protocols.Any]\nkind = 'rest'"),
        ("[[consuming]]", "[limits]\nidle = '1s'\n[limits]\nbody = 'x'\n[[consuming]]"),
        ("[[consuming]]", "[[consuming]"),
        ("service = 'Any'", "service = 'Any"),
        ("endpoint = 'http://127.0.0.1:1'", "endpoint = "),
    ] {
        let found = said(&WHOLE.replace(right, wrong), &files);
        assert!(found.len() == 1 && found[0].starts_with("a.toml:"), "{wrong}: {found:#?}");
        let more =
            WHOLE.replace(right, wrong) + "[store]\nflush = 'long'\n[tls.listen]\ncert = 'a.pem'\nkey = 'a.key'\n";
        let found = said(&more, &[("any.contract", &CONTRACT.replace("result.code", "reslt.code"))]);
        let told = |part: &str| found.iter().any(|text| text.contains(part));
        // If the `contract` key itself is broken, the error in the contract file is not found.
        let is_known = right != "contract = 'any.contract'";
        let count = 3 + usize::from(is_known);
        assert!(
            found.len() == count && told("store.flush") && told("`reslt`") == is_known && told("a.pem"),
            "{wrong}: {found:#?}"
        );
    }
}

#[test]
fn label_must_match_the_certificate() {
    let key = rcgen::KeyPair::generate().unwrap();
    let of = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap().pem()
    };
    let text = format!("{WHOLE}[tls.peers]\ncert = 'a.pem'\nkey = 'a.key'\nca = 'a.pem'\n");
    let said = |pem: &str| said(&text, &[("any.contract", CONTRACT), ("a.key", &key.serialize_pem()), ("a.pem", pem)]);
    assert_eq!(said(&of(&["a", "b"])), [""; 0]);
    let wrong = said(&of(&["b", "a"]));
    assert!(wrong.len() == 1 && wrong[0].contains("`name` is `a`") && wrong[0].contains("`name = \"b\"`"), "{wrong:?}");
    let wrong = said(&of(&["127.0.0.1"]));
    assert!(wrong.len() == 1 && wrong[0].contains("has no DNS name"), "{wrong:?}");
}

#[test]
fn the_reference_is_what_is_declared() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/adapter.md");
    let text = std::fs::read_to_string(path).unwrap();
    let written = text.split_once("\n## Every key\n\n").and_then(|(_, rest)| rest.split_once("\n## "));
    let written = written.expect("docs/reference/adapter.md has the section").0;
    assert!(written == reference(), "`cargo run -p adapter --example configuration_reference` writes it");
}

#[test]
fn examples_and_defaults_may_stand_where_they_are_shown() {
    assert_eq!(::config::check_declared_examples::mistakes(&ADAPTER), Vec::<String>::new());
}

/// Sets each key to a date, which no key accepts, and expects an error about the key.
#[test]
fn every_declared_key_is_read() {
    for keys in ::config::render_keys::tables(&ADAPTER) {
        for wrong in keys.keys {
            let value = |key: &::config::Key| match key.name {
                name if name == wrong.name => "1979-05-27",
                "kind" if wrong.name == "wsdl" => "\"soap\"",
                "kind" if wrong.name == "tls" => "\"rest\"",
                _ => key.example,
            };
            let head = match keys.name {
                "" => String::new(),
                name @ ("consuming" | "providing") => format!("[[{name}]]\n"),
                name => format!("[{name}]\n"),
            };
            let lines = keys.keys.iter().map(|key| format!("{} = {}\n", key.name, value(key)));
            let text = head + &lines.collect::<String>();
            let place = (1 + text.lines().position(|line| line.ends_with("1979-05-27")).unwrap(), wrong.name.len() + 4);
            let told = draft("", &text, Path::new("")).mistakes;
            let is_told = told.iter().any(|told| (told.line, told.column) == place && told.message.contains("a date"));
            assert!(is_told, "`{}` of `{}`: {told:#?}", wrong.name, keys.name);
        }
    }
}

#[test]
fn defaults_apply_without_their_tables() {
    let tables = "[store]\n[reports]\n[checks]\n[limits]\n[tls]\n[tls.upstream]\n";
    let read = |text: &str| {
        let Draft { config, mistakes, .. } = draft("", text, Path::new(""));
        assert!(mistakes.is_empty(), "{mistakes:?}");
        config
    };
    let bare = read(WHOLE);
    assert_eq!(format!("{bare:?}"), format!("{:?}", read(&format!("{WHOLE}{tables}"))));
    assert_eq!((bare.checks.steps, bare.limits.drain), (contract::STEPS_MAX, Duration::from_secs(5)));
    assert!(bare.tls.upstream_verify && bare.checks.fail_open);
}
