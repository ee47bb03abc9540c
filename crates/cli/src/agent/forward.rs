//! `run-agent --forward`: the files of the certificate authority of one run, and the variables by which clients find it and the proxy.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plimsoll_gateway::{ForwardError, ForwardProxy, Gateway};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::config::environment;
use crate::error::CommandError;
use crate::output;

/// The variables for an authority beside those that the client has: Node, and Bun with it.
const ADDED: &str = "NODE_EXTRA_CA_CERTS";
/// The variables for a file instead of the system's: OpenSSL, Go, rustls and httpx; requests; curl; Codex.
const INSTEAD: [&str; 4] =
    ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CODEX_CA_CERTIFICATE"];
/// Names that never go through a proxy.
const LOOPBACK: &str = "localhost,127.0.0.1,::1";

/// Returns the upstream whose host is read: the one that is named, or that of the client.
pub(super) fn upstream<'n>(named: Option<&'n str>, program: &str) -> Result<&'n str, CommandError> {
    let own = || Client::of(program).and_then(Client::upstream);
    named.or_else(own).ok_or_else(|| {
        let error = anyhow::anyhow!("{program} is not known to use one provider only");
        CommandError::usage(error).hint("name the upstream, as in `--upstream anthropic`")
    })
}

/// A forward proxy that runs as long as the client.
pub(super) struct Forwarding {
    variables: Vec<(&'static str, String)>,
    host: String,
    /// Removed when this is dropped.
    folder: TempDir,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

impl Forwarding {
    pub(super) async fn start(
        gateway: &Arc<Gateway>,
        upstream: &str,
    ) -> Result<Self, CommandError> {
        let proxy = ForwardProxy::new(gateway.clone(), upstream).map_err(refused)?;
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = TcpListener::bind(listen).await.map_err(CommandError::failure)?;
        let address = listener.local_addr().map_err(CommandError::failure)?;
        // The folder is the user's alone.
        let folder = tempfile::Builder::new().prefix("plimsoll-").tempdir();
        let folder = folder.map_err(CommandError::failure)?;
        let mut variables = authorities(folder.path(), &pem(proxy.certificate()))?;
        let url = format!("http://{}@{address}", proxy.credential());
        if environment("HTTPS_PROXY").or_else(|| environment("https_proxy")).is_some() {
            output::warning(
                "HTTPS_PROXY is set: the provider is reached through it, other hosts are not",
            );
        }
        let past = environment("NO_PROXY").or_else(|| environment("no_proxy"));
        let past = past.filter(|past| !past.trim().is_empty());
        let past = past.map_or_else(|| LOOPBACK.to_owned(), |past| format!("{past},{LOOPBACK}"));
        variables.extend([
            ("HTTPS_PROXY", url.clone()),
            ("https_proxy", url),
            ("NO_PROXY", past.clone()),
            ("no_proxy", past),
            // Node's own `fetch` reads the variables of proxies only then.
            ("NODE_USE_ENV_PROXY", "1".to_owned()),
        ]);
        let host = proxy.host().to_owned();
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            let _ = proxy.serve(listener, stopped).await;
        });
        Ok(Self { variables, host, folder, stop, server })
    }

    /// Makes the command of a client behind the proxy.
    pub(super) fn command(&self, program: &str, rest: &[String]) -> (Command, Option<String>) {
        let mut command = Command::new(program);
        command.args(rest).envs(self.variables.iter().map(|(name, value)| (*name, value)));
        (command, Some(format!("plimsoll: requests to {} are read, all others pass", self.host)))
    }

    /// Ends the proxy and removes the files.
    pub(super) async fn end(self) {
        let _ = self.stop.send(());
        let _ = self.server.await;
        if let Err(error) = self.folder.close() {
            output::warning(&format!("the files of the certificate authority stay: {error}"));
        }
    }
}

fn refused(error: ForwardError) -> CommandError {
    match error {
        ForwardError::Redacts => {
            CommandError::usage(error).hint("leave out --forward, or `redact`")
        }
        ForwardError::Upstream(_) | ForwardError::NotHttps(_) => CommandError::usage(error),
        ForwardError::Random | ForwardError::Authority(_) => CommandError::failure(error),
    }
}

/// Writes the files of authorities, and returns the variables that name them.
///
/// Most variables replace what the client trusts, so that their file has the system's authorities too. What the user's own variables name
/// stays in force.
fn authorities(folder: &Path, own: &str) -> Result<Vec<(&'static str, String)>, CommandError> {
    let file = |name: &str| {
        environment(name).and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default()
    };
    let mut system = String::new();
    for certificate in rustls_native_certs::load_native_certs().certs {
        system.push_str(&pem(&certificate));
    }
    if system.is_empty() {
        output::warning(
            "this system has no certificate authorities: the client trusts that of this run only",
        );
    }
    // `SSL_CERT_FILE` is read with the system's.
    let instead: String = INSTEAD[1..].iter().map(|name| file(name)).collect();
    let added = format!("{own}{}", file(ADDED));
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(CommandError::failure)?;
        Ok::<_, CommandError>(path.display().to_string())
    };
    let all = write("all.pem", &format!("{added}{instead}{system}"))?;
    let mut variables = vec![(ADDED, write("added.pem", &added)?)];
    variables.extend(INSTEAD.map(|name| (name, all.clone())));
    Ok(variables)
}

/// Writes a certificate in PEM form (RFC 7468).
fn pem(der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in text.as_bytes().chunks(64) {
        pem.extend(line.iter().map(|byte| char::from(*byte)));
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_tells_the_upstream_unless_the_user_does() {
        assert_eq!(upstream(None, "/bin/claude").ok(), Some("anthropic"));
        assert_eq!(upstream(None, "codex").ok(), Some("openai"));
        assert_eq!(upstream(Some("mine"), "python").ok(), Some("mine"));
        assert!(upstream(None, "python").is_err());
    }
}
