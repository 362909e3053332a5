//! `quintain adapter` and `quintain contract` as processes: their output, and the store after a kill.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::adapter_process::Adapter;
use crate::common::{Folder, eventually};
use serde_json::Value;

const CONTRACT: &str =
    "contract 1\nservice Any { GET \"/\"(args) { index args.who  ensures fine: result.code == 200 } }\n";

fn service(status: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut from = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                // The response is one write: a second small write would wait for the acknowledgment of the first.
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                while from.read_line(&mut line).is_ok_and(|read| read > 0) {
                    if line == "\r\n" && stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                    line.clear();
                }
            });
        }
    });
    port
}

fn config(port: u16, more: &str) -> String {
    format!(
        "name = \"client\"\ncontract = \"any.contract\"\nadmin = \"127.0.0.1:0\"\n\n[protocols.Any]\nkind = \"rest\"\n\n\
         [[consuming]]\nservice = \"Any\"\nendpoint = \"http://127.0.0.1:{port}\"\n\n{more}"
    )
}

fn call(stream: &mut TcpStream, who: u64) -> bool {
    let request = format!("GET /?who={who} HTTP/1.1\r\nHost: x\r\n\r\n");
    if stream.write_all(request.as_bytes()).is_err() {
        return false;
    }
    let mut seen = Vec::new();
    let mut part = [0; 512];
    while !seen.ends_with(b"\r\n\r\n") {
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return false,
            Ok(read) => seen.extend(&part[..read]),
        }
    }
    true
}

