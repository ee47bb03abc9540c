//! Text without the encodings in which an address or a token may stand: percent-encoding, HTML's entities, JSON's escapes, and
//! characters without width between the letters.
//!
//! Only printable ASCII is decoded, since nothing that is found has other characters.

use std::ops::Range;

use super::Finding;

/// The entities by name that stand for characters of addresses, or begin another; the others are written by number.
const NAMED: [(&str, u8); 7] = [
    ("&amp;", b'&'),
    ("&commat;", b'@'),
    ("&period;", b'.'),
    ("&lowbar;", b'_'),
    ("&colon;", b':'),
    ("&equals;", b'='),
    ("&sol;", b'/'),
];

/// The most digits of an entity's number, with zeros before it (chosen: writers pad to four).
const LONGEST_NUMBER: usize = 7;

/// A character that was decoded, or left out.
#[derive(Debug)]
struct EncodedCharacter {
    /// Its place in the decoded text.
    at: usize,
    /// Its bytes in the original.
    original: Range<usize>,
    is_hidden: bool,
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
                original: at..at + length,
                is_hidden: character.is_none(),
            };
            decoded.pieces.push(piece);
            decoded.text.extend(character.map(char::from));
            at += length;
            copied = at;
        }
        decoded.text.push_str(&text[copied..]);
        (!decoded.pieces.is_empty()).then_some(decoded)
    }

    /// Returns a finding's place in the original; `None` where nothing of it was encoded, so that the original shows it.
    pub(super) fn original(&self, finding: &Finding) -> Option<Finding> {
        let (start, end) = (finding.bytes.start, finding.bytes.end);
        let first = self.pieces.partition_point(|piece| piece.at < start);
        let inside = self.pieces[first..].iter().take_while(|piece| piece.at < end);
        let mut inside = inside.filter(|piece| !piece.is_hidden || piece.at > start);
        inside.next()?;
        Some(Finding { kind: finding.kind, bytes: self.place(start)..self.place(end) })
    }

    /// Returns the place in the original of one in the decoded text.
    fn place(&self, at: usize) -> usize {
        let before = self.pieces.partition_point(|piece| piece.at < at);
        let Some(piece) = before.checked_sub(1).map(|last| &self.pieces[last]) else { return at };
        let length = usize::from(!piece.is_hidden);
        piece.original.end + (at - piece.at - length)
    }
}

/// Reads what is encoded at a place: its length, and the character if it stands for one.
fn encoded(text: &str, at: usize) -> Option<(usize, Option<u8>)> {
    let rest = text.as_bytes().get(at..)?;
    let (length, character) = match rest[0] {
        b'%' => (3, hex(rest.get(1..3)?)?),
        b'\\' if rest.starts_with(b"\\u00") => (6, hex(rest.get(4..6)?)?),
        b'&' => entity(rest)?,
        // U+00AD, U+200B to U+200D, U+2060 and U+FEFF.
        0xC2 if rest.starts_with("\u{ad}".as_bytes()) => return Some((2, None)),
        0xE2 | 0xEF => {
            let hidden = ["\u{200b}", "\u{200c}", "\u{200d}", "\u{2060}", "\u{feff}"];
            let is_hidden = hidden.iter().any(|hidden| rest.starts_with(hidden.as_bytes()));
            return is_hidden.then_some((3, None));
        }
        _ => return None,
    };
    let is_printable = character.is_ascii_graphic() || character == b' ';
    is_printable.then_some((length, Some(character)))
}

fn hex(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()
}

fn entity(rest: &[u8]) -> Option<(usize, u8)> {
    if let Some((name, byte)) = NAMED.iter().find(|(name, _)| rest.starts_with(name.as_bytes())) {
        return Some((name.len(), *byte));
    }
    let number = rest.strip_prefix(b"&#")?;
    let (number, radix, prefix) = match number.first()? {
        b'x' | b'X' => (&number[1..], 16, 3),
        _ => (number, 10, 2),
    };
    let length = number.iter().take(LONGEST_NUMBER + 1).position(|byte| *byte == b';')?;
    let number = str::from_utf8(&number[..length]).ok()?;
    let number = u8::from_str_radix(number, radix).ok()?;
    Some((prefix + length + 1, number))
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
