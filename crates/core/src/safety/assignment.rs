//! Secrets that only their name shows: `api_key = "…"`, `DB_PASSWORD=…`, `"client_secret": "…"`.

use super::entropy::entropy;
use super::{Finding, SensitiveKind, byte_at};

/// Ends of names of secrets, without `_` and `-`.
#[rustfmt::skip]
const SECRET_NAMES: &[&str] = &[
    "apikey", "secretkey", "accesskey", "authkey", "privatekey", "signingkey", "encryptionkey",
    "masterkey", "accountkey", "servicekey", "clientkey", "sharedkey", "appkey",
    "subscriptionkey", "licensekey", "secret", "secretkeybase", "token", "credential",
    "credentials",
];
const PASSWORD_NAMES: &[&str] = &["password", "passwd", "pwd", "passphrase"];
/// Names with such an end and without a secret.
#[rustfmt::skip]
const HARMLESS_NAMES: &[&str] = &[
    "pagetoken", "nexttoken", "synctoken", "continuationtoken", "eostoken", "bostoken",
    "padtoken", "unktoken", "masktoken", "septoken", "clstoken", "stoptoken", "publickey",
    "cachekey", "oldpwd",
];
/// The most bytes of a name that are read.
const LONGEST_NAME: usize = 64;

/// Shortest and longest value of a secret; a password may be shorter.
const SECRET_LENGTH: std::ops::RangeInclusive<usize> = 12..=512;
const SHORTEST_PASSWORD: usize = 6;
/// The floor that separates keys from identifiers in gitleaks' generic rule.
const LEAST_ENTROPY: f64 = 3.5;
/// Six different characters have 2.58 bits; chosen to skip `aaa111`.
const LEAST_PASSWORD_ENTROPY: f64 = 2.0;

/// Reads the value that is assigned to the name which ends at `end`.
pub(super) fn find(text: &str, end: usize) -> Option<Finding> {
    let bytes = text.as_bytes();
    if is_name(byte_at(bytes, end)) {
        return None;
    }
    let at = after_separator(bytes, end)?;
    let kind = kind_of(&text[name_start(bytes, end)..end])?;
    let quote = quote_at(bytes, at);
    let start = at + quote.map_or(0, |(_, length)| length);
    let most = *SECRET_LENGTH.end() + 1;
    let length = bytes[start..]
        .iter()
        .take(most)
        .take_while(|byte| match quote {
            Some((mark, _)) => is_quoted(**byte) && **byte != mark,
            None => is_bare(**byte),
        })
        .count();
    let mut value = text.get(start..start + length)?;
    if quote.is_none() {
        value = value.trim_end_matches(['.', ',', ';']);
    }
    let close = byte_at(bytes, start + length);
    let closed = match quote {
        // An escaped quote closes with its backslash.
        Some((mark, _)) => close == mark || close == b'\\',
        None => !b"([{<".contains(&close),
    };
    let holds = match kind {
        SensitiveKind::Password => is_password(value, quote.is_some()),
        _ => is_secret(value, quote.is_some()),
    };
    (closed && holds && length < most).then(|| Finding { kind, bytes: start..start + value.len() })
}

/// Returns whether `value` is a placeholder for a secret.
pub(super) fn is_placeholder(value: &str) -> bool {
    #[rustfmt::skip]
    const PARTS: &[&str] = &[
        "placeholder", "changeme", "change-me", "change_me", "your", "xxxx", "****", "....",
        "redacted", "dummy", "insert", "replace", "todo", "${", "{{", "<", "%(", "$(",
    ];
    #[rustfmt::skip]
    const WORDS: &[&str] = &[
        "password", "passwd", "pass", "pwd", "secret", "token", "user", "username", "none",
        "null", "true", "false", "undefined", "string", "example",
    ];
    let lower = value.to_ascii_lowercase();
    lower.starts_with('$')
        || PARTS.iter().any(|part| lower.contains(part))
        || WORDS.contains(&lower.as_str())
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-".contains(&byte)
}

