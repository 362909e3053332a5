//! Properties that hold for any text, any message and any sequence of calls.

use std::collections::{BTreeMap, BTreeSet};

use crate::adapters_in_memory::{World, ask, message_value};
use contract::metadata::UNKNOWN;
use contract::metadata::{
    CallContext, Identified, RequestMetadata, decode_reply, decode_request, encode_reply, encode_request,
};
use contract::monitor::Side;
use contract::monitor::report::Kind;
use contract::{Env, Scratch, Value, check};
use proptest::prelude::*;
use serde_json::json;

/// Words of the language in any order, which parse further than random characters.
fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "contract",
        "1",
        "service",
        "S",
        "{",
        "}",
        "(",
        ")",
        "f",
        "a",
        ",",
        ":",
        ";",
        "requires",
        "ensures",
        "index",
        "reply",
        "request",
        "identifies",
        "at",
        "for",
        "in",
        "when",
        "let",
        "=",
        "==",
        "<",
        "&&",
        "||",
        "!",
        "-",
        "+",
        "[",
        "]",
        ".",
        "?",
        "all",
        "any",
        "count",
        "len",
        "text",
        "result",
        "receiver",
        "\"x\"",
        "'",
        "1.5",
        "->",
        "list",
        "map",
        ">",
        "int",
        "GET",
        "\"/a/{b}\"",
        "#",
        "\n",
        "true",
        "on_error",
        "error",
        "schema",
        "ä",
        "matches",
        "99999999999999999999",
    ]);
    prop::collection::vec(word, 0..80).prop_map(|words| format!("contract 1 service S {{ {} ", words.join(" ")))
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a",
        "b",
        "receiver",
        "1",
        "0",
        "2.5",
        "1e300",
        "true",
        "\"x\"",
        "'it\\'s'",
        "a.f",
        "b[0]",
        "9223372036854775807",
        "[]",
        "()",
        "a.list",
        "a.text",
        "[1, 2]",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(5, 40, 3, |inner| {
        let two = prop::sample::select(vec!["+", "-", "*", "/", "%", "==", "!=", "<", ">=", "in", "&&", "||"]);
        let one = prop::sample::select(vec![
            "len",
            "text",
            "int",
            "has",
            "lower",
            "is_list",
            "float",
            "time_ms",
            "pgn_valid",
        ]);
        let each = prop::sample::select(vec!["all", "any", "count"]);
        prop_oneof![
            (inner.clone(), two, inner.clone()).prop_map(|(a, sign, b)| format!("({a}) {sign} ({b})")),
            inner.clone().prop_map(|a| format!("!({a})")),
            inner.clone().prop_map(|a| format!("-({a})")),
            (one, inner.clone()).prop_map(|(function, a)| format!("{function}({a})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("(({a}) ? {b} : {c})")),
            (each, inner.clone(), inner.clone()).prop_map(|(each, a, b)| format!("{each}(x in {a} : {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(let y = {a}; {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}, {b})[0]")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("min({a}, {b})")),
        ]
    })
}

fn message() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        any::<f64>().prop_map(|value| json!(value)),
        "[ -~äö]{0,12}".prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(4, 30, 4, |inner| {
        let name = prop::sample::select(vec!["f", "list", "text", "g"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| json!(items)),
            prop::collection::btree_map(name, inner, 0..4).prop_map(|fields| json!(fields)),
        ]
    })
}

fn text(limit: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(any::<char>(), 0..limit).prop_map(|chars| chars.into_iter().collect())
}

fn entry() -> impl Strategy<Value = Identified> {
    let label = || prop::sample::select(vec!["unknown", "a", "b", "c"]).prop_map(str::to_owned);
    let endpoint = prop::sample::select(vec!["here:1", "there:2", ""]).prop_map(str::to_owned);
    let service = prop::sample::select(vec!["K", "L"]).prop_map(str::to_owned);
    let rest =
        (prop::option::of(text(20)), prop::option::of(text(20)), any::<bool>(), prop::collection::vec(label(), 0..4));
    (endpoint, service, rest).prop_map(|(endpoint, service, (index, peer, secret, labels))| Identified {
        endpoint,
        service,
        index,
        peer,
        secret,
        labels,
    })
}

