//! The way out: every request to an upstream passes here, and with `redact` leaves without personal data and secrets.
//!
//! Redaction happens on the bytes that leave and nowhere else, so that it holds for lone questions, answers of our own tools, requests
//! that are late, and those whose rewriting failed. A request that cannot be read is refused.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, HeaderValue};
use plimsoll_core::safety::{Handling, redact, redact_field};
use plimsoll_wire::{RequestError, redact_body};

use crate::keys::{API_KEY, GOOGLE_KEY};
use crate::paths::decoded;
use crate::refusal::RequestRefusal;
use crate::upstream::UpstreamRequest;
use crate::work::Work;

/// The fields of a query that carry the client's own key for the upstream.
const KEYS: &[&str] = &["key", "access_token"];

/// Returns the request without personal data and secrets.
///
/// Errors: [`RequestRefusal::Unredacted`] for a body that is no JSON, and for a path that holds what would have to be redacted.
pub(crate) async fn redacted(
    request: &UpstreamRequest,
    depth: usize,
    work: &Work,
) -> Result<UpstreamRequest, RequestRefusal> {
    check_path(&request.path)?;
    let mut changed = request.clone();
    redact_headers(&mut changed.headers);
    if !request.body.is_empty() {
        let body = request.body.clone();
        let redact = move || redact_body(&body, depth, Handling::REDACT);
        let redacted = work.run(request.body.len(), redact).await;
        let redacted = redacted.map_err(|broken| RequestRefusal::Unredacted(broken.to_string()))?;
        let redacted = redacted.map_err(|error| match error {
            RequestError::TooDeep { depth } => RequestRefusal::TooDeep { most: depth },
            error => RequestRefusal::Unredacted(error.to_string()),
        })?;
        if let Some(body) = redacted {
            changed.body = Bytes::from(body);
        }
    }
    Ok(changed)
}

fn check_path(path_and_query: &str) -> Result<(), RequestRefusal> {
    let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
    let holds = |text: &str| matches!(redact(text, Handling::REDACT).0, Cow::Owned(_));
    let in_query = query.split('&').any(|pair| {
        // A form writes a space as a plus; an address may hold one, so both are read.
        [pair.to_owned(), pair.replace('+', " ")].iter().any(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name), decoded(value));
            let is_key = KEYS.contains(&&*name);
            holds(&name) || (!is_key && redact_field(&name, &value, Handling::REDACT).is_some())
        })
    });
    if holds(&decoded(path)) || in_query {
        let what = "the path holds personal data or a secret".to_owned();
        return Err(RequestRefusal::Unredacted(what));
    }
    Ok(())
}

/// Redacts the values of headers, but not credentials: they are what opens the upstream.
fn redact_headers(headers: &mut HeaderMap) {
    for (name, value) in headers.iter_mut() {
        if [&AUTHORIZATION, &API_KEY, &GOOGLE_KEY, &COOKIE].contains(&name) {
            continue;
        }
        let text = String::from_utf8_lossy(value.as_bytes());
        if let Cow::Owned(redacted) = redact(&text, Handling::REDACT).0
            && let Ok(redacted) = HeaderValue::try_from(redacted)
        {
            *value = redacted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_headers_keep_nothing_but_credentials() {
        for bad in [
            "/v1/models/ann%40example.com",
            "/v1/models?user=ann@example.com",
            "/v1/models?ann@example.com",
            "/v1/models?a=1&ann%40example.com",
            "/v1/models?ann%40example.com=1",
            "/v1/models?key&ann@example.com",
            "/v1/models?4111+1111+1111+1111",
            "/v1/models?4111%201111%201111%201111=x",
            "/v1/models?%2B44+20+7946+0958",
            "/v1/models?q=4111+1111+1111+1111",
            "/v1/models?user%3Dann@example.com",
            "/v1/models?key%3Dann@example.com",
        ] {
            assert!(check_path(bad).is_err(), "{bad}");
        }
        let key = "/v1beta/models/m:generateContent?key=AIzaSyA1234567890abcdefghijklmnopqrstuv";
        assert_eq!(check_path(key), Ok(()));
        for good in [
            "/v1/m?access_token=ya29.q7Zk2Vx9Lm4Tb8Rw1Ns5Hc3",
            "/v1/m?beta",
            "/v1/m?beta=true&alt=sse&limit=20",
        ] {
            assert_eq!(check_path(good), Ok(()), "{good}");
        }
        let mut headers = HeaderMap::new();
        headers.insert("x-user", HeaderValue::from_static("ann@example.com"));
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer abcdefghijklmnop"));
        redact_headers(&mut headers);
        assert_eq!(headers["x-user"], "[redacted:email]");
        assert_eq!(headers["authorization"], "Bearer abcdefghijklmnop");
    }
}