fn connect(adapter: &Adapter) -> TcpStream {
    let stream = TcpStream::connect(adapter.at("consuming")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

#[test]
fn entries_up_to_the_last_batch_survive_sigkill() {
    let folder = Folder::new();
    folder.write("any.contract", CONTRACT);
    folder.write("adapter.toml", &config(service("200 OK"), "[store]\npath = \"state.redb\"\nflush = \"20ms\"\n"));
    let mut adapter = Adapter::start(&folder, "adapter.toml");
    let answered = Arc::new(AtomicU64::new(0));
    let (mut stream, count) = (connect(&adapter), answered.clone());
    let load = std::thread::spawn(move || while call(&mut stream, count.fetch_add(1, Ordering::SeqCst)) {});
    eventually("a few hundred calls", || (answered.load(Ordering::SeqCst) > 300).then_some(()));
    // The latest call may be incomplete.
    let sure = answered.load(Ordering::SeqCst) - 1;
    // The next batch may already have begun, but the batch after it includes all calls so far.
    for _ in 0..2 {
        let before = adapter.metric("store_written_total");
        eventually("a batch", || (adapter.metric("store_written_total") > before).then_some(()));
    }
    let busy = folder.quintain(&["contract", "state", "--store", "state.redb", "list"]).expect(2);
    assert!(busy.err.contains("another process has it open") && busy.err.contains("/state"), "{}", busy.err);
    adapter.child.kill().unwrap();
    adapter.child.wait().unwrap();
    load.join().unwrap();
    let there = |entries: &[Value]| {
        entries.iter().filter_map(|entry| entry["index"].as_str()?.parse::<u64>().ok()).collect::<BTreeSet<_>>()
    };
    let listed = folder.quintain(&["contract", "state", "--store", "state.redb", "list", "--json"]).expect(0);
    let kept = there(listed.json().as_array().unwrap());
    let missing = (0..sure).filter(|who| !kept.contains(who)).collect::<Vec<_>>();
    assert!(missing.is_empty(), "{missing:?} of {sure}");
    let again = Adapter::start(&folder, "adapter.toml");
    let state = again.admin("/state");
    let lines = state.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>();
    assert_eq!(there(&lines), kept);
    assert!(call(&mut connect(&again), u64::MAX));
    let told = again.end();
    assert!(told.contains("was not closed") && told.lines().filter(|line| !line.is_empty()).count() == 1, "{told}");
    let port = folder.quintain(&["contract", "state", "--store", "state.redb", "purge", "--all"]).expect(0);
    assert!(port.err.contains("deleted "), "{}", port.err);
    let listed = folder.quintain(&["contract", "state", "--store", "state.redb", "list", "--json"]).expect(0);
    assert_eq!(listed.json(), serde_json::json!([]));
    let whole = std::fs::read(folder.path().join("state.redb")).unwrap();
    for left in [0, 1, 100, 4096, whole.len() / 2, whole.len() - 4096] {
        std::fs::write(folder.path().join("cut.redb"), &whole[..left]).unwrap();
        let ran = folder.quintain(&["contract", "state", "--store", "cut.redb", "list"]).expect(2);
        assert!(ran.err.starts_with("error: cut.redb: ") && !ran.err.contains("panicked"), "{left}: {}", ran.err);
    }
}

/// Starts a service that discards request bodies and responds to each request with 200. Returns its port.
fn discarding() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut from = BufReader::new(stream.try_clone().unwrap());
                loop {
                    let mut length = 0;
                    loop {
                        let mut line = String::new();
                        if !from.read_line(&mut line).is_ok_and(|read| read > 0) {
                            return;
                        }
                        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                            length = value.trim().parse::<u64>().unwrap();
                        }
                        if line == "\r\n" {
                            break;
                        }
                    }
                    let read = std::io::copy(&mut from.by_ref().take(length), &mut std::io::sink());
                    if !read.is_ok_and(|read| read == length)
                        || stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
    port
}

fn rss_mib(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() / 1024
}

#[test]
#[ignore = "slow: waits until memory is released"]
fn memory_of_unfinished_bodies_is_bounded_and_released() {
    let folder = Folder::new();
    let contract = "contract 1\nservice Any { POST \"/\"(body) { requires fine: len(body) >= 0 } }\n";
    folder.write("any.contract", contract);
    folder.write("adapter.toml", &config(discarding(), "[limits]\nbodies = \"64MiB\"\n"));
    let adapter = Adapter::start(&folder, "adapter.toml");
    let post = |body: &[u8]| {
        let mut stream = connect(&adapter);
        let head = format!("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    };
    let checked = || adapter.metric("verdicts_total{verdict=\"holds\"}");
    post(b"\"warm\"");
    let before_mib = rss_mib(adapter.child.id());
    let part = vec![b' '; 3_900 << 10];
    let clients = (0..400).map(|_| {
        let mut stream = connect(&adapter);
        stream.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4194304\r\n\r\n").unwrap();
        stream.write_all(&part).unwrap();
        stream
    });
    let clients = clients.collect::<Vec<_>>();
    let during_mib = rss_mib(adapter.child.id()).saturating_sub(before_mib);
    let before = checked();
    post(b"\"small\"");
    assert_eq!(checked(), before + 1, "a small body is checked meanwhile");
    assert!(adapter.metric("unchecked_total{reason=\"memory\"}") > 300);
    drop(clients);
    let after_mib = || rss_mib(adapter.child.id()).saturating_sub(before_mib);
    eventually("memory given back", || (after_mib() < 32).then_some(()));
    println!("{before_mib} MiB before, {during_mib} MiB more during the attack, {} MiB more after it", after_mib());
    assert!((64..64 + 400 / 3).contains(&during_mib), "{during_mib} MiB");
    let before = checked();
    eventually("a large body is checked again", || {
        post(&[&part[..], b"\"large\""].concat());
        (checked() > before).then_some(())
    });
}

#[test]
fn explains_reports_written_by_an_adapter() {
    let folder = Folder::new();
    folder.write("any.contract", CONTRACT);
    let reports = "[reports]\nformat = \"json\"\nfile = \"reports.jsonl\"\n";
    folder.write("adapter.toml", &config(service("500 Broken"), reports));
    let adapter = Adapter::start(&folder, "adapter.toml");
    assert!(call(&mut connect(&adapter), 7));
    adapter.end();
    let ran = folder.quintain(&["contract", "explain", "reports.jsonl", "--clause", "Any.GET /.fine"]).expect(0);
    assert!(ran.out.contains("Failed postcondition result.code == 200"), "{}", ran.out);
    assert!(ran.out.contains("index 7") && ran.out.contains("unknown vouched"), "{}", ran.out);
    let ran = folder.quintain(&["contract", "explain", "reports.jsonl", "--call", "2"]).expect(2);
    assert!(ran.err.contains("no matching report"), "{}", ran.err);
}

#[test]
fn adapter_check_reports_all_errors() {
    let folder = Folder::new();
    folder.write("any.contract", CONTRACT);
    folder.write("adapter.toml", &config(1, "allow = []\n"));
    let ran = folder.quintain(&["adapter", "adapter.toml", "--check"]).expect(2);
    insta::assert_snapshot!("adapter_check_key_in_the_wrong_table", ran.err);
    folder.write("adapter.toml", &config(1, ""));
    let ran = folder.quintain(&["adapter", "adapter.toml", "--check"]).expect(0);
    assert!(
        ran.err.contains("adapter.toml: no errors") && ran.err.contains("warning: `allow` is empty"),
        "{}",
        ran.err
    );
    folder.write(
        "wrong.toml",
        "name = \"unknown\"\ncontract = \"no.contract\"\nadmin = \"nowhere\"\nlisten = 3\n\n[protocols.Any]\nkind = \"tcp\"\n\n\
         [[consuming]]\nservice = \"Any\"\nendpoint = \"ftp://a\"\n\n[limits]\nidle = \"10 parsecs\"\nbody = \"1TiB\"\n\n[checks]\nsample = 2\n",
    );
    let ran = folder.quintain(&["adapter", "wrong.toml", "--check"]).expect(2);
    insta::assert_snapshot!("adapter_check_all_mistakes", ran.err);
    folder.write("whip.yaml", "name: client\nspec: any.contract\nclient_proxies:\n  - 127.0.0.1:1 mapstoservice Any\n");
    let ran = folder.quintain(&["adapter", "whip.yaml", "--check"]).expect(2);
    insta::assert_snapshot!("adapter_check_yaml", ran.err);
}

#[test]
fn sighup_reloads_the_contract() {
    let folder = Folder::new();
    folder.write("any.contract", CONTRACT);
    folder.write("adapter.toml", &config(service("200 OK"), ""));
    let adapter = Adapter::start(&folder, "adapter.toml");
    let hang_up = || crate::common::signal_process(adapter.child.id(), "HUP");
    let mut stream = connect(&adapter);
    assert!(call(&mut stream, 1));
    assert_eq!(adapter.metric("verdicts_total{verdict=\"fails\"}"), 0);
    folder.write("any.contract", "contract 1\nservice Any { GET \"/\"(args) { ensures a: nobody  ensures b: \"x } }\n");
    hang_up();
    adapter.says("`nobody`");
    adapter.says("not reloaded");
    folder.write("any.contract", &CONTRACT.replace("== 200", "== 201"));
    hang_up();
    adapter.says("any.contract: reloaded");
    assert!(call(&mut stream, 2));
    eventually("the call is judged", || (adapter.metric("verdicts_total{verdict=\"fails\"}") == 1).then_some(()));
}

#[test]
fn contract_check_reports_warnings_and_errors() {
    let folder = Folder::new();
    let contract = CONTRACT.replace("index args.who", "");
    assert_ne!(contract, CONTRACT);
    folder.write("good.contract", &contract);
    folder.quintain(&["contract", "check", "good.contract", "--strict"]).expect(0);
    folder.write("members.contract", CONTRACT);
    let ran = folder.quintain(&["contract", "check", "members.contract", "--strict"]).expect(1);
    assert!(ran.out.contains("[index-nobody-identifies]"), "{}", ran.out);
    folder.write("odd.contract", &contract.replace("result.code == 200", "result.code != result.code"));
    let ran = folder.quintain(&["contract", "check", "odd.contract"]).expect(0);
    assert!(ran.out.contains("warning: `result.code != result.code` compares a value with itself"), "{}", ran.out);
    folder.quintain(&["contract", "check", "odd.contract", "--strict"]).expect(1);
    folder.write("bad.thrift", "service S { i33 f(1: i32 a) }\n");
    folder.write(
        "schemas.contract",
        "contract 1\nschema \"bad.thrift\"\nschema \"gone.thrift\"\nservice S { f(a: Kind) { requires b > 0 } }\n",
    );
    let ran = folder.quintain(&["contract", "check", "schemas.contract", "--strict"]).expect(2);
    insta::assert_snapshot!("contract_check_schemas", ran.out);
    let ran = folder.quintain(&["contract", "check", "schemas.contract", "--json"]).expect(2);
    let paths = ran.json().as_array().unwrap().iter().map(|finding| finding["path"].clone()).collect::<Vec<_>>();
    assert_eq!(paths, [Value::Null, Value::Null, "bad.thrift".into()]);
    folder.write(
        "bad.contract",
        "contract 1\nservice Any { GET \"/\"(args) { requires a: b > 0  ensures c: 1 + \"x\" == 2  ensures d: result.code > 0 && result.code < 0 } }\n",
    );
    let ran = folder.quintain(&["contract", "check", "bad.contract"]).expect(2);
    insta::assert_snapshot!("contract_check", ran.out);
    let ran = folder.quintain(&["contract", "check", "bad.contract", "--json"]).expect(2);
    assert!(ran.json().as_array().unwrap().iter().all(|finding| finding["line"].as_u64().unwrap() == 2));
}

/// Starts a shop whose replies name the endpoint of its items but that serves no items. Returns its port.
fn shop() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut from = BufReader::new(stream.try_clone().unwrap());
                let (mut line, mut is_shop) = (String::new(), false);
                while from.read_line(&mut line).is_ok_and(|read| read > 0) {
                    is_shop = if line.starts_with("GET ") { line.contains("/store") } else { is_shop };
                    if line == "\r\n" {
                        let body = format!("{{\"items\": \"http://127.0.0.1:{port}/v1/items\"}}");
                        let (status, body) = if is_shop { ("200 OK", body) } else { ("404 None", "{}".to_owned()) };
                        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                        if stream.write_all(answer.as_bytes()).is_err() {
                            return;
                        }
                    }
                    line.clear();
                }
            });
        }
    });
    port
}