proptest! {
    #[test]
    fn any_text_is_a_contract_or_has_located_errors(text in prop_oneof![text(200), words()]) {
        let checked = check(&text, None);
        let lines = text.split('\n').count();
        for finding in &checked.findings {
            prop_assert!(text.get(finding.span.clone()).is_some(), "{finding:?}");
            prop_assert!((1..=lines).contains(&finding.line) && finding.column >= 1, "{finding:?}");
        }
        prop_assert_eq!(checked.contract.is_none(), checked.findings.iter().any(|f| f.severity == contract::Severity::Mistake));
    }

    #[test]
    fn every_clause_has_a_verdict_within_its_step_limit(expression in expression(), a in message(), b in message(), steps in 0_u64..300) {
        let text = format!("contract 1 service S {{ f(a, b) {{ requires {expression} }} }}");
        let Some(contract) = check(&text, None).contract else { return Ok(()) };
        let operation = contract.operation(contract.service("S").unwrap(), "f").unwrap();
        let messages = [message_value(&a), message_value(&b)];
        let args = messages.each_ref().map(|message| message.value());
        let env = Env { args: &args, outcome: Value::Missing, receiver: "r", steps_max: contract::STEPS_MAX };
        let mut scratch = Scratch::default();
        let clause = contract.clauses(operation, Kind::Precondition).next().unwrap();
        let whole = clause.judge(env, &mut scratch);
        prop_assert_eq!(clause.judge(env, &mut scratch), whole, "a clause has no memory");
        // Fewer steps cannot invert the verdict, but may end in an error, which `&&` and `||` may absorb.
        let cut = clause.judge(Env { steps_max: steps, ..env }, &mut scratch);
        prop_assert!(cut.is_err() || cut == whole, "{:?} {:?}", cut, whole);
    }

    #[test]
    fn metadata_round_trips(
        sender in text(20),
        invoked in prop::collection::vec(text(8), 0..5),
        entries in prop::collection::vec(entry(), 0..6),
    ) {
        let known = CallContext { receiver: "here:1", service: "K", sender: &sender };
        let request = RequestMetadata { sender: sender.clone(), invoked, entries: entries.clone() };
        let block = encode_request(&request, known);
        prop_assert_eq!(decode_request(&block, known), Some(request));
        for cut in 0..block.len() {
            prop_assert!(decode_request(&block[..cut], known).is_none(), "cut at {}", cut);
        }
        prop_assert_eq!(decode_reply(&encode_reply(&entries, known), known), Some(entries));
    }

    #[test]
    fn any_block_is_metadata_or_an_error(block in prop::collection::vec(any::<u8>(), 0..100)) {
        let known = CallContext { receiver: "here:1", service: "K", sender: "s" };
        for head in [0x10, 0x12, 0x13] {
            let block = [&[head], &block[..]].concat();
            if let Some(request) = decode_request(&block, known) {
                prop_assert_eq!(decode_request(&encode_request(&request, known), known), Some(request));
            }
            if let Some(reply) = decode_reply(&block, known) {
                prop_assert_eq!(decode_reply(&encode_reply(&reply, known), known), Some(reply));
            }
        }
    }
}

/// A service whose members introduce each other, in the arguments of calls and in the results of replies.
const CHAIN: &str = "contract 1 service K {
    give(to: text, n: int, own: int) { index own request identifies K at to index n }
    take(own: int) -> {at: text, n: int} { index own reply identifies K at result.at index result.n }
    fail(own: int) -> int { index own requires result_wanted: own < 0 ensures never: result == 1 }
}";

/// Number of parties. The low bits of `adapters` select the parties with an adapter.
const PARTIES: usize = 4;

#[derive(Clone, Debug)]
struct Move {
    from: usize,
    to: usize,
    own: u8,
    what: u8,
    named: usize,
    n: u8,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = (0..PARTIES, 0..PARTIES, 0_u8..3, 0_u8..3, 0..PARTIES, 0_u8..3);
    let one = one.prop_map(|(from, to, own, what, named, n)| Move { from, to, own, what, named, n });
    prop::collection::vec(one, 1..40)
}

/// The origin of an entry, tracked independently of the monitors and called V in Whip's paper.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Provenance {
    Introduced(usize),
    By(Entry),
    Configured(usize),
}

type Entry = (usize, Option<u8>);

