//! Cases for caches (subjects/REQUIREMENTS.md, "Caches"). Skips conversations in protocols that the server does not
//! support. If memcached or Redis is known to respond differently, `cache_conversations.toml` has that response and why.

use std::io::Read;
use std::time::Duration;

use serde::Deserialize;
use study::cases::{Cut, Split, cuts};
use study::verification::Miss;

use super::check_definition::{Check, code};
use super::client::Client;
use super::server_under_test::Server;
use super::unsuccessful_check_reason::Trouble;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speech {
    Text,
    Resp,
    Http,
}

/// Returns the answer of an implementation that is known to differ from the usual one; `None` if it does not differ.
type OwnAnswer = fn(&Row) -> Option<&Answer>;

#[derive(Deserialize)]
struct Rows {
    text: Vec<Row>,
    resp: Vec<Row>,
    http: Vec<HttpRow>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    send: String,
    #[serde(flatten)]
    usual: Answer,
    memcached: Option<Answer>,
    redis: Option<Answer>,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "answer")]
    text: String,
    #[serde(default)]
    closes: bool,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct HttpRow {
    name: String,
    send: String,
    statuses: Vec<u16>,
}

impl Rows {
    fn read() -> Rows {
        let text = include_str!("cache_conversations.toml").replace("{K}", &"k".repeat(250));
        toml::from_str(&text).expect("every suite is covered by a test")
    }

    fn spoken(&self, speaks: &[Speech]) -> impl Iterator<Item = &Row> {
        let rows = [(Speech::Text, &self.text), (Speech::Resp, &self.resp)];
        rows.into_iter().filter(|(speech, _)| speaks.contains(speech)).flat_map(|(_, rows)| rows)
    }
}

impl Row {
    fn answer(&self, own: OwnAnswer) -> &Answer {
        own(self).unwrap_or(&self.usual)
    }
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        code("answers", "stored values are found, deleted ones are gone", answers),
        code(
            "text",
            "memcached's text: limits, wrong lengths, junk and `noreply` leave the connection in step",
            |server| converse(server, Speech::Text),
        ),
        code(
            "resp",
            "RESP: inline commands, blank lines, wrong lengths and counts get a response or close the connection",
            |server| converse(server, Speech::Resp),
        ),
        code("http-cache", "HTTP: targets are decoded, ambiguous framing is refused", http_cache),
        code("split", "every conversation is the same cut in two anywhere, and byte by byte", split),
        code("large", "a value of 500 kB is returned whole; one over the limit is skipped and drops the older", large),
        code("many-keys", "1,000 keys in one request get their responses, 10 MB of values included", many_keys),
        code("pipelined", "5,000 requests in one write get their responses in order", pipelined),
        code("slow-reader", "a slow reader neither blocks other clients nor loses data", slow_reader),
    ]
}

struct Detected {
    own: OwnAnswer,
    speaks: Vec<Speech>,
}

