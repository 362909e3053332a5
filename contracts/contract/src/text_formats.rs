//! Formats of strings that contract functions recognize: dates, UUIDs, media types, URLs and chess games.

use std::sync::LazyLock;

use regex_lite::Regex;
use time::format_description::well_known::Rfc3339;
use time::{Date, Month, OffsetDateTime};

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

fn pattern(source: &str) -> Regex {
    Regex::new(source).expect("every test of this file compiles it")
}

fn date(year: &str, month: usize, day: &str) -> Option<Date> {
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    Date::from_calendar_date(year.parse().ok()?, month, day.parse().ok()?).ok()
}

/// Dates of RFC 5322 and of C's `asctime`, without a check of the day of the month.
static MAIL_DATES: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    let week_day = r"(?:(?i:mon|tue|wed|thu|fri|sat|sun),*\s+)?";
    let clock = r"(?:[01]\d|2[0-3]):[0-5]\d(?::(?:[0-5]\d|60))?";
    // A zone is an offset such as `+0100`, or a zone name of RFC 822, section 5.1, such as `GMT`.
    let zone = r"(?:[+-](?:[01]\d|2[0-3])[0-5]\d|UTC?|GMT|[ECMP][SD]T|[A-IK-Z])";
    let (day, month, year) = (r"(?<day>\d+)", r"(?<month>[A-Za-z]+)", r"(?<year>\d{2}|\d{4})");
    [
        pattern(&format!(r"^\s*{week_day}{day}\s+{month}\s+{year}\s+{clock}\s+{zone}\s*$")),
        pattern(&format!(r"^\s*{week_day}{month}\s+{day}\s+{clock}(?:\s+{zone})?\s+{year}\s*$")),
    ]
});

/// Whether a string is a date of RFC 822, section 5, or RFC 5322, section 3.3, such as `Thu, 18 Jan 2007 00:10:45
/// +0000`. Like mail readers, accepts C's `asctime` with a zone, as in Twitter's `Thu Jan 18 00:10:45 +0000 2007`.
pub(crate) fn rfc822_date(text: &str) -> bool {
    let Some(found) = MAIL_DATES.iter().find_map(|date| date.captures(text)) else { return false };
    let month = MONTHS.iter().position(|known| known.eq_ignore_ascii_case(&found["month"]));
    month.is_some_and(|month| date(&found["year"], month + 1, &found["day"]).is_some())
}

/// Milliseconds, truncated, from 1970-01-01T00:00:00Z to a time of RFC 3339, section 5.6. `None` for other strings
/// and, if `zone_needed`, for times without a zone. Otherwise, a missing zone means UTC, as in XML Schema's `dateTime`.
pub(crate) fn time_ms(text: &str, zone_needed: bool) -> Option<i64> {
    // The parser of `time` accepts any character between date and time.
    if !matches!(text.as_bytes().get(10), Some(b'T' | b't' | b' ')) {
        return None;
    }
    let parse = |text: &str| OffsetDateTime::parse(text, &Rfc3339).ok();
    let time = if zone_needed { parse(text) } else { parse(text).or_else(|| parse(&format!("{text}Z"))) };
    i64::try_from(time?.unix_timestamp_nanos().div_euclid(1_000_000)).ok()
}

static UUID4: LazyLock<Regex> =
    LazyLock::new(|| pattern("^(?i)[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"));

/// Whether a string is a UUID of version 4 in its usual form. Source: RFC 9562, sections 4 and 5.4.
pub(crate) fn uuid4(text: &str) -> bool {
    UUID4.is_match(text)
}

static MEDIA_TYPE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        "^(?i)(?:application|audio|example|font|haptics|image|message|model|multipart|text|video)",
        r"/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$",
    ))
});

/// Whether a string is `type/subtype` (RFC 6838, section 4.2), with a `type` that IANA lists. Parameters are ignored.
pub(crate) fn mime_valid(text: &str) -> bool {
    MEDIA_TYPE.is_match(text.split(';').next().unwrap_or_default().trim_end())
}

/// The host of a URL, without user, port and IPv6 brackets. `None` if missing. Source: RFC 3986, section 3.2.
pub(crate) fn url_host(url: &str) -> Option<&str> {
    let authority = url.split_once("://")?.1.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => host.split(':').next()?,
    };
    (!host.is_empty()).then_some(host)
}

pub(crate) fn query_param<'u>(url: &'u str, name: &str) -> Option<&'u str> {
    let query = url.split_once('?')?.1.split('#').next()?;
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then_some(value)
    })
}

/// A glyph (`$12`, `!?`), or a move in standard algebraic notation with or without its number, such as `12.`, `12...`,
/// `e4`, `12.e4`, `exd5`, `R1xe1`, `e8=Q+`, `O-O-O#` or `Nf3!?`. Castling with the digit zero is not a move. Source:
/// Portable Game Notation Specification 1994, section 8.2.3.
static MOVE_OR_GLYPH: LazyLock<Regex> = LazyLock::new(|| {
    let pawn = "(?:[a-h]x)?[a-h](?:[2-7]|[18]=[QRBN])";
    let moved = format!("(?:O-O(?:-O)?|[KQRBN][a-h]?[1-8]?x?[a-h][1-8]|{pawn})[+#]?[!?]*");
    let glyph = r"\$0*(?:\d?\d|1\d\d|2[0-4]\d|25[0-5])|[!?][!?]?";
    pattern(&format!(r"^(?:{glyph}|{moved}|\.\.\.|\d+\.*|\d+\.+{moved})$"))
});

