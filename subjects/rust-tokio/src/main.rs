//! Ping-pong server: a task per connection on tokio's thread pool, which respects the CPU affinity.

use std::io;
use std::net::Ipv4Addr;
use std::process::exit;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

const BUFFER: usize = 16 * 1024;

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

async fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; BUFFER];
    let mut filled = 0;
    loop {
        match stream.read(&mut buffer[filled..]).await? {
            0 => return Ok(()),
            got => filled += got,
        }
        let whole = filled & !3;
        answer(&mut buffer[..whole]);
        stream.write_all(&buffer[..whole]).await?;
        buffer.copy_within(whole..filled, 0); // the incomplete word, at most three bytes
        filled -= whole;
    }
}

async fn listen(address: Ipv4Addr, port: u16) -> io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind((address, port).into())?;
    let listener = socket.listen(1 << 16)?; // the kernel caps it at net.core.somaxconn
    println!("ready {}", listener.local_addr()?.port());
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(serve(stream))), // broken connections are ignored
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await, // too many files: wait for some to close
        }
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
        eprintln!("usage: rust-tokio -p PORT [-a ADDRESS]");
        exit(2);
    };
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(listen(address, port))
}