/// The parties that may be blamed according to an entry's provenance.
fn closure(known: &BTreeMap<Entry, BTreeSet<Provenance>>, entry: Entry) -> BTreeSet<usize> {
    let (mut parties, mut seen, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![entry]);
    while let Some(entry) = open.pop() {
        if !seen.insert(entry) {
            continue;
        }
        for provenance in known.get(&entry).into_iter().flatten() {
            match provenance {
                Provenance::Introduced(party) | Provenance::Configured(party) => drop(parties.insert(*party)),
                Provenance::By(entry) => open.push(*entry),
            }
        }
    }
    parties
}

fn blame_stays_within_provenance(moves: &[Move], adapters: u8, sides: [Side; 2]) -> Result<usize, TestCaseError> {
    let mut world = World::of_text(CHAIN);
    let has = |party: usize| adapters >> party & 1 == 1;
    let (endpoint, address) = (|party: usize| format!("e{party}:1"), |party: usize| format!("x{party}:9"));
    let label = |party: usize| format!("p{party}");
    let mut known = BTreeMap::<Entry, BTreeSet<Provenance>>::new();
    for party in (0..PARTIES).filter(|&party| has(party)) {
        world.adapter_at(&address(party), &label(party), sides);
        for other in 0..PARTIES {
            let vouching = if has(other) { label(other) } else { UNKNOWN.to_owned() };
            let peer = has(other).then(|| address(other));
            world.configure(&address(party), &endpoint(other), "K", &[&vouching], peer.as_deref());
            known.entry((other, None)).or_default().insert(Provenance::Configured(other));
        }
    }
    let mut reported = 0;
    for Move { from, to, own, what, named, n } in moves.iter().cloned() {
        let invoked = (to, Some(own));
        known.entry(invoked).or_default().insert(Provenance::Introduced(from));
        let (operation, args, result) = match what {
            0 => ("give", json!([endpoint(named), n, own]), json!(null)),
            1 => ("take", json!([own]), json!({"at": endpoint(named), "n": n})),
            _ => ("fail", json!([own]), json!(0)),
        };
        match what {
            0 => drop(known.entry((named, Some(n))).or_default().insert(Provenance::Introduced(from))),
            1 => drop(known.entry((named, Some(n))).or_default().insert(Provenance::By(invoked))),
            _ => {}
        }
        let (client, server, receiver) = (address(from), address(to), endpoint(to));
        let asked = crate::adapters_in_memory::Asked {
            client: has(from).then_some(client.as_str()),
            public: has(to).then_some(server.as_str()),
            ..ask("", &receiver, operation, args, result)
        };
        for report in world.call(&asked).reports {
            reported += 1;
            let allowed = match report.kind {
                Kind::Precondition => BTreeSet::from([from]),
                _ => closure(&known, invoked),
            };
            // All parties without an adapter share the label `unknown`.
            let all_there = allowed.iter().all(|&party| has(party));
            let allowed = allowed.into_iter().map(|party| if has(party) { label(party) } else { UNKNOWN.to_owned() });
            let allowed = allowed.collect::<BTreeSet<_>>();
            prop_assert!(!report.blamed.is_empty());
            for blamed in &report.blamed {
                let unknown_hop = *blamed == UNKNOWN && adapters.count_ones() < PARTIES as u32;
                prop_assert!(allowed.contains(blamed) || unknown_hop, "{blamed} of {allowed:?}, {all_there}: {report}");
            }
        }
    }
    Ok(reported)
}

proptest! {
    /// The theorem of correct blame from Whip's paper, with adapters at any of the parties.
    #[test]
    fn blame_is_within_provenance(moves in moves(), adapters in 0_u8..16, sender in any::<bool>()) {
        // Checks each clause at the first possible adapter, as in the paper.
        let first = [Side::Sender; 2];
        let sides = if sender { first } else { [Side::Receiver; 2] };
        blame_stays_within_provenance(&moves, adapters, sides)?;
    }
}

/// Shows that the property above is not vacuous: a simple history has reports that blame parties other than the caller.
#[test]
fn the_history_has_reports() {
    let moved = |from, to, own, what, named, n| Move { from, to, own, what, named, n };
    let moves = [moved(0, 1, 0, 1, 2, 1), moved(0, 2, 1, 2, 0, 0)];
    assert_eq!(blame_stays_within_provenance(&moves, 15, [Side::Receiver; 2]).unwrap(), 2);
}
