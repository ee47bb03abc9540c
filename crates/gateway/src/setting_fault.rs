//! Settings that can be read and cannot be meant: a gateway with them would serve nobody, or not as they say.

use http::uri::Authority;

use crate::config::GatewayConfig;

/// A setting of `[gateway]` with a value that cannot be meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`gateway.{}` {what}", key.join("."))]
pub struct SettingFault {
    /// The names of its tables below `[gateway]`, and its own.
    pub key: Vec<&'static str>,
    /// The value, and what is expected.
    pub what: String,
}

impl GatewayConfig {
    /// Returns all faults of single settings.
    pub fn faults(&self) -> Vec<SettingFault> {
        let mut faults = Vec::new();
        let mut add = |key: &[&'static str], what: String| {
            faults.push(SettingFault { key: key.to_vec(), what });
        };
        for host in self.hosts.iter().filter(|host| !is_host(host)) {
            add(&["hosts"], format!("has `{host}`, expected `host:port`"));
        }
        for origin in self.origins.iter().filter(|origin| !is_origin(origin)) {
            add(&["origins"], format!("has `{origin}`, expected `scheme://host:port`"));
        }
        let limits = &self.limits;
        for (key, limit) in [
            ("body_bytes", limits.body_bytes),
            ("in_flight_bytes", limits.in_flight_bytes),
            ("tenant_bytes", limits.tenant_bytes),
            ("event_bytes", limits.event_bytes),
            ("connections", limits.connections),
            ("header_bytes", limits.header_bytes),
            ("depth", limits.depth),
        ] {
            if limit == 0 {
                add(&["limits", key], "is 0, expected at least 1".to_owned());
            }
        }
        let warm = &self.keep_warm;
        if let Some(chance) = warm.return_chance.filter(|chance| !(0.0..=1.0).contains(chance)) {
            add(&["keep_warm", "return_chance"], format!("is {chance}, expected 0 to 1"));
        }
        if warm.most_dollars.is_nan() || warm.most_dollars < 0.0 {
            let what = format!("is {}, expected 0 or more", warm.most_dollars);
            add(&["keep_warm", "most_dollars"], what);
        }
        faults
    }
}

/// Returns whether a text is a host with or without a port, as a client names it.
fn is_host(text: &str) -> bool {
    let Ok(authority) = Authority::try_from(text) else { return false };
    let port_fits = match authority.port_u16() {
        Some(port) => port > 0,
        None => authority.host() == text,
    };
    port_fits && !text.contains(['@', '*'])
}

fn is_origin(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    text.split_once("://").is_some_and(|(scheme, host)| is_scheme(scheme) && is_host(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_and_pages() {
        for good in ["gateway.example:7433", "gateway.example", "[::1]:80", "10.0.0.1:1"] {
            assert!(is_host(good), "{good}");
            assert!(is_origin(&format!("https://{good}")), "{good}");
        }
        assert!(is_origin("chrome-extension://abcdef"));
        for bad in ["http://foo", "", "a b", "foo:", "foo:x", "foo:0", "foo:99999", "foo/", "a@foo"]
        {
            assert!(!is_host(bad), "{bad}");
        }
        for bad in ["foo", "*", "null", "://foo", "http://", "http://foo/", "1://foo"] {
            assert!(!is_origin(bad), "{bad}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_told_with_its_value() {
        assert_eq!(GatewayConfig::default().faults(), []);
        let told = |change: fn(&mut GatewayConfig)| {
            let mut config = GatewayConfig::default();
            change(&mut config);
            config.faults().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        let hosts = told(|config| config.hosts = vec!["http://foo".into(), "foo:1".into()]);
        assert_eq!(hosts, "`gateway.hosts` has `http://foo`, expected `host:port`");
        let depth = told(|config| config.limits.depth = 0);
        assert_eq!(depth, "`gateway.limits.depth` is 0, expected at least 1");
        let chance = told(|config| config.keep_warm.return_chance = Some(7.5));
        assert_eq!(chance, "`gateway.keep_warm.return_chance` is 7.5, expected 0 to 1");
        let dollars = told(|config| config.keep_warm.most_dollars = f64::NAN);
        assert_eq!(dollars, "`gateway.keep_warm.most_dollars` is NaN, expected 0 or more");
    }
}
