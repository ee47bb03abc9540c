//! Text without the encodings in which an address or a token may stand: percent-encoding, HTML's entities, JSON's escapes, wide
//! letters and spaces, and characters that nobody sees between the letters.
//!
//! A character of any script is decoded, since a letter's code before a secret would otherwise look like a part of it.

mod hidden;

use std::ops::Range;

use super::Finding;
use super::boundary::terminal_sequence;

use hidden::{is_hidden, may_be_hidden, plain};

/// The entities by name that stand for characters of addresses, or begin another; the others are written by number.
#[rustfmt::skip]
const NAMED: &[(&str, char)] = &[
    ("&amp;", '&'), ("&commat;", '@'), ("&period;", '.'), ("&lowbar;", '_'), ("&UnderBar;", '_'),
    ("&colon;", ':'), ("&equals;", '='), ("&sol;", '/'), ("&hyphen;", '-'), ("&dash;", '-'),
    ("&plus;", '+'), ("&percnt;", '%'), ("&num;", '#'), ("&quot;", '"'), ("&apos;", '\''),
    ("&Tab;", '\t'), ("&NewLine;", '\n'), ("&nbsp;", ' '), ("&ensp;", ' '), ("&emsp;", ' '),
    ("&thinsp;", ' '), ("&shy;", '\u{ad}'), ("&shy", '\u{ad}'), ("&zwnj;", '\u{200c}'),
    ("&zwj;", '\u{200d}'), ("&lrm;", '\u{200e}'), ("&rlm;", '\u{200f}'),
    ("&ZeroWidthSpace;", '\u{200b}'), ("&NoBreak;", '\u{2060}'), ("&ApplyFunction;", '\u{2061}'),
    ("&af;", '\u{2061}'), ("&InvisibleTimes;", '\u{2062}'), ("&it;", '\u{2062}'),
    ("&InvisibleComma;", '\u{2063}'), ("&ic;", '\u{2063}'),
];

/// The most digits of an entity's number, with zeros before it (chosen: writers pad to four).
const LONGEST_NUMBER: usize = 8;
/// The most backslashes before an escape: JSON in JSON doubles them (chosen: four texts in one another).
const MOST_BACKSLASHES: usize = 15;

/// A character that was decoded, or left out.
#[derive(Debug)]
struct EncodedCharacter {
    /// Its place in the decoded text.
    at: usize,
    /// Its bytes in the decoded text; none where it was left out.
    length: usize,
    /// Its bytes in the original.
    original: Range<usize>,
}

/// A text with its encodings decoded.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) text: String,
    pieces: Vec<EncodedCharacter>,
}

impl Decoded {
    /// Decodes a text; `None` where nothing in it is encoded.
    pub(super) fn of(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let mut decoded = Self { text: String::new(), pieces: Vec::new() };
        let (mut at, mut copied) = (0, 0);
        while at < bytes.len() {
            let Some((length, character)) = encoded(text, at) else {
                at += 1;
                continue;
            };
            decoded.text.push_str(&text[copied..at]);
            let piece = EncodedCharacter {
                at: decoded.text.len(),
                length: character.map_or(0, char::len_utf8),
                original: at..at + length,
            };
            decoded.pieces.push(piece);
            decoded.text.extend(character);
            at += length;
            copied = at;
        }
        decoded.text.push_str(&text[copied..]);
        (!decoded.pieces.is_empty()).then_some(decoded)
    }

    /// Returns a finding's place in the original.
    pub(super) fn original(&self, finding: &Finding) -> Finding {
        let (start, end) = (finding.bytes.start, finding.bytes.end);
        let is_before = |piece: &EncodedCharacter| {
            // A hidden character directly before a finding is not a part of it.
            piece.at < start || (piece.at == start && piece.length == 0)
        };
        let first = self.pieces.partition_point(is_before);
        let last = self.pieces.partition_point(|piece| piece.at < end);
        Finding { kind: finding.kind, bytes: self.place(start, first)..self.place(end, last) }
    }

    /// Returns the place in the original of one in the decoded text that has `before` pieces before it.
    fn place(&self, at: usize, before: usize) -> usize {
        let Some(piece) = before.checked_sub(1).map(|last| &self.pieces[last]) else { return at };
        piece.original.end + (at - piece.at - piece.length)
    }
}

