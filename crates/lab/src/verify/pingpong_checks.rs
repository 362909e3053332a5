//! Cases for ping-pong servers that one client's conversation cannot express (subjects/REQUIREMENTS.md, "Ping-pong").

use super::check_definition::{Check, code};
use super::client::expect_words;
use super::server_under_test::Server;
use super::unsuccessful_check_reason::{END, Trouble};

pub(super) fn checks() -> Vec<Check> {
    vec![
        code("pipelined", "many words in one write all get their responses, in order", pipelined),
        code("slow-reader", "a slow reader neither blocks other clients nor loses data", slow_reader),
    ]
}

fn to_bytes(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_be_bytes).collect()
}

fn pipelined(server: &mut Server<'_>) -> Result<(), Trouble> {
    let mut client = server.connect()?;
    for count in [2, 3, 1000] {
        let words = 1..1 + count;
        client.send(&to_bytes(words.clone()))?;
        expect_words(&mut client, words)?;
    }
    // The buffers on the way cannot hold this many words, so the reader must keep up with the writer.
    let words = 1..1 + (1_u32 << 20);
    let mut writer = client.second_handle()?;
    let bytes = to_bytes(words.clone());
    std::thread::scope(|scope| {
        let sent = scope.spawn(move || writer.send(&bytes));
        let mut reader = std::io::BufReader::with_capacity(1 << 16, &mut client);
        let read = expect_words(&mut reader, words);
        if read.is_err() {
            let _ = client.stream.shutdown(std::net::Shutdown::Both); // ends the writer as well
        }
        read.and(sent.join().expect("the writer does not panic"))
    })?;
    Ok(())
}

fn slow_reader(server: &mut Server<'_>) -> Result<(), Trouble> {
    /// Number of words, enough to fill the buffers on both sides. A server that buffers responses accepts all words.
    const ENOUGH: u32 = 4 << 20;
    let mut slow = server.connect()?;
    let bytes = to_bytes(1..1 + ENOUGH);
    let sent = server.fill(&mut slow, &bytes)?;
    let whole = (sent / 4) as u32;
    let mut reader = std::io::BufReader::with_capacity(1 << 16, &mut slow);
    expect_words(&mut reader, 1..1 + whole)?;
    Ok(())
}

pub(super) fn zero(server: &mut Server<'_>) -> Result<(), Trouble> {
    let mut clients = server.served_clients(4)?;
    clients[3].send(&[0; 4])?;
    server.process()?.wait_gone(END).map_err(|why| format!("after a zero word {why}"))?;
    server.check_deaf()?;
    Ok(())
}
