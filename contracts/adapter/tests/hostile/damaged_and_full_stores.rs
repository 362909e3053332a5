//! Deleted, truncated or foreign stores: errors are clear, and calls pass.

use std::path::Path;

use super::*;

const NAMES: &str =
    "contract 1\nservice Any { POST \"/\"(body) { index body.who  ensures fine: result.code == 200 } }\n";

fn start(file: &str, port: u16, store: &Path, more: &str) -> Adapter {
    let endpoint = format!("http://127.0.0.1:{port}");
    Adapter::from_text(&format!(
        "name = 'client'\ncontract = '{file}'\n[[consuming]]\nservice = 'Any'\nendpoint = '{endpoint}'\n\
         [protocols.Any]\nkind = 'rest'\n[store]\npath = '{}'\nflush = '10ms'\n{more}",
        store.display()
    ))
}

fn call(adapter: &Adapter, port: u16, who: &str) {
    post(&adapter.at(&format!("consuming http://127.0.0.1:{port}")), format!("{{\"who\": \"{who}\"}}").as_bytes());
}

fn indices(adapter: &Adapter) -> Vec<String> {
    let entries = adapter.running.as_ref().unwrap().entries();
    let mut all = entries.into_iter().filter_map(|entry| entry.index).collect::<Vec<_>>();
    all.sort();
    all
}

#[test]
fn entries_outlive_an_adapter_and_store_errors_are_reported() {
    let port = raw_http_peers::serve(None, |request| (response(200, "application/json", &request.body), false));
    let folder = tempfile::tempdir().unwrap();
    let file = contract_file(folder.path(), NAMES);
    let store = folder.path().join("state.redb");
    let first = start(&file, port, &store, "");
    call(&first, port, "a");
    call(&first, port, "b");
    drop(first);
    let second = start(&file, port, &store, "");
    assert_eq!((indices(&second), second.told()), (vec!["a".to_owned(), "b".to_owned()], String::new()));
    second.told();
    std::fs::remove_file(&store).unwrap();
    call(&second, port, "c");
    second.told();
    drop(second);
    let third = start(&file, port, &store, "");
    assert_eq!(indices(&third), ["c"]);
    drop(third);
    let whole = std::fs::read(&store).unwrap();
    let mut other_version = whole.clone();
    other_version[..64].fill(0x7f);
    for (bytes, kind) in
        [(&whole[..whole.len() / 3], "cut"), (&other_version[..], "of another version"), (b"x", "short")]
    {
        std::fs::write(&store, bytes).unwrap();
        let adapter = start(&file, port, &store, "");
        call(&adapter, port, "d");
        let told = adapter.told();
        assert!(told.contains("was moved aside to") && told.contains("A new one is created"), "{kind}: {told}");
        assert_eq!(indices(&adapter), ["d"], "{kind}");
    }
}

#[test]
fn a_store_that_another_process_has_open_is_left_alone() {
    let port = raw_http_peers::serve(None, |request| (response(200, "application/json", &request.body), false));
    let folder = tempfile::tempdir().unwrap();
    let file = contract_file(folder.path(), NAMES);
    let store = folder.path().join("state.redb");
    let first = start(&file, port, &store, "");
    let second = start(&file, port, &store, "");
    call(&second, port, "a");
    let told = second.told();
    assert!(told.contains("another process has it open") && told.contains("Calls pass"), "{told}");
    call(&first, port, "b");
    assert_eq!(indices(&first), ["b"]);
}

#[test]
fn unused_entries_leave_memory_and_file() {
    let port = raw_http_peers::serve(None, |request| (response(200, "application/json", &request.body), false));
    let folder = tempfile::tempdir().unwrap();
    let file = contract_file(folder.path(), NAMES);
    let store = folder.path().join("state.redb");
    let adapter = start(&file, port, &store, "expire_after = '2s'\n");
    call(&adapter, port, "once");
    call(&adapter, port, "often");
    assert_eq!(indices(&adapter), ["often", "once"]);
    // The unused entry expires after three seconds. The used entry stays.
    for _ in 0..300 {
        if !indices(&adapter).contains(&"once".to_owned()) {
            break;
        }
        call(&adapter, port, "often");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(indices(&adapter), ["often"]);
    // The writer removes expired entries every 120 batches, and each iteration writes a batch.
    for _ in 0..120 {
        adapter.told();
    }
    drop(adapter);
    let kept = adapter::look(&store).unwrap();
    let has =
        |index: &[u8]| kept.entries.iter().any(|(_, _, entry)| entry.windows(index.len()).any(|part| part == index));
    assert_eq!((has(b"once"), has(b"often")), (false, true));
}

/// A shop introduces members of one till by number, and the till breaks its postcondition.
#[test]
fn a_flood_of_introductions_does_not_shift_blame_to_the_client() {
    const SHOP: &str = "contract 1
service Shop { POST \"/find\"(body) { reply identifies Till at body.at index body.n } }
service Till { POST \"/pay\"(body) { index body.n  ensures paid: result.code == 201 } }
";
    let shop = raw_http_peers::serve(None, |request| (response(200, "application/json", &request.body), false));
    let till = raw_http_peers::serve(None, |request| (response(200, "application/json", &request.body), false));
    let folder = tempfile::tempdir().unwrap();
    let file = contract_file(folder.path(), SHOP);
    let adapter = Adapter::from_text(&format!(
        "name = 'client'\ncontract = '{file}'\nproxy = '127.0.0.1:0'\nallow = ['*:*']\n[store]\nmemory = '4KiB'\n\
         [protocols.Shop]\nkind = 'rest'\n[protocols.Till]\nkind = 'rest'\n[reports]\nper_s = 1000\n\
         [[consuming]]\nservice = 'Shop'\nendpoint = 'http://127.0.0.1:{shop}'\nlabels = ['shop']\n"
    ));
    let json = [("Content-Type", "application/json")];
    let find = |number: usize| {
        let body = format!("{{\"at\": \"http://127.0.0.1:{till}\", \"n\": {number}}}");
        let at = adapter.at(&format!("consuming http://127.0.0.1:{shop}"));
        assert_eq!(raw_http_peers::ask(&at, &request("POST", "/find", &json, body.as_bytes())).status(), 200);
    };
    let pay = |number: usize| {
        let target = format!("http://127.0.0.1:{till}/pay");
        let body = format!("{{\"n\": {number}}}");
        raw_http_peers::ask(&adapter.at("proxy"), &request("POST", &target, &json, body.as_bytes()));
    };
    let blamed = |label: &str, times: usize| {
        let labels = "operation=\"Till.POST /pay\",clause=\"Till.POST /pay.paid\"";
        counted(&adapter, &format!("blamed_total{{{labels},blamed=\"{label}\"}} {times}"));
    };
    find(0);
    pay(0);
    blamed("shop", 1);
    (1..300).for_each(find);
    pay(0);
    blamed("unknown", 1);
    find(0);
    pay(0);
    blamed("shop", 2);
    let metrics = metrics(&adapter);
    assert!(!metrics.contains("blamed=\"client\""), "{metrics}");
    assert!(!metrics.contains("entries_forgotten_total 0"), "{metrics}");
}