/// Reads what is encoded at a place: its length, and the character if it stands for one that is seen.
fn encoded(text: &str, at: usize) -> Option<(usize, Option<char>)> {
    let bytes = text.as_bytes();
    let rest = &bytes[at..];
    match rest[0] {
        b'%' => percent(rest),
        b'\\' => escape(rest),
        b'&' => entity(rest),
        byte if may_be_hidden(byte) => {
            let sequence = terminal_sequence(rest);
            if sequence > 0 {
                return Some((sequence, None));
            }
            let character = text[at..].chars().next()?;
            let length = character.len_utf8();
            if is_hidden(character) {
                return Some((length, None));
            }
            let graphic = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_graphic);
            // Between words of prose a wide space is only that, and nothing is worth a second reading.
            let inside =
                graphic(at.checked_sub(1).map(|at| &bytes[at])) && graphic(rest.get(length));
            plain(character, inside).map(|plain| (length, Some(plain)))
        }
        _ => None,
    }
}

/// Reads a percent-encoded character of one to four bytes; bytes that are none are unknown characters.
fn percent(rest: &[u8]) -> Option<(usize, Option<char>)> {
    let byte = |at: usize| (rest.get(at) == Some(&b'%')).then(|| hex(rest.get(at + 1..at + 3)?))?;
    let first = byte(0)?;
    let count = match first {
        0..=0x7F => return Some((3, Some(char::from(first)))),
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    let mut sequence = [first, 0, 0, 0];
    for (place, slot) in sequence.iter_mut().enumerate().take(count).skip(1) {
        *slot = byte(place * 3).unwrap_or(0);
    }
    let read = str::from_utf8(&sequence[..count]).ok().and_then(|text| text.chars().next());
    Some(read.map_or((3, Some(char::REPLACEMENT_CHARACTER)), |read| (count * 3, Some(read))))
}

/// Reads `\u0040` and `\x40`, behind as many backslashes as the texts around it have written.
fn escape(rest: &[u8]) -> Option<(usize, Option<char>)> {
    let slashes = rest.iter().take(MOST_BACKSLASHES).take_while(|byte| **byte == b'\\').count();
    let digits = match rest.get(slashes)? {
        b'u' => 4,
        b'x' => 2,
        _ => return None,
    };
    let written = rest.get(slashes + 1..slashes + 1 + digits)?;
    let number = u32::from_str_radix(str::from_utf8(written).ok()?, 16).ok()?;
    let signed = written.first() == Some(&b'+');
    // Half of a pair is no character, but none of its digits are a part of what follows.
    let read = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
    (!signed).then_some((slashes + 1 + digits, Some(read)))
}

fn hex(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()
}

/// Reads an entity; browsers read its number also without the semicolon.
fn entity(rest: &[u8]) -> Option<(usize, Option<char>)> {
    let Some(number) = rest.strip_prefix(b"&#") else {
        let (name, character) = NAMED.iter().find(|(name, _)| rest.starts_with(name.as_bytes()))?;
        return Some((name.len(), Some(*character)));
    };
    let (number, radix, prefix) = match number.first()? {
        b'x' | b'X' => (&number[1..], 16, 3),
        _ => (number, 10, 2),
    };
    let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
    let length = number.iter().take(LONGEST_NUMBER + 1).take_while(is_digit).count();
    if !(1..=LONGEST_NUMBER).contains(&length) {
        return None;
    }
    let value = u32::from_str_radix(str::from_utf8(&number[..length]).ok()?, radix).ok()?;
    let closed = usize::from(number.get(length) == Some(&b';'));
    let character = char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER);
    Some((prefix + length + closed, Some(character)))
}

#[cfg(test)]
mod tests {
    use super::super::find;

    fn found(text: &str) -> Vec<(&'static str, &str)> {
        find(text).iter().map(|f| (f.kind.as_str(), &text[f.bytes.clone()])).collect()
    }

    #[test]
    fn addresses_are_found_however_they_are_written() {
        for written in [
            "ann%40example.com",
            "ann%40example%2Ecom",
            "ann&#64;example.com",
            "ann&#x40;example&#46;com",
            "ann&#0064;example.com",
            "ann&commat;example&period;com",
            "ann\\u0040example.com",
            "ann%2540example.com",
            "ann%252540example.com",
            "ann&amp;#64;example.com",
            "a\u{200b}nn@exam\u{ad}ple.com",
            "ann\u{feff}@\u{2060}example.com",
        ] {
            assert_eq!(found(written), [("email", written)]);
            let text = format!("é mail {written}, %41 and bob@example.com");
            assert_eq!(found(&text), [("email", written), ("email", "bob@example.com")]);
        }
    }