fn detect(server: &Server<'_>) -> Result<Detected, String> {
    let said = |words: &[u8]| -> Result<Vec<u8>, String> {
        let mut client = server.connect()?;
        client.send(words)?;
        let mut room = [0; 256];
        // A server without this protocol may close the connection instead of responding.
        let bytes = client.read(&mut room).unwrap_or(0);
        Ok(room[..bytes].to_vec())
    };
    let version = said(b"version\r\n")?;
    let own: OwnAnswer = match version.starts_with(b"VERSION") {
        true if version.windows(8).any(|word| word == b"quintain") => |_| None,
        true => |row| row.memcached.as_ref(),
        false => |row| row.redis.as_ref(),
    };
    let mut speaks = Vec::new();
    for (speech, asked, begins) in [
        (Speech::Text, &b"version\r\n"[..], &b"VERSION"[..]),
        (Speech::Resp, b"*1\r\n$4\r\nPING\r\n", b"+PONG"),
        (Speech::Http, b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/1.1"),
    ] {
        speaks.extend(said(asked)?.starts_with(begins).then_some(speech));
    }
    let unknown = || format!("speaks no supported protocol: `{}`", version.escape_ascii());
    if speaks.is_empty() { Err(unknown()) } else { Ok(Detected { own, speaks }) }
}

fn detect_speaker_of(server: &Server<'_>, speech: Speech) -> Result<Detected, Trouble> {
    let known = detect(server)?;
    let silent = || Trouble::NotChecked(format!("this server does not speak {speech:?}"));
    if known.speaks.contains(&speech) { Ok(known) } else { Err(silent()) }
}

fn check_row(server: &Server<'_>, row: &Row, own: OwnAnswer, cut: &Cut) -> Result<(), Miss> {
    let mut client = server.connect()?;
    let Answer { text, closes, .. } = row.answer(own);
    // If the server closes early, sending the rest may fail.
    if client.send_cut(row.send.as_bytes(), cut).is_err() && !closes {
        return Err("the connection was closed".to_owned().into());
    }
    client.expect_bytes(text.as_bytes())?;
    if !closes {
        return client.expect_silence(Duration::from_millis(2), "unsolicited bytes", "after the response");
    }
    match client.expect_end() {
        Err(why) if !why.contains("Connection reset") => Err(why.into()),
        _ => Ok(()),
    }
}

fn answers(server: &mut Server<'_>) -> Result<(), Trouble> {
    let known = detect(server)?;
    let is_basic = |row: &&Row| ["text", "resp"].contains(&row.name.as_str());
    for row in Rows::read().spoken(&known.speaks).filter(is_basic) {
        check_row(server, row, known.own, &Cut::Whole)?;
    }
    Ok(())
}

fn converse(server: &mut Server, speech: Speech) -> Result<(), Trouble> {
    let known = detect_speaker_of(server, speech)?;
    let wrong = |row: &Row| {
        let miss = check_row(server, row, known.own, &Cut::Whole).err()?;
        let reason = row.answer(known.own).reason.as_ref();
        Some(format!("{}: {miss}{}", row.name, reason.map_or(String::new(), |reason| format!(" ({reason})"))))
    };
    let wrong: Vec<String> = Rows::read().spoken(&[speech]).filter_map(wrong).collect();
    if wrong.is_empty() { Ok(()) } else { Err(Trouble::from(wrong.join("; "))) }
}

fn split(server: &mut Server<'_>) -> Result<(), Trouble> {
    let known = detect(server)?;
    for row in Rows::read().spoken(&known.speaks).filter(|row| row.send.len() <= 200) {
        let cuts = cuts(&Split::All, row.send.len()).unwrap_or_default();
        for cut in cuts.iter().filter(|cut| **cut != Cut::Bytes || row.send.len() <= 60) {
            let place = format!("{}, {}: ", row.name, cut.words().unwrap_or_default());
            check_row(server, row, known.own, cut).map_err(|miss| Trouble::from(miss).at(&place))?;
        }
    }
    Ok(())
}

fn http_cache(server: &mut Server<'_>) -> Result<(), Trouble> {
    detect_speaker_of(server, Speech::Http)?;
    for HttpRow { name, send, statuses } in Rows::read().http {
        let mut client = server.connect()?;
        client.send(send.as_bytes())?;
        for status in statuses {
            let wrong = |is: String| format!("{name}: {is} instead of {status}");
            match client.receive(false).map_err(&wrong)? {
                Some(response) if response.status == status => {}
                Some(response) => return Err(wrong(response.status.to_string()).into()),
                None => return Err(wrong("the end".to_owned()).into()),
            }
        }
    }
    Ok(())
}

/// Builds a `set` and a `get` in a protocol that the server supports, each followed by the expected response.
fn compose(known: &Detected, key: &str, value: &[u8]) -> [Vec<u8>; 4] {
    let (bytes, length) = (value.len(), key.len());
    let is_text = known.speaks.contains(&Speech::Text);
    let (stored, back) = if is_text { ("STORED\r\n", "\r\nEND\r\n") } else { ("+OK\r\n", "\r\n") };
    let [set, get, front] = match is_text {
        true => [format!("set {key} 0 0 {bytes}\r\n"), format!("get {key}\r\n"), format!("VALUE {key} 0 {bytes}\r\n")],
        false => [
            format!("*3\r\n$3\r\nSET\r\n${length}\r\n{key}\r\n${bytes}\r\n"),
            format!("*2\r\n$3\r\nGET\r\n${length}\r\n{key}\r\n"),
            format!("${bytes}\r\n"),
        ],
    };
    let set = [set.as_bytes(), value, b"\r\n"].concat();
    [set, stored.into(), get.into_bytes(), [front.as_bytes(), value, back.as_bytes()].concat()]
}

fn exchange(client: &mut Client, asked: &[u8], answer: &[u8]) -> Result<(), Miss> {
    client.send(asked)?;
    client.expect_bytes(answer)
}

fn large(server: &mut Server<'_>) -> Result<(), Trouble> {
    let known = detect(server)?;
    let mut client = server.connect()?;
    let value: Vec<u8> = (0..500_000_u32).map(|at| b'a' + (at % 23) as u8).collect();
    let [set, stored, get, hit] = compose(&known, "large", &value);
    exchange(&mut client, &set, &stored)?;
    exchange(&mut client, &get.repeat(3), &hit.repeat(3))?;
    if !known.speaks.contains(&Speech::Text) {
        return Ok(()); // Redis stores values of up to 512 MB.
    }
    let mut over = b"set large 0 0 2000000\r\n".to_vec();
    over.resize(over.len() + 2_000_000, b'x');
    over.extend_from_slice(b"\r\nget large\r\nadd large 0 0 1\r\n1\r\n");
    Ok(exchange(&mut client, &over, b"SERVER_ERROR object too large for cache\r\nEND\r\nSTORED\r\n")?)
}

fn many_keys(server: &mut Server<'_>) -> Result<(), Trouble> {
    let known = detect(server)?;
    let mut client = server.connect()?;
    let (value, is_text) = (vec![b'v'; 10_000], known.speaks.contains(&Speech::Text));
    let [set, stored, ..] = compose(&known, "many", &value);
    exchange(&mut client, &set, &stored)?;
    let keys = |key: &str| match is_text {
        true => format!("get{}\r\n", format!(" {key}").repeat(1000)),
        false => format!("*1001\r\n$4\r\nMGET\r\n{}", format!("${}\r\n{key}\r\n", key.len()).repeat(1000)),
    };
    let misses = if is_text { "END\r\n".to_owned() } else { format!("*1000\r\n{}", "$-1\r\n".repeat(1000)) };
    exchange(&mut client, keys("none").as_bytes(), misses.as_bytes())?;
    let (front, one, back) = match is_text {
        true => (&b""[..], [b"VALUE many 0 10000\r\n", &value[..], b"\r\n"].concat(), &b"END\r\n"[..]),
        false => (&b"*1000\r\n"[..], [b"$10000\r\n", &value[..], b"\r\n"].concat(), &b""[..]),
    };
    Ok(exchange(&mut client, keys("many").as_bytes(), &[front, &one.repeat(1000), back].concat())?)
}

fn pipelined(server: &mut Server<'_>) -> Result<(), Trouble> {
    let known = detect(server)?;
    let mut client = server.connect()?;
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    for number in 0..2_500 {
        let [set, stored, get, hit] = compose(&known, &format!("p{}", number % 50), format!("{number}").as_bytes());
        asked.extend([set, get].concat());
        answered.extend([stored, hit].concat());
    }
    Ok(exchange(&mut client, &asked, &answered)?)
}

fn slow_reader(server: &mut Server<'_>) -> Result<(), Trouble> {
    /// Total size of responses, in bytes, large enough to fill the buffers on both sides of a connection.
    const ENOUGH: usize = 24 << 20;
    let known = detect(server)?;
    let mut slow = server.connect()?;
    let value: Vec<u8> = (0..100_000_u32).map(|at| b'a' + (at % 19) as u8).collect();
    let [set, stored, get, hit] = compose(&known, "slow", &value);
    exchange(&mut slow, &set, &stored)?;
    let sent = server.fill(&mut slow, &get.repeat(ENOUGH / hit.len()))?;
    let whole = sent / get.len();
    for index in 0..whole {
        let place = format!("response {} of {whole} to a slow reader: ", index + 1);
        slow.expect_bytes(&hit).map_err(|miss| Trouble::from(miss).at(&place))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implementations_have_their_own_answers() {
        let rows = Rows::read();
        let implementations: [OwnAnswer; 3] = [|_| None, |row| row.memcached.as_ref(), |row| row.redis.as_ref()];
        let own_answers = implementations.map(|own| {
            let rows = rows.spoken(&[Speech::Text, Speech::Resp]);
            rows.filter(|row| row.answer(own).reason.is_some()).count()
        });
        assert_eq!(own_answers, [0, 3, 1]);
        assert!(!rows.http.is_empty());
    }
}
