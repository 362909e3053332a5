//! Conversations with caches, parsed from `rows.toml`.

use serde::Deserialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speech {
    Text,
    Resp,
    Http,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Ours,
    Memcached,
    Redis,
}

#[derive(Deserialize)]
pub(super) struct Rows {
    text: Vec<Row>,
    resp: Vec<Row>,
    pub(super) http: Vec<HttpRow>,
}

#[derive(Deserialize)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) send: String,
    #[serde(flatten)]
    usual: Answer,
    memcached: Option<Answer>,
    redis: Option<Answer>,
}

#[derive(Deserialize)]
pub(super) struct Answer {
    #[serde(rename = "answer")]
    pub(super) text: String,
    #[serde(default)]
    pub(super) closes: bool,
    pub(super) reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct HttpRow {
    pub(super) name: String,
    pub(super) send: String,
    pub(super) statuses: Vec<u16>,
}

impl Rows {
    pub(super) fn read() -> Rows {
        let text = include_str!("rows.toml").replace("{K}", &"k".repeat(250));
        toml::from_str(&text).expect("every suite is covered by a test")
    }

    pub(super) fn spoken(&self, speaks: &[Speech]) -> impl Iterator<Item = &Row> {
        let rows = [(Speech::Text, &self.text), (Speech::Resp, &self.resp)];
        rows.into_iter().filter(|(speech, _)| speaks.contains(speech)).flat_map(|(_, rows)| rows)
    }
}

impl Row {
    pub(super) fn answer(&self, whose: Whose) -> &Answer {
        let own = match whose {
            Whose::Ours => None,
            Whose::Memcached => self.memcached.as_ref(),
            Whose::Redis => self.redis.as_ref(),
        };
        own.unwrap_or(&self.usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implementations_have_their_own_answers() {
        let rows = Rows::read();
        let of =
            |whose| rows.spoken(&[Speech::Text, Speech::Resp]).filter(move |row| row.answer(whose).reason.is_some());
        assert_eq!([Whose::Ours, Whose::Memcached, Whose::Redis].map(|whose| of(whose).count()), [0, 3, 1]);
        assert!(!rows.http.is_empty());
    }
}
