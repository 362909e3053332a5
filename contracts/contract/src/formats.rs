//! Text formats: dates, identifiers, chess movetexts, media types, URLs.

use time::{Date, Month, UtcDateTime};

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

fn date(year: i64, month: i64, day: i64) -> Option<Date> {
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    Date::from_calendar_date(i32::try_from(year).ok()?, month, u8::try_from(day).ok()?).ok()
}

/// Digits only; `parse` would accept a sign.
fn number(text: &str) -> Option<i64> {
    if text.is_empty() || text.len() > 9 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// `HH:MM` or `HH:MM:SS`, including a leap second.
fn is_clock(text: &str) -> bool {
    let parts = text.split(':').collect::<Vec<_>>();
    let within = |part: &str, limit: i64| part.len() == 2 && number(part).is_some_and(|value| value <= limit);
    match parts[..] {
        [hour, minute] => within(hour, 23) && within(minute, 59),
        [hour, minute, second] => within(hour, 23) && within(minute, 59) && within(second, 60),
        _ => false,
    }
}

/// `+0100`, `GMT` and the other names of RFC 822, section 5.1.
fn is_zone(text: &str) -> bool {
    const NAMES: [&str; 11] = ["UT", "UTC", "GMT", "EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT"];
    let offset = text.strip_prefix(['+', '-']).filter(|digits| digits.len() == 4).and_then(number);
    offset.is_some_and(|offset| offset / 100 <= 23 && offset % 100 <= 59)
        || NAMES.contains(&text)
        || (text.len() == 1 && text.bytes().all(|byte| byte.is_ascii_uppercase() && byte != b'J'))
}

/// Whether a text is a date of RFC 822 section 5 or RFC 5322 section 3.3: `Thu, 18 Jan 2007
/// 00:10:45 +0000`. Also accepts C's `asctime` with a zone, as Twitter writes it and mail readers
/// do: `Thu Jan 18 00:10:45 +0000 2007`.
pub(crate) fn rfc822_date(text: &str) -> bool {
    let words = text.split_ascii_whitespace().collect::<Vec<_>>();
    let is_day_name = |word: &str| DAYS.contains(&word.trim_end_matches(',').to_ascii_lowercase().as_str());
    let words = match words.split_first() {
        Some((first, rest)) if is_day_name(first) => rest,
        _ => &words[..],
    };
    let (day, month, year, clock, zone) = match *words {
        [day, month, year, clock, zone] if number(day).is_some() => (day, month, year, clock, Some(zone)),
        [month, day, clock, zone, year] => (day, month, year, clock, Some(zone)),
        [month, day, clock, year] => (day, month, year, clock, None),
        _ => return false,
    };
    let month = MONTHS.iter().position(|known| *known == month.to_ascii_lowercase());
    let year_known = matches!(year.len(), 2 | 4).then(|| number(year)).flatten();
    let (Some(month), Some(year), Some(day)) = (month, year_known, number(day)) else { return false };
    date(year, month as i64 + 1, day).is_some() && is_clock(clock) && zone.is_none_or(is_zone)
}

/// Milliseconds from 1970-01-01T00:00:00Z to a time of RFC 3339 section 5.6, truncated.
///
/// `zone_needed`: whether to reject times without a zone. Otherwise they are UTC, as XML Schema's
/// `dateTime` allows.
pub(crate) fn time_ms(text: &str, zone_needed: bool) -> Option<i64> {
    let (day_text, time) = text.split_once(['T', 't', ' '])?;
    let mut parts = day_text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return None;
    }
    let date = self::date(number(year)?, number(month)?, number(day)?)?;
    let (time, zone_minutes) = match time.strip_suffix(['Z', 'z']) {
        Some(time) => (time, 0),
        None => match time.rfind(['+', '-']) {
            Some(at) => {
                let (hours, minutes) = time[at + 1..].split_once(':')?;
                if hours.len() != 2 || minutes.len() != 2 {
                    return None;
                }
                let (hours, minutes) = (number(hours)?, number(minutes)?);
                if hours > 23 || minutes > 59 {
                    return None;
                }
                let offset = hours * 60 + minutes;
                (&time[..at], if time.as_bytes()[at] == b'-' { -offset } else { offset })
            }
            None if zone_needed => return None,
            None => (time, 0),
        },
    };
    let (clock, fraction) = match time.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (time, None),
    };
    if clock.len() != 8 || !is_clock(clock) {
        return None;
    }
    let millis = match fraction {
        None => 0,
        Some(fraction) if !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit()) => {
            fraction.bytes().chain(*b"00").take(3).fold(0, |millis, byte| millis * 10 + i64::from(byte - b'0'))
        }
        Some(_) => return None,
    };
    let (hour, minute, second) = (number(&clock[..2])?, number(&clock[3..5])?, number(&clock[6..])?);
    let days = i64::from(date.to_julian_day() - UtcDateTime::UNIX_EPOCH.to_julian_day());
    let minutes = (days * 24 + hour) * 60 + minute - zone_minutes;
    Some((minutes * 60 + second) * 1000 + millis)
}

