#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speech {
    Text,
    Resp,
    Http,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Ours,
    /// memcached 1.6.18.
    Memcached,
    /// Redis 7.0.
    Redis,
}

/// Requests on a new connection and the expected responses. Repeating it has the same result.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) speech: Speech,
    pub(super) asked: Vec<u8>,
    usual: Answer,
    /// An implementation that responds differently.
    differs: Option<(Whose, Answer)>,
}

pub(super) struct Answer {
    pub(super) bytes: Vec<u8>,
    pub(super) closes: bool,
    /// Why a response that differs from the usual one is also correct.
    pub(super) reason: Option<&'static str>,
}

impl Row {
    /// Creates a row. It begins with a command that lets a server detect the protocol.
    fn new(speech: Speech, name: &'static str, asked: &[u8], answered: &str) -> Row {
        let greeting: &[u8] = if speech == Speech::Text { b"mn\r\n" } else { b"PING\r\n" };
        let usual = Answer::new(speech, answered, None);
        Row { name, speech, asked: [greeting, asked].concat(), usual, differs: None }
    }

    pub(super) fn answer(&self, whose: Whose) -> &Answer {
        self.differs.as_ref().filter(|(other, _)| *other == whose).map_or(&self.usual, |(_, answer)| answer)
    }

    fn closing(mut self) -> Row {
        self.differs.as_mut().map_or(&mut self.usual, |(_, answer)| answer).closes = true;
        self
    }

    fn but(self, whose: Whose, answered: &str, reason: &'static str) -> Row {
        let answer = Answer::new(self.speech, answered, Some(reason));
        Row { differs: Some((whose, answer)), ..self }
    }
}

impl Answer {
    fn new(speech: Speech, answered: &str, reason: Option<&'static str>) -> Answer {
        let front = if speech == Speech::Text { "MN\r\n" } else { "+PONG\r\n" };
        Answer { bytes: format!("{front}{answered}").into_bytes(), closes: false, reason }
    }
}

fn text(name: &'static str, asked: impl AsRef<[u8]>, answered: &str) -> Row {
    Row::new(Speech::Text, name, asked.as_ref(), answered)
}

fn resp(name: &'static str, asked: impl AsRef<[u8]>, answered: &str) -> Row {
    Row::new(Speech::Resp, name, asked.as_ref(), answered)
}

const LINE: &str = "CLIENT_ERROR bad command line format\r\n";
const CHUNK: &str = "CLIENT_ERROR bad data chunk\r\n";
const LARGE: &str = "SERVER_ERROR object too large for cache\r\n";
const SKIPS_THE_LINE: &str = "memcached skips only the line and reads the block as commands";
const ENDS: &str = "mn\r\n";

