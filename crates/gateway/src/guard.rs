//! Protection against web pages that make browsers call loopback: the names by which clients call the gateway are a closed list.

use std::net::SocketAddr;

use http::header::{CONTENT_TYPE, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// The header by which a browser says from where a page asks.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The names that are accepted, each with its port.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    hosts: Vec<String>,
    origins: Vec<String>,
    /// Whether names are checked; where every request needs a key, a page has none.
    is_closed: bool,
}

impl Guard {
    pub(crate) fn new(
        address: SocketAddr,
        hosts: &[String],
        origins: &[String],
        has_keys: bool,
    ) -> Self {
        let port = address.port();
        let mut known: Vec<String> = hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        let is_closed = !has_keys || !known.is_empty();
        known.extend(["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}")));
        known.push(address.to_string());
        // The port of plain HTTP is left out by clients.
        if port == 80 {
            known.extend(["127.0.0.1", "localhost", "[::1]"].map(str::to_owned));
        }
        let origins = origins.iter().map(|origin| origin.to_ascii_lowercase()).collect();
        Self { hosts: known, origins, is_closed }
    }

    /// Returns whether a request is admitted whose origin may also be the gateway itself.
    ///
    /// A browser sends the origin of a page that we served with what that page writes.
    pub(crate) fn admits_own(&self, method: &Method, headers: &HeaderMap) -> bool {
        let own = headers.get(HOST).and_then(|host| host.to_str().ok());
        let is_own = |origin: &HeaderValue| {
            let origin = origin.to_str().ok().and_then(|origin| {
                origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
            });
            origin.is_some() && origin == own
        };
        if !headers.get_all(ORIGIN).iter().all(is_own) {
            return self.admits(method, headers);
        }
        let mut without = headers.clone();
        without.remove(ORIGIN);
        self.admits(method, &without)
    }

    /// Returns whether a request is admitted.
    pub(crate) fn admits(&self, method: &Method, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let host = (hosts.next(), hosts.next());
        let host_fits = match host {
            (Some(host), None) => !self.is_closed || is_listed(host, &self.hosts),
            _ => false,
        };
        let origins_fit =
            headers.get_all(ORIGIN).iter().all(|origin| is_listed(origin, &self.origins));
        // A page sends no origin with a plain GET; a site of its own, or the user's address bar, it may be.
        let is_foreign = !headers.contains_key(ORIGIN)
            && headers.get_all(SITE).iter().any(|site| site != "same-origin" && site != "none");
        host_fits && origins_fit && !is_foreign && !is_form(method, headers)
    }
}

/// Returns whether a page may send this body anywhere without asking first; no client of a provider sends it.
fn is_form(method: &Method, headers: &HeaderMap) -> bool {
    let is_plain = |value: &HeaderValue| {
        let kind = value.as_bytes().trim_ascii_start();
        kind.get(..10).is_some_and(|kind| kind.eq_ignore_ascii_case(b"text/plain"))
    };
    method == Method::POST && headers.get_all(CONTENT_TYPE).iter().any(is_plain)
}

fn is_listed(value: &HeaderValue, known: &[String]) -> bool {
    value.to_str().is_ok_and(|value| known.iter().any(|name| name.eq_ignore_ascii_case(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(guard: &Guard, pairs: &[(&'static str, &'static str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        guard.admits(&Method::POST, &headers)
    }

    #[test]
    fn only_known_names_are_answered() {
        let address = SocketAddr::from(([127, 0, 0, 1], 7433));
        let guard = Guard::new(address, &[], &["http://known:1".into()], false);
        for good in ["127.0.0.1:7433", "localhost:7433", "LOCALHOST:7433", "[::1]:7433"] {
            assert!(admits(&guard, &[("host", good)]), "{good}");
        }
        for bad in [
            "evil.com",
            "127.0.0.1.evil.com:7433",
            "0.0.0.0:7433",
            "[::]:7433",
            "127.0.0.1",
            "localhost:80",
            "",
        ] {
            assert!(!admits(&guard, &[("host", bad)]), "{bad}");
        }
        assert!(!admits(&guard, &[]), "absent");
        let own = ("host", "127.0.0.1:7433");
        assert!(!admits(&guard, &[own, own]), "two");
        for bad in ["null", "http://evil.com", "file://", "http://127.0.0.1:7433"] {
            assert!(!admits(&guard, &[own, ("origin", bad)]), "{bad}");
        }
        assert!(admits(&guard, &[own, ("origin", "http://known:1")]));
        for site in ["cross-site", "same-site"] {
            assert!(!admits(&guard, &[own, ("sec-fetch-site", site)]), "{site}");
            let known = ("origin", "http://known:1");
            assert!(admits(&guard, &[own, known, ("sec-fetch-site", site)]), "{site}");
        }
        assert!(admits(&guard, &[own, ("sec-fetch-site", "none")]));
        assert!(!admits(&guard, &[own, ("content-type", "Text/Plain;charset=UTF-8")]));
        assert!(admits(&guard, &[own, ("content-type", "application/json")]));
    }

    #[test]
    fn our_own_pages_may_ask_for_pages_and_others_may_not() {
        let guard = Guard::new(SocketAddr::from(([127, 0, 0, 1], 7433)), &[], &[], false);
        let asks = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, HeaderValue::from_static(value));
            }
            guard.admits_own(&Method::POST, &headers)
        };
        let own = ("host", "127.0.0.1:7433");
        let site = ("sec-fetch-site", "same-origin");
        assert!(asks(&[own, ("origin", "http://127.0.0.1:7433"), site]));
        assert!(asks(&[own]));
        for foreign in ["http://evil.com", "null", "http://localhost:7433", "http://127.0.0.1:1"] {
            assert!(!asks(&[own, ("origin", foreign), site]), "{foreign}");
        }
        // A name that an attacker points at this machine is its own origin, and no name of ours.
        assert!(!asks(&[("host", "evil.com:7433"), ("origin", "http://evil.com:7433"), site]));
        assert!(!asks(&[own, ("sec-fetch-site", "cross-site")]));
        let plain = ("content-type", "text/plain");
        assert!(!asks(&[own, ("origin", "http://127.0.0.1:7433"), plain]));
    }

    #[test]
    fn with_keys_any_name_does_unless_names_are_given() {
        let address = SocketAddr::from(([0, 0, 0, 0], 7433));
        let other = [("host", "gateway.example:7433")];
        assert!(admits(&Guard::new(address, &[], &[], true), &other));
        let named = ["gateway.example:7433".to_owned()];
        assert!(admits(&Guard::new(address, &named, &[], false), &other));
        assert!(!admits(&Guard::new(address, &["a:1".into()], &[], true), &other));
    }
}
