//! Ping-pong server: a blocking thread per connection; the scheduler distributes them over the CPUs.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::exit;
use std::thread;
use std::time::Duration;

use socket2::SockRef;

const BUFFER: usize = 16 * 1024;
const STACK: usize = 128 * 1024;

/// Replaces each word with its response. A zero ends the process.
fn answer(words: &mut [u8]) {
    for bytes in words.chunks_exact_mut(4) {
        let word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        if word == 0 {
            exit(0);
        }
        bytes.copy_from_slice(&word.wrapping_add(1).to_be_bytes());
    }
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = [0; BUFFER];
    let mut filled = 0;
    loop {
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => return Ok(()),
            Ok(got) => filled += got,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        let whole = filled & !3;
        answer(&mut buffer[..whole]);
        stream.write_all(&buffer[..whole])?;
        buffer.copy_within(whole..filled, 0); // the incomplete word, at most three bytes
        filled -= whole;
    }
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let (port, address) = match &arguments[..] {
        [_, flag, port] if flag == "-p" => (port.parse().ok(), Some(Ipv4Addr::LOCALHOST)),
        [_, flag, port, to, address] if flag == "-p" && to == "-a" => (port.parse().ok(), address.parse().ok()),
        _ => (None, None),
    };
    let (Some(port), Some(address)): (Option<u16>, _) = (port, address) else {
        eprintln!("usage: rust -p PORT [-a ADDRESS]");
        exit(2);
    };
    let listener = TcpListener::bind((address, port))?; // with SO_REUSEADDR
    SockRef::from(&listener).listen(i32::MAX)?; // the kernel caps it at net.core.somaxconn
    println!("ready {}", listener.local_addr()?.port());
    loop {
        // Errors: a connection closed early, or too many files or threads, so wait for connections to close.
        let started = listener.accept().and_then(|(stream, _)| {
            thread::Builder::new().stack_size(STACK).spawn(|| {
                let _ = serve(stream); // broken connections are ignored
            })
        });
        if started.is_err() {
            thread::sleep(Duration::from_millis(1));
        }
    }
}
