//! `run-agent --forward`: a client behind a proxy that reads the requests to one host.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use reqwest::{Certificate, Client, Proxy};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// A request as a provider got it: its head, and its body.
type Received = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A provider on TLS.
struct Provider {
    address: SocketAddr,
    received: Received,
}

/// A certificate authority of the test, which the system trusts.
fn issuer() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("signed")
}

impl Provider {
    async fn start(issuer: &CertifiedIssuer<'static, KeyPair>) -> Self {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(names).expect("names");
        let certificate = params.signed_by(&key, issuer).expect("signed");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("sound");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let received = Received::default();
        let keep = received.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, keep) = (acceptor.clone(), keep.clone());
                tokio::spawn(async move {
                    // Some connections are to fail.
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let _ = answer(tokio::io::BufReader::new(stream), &keep).await;
                    }
                });
            }
        });
        Self { address, received }
    }

    fn last(&self) -> (String, Vec<u8>) {
        let received = self.received.lock().expect("no test panics with it");
        received.last().expect("a request").clone()
    }
}

/// Answers one request of a connection.
async fn answer(
    mut stream: tokio::io::BufReader<tokio_rustls::server::TlsStream<TcpStream>>,
    keep: &Received,
) -> std::io::Result<()> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    keep.lock().expect("no test panics with it").push((head.clone(), body));
    if head.to_lowercase().contains("upgrade: websocket") {
        let switched =
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
        stream.write_all(switched.as_bytes()).await?;
        let mut frame = [0; 4];
        stream.read_exact(&mut frame).await?;
        frame.reverse();
        stream.write_all(&frame).await?;
        return stream.shutdown().await;
    }
    let body = if head.starts_with("POST /v1/chat/completions") {
        r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello from afar"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}"#
    } else {
        "as it is"
    };
    let kind = if body.starts_with('{') { "application/json" } else { "text/plain" };
    let head = "HTTP/1.1 200 OK\r\nx-own: 1\r\nconnection: close\r\n";
    let head = format!("{head}content-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    stream.shutdown().await
}

/// A client that does nothing, and its variables; the test asks in its place.
struct Run {
    child: Child,
    variables: Vec<(String, String)>,
}

fn plimsoll(folder: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.current_dir(folder.path()).env("PLIMSOLL_STORE", folder.path().join("kept.db"));
    command.env("XDG_CONFIG_HOME", folder.path()).env("HOME", folder.path());
    command.env("TMPDIR", folder.path()).env("UPSTREAM_KEY", "the-real-key");
    for name in [
        "PLIMSOLL_LOG",
        "PLIMSOLL_BUDGET",
        "HTTPS_PROXY",
        "https_proxy",
        "NO_PROXY",
        "no_proxy",
        "NODE_EXTRA_CA_CERTS",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "CODEX_CA_CERTIFICATE",
    ] {
        command.env_remove(name);
    }
    command
}

impl Run {
    fn start(folder: &TempDir, authority: &Path) -> Self {
        let mut command = plimsoll(folder);
        command.env("SSL_CERT_FILE", authority);
        command.args(["run-agent", "--forward", "--upstream", "openai", "--", "sh", "-c"]);
        command.arg("env; echo READY; read line; exit 3");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let lines = output.lines().map_while(Result::ok).take_while(|line| line != "READY");
        let variables = lines.filter_map(|line| {
            line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
        });
        let variables = variables.collect();
        Self { child, variables }
    }

    fn variable(&self, name: &str) -> &str {
        let found = self.variables.iter().find(|(known, _)| known == name);
        found.map_or_else(|| panic!("{name} is not set"), |(_, value)| value)
    }

    /// Returns the proxy's address.
    fn proxy(&self) -> &str {
        self.variable("HTTPS_PROXY").rsplit('@').next().expect("an address")
    }

    /// Makes an HTTP client behind the proxy that trusts the authorities in a file and no others.
    fn client(&self, file: impl AsRef<Path>) -> Client {
        let pem = std::fs::read(file).expect("a file");
        Client::builder()
            .proxy(Proxy::all(self.variable("HTTPS_PROXY")).expect("an address"))
            .tls_certs_only(Certificate::from_pem_bundle(&pem).expect("certificates"))
            .build()
            .expect("a client")
    }

