//! Compares metadata bytes and entries of the three case studies with Whip's. One adapter serves both sides.

use crate::adapters_in_memory::{World, ask};
use contract::metadata::whip_bytes;
use serde_json::{Value as Json, json};

const OPS: usize = 10_000;

struct Tally {
    ops: usize,
    whip: usize,
    own: usize,
    entries: u64,
}

impl Tally {
    fn per_op(&self) -> (f64, f64, f64) {
        let ops = self.ops as f64;
        (self.whip as f64 / ops, self.own as f64 / ops, self.entries as f64 / ops)
    }
}

fn run(
    name: &str,
    servers: &[(&str, &str)],
    per_trial: usize,
    calls: impl Fn(usize) -> Vec<(&'static str, &'static str, Json, Json)>,
) -> Tally {
    let mut world = World::new(name);
    world.adapter("a:1", "a");
    for (endpoint, service) in servers {
        world.configure("a:1", endpoint, service, &["a"], Some("a:1"));
    }
    let configured = world.adapters["a:1"].counts().entries;
    let mut tally = Tally { ops: 0, whip: 0, own: 0, entries: 0 };
    for trial in 0..OPS / per_trial {
        let calls = calls(trial);
        assert_eq!(calls.len(), per_trial);
        for (endpoint, operation, args, result) in calls {
            let seen = world.call(&ask("a:1", endpoint, operation, args, result));
            assert!(seen.reports.is_empty(), "trial {trial}, {operation}: {}", seen.reports[0]);
            let request = seen.request.expect("both sides have an adapter");
            tally.whip += whip_bytes(&request, &seen.reply, false);
            let with_peers = whip_bytes(&request, &seen.reply, true);
            let entries = request.entries.len() + seen.reply.len();
            assert_eq!(with_peers - whip_bytes(&request, &seen.reply, false), entries * (14 + 1), "the host is `a`");
            tally.own += seen.block_bytes;
            tally.ops += 1;
        }
    }
    tally.entries = world.adapters["a:1"].counts().entries - configured;
    let total = world.adapters["a:1"].tallies().total();
    assert_eq!(total[1..], [0, 0, 0]);
    assert_eq!(world.adapters["a:1"].counts().refused, 0);
    tally
}

fn near(found: f64, expected: f64, within: f64, what: &str) {
    assert!((found - expected).abs() <= within, "{what}: {found}, expected {expected}");
}

#[test]
fn evernote() {
    const USERS: &str = "https://127.0.0.1:9443//edam/user";
    const NOTES: &str = "https://127.0.0.1:9444/";
    let tally = run("evernote", &[(USERS, "UserStore"), (NOTES, "NoteStore")], 5, |trial| {
        let token = format!("{}{trial}", "t".repeat(55));
        vec![
            (USERS, "getNoteStoreUrl", json!([token]), json!(NOTES)),
            (
                NOTES,
                "listLinkedNotebooks",
                json!([token]),
                json!([{"guid": "guid00", "shareKey": "asd", "noteStoreUrl": NOTES}]),
            ),
            (NOTES, "authenticateToSharedNotebook", json!(["asd", token]), json!({"authenticationToken": "temp10"})),
            (NOTES, "getSharedNotebookByAuth", json!(["temp10"]), json!({"notebookGuid": "guid10"})),
            (
                NOTES,
                "findNotes",
                json!(["temp10", {"notebookGuid": "guid10"}, 0, 10]),
                json!({"notes": [{"guid": "guid20", "title": "test"}], "totalNotes": 1, "startIndex": 0}),
            ),
        ]
    });
    let (whip, own, entries) = tally.per_op();
    println!("evernote: whip's formula {whip:.3} B/op, own block {own:.3} B/op, {entries:.4} new entries/op");
    near(whip, 47.3, 0.05, "bytes of Whip's formula per operation");
    // The shared notebook adds one entry; configured default members do not count as new.
    near(entries, 0.4, 2.5 / 10_000.0, "new entries per operation");
    assert!(own < whip);
}

#[test]
fn chess() {
    const CHESS: &str = "127.0.0.1:8000";
    let tally = run("chess", &[(CHESS, "Chess")], 7, |trial| {
        let game = trial + 1;
        let list = |moves: &str| json!([{"id": game, "moves": moves, "drawOffered": false}]);
        let play = |user: &str, count: usize, played: &str| {
            json!([user, "password", game, false, false, count, played, false, false, ""])
        };
        let (white, black) = ("user-w0000000", "user-b0000000");
        vec![
            (CHESS, "MakeGame", json!([white, black]), json!(game)),
            (CHESS, "GetMyGames", json!([white, "password"]), list("*")),
            (CHESS, "MakeAMove", play(white, 1, "e4"), json!("Success")),
            (CHESS, "GetMyGames", json!([white, "password"]), list("1. e4 *")),
            (CHESS, "MakeAMove", play(black, 2, "d5"), json!("Success")),
            (CHESS, "GetMyGames", json!([white, "password"]), list("1. e4 d5 *")),
            (CHESS, "GetMyGames", json!([black, "password"]), list("1. e4 d5 *")),
        ]
    });
    let (whip, own, entries) = tally.per_op();
    println!("chess: whip's formula {whip:.3} B/op, own block {own:.3} B/op, {entries:.4} new entries/op");
    near(whip, 53.6, 0.05, "bytes of Whip's formula per operation");
    near(entries, 3.0 / 7.0, 2.5 / 10_000.0, "new entries per operation");
    assert!(own < whip);
}

#[test]
fn twitter() {
    const TWITTER: &str = "127.0.0.1:3912";
    let tally = run("twitter", &[(TWITTER, "TwitterTweets")], 3, |trial| {
        let user = (3 * trial).to_string();
        let headers = json!({"authorization": "OAuth"});
        let reply = |body: Json| json!({"code": 200, "headers": {}, "body": body});
        // The mock derives new IDs from the number of the request.
        let (friend, tweet) = (format!("11{:010}", 3 * trial), format!("21{:010}", 3 * trial + 1));
        let tweets = json!([{"created_at": "Thu Jan 18 00:10:45 +0000 2007", "id_str": tweet}]);
        vec![
            (
                TWITTER,
                "GET /1.1/friends/list.json",
                json!([{"user_id": user}, headers]),
                reply(json!({"users": [{"id_str": friend}]})),
            ),
            (TWITTER, "GET /1.1/statuses/user_timeline.json", json!([{"user_id": friend}, headers]), reply(tweets)),
            (TWITTER, "GET /1.1/statuses/retweet/__id__.json", json!([{"tweet_id": tweet}]), reply(json!([]))),
        ]
    });
    let (whip, own, entries) = tally.per_op();
    println!("twitter: whip's formula {whip:.3} B/op, own block {own:.3} B/op, {entries:.4} new entries/op");
    near(whip, 49.67, 0.01, "bytes of Whip's formula per operation");
    near(entries, 1.0, 1e-9, "new entries per operation");
    assert!(own < whip);
}
