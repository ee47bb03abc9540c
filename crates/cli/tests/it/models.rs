//! `models`: what is configured, which key is there, who answers.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::environment::Environment;

/// Answers one request on loopback and returns what it was sent.
fn server(body: &'static str) -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/v1", listener.local_addr().expect("bound"));
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut sent = Vec::new();
        let mut part = [0; 1024];
        while !sent.windows(4).any(|four| four == b"\r\n\r\n") {
            let read = stream.read(&mut part).expect("a request");
            sent.extend(&part[..read]);
        }
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(body.as_bytes()))
            .expect("sent");
        String::from_utf8_lossy(&sent).into_owned()
    });
    (address, served)
}

#[test]
fn known_providers_are_listed_and_nobody_is_asked() {
    let environment = Environment::new();
    insta::assert_snapshot!(environment.data(&["models", "--offline"]), @r"
    anthropic   anthropic  https://api.anthropic.com/v1  ANTHROPIC_API_KEY is missing   not asked
    llamacpp    chat       http://127.0.0.1:8080/v1      no key needed                  not asked
    ollama      chat       http://127.0.0.1:11434/v1     no key needed                  not asked
    openai      chat       https://api.openai.com/v1     OPENAI_API_KEY is missing      not asked
    openrouter  chat       https://openrouter.ai/api/v1  OPENROUTER_API_KEY is missing  not asked
    vllm        chat       http://127.0.0.1:8000/v1      no key needed                  not asked
    embedder: built-in
    ");
}

#[test]
fn a_provider_that_answers_tells_its_models() {
    let (address, served) = server(r#"{"data":[{"id":"small"},{"id":"large"}]}"#);
    let environment = Environment::new();
    let own = format!(
        "[models.providers.own]\napi = 'chat'\nbase_url = '{address}'\nkey_env = 'OWN_KEY'\n"
    );
    environment.write("plimsoll.toml", own);
    let ran = environment.run_with(&["models", "--json"], &[("OWN_KEY", "sk-own-secret")]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stdout.contains("sk-own-secret") && !ran.stderr.contains("sk-own-secret"));
    let listing: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let rows = listing["providers"].as_array().expect("rows");
    let own = rows.iter().find(|row| row["provider"] == "own").expect("it is configured");
    assert_eq!(own["models"], serde_json::json!(["small", "large"]));
    assert_eq!((&own["reachable"], &own["key_present"]), (&true.into(), &true.into()));
    let sent = served.join().expect("served").to_lowercase();
    assert!(
        sent.starts_with("get /v1/models ") && sent.contains("authorization: bearer sk-own-secret")
    );
}

#[test]
fn what_is_configured_and_does_not_answer_is_a_finding() {
    let environment = Environment::new();
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let closed = closed.expect("a port that nobody listens on");
    let own = format!(
        "[models.providers.own]\napi = 'anthropic'\nbase_url = 'http://{closed}'\n\
         [models.providers.keyless]\napi = 'chat'\nbase_url = 'http://{closed}'\nkey_env = 'NO_SUCH_KEY'\n"
    );
    environment.write("plimsoll.toml", own);
    let ran = environment.run(&["models"]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("NO_SUCH_KEY is missing"), "{}", ran.stdout);
    assert_eq!(ran.stderr, "note: can't be used as configured: keyless, own\n");
    assert_eq!(
        environment.run(&["models", "--offline"]).code,
        1,
        "the key is missing all the same"
    );
}

#[test]
fn a_mistake_in_the_settings_is_named() {
    let environment = Environment::new();
    for (settings, told) in [
        ("[models.spending]\nproces_dollars = 1", "`process_dollars`"),
        ("[models.providers.own]\nbase_ulr = 'http://h'", "`base_url`"),
        ("[models]\ntimeout = 1", "`timeouts`"),
        ("[models.providers.own]\nbase_url = 'http://h'", "`api`"),
        ("[models.spending]\nprocess_dollars = -1", "negative"),
    ] {
        environment.write("plimsoll.toml", settings);
        let ran = environment.run(&["models", "--offline"]);
        assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{}", ran.stderr);
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
}
