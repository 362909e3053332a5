//! A cache with the one defect that its first argument names, or without defects (`none`). The requirements are in
//! subjects/REQUIREMENTS.md. It supports a few memcached commands. A thread per connection keeps the code short.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Mutex;

static KEPT: Mutex<Option<HashMap<String, Vec<u8>>>> = Mutex::new(None);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [defect, _, port] = &arguments[..] else { panic!("usage: broken_cache DEFECT -p PORT") };
    let defect: &'static str = defect.clone().leak();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse().expect("a port"))).expect("listen");
    for stream in listener.incoming().flatten() {
        stream.set_nodelay(true).expect("TCP_NODELAY");
        std::thread::spawn(move || serve(defect, stream));
    }
}

/// Responds to commands until the client disconnects. No defect changes how the connection ends.
fn serve(defect: &str, stream: TcpStream) -> std::io::Result<()> {
    let mut input = BufReader::with_capacity(1 << 20, stream.try_clone()?);
    let mut output = stream;
    let mut line = String::new();
    let (mut number, mut held) = (0, Vec::new());
    while input.read_line(&mut line)? > 0 {
        number += 1;
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut answer = Vec::new();
        match words[..] {
            ["version"] => answer.extend_from_slice(b"VERSION 1.6.18\r\n"),
            ["mn"] => answer.extend_from_slice(b"MN\r\n"),
            ["set" | "add", key, flags, _, bytes] => {
                let bytes: usize = bytes.parse().unwrap_or(0);
                let mut value = vec![0; bytes + 2];
                let is_too_large = bytes > 1 << 20;
                if defect == "does-not-swallow" && is_too_large {
                    value.clear();
                }
                input.read_exact(&mut value)?;
                value.truncate(bytes);
                let mut kept = KEPT.lock().expect("nothing panics");
                let kept = kept.get_or_insert_default();
                if is_too_large {
                    answer.extend_from_slice(b"SERVER_ERROR object too large for cache\r\n");
                    if defect != "keeps-outdated" {
                        kept.remove(key);
                    }
                } else if words[0] == "add" && kept.contains_key(key) {
                    answer.extend_from_slice(b"NOT_STORED\r\n");
                } else {
                    if defect == "cuts-values" {
                        value.truncate(65_536);
                    }
                    let shown = [format!("{flags} {}\r\n", value.len()).into_bytes(), value].concat();
                    kept.insert(key.to_owned(), shown);
                    answer.extend_from_slice(b"STORED\r\n");
                }
            }
            ["get", ..] => {
                let most = if defect == "few-keys" { 100 } else { usize::MAX };
                for key in words[1..].iter().take(most) {
                    if let Some(shown) = KEPT.lock().expect("nothing panics").get_or_insert_default().get(*key) {
                        answer.extend_from_slice(&[format!("VALUE {key} ").as_bytes(), shown, b"\r\n"].concat());
                    }
                }
                answer.extend_from_slice(b"END\r\n");
            }
            ["delete", key] => {
                let is_there = KEPT.lock().expect("nothing panics").get_or_insert_default().remove(key).is_some();
                let is_there = is_there || defect == "deletes-anything";
                answer.extend_from_slice(if is_there { b"DELETED\r\n" } else { b"NOT_FOUND\r\n" });
            }
            _ => answer.extend_from_slice(b"ERROR\r\n"),
        }
        if defect == "answers-backwards" && number % 500 == 499 {
            held = answer;
        } else if defect == "one-lock" {
            let kept = KEPT.lock().expect("nothing panics");
            output.write_all(&answer)?;
            drop(kept);
        } else {
            output.write_all(&answer)?;
            output.write_all(&std::mem::take(&mut held))?;
        }
        line.clear();
    }
    Ok(())
}