/// A comment, a parenthesis, a word, or a stray brace.
static MOVETEXT_PARTS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\{[^}]*\}|;[^\n]*|[(){}]|[^\s(){};]+"));

/// Whether a string is a movetext: moves, numbers, comments, variations and glyphs, and at most one result, at the end.
/// Moves may be illegal. Source: Portable Game Notation Specification 1994, section 8.2.
pub(crate) fn pgn_valid(text: &str) -> bool {
    let mut open = 0_u32;
    let mut ended = false;
    for part in MOVETEXT_PARTS.find_iter(text).map(|part| part.as_str()) {
        match part.as_bytes()[0] {
            b';' => {}
            b'{' if part.ends_with('}') => {}
            b'(' => open += 1,
            b')' if open > 0 => open -= 1,
            _ => {
                let is_result = ["1-0", "0-1", "1/2-1/2", "*"].contains(&part);
                if ended || !(is_result || MOVE_OR_GLYPH.is_match(part)) {
                    return false;
                }
                ended = is_result && open == 0;
            }
        }
    }
    open == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(what: fn(&str) -> bool, good: &[&str], bad: &[&str]) {
        good.iter().for_each(|text| assert!(what(text), "{text:?} is one"));
        bad.iter().for_each(|text| assert!(!what(text), "{text:?} is none"));
    }

    #[test]
    fn dates_of_mail() {
        check(
            rfc822_date,
            &[
                "Thu Jan 18 00:10:45 +0000 2007",
                "Thu, 18 Jan 2007 00:10:45 +0000",
                "18 Jan 07 00:10 GMT",
                "Thu Jan 18 00:10:45 2007",
                "29 Feb 2024 23:59:60 Z",
            ],
            &[
                "",
                "yesterday",
                "2007-01-18T00:10:45Z",
                "Thu, 32 Jan 2007 00:10:45 +0000",
                "29 Feb 2023 00:00:00 Z",
                "Thu Jan 18 24:10:45 +0000 2007",
                "Thu Jan 18 00:10:45 +9900 2007",
                "Thu Jan +1 00:10:45 +0000 2007",
            ],
        );
    }

    #[test]
    fn times_of_rfc3339() {
        let at = |text| time_ms(text, false);
        assert_eq!(at("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(at("2000-03-01T00:00:00Z"), Some(951_868_800_000), "date -u -d 2000-03-01 +%s");
        assert_eq!(at("2007-01-18T00:10:45.25+01:30"), Some(1_169_073_645_250), "date -d ... +%s.%N");
        assert_eq!(at("2007-01-18T00:10:45"), Some(1_169_079_045_000));
        assert_eq!(time_ms("2007-01-18T00:10:45", true), None);
        assert_eq!(at("2007-01-18 00:10:45Z"), at("2007-01-18t00:10:45z"));
        assert_eq!(at("2016-12-31T23:59:60Z"), Some(1_483_228_799_999), "a leap second ends with its minute");
        for bad in [
            "",
            "2007-1-18T00:10:45Z",
            "2007-02-29T00:00:00Z",
            "2007-01-18T24:00:00Z",
            "2007-01-18T00:00Z",
            "2007-01-18T00:00:00.Z",
            "2007-01-18T00:00:00+1:00",
            "+007-01-18T00:00:00Z",
            "2007-01-18_00:00:00Z",
            "2016-12-31T12:59:60Z",
        ] {
            assert_eq!(at(bad), None, "{bad}");
        }
    }

    #[test]
    fn identifiers_and_media_types() {
        check(
            uuid4,
            &["f47ac10b-58cc-4372-a567-0e02b2c3d479", "F47AC10B-58CC-4372-B567-0E02B2C3D479"],
            &[
                "",
                "f47ac10b-58cc-1372-a567-0e02b2c3d479",
                "f47ac10b-58cc-4372-c567-0e02b2c3d479",
                "f47ac10b58cc4372a5670e02b2c3d479",
            ],
        );
        check(
            mime_valid,
            &["image/png", "application/vnd.evernote.ink", "Text/HTML; charset=utf-8"],
            &["", "image", "image/", "picture/png", "image/p g", "image/.png"],
        );
    }

    #[test]
    fn urls() {
        let hosts = [
            ("https://a.b:80/c?d", Some("a.b")),
            ("https://u:p@[::1]:80/", Some("::1")),
            ("https:///x", None),
            ("a.b", None),
            ("https://[::1", None),
        ];
        hosts.iter().for_each(|(url, host)| assert_eq!(url_host(url), *host, "{url}"));
        assert_eq!(query_param("http://a/?x=1&y=2#z", "y"), Some("2"));
        assert_eq!(query_param("http://a/?x&y=2", "x"), Some(""));
        assert_eq!(query_param("http://a/?x=1", "y"), None);
        assert_eq!(query_param("x=1", "x"), None);
    }

    #[test]
    fn movetexts() {
        check(
            pgn_valid,
            &[
                "",
                "*",
                "1. e4 *",
                "1. e4 d5 *",
                "1.e4 e5 2.Nf3 {open} Nc6 (2... d6 $2 3. d4) 3. Bb5 a6 1-0",
                "5. O-O O-O-O 6. exd8=Q+ R1xd8# 0-1",
                "1. e4!? ; rest\n e5",
            ],
            &[
                "hello",
                "1. e9",
                "1. e8",
                "1. e4=Q",
                "1. e4 * e5",
                "(1. e4",
                "1. e4)",
                "{open",
                "1. 0-0",
                "ä",
                "}",
                "1. Nf",
            ],
        );
    }
}