    #[test]
    fn tokens_and_numbers_are_found_however_they_are_written() {
        let token = format!("ghp_{}", "q7Zk2Vx9Lm4Tb8Rw1Ns5".repeat(2));
        let hidden = format!("{}\u{200d}{}", &token[..9], &token[9..]);
        assert_eq!(found(&hidden), [("github_token", hidden.as_str())]);
        let escaped = token.replace('_', "\\u005f");
        assert_eq!(found(&escaped), [("github_token", escaped.as_str())]);
        let card = "4111%201111%201111%201111";
        assert_eq!(found(card), [("payment_card", card)]);
    }

    #[test]
    fn unseen_characters_hide_nothing() {
        let token = format!("ghp_{}", "q7Zk2Vx9Lm4Tb8Rw1Ns5".repeat(2));
        #[rustfmt::skip]
        let unseen = [
            0, 7, 0x1b, 0x7f, 0x85, 0xad, 0x34f, 0x61c, 0x17b4, 0x17b5, 0x180b, 0x180e, 0x200b, 0x200e,
            0x200f, 0x202a, 0x202e, 0x2060, 0x2061, 0x2064, 0x2066, 0x2069, 0x206a, 0x206f, 0xfe00,
            0xfe0f, 0xfeff, 0xfff9, 0xfffb, 0x1bca0, 0x1bca3, 0x1d173, 0x1d17a, 0xe0001, 0xe007f,
            0xe0100, 0xe01ef,
        ];
        for unseen in unseen {
            let unseen = char::from_u32(unseen).expect("a character");
            let number = u32::from(unseen);
            let mut forms = vec![
                unseen.to_string(),
                unseen.to_string().repeat(3),
                format!("&#{number};"),
                format!("&#x{number:x};"),
                unseen.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect(),
            ];
            if number <= 0xffff {
                forms.push(format!("\\u{number:04x}"));
            }
            for form in forms {
                let hidden = format!("{}{form}{}", &token[..2], &token[2..]);
                assert_eq!(found(&hidden), [("github_token", hidden.as_str())], "{hidden:?}");
                let card = format!("411111{form}1111111111");
                assert_eq!(found(&card), [("payment_card", card.as_str())], "{card:?}");
            }
        }
    }

    #[test]
    fn codes_of_letters_hide_nothing() {
        let token = "sk-q7Zk2Vx9Lm4Tb8Rw1Ns5q7Zk2Vx9";
        for hidden in [
            token.replacen("sk", "&#115&#107", 1),
            token.replacen("sk-", "&#x73;&#107&hyphen;", 1),
            token.replacen('k', "k&shy;", 1),
            token.replacen('k', "&zwnj;k&zwj;", 1),
            token.replacen('k', "k&#8203;", 1),
            token.replacen('k', "\u{1b}[1mk\u{1b}[0m", 1),
            token.replacen('k', "\\\\u006b", 1),
            token.replacen('k', "\\x6b", 1),
        ] {
            assert_eq!(found(&hidden), [("openai_key", hidden.as_str())], "{hidden}");
        }
        let nested = r#"{"d":"{\"e\":\"a\\u0040b.com\"}"}"#;
        assert_eq!(found(nested), [("email", r"a\\u0040b.com")]);
    }

    #[test]
    fn wide_letters_and_spaces_hide_nothing() {
        for (kind, text) in [
            ("email", "ａｎｎ＠ｅｘａｍｐｌｅ．ｃｏｍ"),
            ("payment_card", "４１１１１１１１１１１１１１１１"),
            ("payment_card", "4111\u{a0}1111\u{a0}1111\u{a0}1111"),
            ("payment_card", "4111\u{2009}1111\u{202f}1111\u{2009}1111"),
            ("payment_card", "4111\u{2013}1111\u{2013}1111\u{2013}1111"),
            ("iban", "DE89\u{a0}3704\u{a0}0044\u{a0}0532\u{a0}0130\u{a0}00"),
            ("iban", "ＤＥ８９３７０４００４４０５３２０１３０００"),
            ("phone", "+44\u{a0}20\u{a0}7946\u{a0}0958"),
        ] {
            assert_eq!(found(text), [(kind, text)]);
            let prose = format!("他说：{text}，好。");
            assert_eq!(found(&prose), [(kind, text)]);
        }
    }

    #[test]
    fn what_is_not_encoded_stays_as_it_is_found() {
        for (text, expected) in [
            ("100%4 of ann@example.com", Some("ann@example.com")),
            ("printf(\"%02d%40s\")", None),
            ("a &amp; b &#9; %0A \\u00e9 \\u0041", None),
            ("https://registry.npmjs.org/%40types%2Fnode", None),
            ("\u{200d}\u{200b}", None),
        ] {
            let found: Vec<_> = found(text).into_iter().map(|(_, value)| value).collect();
            assert_eq!(found, Vec::from_iter(expected), "{text}");
        }
    }
}