/// All conversations; those called `text` and `resp` are the basic ones.
pub(super) fn all() -> Vec<Row> {
    use Whose::{Memcached, Redis};
    let (longest, too_long) = ("k".repeat(250), "k".repeat(251));
    vec![
        text(
            "text",
            "set a 7 0 3\r\nabc\r\nget a\r\ndelete a\r\nget a\r\ndelete a\r\n",
            "STORED\r\nVALUE a 7 3\r\nabc\r\nEND\r\nDELETED\r\nEND\r\nNOT_FOUND\r\n",
        ),
        text(
            "a key of 250 letters",
            format!("set {longest} 0 0 1\r\n1\r\nget {longest}\r\n"),
            &format!("STORED\r\nVALUE {longest} 0 1\r\n1\r\nEND\r\n"),
        ),
        text("a store of a key of 251", format!("set {too_long} 0 0 7\r\nversion\r\n{ENDS}"), &format!("{LINE}MN\r\n"))
            .but(Memcached, &format!("{LINE}VERSION 1.6.18\r\nMN\r\n"), SKIPS_THE_LINE),
        text("a get of a key of 251", format!("get {too_long}\r\n{ENDS}"), &format!("{LINE}MN\r\n")),
        text("no bytes", "set a 0 0 0\r\n\r\nget a\r\n", "STORED\r\nVALUE a 0 0\r\n\r\nEND\r\n"),
        text(
            "a value that looks like commands",
            "set a 0 0 14\r\n\r\nget a\r\nEND\r\n\r\nget a\r\n",
            "STORED\r\nVALUE a 0 14\r\n\r\nget a\r\nEND\r\n\r\nEND\r\n",
        ),
        text(
            "a block longer than its length",
            format!("set a 0 0 3\r\nabcdef\r\n{ENDS}"),
            &format!("{CHUNK}ERROR\r\nMN\r\n"),
        ),
        text(
            "a block shorter than its length",
            format!("set a 0 0 9\r\nabc\r\n{ENDS}{ENDS}"),
            &format!("{CHUNK}ERROR\r\n"),
        ),
        text("a length below 0", format!("set a 0 0 -1\r\n{ENDS}"), &format!("{LINE}MN\r\n")),
        text("a length that is none", format!("set a 0 0 x\r\n{ENDS}"), &format!("{LINE}MN\r\n")),
        text("no length", format!("set a 0 0\r\n{ENDS}"), "ERROR\r\nMN\r\n"),
        text("a length of 64 bits", "set a 0 0 18446744073709551615\r\n", LARGE).closing().but(
            Memcached,
            LINE,
            "memcached does not read the length as a number and, as always, skips only the line",
        ),
        text("flags that are none", format!("set a x 0 2\r\nmn\r\n{ENDS}"), &format!("{LINE}MN\r\n")).but(
            Memcached,
            &format!("{LINE}MN\r\nMN\r\n"),
            SKIPS_THE_LINE,
        ),
        text(
            "no such command",
            format!("frobnicate a\r\n\x01\x02 \r\n\r\n{ENDS}"),
            "ERROR\r\nERROR\r\nERROR\r\nMN\r\n",
        ),
        text("get of nothing", format!("get\r\n{ENDS}"), "ERROR\r\nMN\r\n"),
        text("noreply, and a length that is none", format!("set a 0 0 x noreply\r\n{ENDS}"), "MN\r\n"),
        text("noreply, and a time to delete", format!("delete a 5 noreply\r\n{ENDS}"), "MN\r\n"),
        text("noreply", format!("set a 0 0 1 noreply\r\n1\r\ndelete a noreply\r\nget a\r\n{ENDS}"), "END\r\nMN\r\n"),
        text(
            "counting wraps and stops",
            "set a 0 0 20\r\n18446744073709551615\r\nincr a 2\r\ndecr a 5\r\nset a 0 0 1\r\nx\r\nincr a 1\r\nincr a -1\r\n",
            "STORED\r\n1\r\n0\r\nSTORED\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n\
             CLIENT_ERROR invalid numeric delta argument\r\n",
        ),
        text("a time in the past", "set a 0 -1 1\r\n1\r\nget a\r\n", "STORED\r\nEND\r\n"),
        resp(
            "resp",
            "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$3\r\nabc\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\nDEL a\r\nGET a\r\nDEL a\r\n",
            "+OK\r\n$3\r\nabc\r\n:1\r\n$-1\r\n:0\r\n",
        ),
        resp(
            "inline, and blank lines",
            "\r\nSET a 1\r\n\r\nGET a\r\nset b \"x y\"\r\nget b\r\n",
            "+OK\r\n$1\r\n1\r\n+OK\r\n$3\r\nx y\r\n",
        ),
        resp("no arguments at all", "*0\r\n*-1\r\nPING\r\n", "+PONG\r\n"),
        resp("no bytes", "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$0\r\n\r\nGET a\r\n", "+OK\r\n$0\r\n\r\n"),
        resp("an argument below 0", "*2\r\n$3\r\nGET\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length\r\n")
            .closing(),
        resp("a count beyond all", "*99999999999\r\n", "-ERR Protocol error: invalid multibulk length\r\n").closing(),
        resp("no argument where one is required", "*1\r\n+PING\r\n", "-ERR Protocol error: expected '$', got '+'\r\n")
            .closing(),
        resp("a quote without its end", "SET a \"b\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n")
            .but(
                Redis,
                "-ERR Protocol error: unbalanced quotes in request\r\n",
                "Redis closes the connection, although the end of the line marks the next request",
            )
            .closing(),
        resp("too few arguments", "GET\r\nPING\r\n", "-ERR wrong number of arguments for 'get' command\r\n+PONG\r\n"),
        resp(
            "no such command",
            "FROB a\r\nPING\r\n",
            "-ERR unknown command 'FROB', with args beginning with: 'a' \r\n+PONG\r\n",
        ),
        resp(
            "misses among hits",
            "SET a 1\r\nDEL none\r\nMGET a none a\r\n",
            "+OK\r\n:0\r\n*3\r\n$1\r\n1\r\n$-1\r\n$1\r\n1\r\n",
        ),
        resp("the third version", "HELLO 9\r\nPING\r\n", "-NOPROTO unsupported protocol version\r\n+PONG\r\n"),
    ]
}

pub(super) const HTTP: &[(&str, &str, &[u16])] = &[
    (
        "put, get, delete",
        "DELETE /a HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\nPUT /b/1 HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\nDELETE /b HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
        &[404, 201, 200, 204, 404],
    ),
    (
        "a key with a slash in it",
        "PUT /a%2Fb/1 HTTP/1.1\r\nHost: a\r\n\r\nGET /a%2fb HTTP/1.1\r\nHost: a\r\n\r\nDELETE /a%2Fb HTTP/1.1\r\nHost: a\r\n\r\n",
        &[201, 200, 204],
    ),
    ("an escape that is none", "GET /a%zz HTTP/1.1\r\nHost: a\r\n\r\n", &[400]),
    ("no value", "PUT /a HTTP/1.1\r\nHost: a\r\n\r\n", &[400]),
    (
        "an empty value",
        "DELETE /e HTTP/1.1\r\nHost: a\r\n\r\nPUT /e/ HTTP/1.1\r\nHost: a\r\n\r\nGET /e HTTP/1.1\r\nHost: a\r\n\r\nDELETE /e HTTP/1.1\r\nHost: a\r\n\r\n",
        &[404, 201, 200, 204],
    ),
    (
        "a length and chunks",
        "POST /reset HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        &[400],
    ),
    ("two lengths", "GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", &[400]),
    ("a folded line", "GET /a HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", &[400]),
    ("no host", "GET /a HTTP/1.1\r\n\r\n", &[400]),
];