fn is_bare(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-+/=.~!@#%^*$".contains(&byte)
}

fn is_quoted(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\\\"'`".contains(&byte)
}

fn name_start(bytes: &[u8], end: usize) -> usize {
    let floor = end.saturating_sub(LONGEST_NAME);
    let length = bytes[floor..end].iter().rev().take_while(|byte| is_name(**byte)).count();
    end - length
}

/// Skips the sign of an assignment, with the quotes or brackets behind the name.
fn after_separator(bytes: &[u8], end: usize) -> Option<usize> {
    let mut at = end;
    let skip = |at: &mut usize, set: &[u8], most: usize| {
        let from = *at;
        while *at - from < most && set.contains(&byte_at(bytes, *at)) && *at < bytes.len() {
            *at += 1;
        }
    };
    skip(&mut at, b"\\\"'`]", 3);
    skip(&mut at, b" \t", 8);
    let sign = at;
    skip(&mut at, b":=>", 2);
    let holds = matches!(&bytes[sign..at], b":" | b"=" | b":=" | b"=>");
    skip(&mut at, b" \t", 8);
    holds.then_some(at)
}

/// Returns the quote at `at` and how many bytes it takes with its escape.
fn quote_at(bytes: &[u8], at: usize) -> Option<(u8, usize)> {
    let is_quote = |byte: u8| b"\"'`".contains(&byte);
    match byte_at(bytes, at) {
        mark if is_quote(mark) => Some((mark, 1)),
        b'\\' if is_quote(byte_at(bytes, at + 1)) => Some((byte_at(bytes, at + 1), 2)),
        _ => None,
    }
}

fn kind_of(name: &str) -> Option<SensitiveKind> {
    let plain: String = name
        .chars()
        .filter(|character| !matches!(character, '_' | '-'))
        .map(|character| character.to_ascii_lowercase())
        .collect();
    let ends = |names: &[&str]| names.iter().any(|name| plain.ends_with(name));
    if ends(HARMLESS_NAMES) || plain.starts_with("public") || plain.starts_with("num") {
        return None;
    }
    if ends(PASSWORD_NAMES) {
        return Some(SensitiveKind::Password);
    }
    ends(SECRET_NAMES).then_some(SensitiveKind::Secret)
}

fn is_secret(value: &str, quoted: bool) -> bool {
    let bytes = value.as_bytes();
    SECRET_LENGTH.contains(&bytes.len())
        && bytes.iter().any(u8::is_ascii_digit)
        && bytes.iter().any(u8::is_ascii_alphabetic)
        && entropy(bytes) >= LEAST_ENTROPY
        && !is_placeholder(value)
        && !is_words(value)
        && (quoted || !is_path(value))
        && !value.contains("://")
}

fn is_password(value: &str, quoted: bool) -> bool {
    let bytes = value.as_bytes();
    let mixed = bytes.iter().any(|byte| !byte.is_ascii_alphabetic())
        && bytes.iter().any(u8::is_ascii_alphanumeric);
    (SHORTEST_PASSWORD..=*SECRET_LENGTH.end()).contains(&bytes.len())
        && mixed
        && entropy(bytes) >= LEAST_PASSWORD_ENTROPY
        && !is_placeholder(value)
        && !is_words(value)
        && (quoted || (!is_path(value) && bytes.iter().any(u8::is_ascii_digit)))
}

/// Returns whether the value is words with signs between them, as in names, slugs and sentences.
fn is_words(value: &str) -> bool {
    value
        .split(|character: char| !character.is_ascii_alphanumeric())
        .all(|part| part.len() <= 3 || part.bytes().all(|byte| byte.is_ascii_alphabetic()))
        && value.contains(['_', '-', '.', ' ', '/'])
}

/// Returns whether the value is a path, a constant or a member access, as in code.
fn is_path(value: &str) -> bool {
    let is_constant = value.contains('_')
        && value.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    let begins_name = |part: &str| part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    is_constant
        || value.starts_with(['/', '.', '~'])
        || (value.contains('.') && value.split('.').all(begins_name))
}
