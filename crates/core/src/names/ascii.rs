//! Names in ASCII text, found in one pass: the same as by the grammar, without an automaton.
//!
//! A row of the letters that a path may begin with is a path or holds whole words; each word is a name by its letters, or not.

const LOWER: u8 = 1;
const UPPER: u8 = 1 << 1;
const DIGIT: u8 = 1 << 2;
const UNDERSCORE: u8 = 1 << 3;
const WORD: u8 = LOWER | UPPER | DIGIT | UNDERSCORE;
const HEX: u8 = 1 << 4;
/// The bytes beside [`WORD`] that a path may have before its first slash, and behind one.
const BEFORE_SLASH: u8 = 1 << 5;
const BEHIND_SLASH: u8 = 1 << 6;
/// The bytes that end a URL.
const URL_END: u8 = 1 << 7;

/// The classes of each byte; those beyond ASCII have none.
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'f' => LOWER | HEX,
            b'g'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT | HEX,
            b'_' => UNDERSCORE,
            b'.' | b'-' => BEFORE_SLASH | BEHIND_SLASH,
            b'~' => BEFORE_SLASH,
            b'@' | b'+' => BEHIND_SLASH,
            b'\t'..=b'\r' | b' ' | b'"' | b'\'' | b'<' | b'>' | b')' | b']' => URL_END,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

fn is(byte: u8, classes: u8) -> bool {
    CLASSES[byte as usize] & classes != 0
}

/// Returns where the bytes of `classes` that begin at `from` end.
fn end_of(bytes: &[u8], from: usize, classes: u8) -> usize {
    let row = bytes[from..].iter().take_while(|byte| is(**byte, classes));
    from + row.count()
}

/// Calls `found` with each match of the grammar in order; no letter and no white space of the text is beyond ASCII.
pub(super) fn each_match<'a>(text: &'a str, mut found: impl FnMut(&'a str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = end_of(bytes, at, WORD | BEFORE_SLASH);
        if let Some(path_end) = path_end(bytes, end) {
            found(&text[at..path_end]);
            at = path_end;
        } else if end == at {
            at += 1;
        } else {
            at = each_in_row(text, at, end, &mut found);
        }
    }
}

/// Calls `found` with each word of an ASCII text, and the bytes where it begins and ends.
pub(super) fn each_word<'a>(text: &'a str, mut found: impl FnMut(&'a str, usize, usize)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = end_of(bytes, at, WORD);
        if end > at {
            found(&text[at..end], at, end);
        }
        // The byte that ends a word cannot begin one.
        at = end + 1;
    }
}

/// Finds the names in a row that is no path; returns where to go on.
fn each_in_row<'a>(
    text: &'a str,
    from: usize,
    end: usize,
    found: &mut impl FnMut(&'a str),
) -> usize {
    let bytes = text.as_bytes();
    let mut at = from;
    while at < end {
        let word_end = end_of(bytes, at, WORD);
        if word_end == at {
            at += 1;
            continue;
        }
        let url = if word_end == end { url(text, at, end) } else { None };
        if url.is_none_or(|(start, _)| start > at)
            && let Some(name_end) = name_end(bytes, at, word_end)
        {
            found(&text[at..name_end]);
            at = name_end;
        } else if let Some((start, url_end)) = url {
            found(&text[start..url_end]);
            return url_end;
        } else {
            at = word_end;
        }
    }
    end
}

/// Returns where a path ends whose first slash stands at `slash`.
fn path_end(bytes: &[u8], slash: usize) -> Option<usize> {
    let mut end = slash;
    while bytes.get(end) == Some(&b'/') {
        let part_end = end_of(bytes, end + 1, WORD | BEHIND_SLASH);
        if part_end == end + 1 {
            break;
        }
        end = part_end;
    }
    (end > slash).then_some(end)
}

/// Returns where a URL begins and ends whose scheme ends at `scheme_end`, and begins at `from` or behind it.
fn url(text: &str, from: usize, scheme_end: usize) -> Option<(usize, usize)> {
    let rest = text[scheme_end..].strip_prefix("://")?;
    let scheme = &text[from..scheme_end];
    let before = scheme.strip_suffix('s').and_then(|scheme| scheme.strip_suffix("http"));
    let before = before.or_else(|| scheme.strip_suffix("http"))?;
    let length = rest.bytes().take_while(|byte| !is(*byte, URL_END)).count();
    (length > 0).then(|| (from + before.len(), scheme_end + "://".len() + length))
}

/// Returns where the name ends that begins with a word.
fn name_end(bytes: &[u8], from: usize, word_end: usize) -> Option<usize> {
    let word = &bytes[from..word_end];
    let first = word[0];
    let (mut any, mut all) = (0, u8::MAX);
    for byte in word {
        let classes = CLASSES[*byte as usize];
        any |= classes;
        all &= classes;
    }
    if all & HEX != 0 && (7..=40).contains(&word.len()) {
        return Some(word_end);
    }
    if !is(first, DIGIT) {
        let mut end = word_end;
        while bytes.get(end) == Some(&b'.') {
            let part_end = end_of(bytes, end + 1, WORD);
            if part_end == end + 1 {
                break;
            }
            end = part_end;
        }
        if end > word_end {
            return Some(end);
        }
    }
    let has = |classes| any & classes != 0;
    let is_name = if is(first, DIGIT) {
        !has(WORD & !DIGIT) && word.len() >= 3
    } else if is(first, LOWER) {
        !has(UPPER) && is_snake_case(word) || !has(UNDERSCORE) && has_humps(word)
    } else {
        let is_constant = || word.len() >= 3 && is(word[1], UPPER | UNDERSCORE);
        !has(LOWER) && is_constant() || is(first, UPPER) && !has(UNDERSCORE) && is_pascal_case(word)
    };
    is_name.then_some(word_end)
}

/// Small letters, then at least one underscore, with small letters or digits behind each; `word` begins with a small letter.
fn is_snake_case(word: &[u8]) -> bool {
    let head = end_of(word, 0, LOWER);
    word.get(head) == Some(&b'_')
        && !word.ends_with(b"_")
        && !word.windows(2).any(|pair| pair == b"__")
}

/// Small letters, then at least one hump; `word` begins with a small letter and has no underscore.
fn has_humps(word: &[u8]) -> bool {
    let head = end_of(word, 0, LOWER);
    word.get(head).is_some_and(|byte| is(*byte, UPPER)) && are_humps(&word[head..])
}

/// At least two humps; `word` begins with a capital and has no underscore.
fn is_pascal_case(word: &[u8]) -> bool {
    word.iter().filter(|byte| is(**byte, UPPER)).count() >= 2 && are_humps(word)
}

/// Whether small letters or digits stand behind each capital.
fn are_humps(word: &[u8]) -> bool {
    let is_capital = |byte: &u8| is(*byte, UPPER);
    !word.last().is_some_and(is_capital) && !word.windows(2).any(|pair| pair.iter().all(is_capital))
}
