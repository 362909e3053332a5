//! The nine scenarios of Whip's chess case study as journeys through a mock and an adapter on each side. Checks the
//! adapters' reports; the original expects an empty stderr and never checks reports.

use std::path::Path;

use crate::common::adapter_process::Adapter;
use crate::common::{Folder, Server};
use serde_json::Value;

fn games(user: &str, expected: &str) -> String {
    format!(
        "[[step]]\nurl = \"{{chess}}/\"\nsoap = \"chess GetMyGames\"\narguments = {{ username = \"{{{user}}}\", password = \"password\" }}\n\
         expect = {{ {expected} }}\n\n"
    )
}

fn play(user: &str, game: &str, count: u32, played: &str, wish: &str, result: &str) -> String {
    let flag = |name: &str| format!("{name} = {}", name == wish);
    let flags = ["resign", "acceptDraw", "offerDraw", "claimDraw"].map(flag).join(", ");
    format!(
        "[[step]]\nurl = \"{{chess}}/\"\nsoap = \"chess MakeAMove\"\narguments = {{ username = \"{{{user}}}\", password = \"password\", \
         gameId = {game}, movecount = {count}, myMove = \"{played}\", myMessage = \"\", {flags} }}\nexpect = {{ result = \"{result}\" }}\n\n"
    )
}

const OWN: &str = "\"{game}\"";

/// Plays a scenario after `MakeGame`. Returns the reports of the client's and the server's adapter.
fn reports(steps: &[String]) -> [Vec<Value>; 2] {
    let folder = Folder::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (from, name) in [
        ("contracts/contract/contracts/chess.contract", "chess.contract"),
        ("contracts/codecs/schemas/chess.wsdl", "chess.wsdl"),
    ] {
        std::fs::copy(root.join(from), folder.path().join(name)).unwrap();
    }
    let mock = Server::start(&["mock-chess"]);
    let endpoint = format!("127.0.0.1:{}", mock.port);
    let config = |name: &str, more: &str| {
        format!(
            "name = \"{name}\"\ncontract = \"chess.contract\"\nadmin = \"127.0.0.1:0\"\nallow = [\"127.0.0.1:*\"]\n\n\
             [protocols.Chess]\nkind = \"soap\"\nwsdl = \"chess.wsdl\"\n\n[reports]\nformat = \"json\"\n\n{more}"
        )
    };
    let providing = format!(
        "[[providing]]\nservice = \"Chess\"\nendpoint = \"{endpoint}\"\nforward = \"{endpoint}\"\nadapters = \"127.0.0.1:0\"\n"
    );
    folder.write("server.toml", &config("server", &providing));
    let server = Adapter::start(&folder, "server.toml");
    let peer = server.at(&format!("adapters {endpoint}")).to_owned();
    let consuming = format!(
        "[[consuming]]\nservice = \"Chess\"\nendpoint = \"{endpoint}\"\npeer = \"{peer}\"\nlabels = [\"server\"]\n"
    );
    folder.write("client.toml", &config("client", &consuming));
    let client = Adapter::start(&folder, "client.toml");

    let begin = "name = \"scenario\"\ntargets = { chess = \"\" }\nschemas = { chess = \"chess.wsdl\" }\n\
                 let = { white = \"user-{random:8}\", black = \"user-{random:8}\" }\n\n[[step]]\nurl = \"{chess}/\"\n\
                 soap = \"chess MakeGame\"\narguments = { whiteUser = \"{white}\", blackUser = \"{black}\" }\ntake = { game = \"result\" }\n\n";
    folder.write("scenario.toml", &(begin.to_owned() + &steps.concat()));
    let target = format!("chess=http://{endpoint}");
    let resolve = format!("http://{}", client.at("admin"));
    let calls = (steps.len() + 1).to_string();
    let args =
        ["load", "--journey", "scenario.toml", "--target", &target, "--resolve", &resolve, "-c", "1", "-n", &calls];
    let ran = folder.quintain(&[&args[..], &["--json"]].concat()).expect(0);
    let load = ran.json();
    assert_eq!(
        (&load["requests"], load["journeys"][0]["completed"].as_u64()),
        (&Value::from(steps.len() + 1), Some(1)),
        "{}",
        ran.out
    );
    assert_eq!(load["errors"], Value::Object(Default::default()), "{}", ran.out);
    let read = |text: String| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
    [read(client.end()), read(server.end())]
}

const FRESH: &str = "\"count(result)\" = 1, \"result[0].moves\" = \"*\", \"result[0].myTurn\" = true";

#[test]
fn calls_within_the_contract_cause_no_report() {
    let fresh = || games("white", FRESH);
    let after = |user: &str, moves: &str, turn: bool| {
        games(user, &format!("\"result[0].moves\" = \"{moves}\", \"result[0].myTurn\" = {turn}"))
    };
    let first = || play("white", OWN, 1, "e4", "", "Success");
    for (scenario, steps) in [
        ("a fresh game", vec![fresh(), after("black", "*", false)]),
        ("one move", vec![fresh(), first(), after("white", "1. e4 *", false), after("black", "1. e4 *", true)]),
        (
            "two moves",
            vec![
                fresh(),
                first(),
                after("black", "1. e4 *", true),
                play("black", OWN, 2, "d5", "", "Success"),
                after("white", "1. e4 d5 *", true),
            ],
        ),
        ("not your turn", vec![fresh(), play("black", OWN, 1, "e5", "", "NotYourTurn"), fresh()]),
        ("an invalid move", vec![fresh(), play("white", OWN, 1, "e5", "", "InvalidMove"), fresh()]),
        ("a wrong number", vec![fresh(), play("white", OWN, 3, "e4", "", "InvalidMoveNumber"), fresh()]),
        (
            "a draw that is accepted",
            vec![
                fresh(),
                play("white", OWN, 1, "e4", "offerDraw", "Success"),
                games("black", "\"result[0].drawOffered\" = true"),
                play("black", OWN, 2, "", "acceptDraw", "Success"),
                games("white", "\"result[0].result\" = \"Draw\""),
            ],
        ),
    ] {
        assert_eq!(reports(&steps), [Vec::<Value>::new(), Vec::new()], "{scenario}");
    }
}

/// The client uses an index that the server never returned, so the client is blamed.
#[test]
fn violations_are_blamed_on_the_client() {
    for (wrong, clause, index) in [
        (play("white", "9999", 1, "e4", "", "InvalidGameID"), "Chess.MakeAMove.game", "(9999, False, 1)"),
        (play("white", OWN, 1, "", "acceptDraw", "NoDrawWasOffered"), "Chess.MakeAMove.draw", "(1, True, 1)"),
    ] {
        let [client, server] = reports(&[games("white", FRESH), wrong]);
        let [report] = client.as_slice() else { panic!("{clause}: {client:?}") };
        let told = ["clause", "kind", "verdict", "index"].map(|key| report[key].as_str().unwrap_or_default());
        assert_eq!(told, [clause, "postcondition", "fails", index]);
        assert_eq!(report["blamed"], serde_json::json!(["client"]), "{report}");
        assert!(server.is_empty(), "postconditions are checked at the client's adapter: {server:?}");
    }
}