    /// Ends the client; returns the exit code and all that was told.
    fn end(mut self) -> (Option<i32>, String) {
        self.child.stdin.take().expect("piped").write_all(b"\n").expect("it reads");
        let output = self.child.wait_with_output().expect("it ends");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// A conversation whose second result repeats the first.
fn conversation() -> Value {
    let lines: Vec<String> = (0..400).map(|line| format!("line {line} of the file")).collect();
    let call = |id: &str| {
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}}]})
    };
    let result =
        |id: &str| json!({"role": "tool", "tool_call_id": id, "content": lines.join("\n")});
    let function =
        json!({"name": "read", "description": "Reads.", "parameters": {"type": "object"}});
    json!({
        "model": "m",
        "messages": [{"role": "user", "content": "Read it twice."}, call("a"), result("a"), call("b"), result("b")],
        "tools": [{"type": "function", "function": function}],
    })
}

async fn head_of(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).expect("text")
}

async fn connect(proxy: &str, target: &str, credential: Option<&str>) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(proxy).await.expect("it listens");
    let shown = credential.map_or_else(String::new, |shown| {
        let shown = BASE64_STANDARD.encode(shown);
        format!("proxy-authorization: Basic {shown}\r\n")
    });
    let request = format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n{shown}\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let head = head_of(&mut stream).await;
    (stream, head)
}