/// The journey resolves `.../v1/items/7`, but the adapter has learned only `.../v1/items` from a reply.
#[test]
fn longer_path_than_learned_goes_through_the_adapter() {
    let folder = Folder::new();
    let shop = format!("http://127.0.0.1:{}", shop());
    folder.write(
        "shop.contract",
        "contract 1\nservice Shop { GET \"/store\"() { reply identifies Items at result.body.items } }\n\
         service Items { GET \"/{id}\"(id) { ensures there: result.code == 200 } }\n",
    );
    folder.write(
        "client.toml",
        &format!(
            "name = \"client\"\ncontract = \"shop.contract\"\nadmin = \"127.0.0.1:0\"\nallow = [\"127.0.0.1:*\"]\n\n\
             [protocols.Shop]\nkind = \"rest\"\n\n[protocols.Items]\nkind = \"rest\"\n\n[reports]\nformat = \"json\"\n\n\
             [[consuming]]\nservice = \"Shop\"\nendpoint = \"{shop}\"\n"
        ),
    );
    folder.write(
        "journey.toml",
        "name = \"shop\"\ntargets = { shop = \"\" }\n\n[[step]]\nurl = \"{shop}/store\"\ntake = { items = \"body.items\" }\n\n\
         [[step]]\nurl = \"{items}/7\"\nexpect = { status = 404 }\n",
    );
    let client = Adapter::start(&folder, "client.toml");
    let (target, resolve) = (format!("shop={shop}"), format!("http://{}", client.at("admin")));
    let load = ["load", "--journey", "journey.toml", "--target", &target, "--resolve", &resolve];
    let ran = folder.quintain(&[&load[..], &["-c", "1", "-n", "2", "--json"]].concat()).expect(0);
    assert_eq!(ran.json()["requests"], 2, "{}", ran.out);
    assert_eq!(client.metric("unchecked_total{reason=\"unlisted\"}"), 0);
    let told = client.end();
    let [report] = told.lines().collect::<Vec<_>>()[..] else { panic!("{told}") };
    let report = serde_json::from_str::<Value>(report).unwrap();
    assert_eq!((&report["clause"], &report["verdict"]), (&"Items.GET /{id}.there".into(), &"fails".into()), "{report}");
}
