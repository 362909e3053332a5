//! The calculator walkthrough and further monitor behavior, as calls between parties in memory.

use crate::adapters_in_memory::{Asked, Seen, World, ask, settings, vouched};
use contract::monitor::report::{Kind, Report, ReportVerdict};
use contract::monitor::{EndpointState, MemoryStore, Monitor, Settings, Side, Store};
use serde_json::json;

/// The walkthrough's calculator: an adder that registers itself, a discovery service and a client. With `full`,
/// adapters run at `discovery:38000`, `adder:38001` and `client`; otherwise, only the client has an adapter.
fn calculator(contract: &str, full: bool, sides: [Side; 2]) -> World {
    let mut world = World::new(contract);
    world.adapter_at("client", "client", sides);
    let peer = full.then_some("discovery:38000");
    world.configure("client", "discovery:8000", "AdderDiscovery", &["unknown"], peer);
    if full {
        world.adapter_at("discovery:38000", "discovery", sides);
        world.configure("discovery:38000", "discovery:8000", "AdderDiscovery", &["discovery"], Some("discovery:38000"));
        world.adapter_at("adder:38001", "adder", sides);
        world.configure("adder:38001", "adder:8001", "Adder", &["adder"], Some("adder:38001"));
        world.configure("adder:38001", "discovery:8000", "AdderDiscovery", &["unknown"], Some("discovery:38000"));
        let registered =
            world.call(&ask("adder:38001", "discovery:8000", "register_adder", json!(["adder", 8001]), json!(null)));
        assert!(registered.reports.is_empty());
    }
    let found = world.call(&ask(
        "client",
        "discovery:8000",
        "get_adder_info",
        json!([]),
        json!({"host": "adder", "port": 8001}),
    ));
    assert!(found.reports.is_empty(), "{:?}", found.reports);
    world
}

fn add(world: &mut World, a: i64, b: i64, result: i64) -> Vec<Report> {
    world.call(&ask("client", "adder:8001", "add", json!([a, b]), json!(result))).reports
}

fn text(reports: &[Report]) -> String {
    reports.iter().map(|report| format!("at {}: {report}", report.adapter)).collect()
}

#[test]
fn at_2_and_3_single_adapter_blames_unknown() {
    let mut world = calculator("calculator-plain", false, [Side::Receiver; 2]);
    let reports = add(&mut world, 2, 2, 3);
    insta::assert_snapshot!(text(&reports), @r"
    at client: [Whip] Contract Failure: Failed postcondition result == a + b
    	 Occurring at: service Adder with default index at adder:8001 vouched for by unknown
    	 Variables: 
    	   - a = 2
    	   - b = 2
    	   - result = 3
    ");
    assert_eq!(reports[0].blamed, ["unknown"]);
}

#[test]
fn at_3_without_identifies_nothing_is_checked() {
    let mut world = World::new("calculator-plain");
    world.adapter("client", "client");
    world.configure("client", "discovery:8000", "AdderDiscovery", &["unknown"], None);
    assert_eq!(world.adapters["client"].standing("adder:8001"), EndpointState::Unlisted);
    assert!(add(&mut world, 2, 2, 3).is_empty());
}

#[test]
fn at_4_with_all_adapters_the_adder_is_blamed() {
    let mut world = calculator("calculator-plain", true, [Side::Receiver; 2]);
    let reports = add(&mut world, 2, 2, 3);
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].blamed, ["adder"]);
    assert_eq!(reports[0].adapter, "client");
    let client = world.adapters.get_mut("client").unwrap();
    assert_eq!(vouched(client, "adder:8001", "Adder", None).unwrap(), ["adder"]);
    assert_eq!(client.peer("adder:8001"), Some("adder:38001"));
    insta::assert_snapshot!(reports[0].explain(), @"
    adder vouched for the called service.
      Adder at adder:8001, vouched for by adder: reported by adapter discovery:38000
    ");
}