/// Whether a text is a UUID of version 4 in its usual form. Source: RFC 9562, sections 4 and 5.4.
pub(crate) fn uuid4(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            14 => *byte == b'4',
            19 => matches!(byte.to_ascii_lowercase(), b'8' | b'9' | b'a' | b'b'),
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether a text is `type/subtype` of RFC 6838, section 4.2, with one of IANA's top-level types
/// and optional parameters.
pub(crate) fn mime_valid(text: &str) -> bool {
    const TOP: [&str; 11] = [
        "application",
        "audio",
        "example",
        "font",
        "haptics",
        "image",
        "message",
        "model",
        "multipart",
        "text",
        "video",
    ];
    let Some((top, rest)) = text.split_once('/') else { return false };
    let subtype = rest.split(';').next().unwrap_or_default().trim_end();
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
    TOP.contains(&top.to_ascii_lowercase().as_str())
        && (1..=127).contains(&subtype.len())
        && subtype.bytes().all(allowed)
        && subtype.as_bytes()[0].is_ascii_alphanumeric()
}

/// The host of a URL, without user, port and IPv6 brackets. Source: RFC 3986, section 3.2.
pub(crate) fn url_host(url: &str) -> Option<&str> {
    let authority = url.split_once("://")?.1.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => host.split(':').next()?,
    };
    (!host.is_empty()).then_some(host)
}

/// The first value of a parameter in a URL's query, still percent-encoded.
pub(crate) fn query_param<'u>(url: &'u str, name: &str) -> Option<&'u str> {
    let query = url.split_once('?')?.1.split('#').next()?;
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then_some(value)
    })
}

/// Whether a text is a movetext: moves, numbers, comments, variations and glyphs, and at most one
/// result, at the end. Moves may be illegal. Source: Portable Game Notation Specification 1994,
/// section 8.2.
pub(crate) fn pgn_valid(text: &str) -> bool {
    let mut rest = text.trim_start();
    let mut open = 0_u32;
    let mut ended = false;
    while let Some(first) = rest.chars().next() {
        let used = match first {
            '{' => match rest.find('}') {
                Some(end) => end + 1,
                None => return false,
            },
            ';' => rest.find('\n').unwrap_or(rest.len()),
            '(' => {
                open += 1;
                1
            }
            ')' if open > 0 => {
                open -= 1;
                1
            }
            ')' => return false,
            _ => {
                let length = rest.find(|c: char| c.is_whitespace() || "{}();".contains(c)).unwrap_or(rest.len());
                if length == 0 || !rest[..length].is_ascii() {
                    return false;
                }
                let word = &rest[..length];
                let is_result = ["1-0", "0-1", "1/2-1/2", "*"].contains(&word);
                if ended || !(is_result || is_glyph(word) || is_numbered_move(word)) {
                    return false;
                }
                ended = is_result && open == 0;
                length
            }
        };
        rest = rest[used..].trim_start();
    }
    open == 0
}

/// `$12`, `!?`.
fn is_glyph(word: &str) -> bool {
    word.strip_prefix('$').and_then(number).is_some_and(|glyph| glyph <= 255)
        || ["!", "?", "!!", "??", "!?", "?!"].contains(&word)
}

/// `12.`, `12...`, `e4`, `12.e4`.
fn is_numbered_move(word: &str) -> bool {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let dots = word[digits..].bytes().take_while(|byte| *byte == b'.').count();
    let rest = &word[digits + dots..];
    match (digits, dots) {
        // Castling with the digit zero looks like a number; the specification requires the letter.
        (0, 0) => is_move(rest),
        (0, _) => dots == 3 && rest.is_empty(),
        _ => rest.is_empty() || (dots > 0 && is_move(rest)),
    }
}

/// Standard algebraic notation, section 8.2.3: `e4`, `exd5`, `Nbd7`, `R1xe1`, `e8=Q+`, `O-O-O#`,
/// `Nf3!?`.
fn is_move(word: &str) -> bool {
    let word = word.trim_end_matches(['!', '?']);
    let word = word.strip_suffix(['+', '#']).unwrap_or(word);
    if word == "O-O" || word == "O-O-O" {
        return true;
    }
    let is_square = |square: &[u8]| matches!(square, [b'a'..=b'h', b'1'..=b'8']);
    let bytes = word.as_bytes();
    if let Some(b'K' | b'Q' | b'R' | b'B' | b'N') = bytes.first() {
        let Some((from, to)) = bytes[1..].split_last_chunk::<2>() else { return false };
        let from = from.strip_suffix(b"x").unwrap_or(from);
        return is_square(to) && (matches!(from, [] | [b'a'..=b'h'] | [b'1'..=b'8']) || is_square(from));
    }
    let (bytes, promoted) = match bytes {
        [pawn @ .., b'=', b'Q' | b'R' | b'B' | b'N'] => (pawn, true),
        _ => (bytes, false),
    };
    let to = match bytes {
        [b'a'..=b'h', b'x', to @ ..] => to,
        _ => bytes,
    };
    is_square(to) && promoted == matches!(to, [_, b'1' | b'8'])
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
        for bad in [
            "",
            "2007-1-18T00:10:45Z",
            "2007-02-29T00:00:00Z",
            "2007-01-18T24:00:00Z",
            "2007-01-18T00:00Z",
            "2007-01-18T00:00:00.Z",
            "2007-01-18T00:00:00+1:00",
            "+007-01-18T00:00:00Z",
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
