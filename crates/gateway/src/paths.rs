//! Paths: which of an upstream's may be reached, and with whose key.

use std::borrow::Cow;

use http::Method;
use percent_encoding::percent_decode_str;

use crate::config::Api;

/// Paths that the gateway's own key opens, without version; `*` stands for one segment, and `**` at the end for all that follow.
///
/// Each answers from its body alone: it cannot read, change or delete anything of the account.
const OPENAI: &[&str] = &[
    "POST /chat/completions",
    "POST /completions",
    "POST /responses",
    "POST /responses/input_tokens",
    "POST /responses/compact",
    "GET /responses",
    "POST /embeddings",
    "POST /moderations",
    "GET /models",
    "GET /models/*",
];
const ANTHROPIC: &[&str] =
    &["POST /messages", "POST /messages/count_tokens", "GET /models", "GET /models/*"];
const GEMINI: &[&str] = &[
    "POST /models/*:generateContent",
    "POST /models/*:streamGenerateContent",
    "POST /models/*:countTokens",
    "POST /models/*:embedContent",
    "POST /models/*:batchEmbedContents",
    "GET /models",
    "GET /models/*",
];

/// Returns a text without percent-encoding.
pub(crate) fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// Characters that end a segment of a path for some server, encoded or not.
const ENDS_SEGMENT: [char; 5] = ['/', ';', '?', '#', ':'];

/// Returns whether a path stays below the upstream's own, however a server decodes it.
///
/// A path that does not is refused and not repaired: nobody sends one by accident.
pub(crate) fn stays_below(path_and_query: &str) -> bool {
    let path = path_and_query.split(['?', '#']).next().unwrap_or_default();
    // Twice, since a proxy in front of the upstream may decode too.
    let once = decoded(path);
    let twice = decoded(&once);
    [path, &once, &twice].iter().all(|path| {
        // Bytes that are no text, such as a slash written too long, are one to some servers.
        let is_plain = |character: char| {
            !matches!(character, '\\' | char::REPLACEMENT_CHARACTER) && !character.is_control()
        };
        path.chars().all(is_plain)
            && path.split(ENDS_SEGMENT).all(|segment| !matches!(segment, "." | ".."))
    })
}

/// Returns whether the gateway's own key may be used for a path; `more` are the operator's patterns.
pub(crate) fn is_open(api: Api, method: &Method, path_and_query: &str, more: &[String]) -> bool {
    let path = path_and_query.split(['?', '#']).next().unwrap_or_default();
    // What is encoded is a name, and no part of a known path.
    let path = path.trim_end_matches('/');
    let first = path.split('/').nth(1).unwrap_or_default();
    let bare = if is_version(first) { &path[1 + first.len()..] } else { path };
    let known = match api {
        Api::OpenAi => OPENAI,
        Api::Anthropic => ANTHROPIC,
        Api::Gemini => GEMINI,
    };
    let own = known.iter().any(|pattern| fits(pattern, method, bare));
    own || more.iter().any(|pattern| fits(pattern, method, bare) || fits(pattern, method, path))
}

/// Returns whether a text is a pattern of paths: an optional method, and a path from the root.
pub(crate) fn is_pattern(text: &str) -> bool {
    let (_, path) = text.split_once(' ').unwrap_or(("", text));
    path.starts_with('/') && !path.contains(char::is_whitespace)
}

fn fits(pattern: &str, method: &Method, path: &str) -> bool {
    let (wanted, pattern) = pattern.split_once(' ').unwrap_or(("", pattern));
    if !wanted.is_empty() && !method.as_str().eq_ignore_ascii_case(wanted) {
        return false;
    }
    let (mut segments, mut parts) = (path.split('/'), pattern.split('/'));
    loop {
        return match (parts.next(), segments.next()) {
            (Some("**"), Some(_)) | (None, None) => true,
            (Some(part), Some(segment)) if fits_segment(part, segment) => continue,
            _ => false,
        };
    }
}

fn fits_segment(part: &str, segment: &str) -> bool {
    match part.split_once('*') {
        None => part == segment,
        Some((before, after)) => segment
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after))
            .is_some_and(|name| {
                // `:` begins the method of a Gemini path, and an encoded slash another segment.
                let lower = name.to_ascii_lowercase();
                !name.is_empty()
                    && !lower.contains("%2f")
                    && (after.is_empty() || !name.contains(':'))
            }),
    }
}

/// Returns whether a segment of a path is a version: `v1`, `v1beta`, `v2`.
pub(crate) fn is_version(segment: &str) -> bool {
    let mut characters = segment.bytes();
    characters.next() == Some(b'v')
        && characters.next().is_some_and(|digit| digit.is_ascii_digit())
        && characters.all(|rest| rest.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leaves_the_upstreams_own() {
        for bad in [
            "/v1/../admin",
            "/v1/%2e%2e/admin",
            "/v1/%252e%252e/admin",
            "/v1/..%2fadmin",
            "/v1/.;x/admin",
            "/v1\\..\\admin",
            "/v1/%5c..%5cadmin",
            "/v1/a%00b",
            "/v1/batches/x/..%c0%afadmin",
            "/v1/batches/x/%2e%2e%3f/admin",
            "/v1beta/models/%2e%2e:generateContent",
        ] {
            assert!(!stays_below(bad), "{bad}");
        }
        for good in ["/v1/models/ft%3Agpt", "/v1/models/a..b", "/v1/messages?beta=../x", "/"] {
            assert!(stays_below(good), "{good}");
        }
    }

    #[test]
    fn our_key_opens_what_answers_from_its_body() {
        let more = ["GET /files".to_owned(), "/batches/**".to_owned()];
        for (api, method, path, expected) in [
            (Api::OpenAi, "POST", "/v1/chat/completions", true),
            (Api::OpenAi, "POST", "/chat/completions?a=b", true),
            (Api::OpenAi, "GET", "/v1/models/gpt-5", true),
            (Api::OpenAi, "DELETE", "/v1/models/gpt-5", false),
            (Api::OpenAi, "GET", "/v1/models/a%2f..%2fx", false),
            (Api::OpenAi, "GET", "/v1/files", true),
            (Api::OpenAi, "POST", "/v1/files", false),
            (Api::OpenAi, "GET", "/v1/files/f1", false),
            (Api::OpenAi, "POST", "/v1/batches/b/cancel", true),
            (Api::OpenAi, "GET", "/v1/responses/resp_1", false),
            (Api::OpenAi, "GET", "/v1/organization/admin_api_keys", false),
            (Api::Anthropic, "POST", "/v1/messages?beta=true", true),
            (Api::Anthropic, "GET", "/v1/messages/batches", false),
            (Api::Anthropic, "POST", "/v1/chat/completions", false),
            (Api::Gemini, "POST", "/v1beta/models/m:generateContent", true),
            (Api::Gemini, "POST", "/v1beta/models/m:predict", false),
            (Api::Gemini, "GET", "/v1beta/files", true),
        ] {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            assert_eq!(is_open(api, &method, path, &more), expected, "{api:?} {method} {path}");
        }
    }
}