#[test]
fn at_5_index_shows_the_vouching_party() {
    let mut world = calculator("calculator-indexed", true, [Side::Receiver; 2]);
    let one = add(&mut world, 1, 1, 1);
    let two = add(&mut world, 2, 2, 3);
    insta::assert_snapshot!(text(&[one, two].concat()), @r"
    at client: [Whip] Contract Failure: Failed postcondition result == a + b
    	 Occurring at: service Adder with index 1 at adder:8001 vouched for by adder
    	 Variables: 
    	   - a = 1
    	   - b = 1
    	   - result = 1

    at client: [Whip] Contract Failure: Failed postcondition result == a + b
    	 Occurring at: service Adder with index 2 at adder:8001 vouched for by client
    	 Variables: 
    	   - a = 2
    	   - b = 2
    	   - result = 3
    ");
}

#[test]
fn at_6_a_precondition_blames_the_sender_at_the_receiver() {
    let mut world = calculator("calculator-plain", true, [Side::Receiver; 2]);
    insta::assert_snapshot!(text(&add(&mut world, 0, 0, -1)), @r"
    at adder: [Whip] Contract Failure: Failed precondition for RPC add (a > 0 && b > 0)
    	 Blaming: client (precondition failure)
    	 Occurring at: service Adder with default index at adder:8001 vouched for by adder
    	 Variables: 
    	   - a = 0
    	   - b = 0

    at client: [Whip] Contract Failure: Failed postcondition result == a + b
    	 Occurring at: service Adder with default index at adder:8001 vouched for by adder
    	 Variables: 
    	   - a = 0
    	   - b = 0
    	   - result = -1
    ");
}

#[test]
fn at_7_kept_clauses_are_not_reported() {
    for full in [false, true] {
        let mut world = calculator("calculator-plain", full, [Side::Receiver; 2]);
        assert!(add(&mut world, 2, 2, 4).is_empty());
        let total = world.adapters["client"].tallies().total();
        assert_eq!(total[1..], [0, 0, 0]);
        assert_eq!(world.adapters["client"].counts().refused, 0);
        assert_eq!(total[0], if full { 1 } else { 2 }, "with all adapters the adder's asks the precondition");
    }
}

#[test]
fn each_clause_is_checked_once_at_its_placement() {
    use contract::monitor::Side::{Both, Receiver, Sender};
    let rows = [
        (Receiver, Receiver, ["adder", "client"].as_slice()),
        (Sender, Sender, &["client", "adder"]),
        (Sender, Receiver, &["client", "client"]),
        (Both, Both, &["client", "adder", "adder", "client"]),
    ];
    for (requires, ensures, expected) in rows {
        let mut world = calculator("calculator-plain", true, [requires, ensures]);
        let reports = add(&mut world, 0, 0, -1);
        let adapters = reports.iter().map(|report| report.adapter.as_str()).collect::<Vec<_>>();
        assert_eq!(adapters, expected, "{requires:?} {ensures:?}");
        let kinds = reports.iter().map(|report| report.kind).collect::<Vec<_>>();
        let half = expected.len() / 2;
        assert!(kinds[..half].iter().all(|kind| *kind == Kind::Precondition), "{kinds:?}");
        assert!(kinds[half..].iter().all(|kind| *kind == Kind::Postcondition), "{kinds:?}");
    }
}

#[test]
fn a_client_without_adapter_is_unknown_to_the_server() {
    let mut world = calculator("calculator-plain", true, [Side::Receiver; 2]);
    let asked =
        Asked { client: None, public: Some("adder:38001"), ..ask("", "adder:8001", "add", json!([0, 0]), json!(1)) };
    let reports = world.call(&asked).reports;
    assert_eq!(reports.len(), 2, "one adapter alone asks everything");
    assert_eq!((reports[0].kind, &reports[0].blamed[..]), (Kind::Precondition, &["unknown".to_owned()][..]));
    assert_eq!((reports[1].kind, &reports[1].blamed[..]), (Kind::Postcondition, &["adder".to_owned()][..]));
}

const TWO: &str = "contract 1
service A { both() -> {x: text, y: text} { reply identifies B at result.x  reply identifies B at result.y index 7 }
            other(x: text) { request identifies A at x }
            fails() -> int { ensures result == 0  on_error known: error.kind == \"Known\" } }
service B { f(n: int, password: text) -> {n?: int, apiKey: text} { index n ensures result.n / n == 1 } }";

#[test]
fn two_entries_of_one_reply_are_both_kept() {
    let mut world = World::of_text(TWO);
    world.adapter("c", "c");
    world.configure("c", "a:1", "A", &["a"], None);
    world.call(&ask("c", "a:1", "both", json!([]), json!({"x": "b:1", "y": "b:1"})));
    let monitor = world.adapters.get_mut("c").unwrap();
    assert_eq!(vouched(monitor, "b:1", "B", None).unwrap(), ["a"]);
    assert_eq!(vouched(monitor, "b:1", "B", Some("7")).unwrap(), ["a"]);
    assert_eq!(vouched(monitor, "b:1", "B", Some("8")), None);
    let Seen { reports, .. } = world.call(&ask("c", "b:1", "f", json!([7, ""]), json!({"n": 0})));
    insta::assert_snapshot!(contract::monitor::report::chain(&reports[0].provenance), @r"
      B<7> at b:1, vouched for by a: introduced by a reply, see the next line
        A at a:1, vouched for by a: from the configuration
    ");
}

#[test]
fn two_services_at_one_endpoint_are_a_conflict_and_pass() {
    let mut world = World::of_text(TWO);
    world.adapter("c", "c");
    world.configure("c", "a:1", "A", &["a"], None);
    let identified = world.call(&ask("c", "a:1", "both", json!([]), json!({"x": "b:1", "y": "b:2"})));
    assert!(identified.reports.is_empty());
    let seen = world.call(&ask("c", "a:1", "other", json!(["b:1"]), json!(null)));
    insta::assert_snapshot!(text(&seen.reports), @r"
    at c: [Whip] Contract Conflict: the endpoint is promised to be A and B, so its calls are not checked
    	 Occurring at: b:1
    ");
    assert_eq!(world.adapters["c"].standing("b:1"), EndpointState::Conflict);
    let again = world.call(&ask("c", "a:1", "other", json!(["b:1"]), json!(null)));
    assert!(again.reports.is_empty(), "a conflict is reported once");
    world.configure("c", "b:1", "B", &["b"], Some("b:9"));
    let b = world.contract.service("B").unwrap();
    assert_eq!(world.adapters["c"].standing("b:1"), EndpointState::Service(b));
}

#[test]
fn undecided_clauses_are_reported_without_blame() {
    let mut world = World::of_text(TWO);
    world.adapter("c", "c");
    world.configure("c", "b:1", "B", &["b"], None);
    let missing = world.call(&ask("c", "b:1", "f", json!([1, "p"]), json!({"apiKey": "k"}))).reports;
    let by_zero = world.call(&ask("c", "b:1", "f", json!([0, "p"]), json!({"n": 1, "apiKey": "k"}))).reports;
    let no_index = world.call(&ask("c", "b:1", "f", json!([null, "p"]), json!({"n": 1, "apiKey": "k"}))).reports;
    insta::assert_snapshot!(text(&[missing, by_zero, no_index].concat()));
    let total = world.adapters["c"].tallies().total();
    assert_eq!(total[1..], [0, 3, 1]);
}

#[test]
fn only_on_error_checks_exceptions() {
    let mut world = World::of_text(TWO);
    world.adapter("c", "c");
    world.configure("c", "a:1", "A", &["a"], None);
    let error = |kind: &str| Asked { is_error: true, ..ask("c", "a:1", "fails", json!([]), json!({"kind": kind})) };
    assert!(world.call(&error("Known")).reports.is_empty());
    let Seen { reports, .. } = world.call(&error("Other"));
    assert_eq!((reports.len(), reports[0].kind, reports[0].found), (1, Kind::Exception, ReportVerdict::Fails));
    assert_eq!(reports[0].clause, "A.fails.known");
    assert_eq!(reports[0].blamed, ["a"]);
}

#[test]
fn secrets_are_not_shown_unless_asked_for() {
    let text = "contract 1 service S { f(token: text, n: int) -> {apiKey: text, n: int} { index token ensures result.n == n } }";
    for show_secrets in [false, true] {
        let mut world = World::of_text(text);
        let settings = Settings { show_secrets, ..settings("c") };
        let monitor = Monitor::new(world.contract.clone(), settings, MemoryStore::new(1 << 20, None), 0);
        world.adapters.insert("c".to_owned(), monitor);
        world.configure("c", "s:1", "S", &["s"], None);
        let asked = ask("c", "s:1", "f", json!(["hunter2", 1]), json!({"apiKey": "hunter2", "n": 2}));
        let reports = world.call(&asked).reports;
        let all = format!("{}{}{}", reports[0], reports[0].explain(), serde_json::to_string(&reports).unwrap());
        assert_eq!(all.contains("hunter2"), show_secrets, "{all}");
        let back = serde_json::from_str::<Vec<Report>>(&serde_json::to_string(&reports).unwrap()).unwrap();
        assert_eq!(back, reports);
    }
}

#[test]
fn labels_survive_a_restart_with_the_store() {
    let mut world = calculator("calculator-indexed", true, [Side::Receiver; 2]);
    let client = world.adapters.get_mut("client").unwrap();
    let mut kept = MemoryStore::new(1 << 20, None);
    client.store().names().iter().for_each(|name| kept.put_name(name));
    client.store().each(0, &mut |key, entry| kept.put(key, entry, 0));
    for (store, blamed) in [(kept, "adder"), (MemoryStore::new(1 << 20, None), "client")] {
        let mut again = Monitor::new(world.contract.clone(), settings("client"), store, 0);
        let adder = world.contract.service("Adder").unwrap();
        if blamed == "client" {
            assert_eq!(again.standing("adder:8001"), EndpointState::Unlisted);
            again.configure("adder:8001", adder, &["unknown"], None, 0);
        }
        assert_eq!(again.standing("adder:8001"), EndpointState::Service(adder));
        world.adapters.insert("client".to_owned(), again);
        let reports = add(&mut world, 1, 1, 1);
        assert_eq!(reports.last().unwrap().blamed, [blamed]);
    }
}

#[test]
fn metadata_is_trusted_only_for_introduced_endpoints() {
    use contract::metadata::{Identified, RequestMetadata};
    use contract::monitor::Call;
    let mut world = World::of_text(TWO);
    world.adapter("s", "s");
    world.configure("s", "a:1", "A", &["s"], Some("s"));
    let a = world.contract.service("A").unwrap();
    let operation = world.contract.operation(a, "other").unwrap();
    let entry = |endpoint: &str| Identified {
        endpoint: endpoint.to_owned(),
        service: "A".to_owned(),
        index: None,
        peer: Some("p:1".to_owned()),
        secret: false,
        labels: vec!["victim".to_owned()],
    };
    let entries = vec![entry("x:1"), entry("evil:1")];
    let metadata = RequestMetadata { sender: "c".to_owned(), invoked: vec!["s".to_owned()], entries };
    let args = [contract::Value::Text("x:1")];
    let monitor = world.adapters.get_mut("s").unwrap();
    monitor.request_received(Call { endpoint: "a:1", operation, args: &args }, Some(&metadata), 0);
    assert_eq!(vouched(monitor, "x:1", "A", None).unwrap(), ["victim"]);
    assert_eq!(monitor.standing("evil:1"), EndpointState::Unlisted);
    assert_eq!(monitor.counts().refused, 1);
}

#[test]
fn accepting_a_draw_without_offer_blames_only_the_client() {
    let mut world = World::new("chess");
    world.adapter("c", "client");
    world.adapter("s", "server");
    world.configure("c", "127.0.0.1:8000", "Chess", &["unknown"], Some("s"));
    world.configure("s", "127.0.0.1:8000", "Chess", &["server"], Some("s"));
    let call = |world: &mut World, operation: &str, args, result| {
        world.call(&ask("c", "127.0.0.1:8000", operation, args, result)).reports
    };
    assert!(call(&mut world, "MakeGame", json!(["w", "b"]), json!(7)).is_empty());
    let offered = |offered: bool| json!([{"id": 7, "moves": "1. e4 *", "drawOffered": offered}]);
    assert!(call(&mut world, "GetMyGames", json!(["b", "p"]), offered(false)).is_empty());
    let accept = json!(["b", "p", 7, false, true, 2, "", false, false, ""]);
    let reports = call(&mut world, "MakeAMove", accept.clone(), json!("NoDrawWasOffered"));
    assert_eq!(reports.len(), 1);
    assert_eq!(
        (&reports[0].blamed[..], reports[0].index.as_deref()),
        (&["client".to_owned()][..], Some("(7, True, 2)"))
    );
    // A server that offers a draw introduces the game with and without the draw, and vouches for both.
    let mut world = World::new("chess");
    world.adapter("c", "client");
    world.configure("c", "127.0.0.1:8000", "Chess", &["server"], None);
    assert!(call(&mut world, "GetMyGames", json!(["b", "p"]), offered(true)).is_empty());
    let reports = call(&mut world, "MakeAMove", accept, json!("NoDrawWasOffered"));
    assert_eq!(reports[0].blamed, ["server"]);
    let client = world.adapters.get_mut("c").unwrap();
    assert_eq!(vouched(client, "127.0.0.1:8000", "Chess", Some("(7, False, 2)")).unwrap(), ["server"]);
    let bad =
        call(&mut world, "GetMyGames", json!(["b", "p"]), json!([{"id": 7, "moves": "1. e9", "drawOffered": false}]));
    assert_eq!(bad[0].clause, "Chess.GetMyGames.pgn");
    assert!(!format!("{}", bad[0]).contains("password = p\n"), "{}", bad[0]);
}

#[test]
fn report_starts_with_the_values_that_broke_the_clause() {
    let result = json!({
        "long": "x".repeat(1000), "code": 500, "users": [{"id": 1, "of": {"n": 2}}, {"id": -7, "of": {"n": 3}}, {"id": -8}],
        "token": "hush", "list": [1, 2],
    });
    for (clause, expected) in [
        ("result.code == 200", "result.code = 500"),
        ("result.list[1] == 1 || result.code < 400", "result.list[1] = 2; result.code = 500"),
        ("result.code == 500 && result.list[0] == 3", "result.list[0] = 1"),
        ("all(u in result.users : u.id > 0)", "result.users[1].id = -7"),
        ("all(u in result.users : u.id == 1 && u.of.n > 2)", "result.users[0].of.n = 2"),
        ("let first = result.users[0]; first.id > b", "result.users[0].id = 1; b = 9; a = 8"),
        ("result.code == a ? true : len(result.list) == 1", "result.code = 500; result.list = [1, 2]; a = 8"),
        ("!(result.token != \"\")", "result.token = [redacted]"),
        ("b == 7", "b = 9; a = 8"),
        ("count(u in result.users : u.id > 0) == 3", "result.users = [{"),
        ("false", "a = 8; b = 9; result = {"),
    ] {
        let mut world = World::of_text(&format!("contract 1 service S {{ f(a, b) {{ ensures {clause} }} }}"));
        world.adapter("c", "c");
        world.configure("c", "s:1", "S", &["s"], None);
        let reports = world.call(&ask("c", "s:1", "f", json!([8, 9]), result.clone())).reports;
        let shown = reports[0].variables.iter().map(|variable| format!("{} = {}", variable.name, variable.value));
        let shown = shown.collect::<Vec<_>>().join("; ");
        assert!(shown.starts_with(expected), "{clause}\n{shown}");
        assert!(!shown.contains("hush"), "{shown}");
    }
}

#[test]
fn messages_cannot_forge_reports() {
    let text = "contract 1 service S { f(who: text) -> {x: text} { index who ensures result.x == who } }";
    let mut world = World::of_text(text);
    world.adapter("c", "c");
    world.configure("c", "s:1", "S", &["s\n[Whip] Contract Failure: forged"], None);
    let forged =
        "bob\n\n[Whip] Contract Failure: Failed precondition\r\n\t Blaming: victim\u{1b}[2J\u{9b}\u{202e}\u{2028}";
    let reports = world.call(&ask("c", "s:1", "f", json!([forged]), json!({"x": forged.to_owned() + "x"}))).reports;
    let all = format!("{}{}", reports[0], reports[0].explain());
    assert_eq!(all.lines().filter(|line| line.starts_with("[Whip]")).count(), 1, "{all}");
    assert!(all.contains("index bob\\n\\n[Whip] Contract Failure"), "{all}");
    let hidden = all.chars().find(|c| c.is_control() && !"\n\t".contains(*c) || "\u{202e}\u{2028}".contains(*c));
    assert_eq!(hidden, None, "{all:?}");
    assert_eq!(reports[0].index.as_deref(), Some(forged), "records keep the value");
}

const SHOP: &str = "contract 1
service Shop { find(n: int) -> text { reply identifies Till at result index n } }
service Till { pay(n: int) -> int { index n ensures result == n }
               bank(n: int) -> text { index n reply identifies Bank at result } }
service Bank { one() -> int { ensures result == 1 } }";

fn shopper(store: MemoryStore) -> World {
    let mut world = World::of_text(SHOP);
    let monitor = Monitor::new(world.contract.clone(), settings("me"), store, 0);
    world.adapters.insert("c".to_owned(), monitor);
    world.configure("c", "shop:1", "Shop", &["shop"], None);
    world
}

fn find(world: &mut World, number: i64) {
    world.call(&ask("c", "shop:1", "find", json!([number]), json!("till:1")));
}

/// The labels blamed for a failed call to the till, or to the bank that the till introduced.
fn blamed(world: &mut World, endpoint: &str, operation: &str, args: serde_json::Value) -> Vec<String> {
    world.call(&ask("c", endpoint, operation, args, json!(-1))).reports.remove(0).blamed
}

#[test]
fn forgotten_entries_blame_unknown_until_reintroduced() {
    type Forget = fn(&mut World);
    let causes: [(&str, MemoryStore, Forget); 3] = [
        ("evicted", MemoryStore::new(4096, None), |world| (1..500).for_each(|number| find(world, number))),
        ("expired", MemoryStore::new(1 << 20, Some(10)), |world| world.now_s = 11),
        ("lost by a crash", MemoryStore::new(1 << 20, None), |world| {
            let mut store = MemoryStore::new(1 << 20, None);
            store.forget_everything();
            *world = shopper(store);
            find(world, 1);
        }),
    ];
    for (cause, store, forget) in causes {
        let mut world = shopper(store);
        find(&mut world, 0);
        assert_eq!(blamed(&mut world, "till:1", "pay", json!([0])), ["shop"], "{cause}");
        assert_eq!(
            blamed(&mut world, "till:1", "pay", json!([1_000])),
            ["me"],
            "{cause}: a member without an introduction"
        );
        assert_eq!(world.adapters["c"].counts().forgotten, 0, "{cause}");
        forget(&mut world);
        assert_eq!(blamed(&mut world, "till:1", "pay", json!([0])), ["unknown"], "{cause}");
        assert_eq!(world.adapters["c"].counts().forgotten > 0, cause != "lost by a crash", "{cause}");
        world.call(&ask("c", "till:1", "bank", json!([0]), json!("bank:1")));
        assert_eq!(blamed(&mut world, "bank:1", "one", json!([])), ["unknown"], "{cause}: introduced by an orphan");
        find(&mut world, 0);
        assert_eq!(blamed(&mut world, "till:1", "pay", json!([0])), ["shop"], "{cause}");
        world.call(&ask("c", "till:1", "bank", json!([0]), json!("bank:1")));
        assert_eq!(blamed(&mut world, "bank:1", "one", json!([])), ["shop"], "{cause}");
    }
}

#[test]
fn configured_services_are_blamed_after_their_entries_left() {
    let mut world = shopper(MemoryStore::new(4096, None));
    world.configure("c", "bank:1", "Bank", &["bank"], None);
    (0..500).for_each(|number| find(&mut world, number));
    assert_eq!(vouched(world.adapters.get_mut("c").unwrap(), "bank:1", "Bank", None), None, "the entry left");
    assert_eq!(blamed(&mut world, "bank:1", "one", json!([])), ["bank"]);
}

#[test]
fn forgotten_labels_do_not_reach_the_peer() {
    let mut world = shopper(MemoryStore::new(4096, None));
    world.adapter("t", "till");
    world.configure("t", "till:1", "Till", &["till"], Some("t"));
    let call = |world: &mut World| world.call(&ask("c", "till:1", "pay", json!([0]), json!(0)));
    find(&mut world, 0);
    world.configure("c", "till:1", "Till", &["till"], Some("t"));
    call(&mut world);
    assert_eq!(vouched(world.adapters.get_mut("t").unwrap(), "till:1", "Till", Some("0")).unwrap(), ["shop"]);
    (1..500).for_each(|number| find(&mut world, number));
    let seen = call(&mut world);
    assert_eq!(seen.request.unwrap().invoked, Vec::<String>::new());
    assert_eq!(vouched(world.adapters.get_mut("t").unwrap(), "till:1", "Till", Some("0")).unwrap(), ["shop"]);
}

#[test]
fn configured_labels_cover_members_that_no_message_introduces() {
    const MEMBERS: &str =
        "contract 1\nservice Shop { order(user: text) -> int { index user  ensures right: result == 1 } }\n";
    let mut world = World::of_text(MEMBERS);
    world.adapter("client", "client");
    world.configure("client", "shop:1", "Shop", &["shop"], None);
    let reports = world.call(&ask("client", "shop:1", "order", json!(["ann"]), json!(2))).reports;
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].blamed, ["shop"], "the shop's wrong amount is not its caller's");
}

#[test]
fn caller_vouches_for_a_member_until_it_is_introduced() {
    const MEMBERS: &str = "contract 1\nservice Shop {\n open(user: text) -> text { reply identifies Shop at receiver index result }\n \
        order(user: text) -> int { index user  ensures right: result == 1 }\n}\n";
    let mut world = World::of_text(MEMBERS);
    world.adapter("client", "client");
    world.configure("client", "shop:1", "Shop", &["shop"], None);
    let mut blamed = |user: &str| {
        let reports = world.call(&ask("client", "shop:1", "order", json!([user]), json!(2))).reports;
        reports.into_iter().flat_map(|report| report.blamed).collect::<Vec<_>>()
    };
    assert_eq!(blamed("guessed"), ["client"]);
    world.call(&ask("client", "shop:1", "open", json!(["ann"]), json!("introduced")));
    let reports = world.call(&ask("client", "shop:1", "order", json!(["introduced"]), json!(2))).reports;
    assert_eq!(reports[0].blamed, ["shop"]);
}
