//! Tokens with a known form: one automaton finds their beginnings, and a rule checks alphabet and length.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, MatchKind};

use super::entropy::entropy;
use super::{Finding, SensitiveKind, address, assignment, before, byte_at, follows_escape};

/// The bytes of a token.
#[derive(Debug, Clone, Copy)]
enum Alphabet {
    Alphanumeric,
    /// Capital letters and digits.
    Upper,
    Hex,
    /// Letters, digits, `_` and `-`.
    Url,
    /// As [`Self::Url`], and `.`.
    Dotted,
    /// As [`Self::Dotted`], and `/`, `+` and `=`.
    Base64,
}

impl Alphabet {
    fn holds(self, byte: u8) -> bool {
        match self {
            Self::Alphanumeric => byte.is_ascii_alphanumeric(),
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Url => byte.is_ascii_alphanumeric() || b"_-".contains(&byte),
            Self::Dotted => byte.is_ascii_alphanumeric() || b"_-.".contains(&byte),
            Self::Base64 => byte.is_ascii_alphanumeric() || b"_-./+=".contains(&byte),
        }
    }
}

/// A token with a fixed prefix, and the alphabet and length (least and most bytes) of the rest.
struct TokenPattern {
    prefix: &'static str,
    kind: SensitiveKind,
    alphabet: Alphabet,
    length: (usize, usize),
}

const fn token(
    prefix: &'static str,
    kind: SensitiveKind,
    alphabet: Alphabet,
    least: usize,
    most: usize,
) -> TokenPattern {
    TokenPattern { prefix, kind, alphabet, length: (least, most) }
}

/// Prefixes, alphabets and lengths as documented by the services or as seen; if a service changed the length, the shortest
/// and a generous longest.
const TOKENS: &[TokenPattern] = {
    use Alphabet::{Alphanumeric, Base64, Dotted, Hex, Upper, Url};
    use SensitiveKind::{
        AnthropicKey, AwsKey, GithubToken, GitlabToken, GoogleKey, OpenaiKey, ServiceToken,
        SlackToken, StripeKey,
    };
    &[
        token("AKIA", AwsKey, Upper, 16, 16),
        token("ASIA", AwsKey, Upper, 16, 16),
        token("ABIA", AwsKey, Upper, 16, 16),
        token("ACCA", AwsKey, Upper, 16, 16),
        token("ghp_", GithubToken, Alphanumeric, 36, 255),
        token("gho_", GithubToken, Alphanumeric, 36, 255),
        token("ghu_", GithubToken, Alphanumeric, 36, 255),
        token("ghs_", GithubToken, Alphanumeric, 36, 255),
        token("ghr_", GithubToken, Alphanumeric, 36, 255),
        token("github_pat_", GithubToken, Url, 60, 255),
        token("glpat-", GitlabToken, Dotted, 20, 300),
        token("gldt-", GitlabToken, Url, 20, 300),
        token("glrt-", GitlabToken, Dotted, 20, 300),
        token("sk-ant-", AnthropicKey, Url, 24, 300),
        token("sk-proj-", OpenaiKey, Url, 20, 300),
        token("sk-svcacct-", OpenaiKey, Url, 20, 300),
        token("sk-admin-", OpenaiKey, Url, 20, 300),
        token("sk-or-v1-", ServiceToken, Hex, 64, 64),
        token("sk-", OpenaiKey, Alphanumeric, 20, 200),
        token("AIza", GoogleKey, Url, 35, 35),
        token("ya29.", GoogleKey, Url, 20, 2000),
        token("GOCSPX-", GoogleKey, Url, 28, 28),
        token("xoxb-", SlackToken, Url, 10, 300),
        token("xoxp-", SlackToken, Url, 10, 300),
        token("xoxa-", SlackToken, Url, 10, 300),
        token("xoxr-", SlackToken, Url, 10, 300),
        token("xoxs-", SlackToken, Url, 10, 300),
        token("xoxe-", SlackToken, Url, 10, 300),
        token("xoxe.xoxp-", SlackToken, Url, 10, 300),
        token("xapp-", SlackToken, Url, 10, 300),
        token("hooks.slack.com/services/", SlackToken, Base64, 30, 100),
        token("sk_live_", StripeKey, Alphanumeric, 10, 255),
        token("sk_test_", StripeKey, Alphanumeric, 10, 255),
        token("rk_live_", StripeKey, Alphanumeric, 10, 255),
        token("rk_test_", StripeKey, Alphanumeric, 10, 255),
        token("whsec_", StripeKey, Base64, 24, 255),
        token("hf_", ServiceToken, Alphanumeric, 30, 64),
        token("npm_", ServiceToken, Alphanumeric, 36, 36),
        token("pypi-", ServiceToken, Url, 50, 1000),
        token("dop_v1_", ServiceToken, Hex, 64, 64),
        token("doo_v1_", ServiceToken, Hex, 64, 64),
        token("SG.", ServiceToken, Dotted, 60, 80),
        token("shpat_", ServiceToken, Hex, 32, 32),
        token("shpss_", ServiceToken, Hex, 32, 32),
        token("sq0atp-", ServiceToken, Url, 22, 60),
        token("sq0csp-", ServiceToken, Url, 22, 60),
        token("glsa_", ServiceToken, Url, 32, 60),
        token("xai-", ServiceToken, Alphanumeric, 60, 120),
        token("gsk_", ServiceToken, Alphanumeric, 40, 80),
        token("pplx-", ServiceToken, Alphanumeric, 40, 80),
        token("r8_", ServiceToken, Alphanumeric, 37, 40),
        token("dckr_pat_", ServiceToken, Url, 20, 60),
        token("lin_api_", ServiceToken, Alphanumeric, 32, 60),
        token("ntn_", ServiceToken, Alphanumeric, 40, 60),
        token("figd_", ServiceToken, Url, 36, 60),
        token("hvs.", ServiceToken, Url, 24, 300),
        token("dapi", ServiceToken, Hex, 32, 32),
        token("pscale_tkn_", ServiceToken, Dotted, 32, 64),
        token("AGE-SECRET-KEY-1", ServiceToken, Upper, 58, 58),
        token("tskey-", ServiceToken, Url, 20, 80),
        token("NRAK-", ServiceToken, Upper, 27, 27),
        token("PMAK-", ServiceToken, Url, 50, 70),
        token("rubygems_", ServiceToken, Hex, 48, 48),
        token("EAAA", ServiceToken, Url, 60, 255),
    ]
};

