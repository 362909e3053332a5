//! Adapters that run as separate processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use super::Folder;

/// An adapter process, which is killed when this value is dropped.
pub struct Adapter {
    pub child: Child,
    /// Lines that the adapter printed before it was ready, including its addresses.
    pub said: Vec<String>,
    later: Arc<Mutex<Vec<String>>>,
}

impl Adapter {
    pub fn start(folder: &Folder, config: &str) -> Self {
        let mut command = folder.command(&["adapter", config]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut adapter = Self { child, said: Vec::new(), later: Arc::default() };
        let mut lines = BufReader::new(adapter.child.stderr.take().unwrap()).lines();
        adapter.said.extend(lines.by_ref().map(Result::unwrap).take_while(|line| line != "ready"));
        assert!(!adapter.said.is_empty(), "it is not ready");
        let later = adapter.later.clone();
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| later.lock().unwrap().push(line)));
        adapter
    }

    pub fn says(&self, part: &str) {
        super::eventually(part, || self.later.lock().unwrap().iter().any(|line| line.contains(part)).then_some(()));
    }

    pub fn at(&self, what: &str) -> &str {
        let address = self.said.iter().find_map(|line| line.strip_prefix(what));
        address.and_then(|rest| rest.rsplit_once(": ")).unwrap_or_else(|| panic!("{what}: {:?}", self.said)).1
    }

    pub fn admin(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.at("admin")).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    pub fn metric(&self, name: &str) -> u64 {
        let text = self.admin("/metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("quintain_adapter_{name} ")));
        line.unwrap().parse().unwrap()
    }

    pub fn end(mut self) -> String {
        super::signal_process(self.child.id(), "TERM");
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert!(self.child.wait().unwrap().success());
        out
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
