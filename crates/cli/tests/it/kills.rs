//! Runs of cascades that are killed, and go on where their record ends.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::environment::Environment;

const KILLS: usize = 50;
/// Requests and calls of a run that nobody disturbs: three calls and an answer in each of two phases.
const REQUESTS: usize = 8;
const CALLS: usize = 6;

const CASCADE: &str = "
cascade_id: killed
phases:
  - {name: first, instructions: Do the first part., tackle: [look], rules: {max_turns: 9}}
  - {name: second, instructions: Do the second part., tackle: [look], rules: {max_turns: 9}}
";

/// A tool that counts its calls, and kills its caller in the call that the file `kill` names.
///
/// A call goes on after its caller was killed elsewhere, so the count is replaced whole.
const LOOK: &str = r#"n=$(cat count 2>/dev/null || echo 0); n=$((n + 1)); echo $n > count.$$ && mv count.$$ count
if [ "$(cat kill 2>/dev/null)" = "$n" ]; then rm kill; kill -9 $PPID; fi
printf 'what stands there'"#;

/// The moment at which a run is killed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Moment {
    /// While the model answers this request of the run.
    Asked(usize),
    /// As soon as the answer is sent.
    Answered(usize),
    /// While the tool runs, in this call of all calls.
    Called(usize),
}

/// The state of the server: the run that asks, the requests that it made, and when it is to be killed.
#[derive(Debug, Default)]
struct Asked {
    process: u32,
    requests: usize,
    moment: Option<Moment>,
}

/// A model on Chat Completions whose answer depends on the request alone.
fn serve(listener: TcpListener, asked: &Arc<Mutex<Asked>>) {
    let asked = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            answer(stream, &asked);
        }
    });
}

fn answer(mut stream: TcpStream, asked: &Mutex<Asked>) {
    let Some(body) = read(&stream) else { return };
    let mut asked = asked.lock().expect("no test panics with it");
    asked.requests += 1;
    if asked.moment == Some(Moment::Asked(asked.requests)) {
        kill(asked.process);
        return;
    }
    let text = reply(&body).to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
    let _ = write!(stream, "{head}content-length: {}\r\n\r\n{text}", text.len());
    let _ = stream.flush();
    if asked.moment == Some(Moment::Answered(asked.requests)) {
        kill(asked.process);
    }
}

/// Reads a request's body.
fn read(stream: &TcpStream) -> Option<Value> {
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// Calls the tool three times in each phase, then answers.
fn reply(body: &Value) -> Value {
    let messages = body["messages"].as_array().expect("messages");
    let results = messages.iter().filter(|message| message["role"] == "tool").count();
    let phase = if body.to_string().contains("second part") { 2 } else { 1 };
    let (message, reason) = if results < phase * CALLS / 2 {
        let function = json!({"name": "look", "arguments": format!("{{\"at\":{results}}}")});
        let call =
            json!({"id": format!("call_{results}"), "type": "function", "function": function});
        (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
    } else {
        (json!({"role": "assistant", "content": format!("Part {phase} is done.")}), "stop")
    };
    json!({
        "id": "r", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    })
}

fn kill(process: u32) {
    let killed = Command::new("kill").args(["-9", &process.to_string()]).status();
    assert!(killed.expect("kill runs").success());
}

/// Numbers that look random and are the same each time (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

#[cfg(unix)]
#[test]
fn a_killed_run_asks_nothing_again_that_it_has_an_answer_to() {
    let environment = Environment::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let asked = Arc::new(Mutex::new(Asked::default()));
    serve(listener, &asked);
    environment.write("c.yaml", CASCADE);
    environment.write("look.sh", LOOK);
    environment.write(
        "p.toml",
        format!(
            "[models.providers.up]\napi = \"chat\"\nbase_url = \"http://{address}/v1\"\n\
             [models.retries]\nattempts = 1\n[tools.commands.look]\ncommand = [\"sh\", \"look.sh\"]\n"
        ),
    );
    let run = |session: [&str; 2], moment: Option<Moment>| {
        let arguments =
            ["run", "c.yaml", "--model", "up/m", "--config", "p.toml", "--store", "k.db"];
        let mut state = asked.lock().expect("no test panics with it");
        let mut command = environment.command(&[&arguments[..], &session[..]].concat());
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("it starts");
        *state = Asked { process: child.id(), requests: 0, moment };
        drop(state);
        let output = child.wait_with_output().expect("it ends");
        let requests = asked.lock().expect("no test panics with it").requests;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr), requests)
    };
    let count = || environment.read("count").trim().parse::<usize>().expect("a number");
    let (is_ended, undisturbed, error, requests) = run(["--session", "whole"], None);
    assert!(is_ended, "{error}");
    assert_eq!((requests, count()), (REQUESTS, CALLS));

    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut kills, mut named) = (0, 0);
    for number in 0.. {
        if kills >= KILLS {
            break;
        }
        let session = format!("s{number}");
        environment.write("count", "0");
        let (mut asked_in_all, mut of_session, mut called) = (0, 0, 0);
        loop {
            // At most four kills of one session, so that it ends.
            let left = REQUESTS.saturating_sub(asked_in_all).max(1);
            let moment = (of_session < 4).then(|| match random.below(3) {
                0 => Moment::Asked(1 + random.below(left)),
                1 => Moment::Answered(1 + random.below(left)),
                _ => Moment::Called(count() + 1 + random.below(3)),
            });
            if let Some(Moment::Called(call)) = moment {
                environment.write("kill", call.to_string());
            }
            let option = if of_session == 0 { "--session" } else { "--resume" };
            let was_called = std::mem::take(&mut called);
            let (is_ended, output, error, requests) = run([option, &session], moment);
            asked_in_all += requests;
            if was_called > 0 {
                assert!(error.contains("`look` may have run already"), "{error}");
                named += 1;
            }
            let _ = std::fs::remove_file(environment.work().join("kill"));
            if is_ended {
                assert_eq!(output, undisturbed, "{session}");
                break;
            }
            assert!(
                moment.is_some() && error.lines().all(|line| !line.starts_with("error")),
                "{error}"
            );
            called = usize::from(matches!(moment, Some(Moment::Called(_))));
            of_session += 1;
            kills += 1;
        }
        // Each kill may lose the one answer, and the one result, that was on its way.
        assert!(
            asked_in_all <= REQUESTS + of_session && count() <= CALLS + of_session,
            "{session}: {asked_in_all} requests and {} calls after {of_session} kills",
            count()
        );
    }
    assert!(named > 0, "no tool was in flight in {kills} kills");
}