/// Bits a byte; less is a repeated letter or a word. Chosen low, since the prefix already shows the kind.
const LEAST_ENTROPY: f64 = 2.5;
/// As [`LEAST_ENTROPY`] for the bare `sk-`, which also begins ordinary words.
const LEAST_ENTROPY_BARE: f64 = 3.0;
/// The fewest bytes of a header's credentials: a short password, encoded.
const SHORTEST_HEADER: usize = 16;
/// The least and most bytes of a private key's body.
const KEY_BODY: std::ops::RangeInclusive<usize> = 32..=16_000;

/// Other anchors of the automaton, behind the tokens.
const OTHERS: &[(&str, Other)] = &[
    ("@", Other::Email),
    ("://", Other::Url),
    ("eyJ", Other::Jwt),
    ("PRIVATE KEY", Other::PrivateKey),
    ("bearer ", Other::Header),
    ("basic ", Other::Header),
    ("key", Other::Name),
    ("token", Other::Name),
    ("secret", Other::Name),
    ("password", Other::Name),
    ("passwd", Other::Name),
    ("pwd", Other::Name),
    ("passphrase", Other::Name),
    ("credential", Other::Name),
    ("credentials", Other::Name),
    ("secret_key_base", Other::Name),
];

#[derive(Debug, Clone, Copy)]
enum Other {
    Email,
    Url,
    Jwt,
    PrivateKey,
    Header,
    Name,
}

static ANCHORS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let patterns =
        TOKENS.iter().map(|token| token.prefix).chain(OTHERS.iter().map(|(anchor, _)| *anchor));
    AhoCorasickBuilder::new()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::DFA))
        .build(patterns)
        .expect("a hundred short patterns make an automaton")
});

/// Adds findings that begin with a known word or sign.
pub(super) fn find(text: &str, found: &mut Vec<Finding>) {
    // A key's body is long, and may be full of other beginnings: it is read once.
    let mut key_end = 0;
    for hit in ANCHORS.find_overlapping_iter(text) {
        let at = hit.pattern().as_usize();
        let finding = match TOKENS.get(at) {
            Some(token) => of_prefix(text, hit.start(), token),
            None => match OTHERS[at - TOKENS.len()].1 {
                Other::Email => address::email(text, hit.start()),
                Other::Url => address::url_password(text, hit.end()),
                Other::Jwt => jwt(text, hit.start()),
                Other::PrivateKey if hit.start() < key_end => None,
                Other::PrivateKey => {
                    let key = private_key(text, hit.start());
                    key_end = key.as_ref().map_or(key_end, |key| key.bytes.end);
                    key
                }
                Other::Header => header(text, hit.start(), hit.end()),
                Other::Name => assignment::find(text, hit.end()),
            },
        };
        found.extend(finding);
    }
}

/// Counts the bytes of `alphabet` from `at` on, at most `most`.
fn run(bytes: &[u8], at: usize, most: usize, holds: impl Fn(u8) -> bool) -> usize {
    bytes[at..].iter().take(most).take_while(|byte| holds(**byte)).count()
}

