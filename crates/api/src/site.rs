//! The dashboard's files, which are in the binary.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};

/// Path, media type and content of each file.
const FILES: [(&str, &str, &str); 9] = [
    ("/ui/", "text/html; charset=utf-8", include_str!("../site/index.html")),
    ("/ui/style.css", "text/css; charset=utf-8", include_str!("../site/style.css")),
    ("/ui/app.js", "text/javascript; charset=utf-8", include_str!("../site/app.js")),
    ("/ui/element.js", "text/javascript; charset=utf-8", include_str!("../site/element.js")),
    ("/ui/sessions.js", "text/javascript; charset=utf-8", include_str!("../site/sessions.js")),
    ("/ui/timeline.js", "text/javascript; charset=utf-8", include_str!("../site/timeline.js")),
    ("/ui/turn.js", "text/javascript; charset=utf-8", include_str!("../site/turn.js")),
    ("/ui/memory.js", "text/javascript; charset=utf-8", include_str!("../site/memory.js")),
    ("/ui/cascade.js", "text/javascript; charset=utf-8", include_str!("../site/cascade.js")),
];

/// Only our own files run, nothing is fetched from elsewhere, and no other page frames the dashboard.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns the file at a path.
pub(crate) fn file(method: &Method, path: &str) -> Option<Response<Bytes>> {
    if method != Method::GET && method != Method::HEAD {
        return None;
    }
    if path == "/ui" {
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
        response.headers_mut().insert(LOCATION, HeaderValue::from_static("/ui/"));
        return Some(response);
    }
    let (_, kind, text) = FILES.iter().find(|(known, ..)| *known == path)?;
    let mut response = Response::new(Bytes::from_static(text.as_bytes()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    for (name, value) in [
        (CACHE_CONTROL, "no-cache"),
        (HeaderName::from_static("content-security-policy"), POLICY),
        (HeaderName::from_static("referrer-policy"), "no-referrer"),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Some(response)
}