#[tokio::test]
async fn one_host_is_read_and_all_others_are_tunnelled() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = TempDir::new().expect("a folder");
    let (known, other) = (issuer(), issuer());
    let authority = folder.path().join("system.pem");
    let pem = |issuer: &CertifiedIssuer<'static, KeyPair>| {
        let text = BASE64_STANDARD.encode(issuer.der());
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    };
    std::fs::write(&authority, pem(&known)).expect("written");
    let others = folder.path().join("other.pem");
    std::fs::write(&others, pem(&other)).expect("written");
    let (provider, stranger) = (Provider::start(&known).await, Provider::start(&other).await);
    let host = format!("localhost:{}", provider.address.port());
    std::fs::write(
        folder.path().join("plimsoll.toml"),
        format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n[gateway.upstreams.openai]\nbase_url = \"https://{host}/v1\"\nkey_env = \"UPSTREAM_KEY\"\n"
        ),
    )
    .expect("written");
    assert!(plimsoll(&folder).arg("trust").output().expect("it runs").status.success());
    let run = Run::start(&folder, &authority);
    assert!(run.variables.iter().all(|(name, _)| !name.ends_with("_BASE_URL")));
    assert!(run.variable("NO_PROXY").contains("127.0.0.1"));
    let added = run.variable("NODE_EXTRA_CA_CERTS").to_owned();

    // A message to the host is bounded and recorded, with the operator's key.
    let client = run.client(&added);
    let body = conversation().to_string();
    let sent = client.post(format!("https://{host}/v1/chat/completions")).bearer_auth("own");
    let sent = sent.header("content-type", "application/json").body(body.clone()).send().await;
    let answer = sent.expect("answered");
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["x-plimsoll-outcome"], "bounded");
    assert!(answer.text().await.expect("a body").contains("hello from afar"));
    let (head, received) = provider.last();
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{head}");
    assert!(head.contains("Bearer the-real-key") && !head.contains("Bearer own"), "{head}");
    assert!(received.len() < body.len(), "{} of {}", received.len(), body.len());

    // Another path of the host goes through as it is, with the client's key: also those that the gateway answers itself.
    for path in ["/v1/environments/bridge?a=b", "/metrics", "/", "/api/hello"] {
        let asked = client.put(format!("https://{host}{path}")).bearer_auth("own");
        let answer = asked.body("not { JSON").send().await.expect("answered");
        assert_eq!(answer.headers()["x-own"], "1");
        assert!(!answer.headers().contains_key("x-plimsoll-outcome"));
        assert_eq!(answer.text().await.expect("a body"), "as it is");
        let (head, received) = provider.last();
        assert!(head.starts_with(&format!("PUT {path} HTTP/1.1")), "{head}");
        assert!(head.contains("Bearer own") && !head.contains("the-real-key"), "{head}");
        assert_eq!(received, b"not { JSON");
    }

    // Another host shows its own certificate, which this run's authority cannot make.
    let elsewhere = format!("https://127.0.0.1:{}/v1/chat/completions", stranger.address.port());
    assert!(client.post(&elsewhere).send().await.is_err());
    let answer = run.client(&others).post(&elsewhere).body(body.clone()).send().await;
    assert!(!answer.expect("answered").headers().contains_key("x-plimsoll-outcome"));
    assert_eq!(stranger.last().1, body.as_bytes());
    assert!(run.client(&authority).get(format!("https://{host}/")).send().await.is_err());
    // The files that replace the system's authorities contain those too.
    for name in ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CODEX_CA_CERTIFICATE"] {
        let all = std::fs::read_to_string(run.variable(name)).expect("a file");
        assert_eq!(all.matches("BEGIN CERTIFICATE").count(), 2, "{name}");
        assert!(!all.contains("PRIVATE KEY"), "{name}");
    }

    // The provider may switch to a protocol that is not read.
    let credential = run.variable("HTTPS_PROXY").trim_start_matches("http://");
    let credential = credential.split('@').next();
    let (stream, head) = connect(run.proxy(), &host, credential).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let mut roots = RootCertStore::empty();
    let pem = std::fs::read(&added).expect("a file");
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.expect("a certificate")).expect("sound");
    }
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let mut stream = stream.expect("trusted");
    let request = format!(
        "GET /v1/sessions/ws HTTP/1.1\r\nhost: {host}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    stream.write_all(b"abcd").await.expect("sent");
    let mut seen = Vec::new();
    let _ = stream.read_to_end(&mut seen).await;
    let seen = String::from_utf8_lossy(&seen).into_owned();
    assert!(seen.starts_with("HTTP/1.1 101") && seen.ends_with("dcba"), "{seen}");

    // Nobody opens a tunnel without the credential.
    for shown in [None, Some("plimsoll:"), Some("plimsoll:0000")] {
        for target in [&host, &stranger.address.to_string()] {
            let (_, head) = connect(run.proxy(), target, shown).await;
            assert!(head.starts_with("HTTP/1.1 407"), "{head}");
            assert!(head.contains("proxy-authenticate: Basic"), "{head}");
        }
    }

    let (code, told) = run.end();
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains("plimsoll: 1 turns;"), "{told}");
    assert!(!Path::new(&added).exists(), "the files of the authority are gone");
    let left = std::fs::read_dir(folder.path()).expect("the folder");
    let left: Vec<_> = left.map(|entry| entry.expect("an entry").file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("plimsoll-")), "{left:?}");
    let found = plimsoll(&folder).args(["search", "afar", "--json"]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&found.stdout).contains("hello from afar"));
}

#[test]
fn what_cannot_be_forwarded_is_refused_before_the_client_starts() {
    for (more, upstream, told) in [
        ("[gateway.add]\nredact = true", Some("anthropic"), "redact"),
        ("[gateway.upstreams.anthropic]\nbase_url = \"http://u\"", Some("anthropic"), "https"),
        ("", Some("nobody"), "no upstream `nobody`"),
        ("", None, "name the upstream"),
    ] {
        let folder = TempDir::new().expect("a folder");
        let text = format!("[gateway]\nlisten = \"127.0.0.1:0\"\n{more}\n");
        std::fs::write(folder.path().join("plimsoll.toml"), text).expect("written");
        assert!(plimsoll(&folder).arg("trust").output().expect("it runs").status.success());
        let mut command = plimsoll(&folder);
        command.args(["run-agent", "--forward"]);
        command.args(upstream.into_iter().flat_map(|name| ["--upstream", name]));
        let output = command.args(["--", "touch", "started"]).output().expect("it ends");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{more}: {error}");
        assert!(error.contains(told), "{more}: {error}");
        assert!(!folder.path().join("started").exists(), "{more}");
    }
}