fn of_prefix(text: &str, start: usize, token: &TokenPattern) -> Option<Finding> {
    let bytes = text.as_bytes();
    let body = start + token.prefix.len();
    let (least, most) = token.length;
    if !bytes[start..].starts_with(token.prefix.as_bytes()) || !begins_token(bytes, start) {
        return None;
    }
    let mut length = run(bytes, body, most + 1, |byte| token.alphabet.holds(byte));
    if length > most {
        // More bytes of its alphabet follow: it is another text.
        return None;
    }
    while length > 0 && b".-=/+".contains(&bytes[body + length - 1]) && length > least {
        length -= 1;
    }
    let end = body + length;
    let value = &bytes[body..end];
    let has_digit = value.iter().any(u8::is_ascii_digit);
    let floor = if token.prefix == "sk-" { LEAST_ENTROPY_BARE } else { LEAST_ENTROPY };
    // AWS keys and some others may be letters alone; a bare `sk-` of letters alone is a name.
    let mixed = has_digit || (token.prefix != "sk-" && length >= 16);
    (length >= least
        && mixed
        && !byte_at(bytes, end).is_ascii_alphanumeric()
        && entropy(value) >= floor)
        .then_some(Finding { kind: token.kind, bytes: start..end })
}

/// Returns whether a token may begin at `start`: not within a word, but behind an escape such as `\n`.
fn begins_token(bytes: &[u8], start: usize) -> bool {
    !before(bytes, start).is_ascii_alphanumeric() || follows_escape(bytes, start)
}

fn jwt(text: &str, start: usize) -> Option<Finding> {
    let bytes = text.as_bytes();
    let is_part = |byte: u8| Alphabet::Url.holds(byte);
    if &bytes[start..start + 3] != b"eyJ" || !begins_token(bytes, start) {
        return None;
    }
    // Header, claims and signature; servers accept at most 4,096 bytes in a header line.
    let header = start + run(bytes, start, 4096, is_part);
    if byte_at(bytes, header) != b'.' || !bytes[header + 1..].starts_with(b"eyJ") {
        return None;
    }
    let claims = header + 1 + run(bytes, header + 1, 16_384, is_part);
    if byte_at(bytes, claims) != b'.' {
        return None;
    }
    let end = claims + 1 + run(bytes, claims + 1, 4096, is_part);
    (header - start >= 10 && end - claims > 10)
        .then_some(Finding { kind: SensitiveKind::Jwt, bytes: start..end })
}

/// Reads a key in PEM form; `at` is where `PRIVATE KEY` stands in its first line.
fn private_key(text: &str, at: usize) -> Option<Finding> {
    const BEGIN: &str = "-----BEGIN ";
    // `RSA`, `ENCRYPTED` and the like stand between.
    let from = text.floor_char_boundary(at.saturating_sub(40));
    let start = from + text[from..at].rfind(BEGIN)?;
    if text[start + BEGIN.len()..at].contains(['-', '\n']) {
        return None;
    }
    let first = ["PRIVATE KEY-----", "PRIVATE KEY BLOCK-----"]
        .into_iter()
        .find(|first| text[at..].starts_with(first))?;
    let body = at + first.len();
    // The body may hold line breaks, written out or escaped, quotes and indents, and the headers of an encrypted key.
    let is_body = |byte: u8| {
        Alphabet::Base64.holds(byte) || byte.is_ascii_whitespace() || b"\\\"',:".contains(&byte)
    };
    let length = run(text.as_bytes(), body, *KEY_BODY.end(), is_body);
    let inside = &text.as_bytes()[body..body + length];
    let letters = inside.iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
    if letters < *KEY_BODY.start() || entropy(inside) < LEAST_ENTROPY_BARE {
        return None;
    }
    // Its last line, if there is one; a key that was cut ends with its body.
    let after = &text[body..text.floor_char_boundary(body + length + 60)];
    let last = after.find("-----END ").and_then(|mark| {
        let name = mark + "-----END ".len();
        Some(body + name + after[name..].find("-----")? + 5)
    });
    let end = last.unwrap_or(body + inside.trim_ascii_end().len());
    Some(Finding { kind: SensitiveKind::PrivateKey, bytes: start..end })
}

/// Reads the credentials behind `Bearer` or `Basic`.
fn header(text: &str, start: usize, at: usize) -> Option<Finding> {
    let bytes = text.as_bytes();
    if !begins_token(bytes, start) {
        return None;
    }
    let mut length = run(bytes, at, 4096, |byte| Alphabet::Base64.holds(byte) || byte == b'~');
    while length > 0 && bytes[at + length - 1] == b'.' {
        length -= 1;
    }
    let value = &text[at..at + length];
    let is_basic =
        bytes[start..].len() >= 5 && bytes[start..start + 5].eq_ignore_ascii_case(b"basic");
    // `Basic` begins ordinary sentences, so a header's name must stand before it.
    let named = !is_basic || {
        let from = text.floor_char_boundary(start.saturating_sub(24));
        text[from..start].to_ascii_lowercase().contains("authorization")
    };
    (named
        && length >= if is_basic { 8 } else { SHORTEST_HEADER }
        && (is_basic || value.bytes().any(|byte| byte.is_ascii_digit()))
        && entropy(value.as_bytes()) >= LEAST_ENTROPY_BARE - if is_basic { 0.5 } else { 0.0 }
        && !assignment::is_placeholder(value))
    .then_some(Finding { kind: SensitiveKind::AuthHeader, bytes: at..at + length })
}
