//! Web addresses of hosts that the configuration names.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use plimsoll_engine::{Clock, ToolAnswer};
use reqwest::Url;

use super::StarterLimits;

pub(super) async fn get(
    address: &str,
    limits: &StarterLimits,
    clock: &dyn Clock,
) -> Result<ToolAnswer, String> {
    tokio::select! {
        biased;
        answer = fetch(address, limits) => answer,
        () = clock.sleep(limits.timeout) => {
            Err(format!("no answer in {} s", limits.timeout.as_secs_f64()))
        }
    }
}

async fn fetch(address: &str, limits: &StarterLimits) -> Result<ToolAnswer, String> {
    let Ok(url) = Url::parse(address) else {
        return Ok(ToolAnswer::failed(format!("`{address}` is not an address")));
    };
    let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
    if !matches!(url.scheme(), "http" | "https") || host.is_empty() {
        return Ok(ToolAnswer::failed("only addresses of http and https are read".to_owned()));
    }
    let Some(is_named) = allows(&limits.hosts, &host) else {
        return Ok(ToolAnswer::failed(format!(
            "the host `{host}` is not allowed; `hosts` under [tools.starter] names those that are"
        )));
    };
    let port = url.port_or_known_default().unwrap_or(443);
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let found = tokio::net::lookup_host((bare.as_str(), port)).await;
    let found: Vec<SocketAddr> = found.map_err(|error| format!("{host}: {error}"))?.collect();
    // A name of a public host may lead to a machine inside: only a host that is named itself may.
    if !is_named && found.iter().any(|address| !is_public(address.ip())) {
        return Ok(ToolAnswer::failed(format!("the host `{host}` is not a public one")));
    }
    // Another client may have installed one already; any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        // A redirect may lead to a host that is not allowed.
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .resolve_to_addrs(&host, &found)
        .user_agent(concat!("plimsoll/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| error.to_string())?;
    let mut answer = client.get(url).send().await.map_err(|error| error.to_string())?;
    let status = answer.status();
    if status.is_redirection() {
        let to = answer.headers().get("location").and_then(|to| to.to_str().ok());
        return Ok(ToolAnswer::text(format!("[{status}: {}]", to.unwrap_or_default())));
    }
    let mut bytes = Vec::new();
    let mut is_cut = false;
    while let Some(piece) = answer.chunk().await.map_err(|error| error.to_string())? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > limits.output {
            bytes.truncate(limits.output);
            is_cut = true;
            break;
        }
    }
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if is_cut {
        let _ = write!(text, "\n[ended: more than {} bytes]", limits.output);
    }
    Ok(ToolAnswer { text, images: Vec::new(), is_error: !status.is_success() })
}

/// Returns whether the list names the host itself; `None` where it does not allow it.
fn allows(hosts: &[String], host: &str) -> Option<bool> {
    let is_under = |pattern: &str| {
        pattern.strip_prefix("*.").is_some_and(|parent| host.ends_with(&format!(".{parent}")))
    };
    if hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host)) {
        return Some(true);
    }
    hosts.iter().any(|allowed| allowed == "*" || is_under(allowed)).then_some(false)
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            let is_shared = a == 100 && (64..128).contains(&b);
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_broadcast()
                || v4.is_multicast()
                || v4.is_documentation()
                || a == 0
                || is_shared)
        }
        IpAddr::V6(v6) => {
            if let Some(v4) = v6.to_ipv4_mapped() {
                return is_public(IpAddr::V4(v4));
            }
            !(v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_allowed_by_name() {
        let hosts = ["example.org".to_owned(), "*.example.com".to_owned()];
        assert_eq!(allows(&hosts, "example.org"), Some(true));
        assert_eq!(allows(&hosts, "a.example.com"), Some(false));
        for other in ["example.com", "aexample.com", "example.org.evil.net", ""] {
            assert_eq!(allows(&hosts, other), None, "{other}");
        }
        assert_eq!(allows(&["*".to_owned()], "anything.net"), Some(false));
    }

    #[test]
    fn machines_inside_are_not_public() {
        for inside in [
            "127.0.0.1",
            "10.1.2.3",
            "169.254.169.254",
            "100.64.0.1",
            "::1",
            "fd00::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(!is_public(inside.parse().expect("an address")), "{inside}");
        }
        assert!(is_public("93.184.215.14".parse().expect("an address")));
    }
}
