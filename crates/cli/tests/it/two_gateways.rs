//! Two gateways on one store: the same session through both, by turns and at the same instant.

use std::io::{BufRead, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;

use serde_json::{Value, json};
use tempfile::TempDir;

/// An upstream that repeats the last message of each request.
fn upstream() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    format!("http://{address}/v1")
}

/// Reads the body of a message.
fn body(reader: &mut impl BufRead) -> std::io::Result<(String, Vec<u8>)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((head, body))
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let (_, asked) = body(&mut BufReader::new(stream.try_clone()?))?;
    let asked: Value = serde_json::from_slice(&asked).expect("JSON");
    let last = asked["messages"].as_array().and_then(|messages| messages.last()).expect("one");
    let said = format!("re: {}", last["content"].as_str().unwrap_or_default());
    let answer = json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
    })
    .to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
    write!(stream, "{head}content-length: {}\r\n\r\n{answer}", answer.len())
}

/// A gateway, killed when it is dropped.
struct Served {
    child: Child,
    address: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn plimsoll(folder: &TempDir, store: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.current_dir(folder.path()).env("PLIMSOLL_STORE", store);
    command.env("XDG_CONFIG_HOME", folder.path()).env("HOME", folder.path());
    command.env_remove("PLIMSOLL_LOG").env_remove("PLIMSOLL_BUDGET");
    command
}

impl Served {
    fn start(folder: &TempDir, store: &str) -> Self {
        let mut command = plimsoll(folder, store);
        command.args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().expect("it starts");
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("it says where");
        let address = line.trim().rsplit("http://").next().expect("an address").to_owned();
        Self { child, address }
    }

    /// Asks with a history; returns the status and the answer's text.
    fn ask(&self, session: &str, messages: &[Value]) -> (u16, String) {
        let asked = json!({
            "model": "m",
            "messages": messages,
            // Without tools, a lone question would not be recorded.
            "tools": [{"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}],
        })
        .to_string();
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        write!(
            stream,
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\nx-plimsoll-session: {session}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{asked}",
            self.address,
            asked.len()
        )
        .expect("sent");
        let (head, answer) = body(&mut BufReader::new(stream)).expect("an answer");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("one");
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let said = answer["choices"][0]["message"]["content"].as_str().unwrap_or_default();
        (status, said.to_owned())
    }
}

fn message(role: &str, text: &str) -> Value {
    json!({"role": role, "content": text})
}

/// Returns the texts of each session in the store whose name begins so.
fn stored(folder: &TempDir, store: &str, name: &str) -> Vec<(String, Vec<String>)> {
    let output = plimsoll(folder, store).args(["tenant", "export", "local"]).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut sessions: Vec<(String, Vec<String>)> = Vec::new();
    for line in String::from_utf8(output.stdout).expect("UTF-8").lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let session = line["record"]["session"].as_str().unwrap_or_default();
        if line["kind"] != "message" || !session.contains(name) {
            continue;
        }
        let text = line["record"]["message"].to_string();
        match sessions.iter_mut().find(|(known, _)| known == session) {
            Some((_, texts)) => texts.push(text),
            None => sessions.push((session.to_owned(), vec![text])),
        }
    }
    sessions
}

/// Fails unless each text stands in the store, and in no session twice.
fn check(folder: &TempDir, store: &str, name: &str, texts: &[String]) {
    let sessions = stored(folder, store, name);
    for text in texts {
        let quoted = format!("\"{text}\"");
        let counts: Vec<usize> = sessions
            .iter()
            .map(|(_, kept)| kept.iter().filter(|kept| kept.contains(&quoted)).count())
            .collect();
        assert!(counts.contains(&1), "{store}: `{text}` is lost: {sessions:?}");
        assert!(
            counts.iter().all(|count| *count <= 1),
            "{store}: `{text}` stands twice: {sessions:?}"
        );
    }
}

/// The stores that several processes can open: a file, and a server if a variable names one.
fn stores(folder: &TempDir) -> Vec<String> {
    let file = folder.path().join("shared.db").display().to_string();
    let server = std::env::vars().find(|(name, _)| name == "PLIMSOLL_TEST_POSTGRES");
    [Some(file), server.map(|(_, address)| address)].into_iter().flatten().collect()
}

fn settings(folder: &TempDir) {
    let text = format!("[gateway.upstreams.openai]\nbase_url = \"{}\"\n", upstream());
    std::fs::write(folder.path().join("plimsoll.toml"), text).expect("written");
    let trust = plimsoll(folder, "unused.db").arg("trust").output().expect("it runs");
    assert!(trust.status.success());
}

#[test]
fn a_session_that_goes_through_two_gateways_by_turns_is_one_session() {
    let folder = TempDir::new().expect("a folder");
    settings(&folder);
    for store in stores(&folder) {
        let gateways = [Served::start(&folder, &store), Served::start(&folder, &store)];
        let name = format!("turns-{}", std::process::id());
        let (mut history, mut texts) = (Vec::new(), Vec::new());
        for turn in 0..12 {
            let asked = format!("question {turn}");
            history.push(message("user", &asked));
            let (status, said) = gateways[turn % 2].ask(&name, &history);
            assert_eq!((status, said.as_str()), (200, &*format!("re: {asked}")), "{store} {turn}");
            history.push(message("assistant", &said));
            texts.extend([asked, said]);
        }
        check(&folder, &store, &name, &texts);
        let sessions = stored(&folder, &store, &name);
        assert_eq!(sessions.len(), 1, "no branch: {sessions:?}");
        assert_eq!(sessions[0].1.len(), history.len(), "{sessions:?}");
    }
}

#[test]
fn a_session_that_goes_through_two_gateways_at_once_loses_nothing() {
    let folder = TempDir::new().expect("a folder");
    settings(&folder);
    for store in stores(&folder) {
        let gateways = [Served::start(&folder, &store), Served::start(&folder, &store)];
        let name = format!("once-{}", std::process::id());
        let (mut history, mut texts) = (Vec::new(), Vec::new());
        for round in 0..12 {
            // By turns: other questions behind the same history, and the same question.
            let asked = [0, 1].map(|side| match round % 3 {
                0 => format!("the same question {round}"),
                _ => format!("question {round} of {side}"),
            });
            let start = Barrier::new(2);
            let answers = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..2)
                    .map(|side| {
                        let mut history = history.clone();
                        history.push(message("user", &asked[side]));
                        let (gateway, name, start) = (&gateways[side], &name, &start);
                        scope.spawn(move || {
                            start.wait();
                            gateway.ask(name, &history)
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().expect("asked")).collect::<Vec<_>>()
            });
            for (asked, (status, said)) in asked.iter().zip(&answers) {
                assert_eq!((*status, said), (200, &format!("re: {asked}")), "{store} {round}");
                texts.extend([asked.clone(), said.clone()]);
            }
            // One of the two goes on, from the one side or the other.
            let side = round % 2;
            history.push(message("user", &asked[side]));
            history.push(message("assistant", &answers[side].1));
        }
        check(&folder, &store, &name, &texts);
        // One session has all the conversations that went on, in order.
        let expected: Vec<String> = history
            .iter()
            .map(|message| format!("\"{}\"", message["content"].as_str().unwrap_or("")))
            .collect();
        let sessions = stored(&folder, &store, &name);
        let is_whole = sessions.iter().any(|(_, kept)| {
            kept.len() == expected.len()
                && kept.iter().zip(&expected).all(|(kept, expected)| kept.contains(expected))
        });
        assert!(is_whole, "{store}: {sessions:?}");
    }
}
