//! `serve`, `env`, `run-agent` and `doctor`, as programs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

fn plimsoll(folder: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command.current_dir(folder.path()).env("PLIMSOLL_STORE", folder.path().join("kept.db"));
    command.env("XDG_CONFIG_HOME", folder.path()).env("HOME", folder.path());
    command.env_remove("PLIMSOLL_LOG").env_remove("PLIMSOLL_BUDGET");
    command
}

/// The same behind commands of a shell.
#[cfg(unix)]
fn shell(folder: &TempDir, before: &str, arguments: &str) -> Command {
    let command = plimsoll(folder);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{before} exec \"$0\" {arguments}")]).arg(command.get_program());
    shell.current_dir(folder.path());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

/// An upstream that answers every request of chat completions alike.
fn upstream() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = answer(stream);
        }
    });
    format!("http://{address}/v1")
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut asked = vec![0; length];
    reader.read_exact(&mut asked)?;
    // The answer says whether what is known came along.
    let asked = String::from_utf8_lossy(&asked);
    let said = if asked.contains("berth 14") { "you have berth 14" } else { "hello" };
    let body = r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"SAID"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}"#;
    let body = body.replace("SAID", said);
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn settings(folder: &TempDir, upstream: &str) {
    let text = format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\n\n[gateway.upstreams.openai]\nbase_url = \"{upstream}\"\n"
    );
    std::fs::write(folder.path().join("plimsoll.toml"), text).expect("written");
    trust(folder);
}

/// Trusts the settings, as a user does who wrote them.
fn trust(folder: &TempDir) {
    assert!(plimsoll(folder).arg("trust").output().expect("it runs").status.success());
}

const BODY: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"t","parameters":{"type":"object"}}}]}"#;

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

impl Served {
    /// Starts a gateway.
    fn start(folder: &TempDir, told: Stdio) -> Self {
        let mut command = plimsoll(folder);
        command.arg("serve").stderr(told);
        Self::run(command)
    }

    /// Starts a gateway by a command of its own.
    fn run(mut command: Command) -> Self {
        let child = command.stdout(Stdio::piped()).spawn();
        let mut served = Self { child: child.expect("it starts"), address: String::new() };
        let mut line = String::new();
        let out = served.child.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("plimsoll listens on http://");
        address.expect("an address").clone_into(&mut served.address);
        served
    }

    /// Returns what it answers to a GET.
    fn text(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let host = &self.address;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")
            .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    /// Returns what it answers to a request.
    fn ask(&self, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        write!(
            stream,
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }
}

/// Returns the body that a gateway answers to a GET.
fn get(served: &Served, path: &str) -> serde_json::Value {
    let answer = served.text(path);
    let body = answer.split_once("\r\n\r\n").expect("a head").1;
    serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
}

#[test]
fn a_session_that_went_through_is_shown_as_it_was_sent() {
    let folder = TempDir::new().expect("a folder");
    settings(&folder, &upstream());
    let (gateway, answer) = served(&folder, BODY);
    let id = answer.lines().find_map(|line| line.strip_prefix("x-plimsoll-session: "));
    let id = id.expect("a session").trim().to_owned();
    let session = get(&gateway, &format!("/api/v1/sessions/{id}"));
    assert_eq!((&session["title"], &session["messages"]), (&"hi".into(), &2.into()), "{session}");
    let turns = get(&gateway, &format!("/api/v1/sessions/{id}/turns"));
    assert_eq!(turns["basis"], "recorded", "{turns}");
    let turn = &turns["items"][0];
    assert_eq!((&turn["was_sent"], &turn["model"]), (&true.into(), &"m".into()), "{turn}");
    assert_eq!(turn["tokens"], turn["full_tokens"], "{turn}");
    assert!(turn["bill"]["billed"].as_f64().is_some_and(|billed| billed > 0.0), "{turn}");
    let first = get(&gateway, &format!("/api/v1/sessions/{id}/turns/0"));
    assert_eq!(first["items"][0]["said"], "hi", "{first}");
}

/// Starts a gateway and returns it with what it answers to a request.
fn served(folder: &TempDir, body: &str) -> (Served, String) {
    served_telling(folder, body, Stdio::null())
}

fn served_telling(folder: &TempDir, body: &str, told: Stdio) -> (Served, String) {
    let served = Served::start(folder, told);
    let answer = served.ask(body);
    (served, answer)
}

/// Adds to the settings.
fn set(folder: &TempDir, more: &str) {
    let file = folder.path().join("plimsoll.toml");
    let text = std::fs::read_to_string(&file).expect("the settings");
    std::fs::write(&file, format!("{text}\n{more}\n")).expect("written");
    trust(folder);
}

#[test]
fn a_question_is_asked_once_where_answers_are_kept() {
    let folder = TempDir::new().expect("a folder");
    settings(&folder, &upstream());
    let question =
        r#"{"model":"m","messages":[{"role":"user","content":"How do I bake a loaf of bread?"}]}"#;
    let (gateway, _) = served(&folder, question);
    assert!(!gateway.ask(question).contains("x-plimsoll-outcome: cached"), "off until asked for");
    drop(gateway);

    set(&folder, "[gateway.add]\nanswers = true\n\n[answers]\nsimilar = true");
    let (gateway, first) = served(&folder, question);
    assert!(first.contains("x-plimsoll-outcome: untouched"), "{first}");
    let again = gateway.ask(question);
    assert!(again.contains("x-plimsoll-outcome: cached") && again.contains("hello"), "{again}");
    assert!(again.contains("\"total_tokens\":0"), "{again}");
    let alike = gateway.ask(&question.replace("a loaf", "the loaf"));
    assert!(alike.contains("x-plimsoll-outcome: cached"), "{alike}");
    let other = gateway.ask(&question.replace("a loaf", "two loaves"));
    assert!(other.contains("x-plimsoll-outcome: untouched"), "{other}");
    drop(gateway);

    // It outlives the process, is seen, and can be taken back.
    let (gateway, again) = served(&folder, question);
    assert!(again.contains("x-plimsoll-outcome: cached"), "{again}");
    let key = again.lines().find_map(|line| line.strip_prefix("x-plimsoll-answer-key: "));
    let key = key.expect("a key").trim().to_owned();
    let evict = plimsoll(&folder).args(["cache", "evict", &key]).output().expect("it runs");
    assert!(evict.status.success(), "{}", String::from_utf8_lossy(&evict.stderr));
    let gone = gateway.ask(question);
    assert!(gone.contains("x-plimsoll-outcome: untouched"), "{gone}");
    drop(gateway);

    set(&folder, "policy_version = 2");
    let (_gateway, anew) = served(&folder, question);
    assert!(anew.contains("x-plimsoll-outcome: untouched"), "{anew}");
}

#[test]
fn large_tools_wait_where_that_is_asked_for() {
    let folder = TempDir::new().expect("a folder");
    settings(&folder, &upstream());
    // The upstream tells whether it reads of berth 14.
    let long = "Where the boat lies, at berth 14 as a rule. ".repeat(80);
    let tool = format!(
        r#""tools":[{{"type":"function","function":{{"name":"t","parameters":{{"type":"object","properties":{{"a":{{"type":"string","description":"{long}"}}}}}}}}}}]"#
    );
    let body = format!(
        "{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}}],{tool}}}"
    );
    let (gateway, whole) = served(&folder, &body);
    assert!(whole.contains("you have berth 14"), "{whole}");
    drop(gateway);
    set(&folder, "[gateway.add]\nlazy_tools = true");
    let (gateway, few) = served(&folder, &body);
    assert!(few.contains("you have berth 14"), "one tool saves less than a question costs: {few}");
    drop(gateway);
    set(&folder, "[lazy_tools]\nleast_saved = 0");
    let (gateway, outlined) = served(&folder, &body);
    assert!(outlined.contains("hello"), "{outlined}");
    drop(gateway);
    set(&folder, "always = [\"t\"]");
    let (_gateway, always) = served(&folder, &body);
    assert!(always.contains("you have berth 14"), "{always}");
}

#[test]
fn what_is_known_comes_along_where_it_is_asked_for() {
    let folder = TempDir::new().expect("a folder");
    settings(&folder, &upstream());
    let add = ["memory", "add", "fact", "The boat lies at berth 14"];
    assert!(plimsoll(&folder).args(add).output().expect("it runs").status.success());
    let body = BODY.replace("hi", "Where does the boat lie?");
    let (gateway, without) = served(&folder, &body);
    assert!(without.contains("hello"), "{without}");
    drop(gateway);
    set(&folder, "[gateway.add]\nmemory = true");
    let (gateway, again) = served(&folder, &body);
    assert!(again.contains("hello"), "the same request again has the same bytes: {again}");
    let with = gateway.ask(&body.replace("the boat", "our boat"));
    assert!(with.contains("you have berth 14"), "{with}");
}

#[test]
fn log_lines_are_json_where_that_is_asked_for() {
    for asked in [false, true] {
        let folder = TempDir::new().expect("a folder");
        // Nobody answers, which is told in the log.
        settings(&folder, "http://127.0.0.1:9/v1");
        let file = folder.path().join("plimsoll.toml");
        let text = std::fs::read_to_string(&file).expect("the settings");
        let text = text.replace("[gateway]\n", &format!("[gateway]\nlog_json = {asked}\n"));
        std::fs::write(&file, text).expect("written");
        trust(&folder);
        let told = std::fs::File::create(folder.path().join("told")).expect("a file");
        let (gateway, answer) = served_telling(&folder, BODY, told.into());
        assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
        drop(gateway);
        let told = std::fs::read_to_string(folder.path().join("told")).expect("a log");
        let line = told.lines().find(|line| line.contains("unreachable")).expect("a line");
        let read = serde_json::from_str::<serde_json::Value>(line);
        assert_eq!(read.is_ok_and(|line| line["fields"]["why"] == "unreachable"), asked, "{line}");
    }
}

#[test]
fn a_gateway_serves_and_keeps_what_was_said() {
    let folder = TempDir::new().expect("a folder");
    settings(&folder, &upstream());
    let (served, answer) = served(&folder, BODY);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("}}"), "{answer}");
    // So small a request gets no tools of ours, and nothing of it is said twice.
    assert!(answer.contains("x-plimsoll-outcome: untouched"), "{answer}");
    drop(served);
    let found = plimsoll(&folder).args(["search", "hello", "--json"]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&found.stdout).contains("hello"));
}

#[cfg(unix)]
#[test]
fn a_store_that_was_deleted_is_told_and_taken_again_when_it_is_back() {
    let folder = TempDir::new().expect("a folder");
    settings(&folder, &upstream());
    let (served, _) = served(&folder, BODY);
    let ready = || served.text("/readyz");
    assert!(ready().ends_with("\r\n\r\nready\n"), "{}", ready());
    let (path, away) = (folder.path().join("kept.db"), folder.path().join("away.db"));
    std::fs::rename(&path, &away).expect("moved");
    assert!(ready().ends_with("ready, but the store does not answer\n"), "{}", ready());
    let answer = served.ask(&BODY.replace("hi", "a second question"));
    assert!(answer.contains("200 OK") && answer.contains("hello"), "{answer}");
    // Whose session cannot be read goes out as it came, and says so.
    assert!(answer.contains("x-plimsoll-outcome: failed_open"), "{answer}");
    assert!(!path.exists());
    std::fs::rename(&away, &path).expect("moved back");
    while !ready().ends_with("\r\n\r\nready\n") {}
    served.ask(&BODY.replace("hi", "a third question"));
    drop(served);
    let log = plimsoll(&folder).args(["log", "--json"]).output().expect("it runs");
    let shown = String::from_utf8_lossy(&log.stdout);
    let messages = shown.matches("\"node_type\": \"message\"").count();
    assert_eq!(messages, 4, "the first and the third question with their answers: {shown}");
}

#[test]
fn a_client_runs_behind_a_gateway_and_its_status_is_ours() {
    let folder = TempDir::new().expect("a folder");
    settings(&folder, &upstream());
    // A shell that asks once, by what its environment says, and ends as it likes.
    let script = format!(
        "address=${{OPENAI_BASE_URL#http://}}; address=${{address%/v1}}; exec 3<>/dev/tcp/${{address%:*}}/${{address#*:}}; \
         printf 'POST /v1/chat/completions HTTP/1.1\\r\\nhost: %s\\r\\nconnection: close\\r\\ncontent-length: {}\\r\\n\\r\\n%s' \
         \"$address\" '{BODY}' >&3; cat <&3; exit 7",
        BODY.len()
    );
    let output = plimsoll(&folder).args(["run-agent", "--", "bash", "-c", &script]).output();
    let output = output.expect("it runs");
    let (out, told) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains("hello"), "{out} {told}");
    assert_eq!(output.status.code(), Some(7));
    assert!(told.contains("plimsoll: 1 turns;"), "{told}");
    // Nobody lists the model `m`: its bill is an estimate, and one line says why.
    assert_eq!(told.matches("warning: no price is known for `m`").count(), 1, "{told}");
    assert!(told.contains("input billed ~$"), "{told}");
}

#[test]
fn a_model_without_a_price_is_logged_once() {
    let folder = TempDir::new().expect("a folder");
    settings(&folder, &upstream());
    let told = std::fs::File::create(folder.path().join("told")).expect("a file");
    let (gateway, _) = served_telling(&folder, BODY, told.into());
    gateway.ask(BODY);
    gateway.ask(&BODY.replace("\"m\"", "\"gpt-5.4\""));
    gateway.ask(&BODY.replace("\"m\"", "\"novel\""));
    drop(gateway);
    let told = std::fs::read_to_string(folder.path().join("told")).expect("a log");
    let warned = |model: &str| told.matches(&format!("no price is known for `{model}`")).count();
    assert_eq!((warned("m"), warned("gpt-5.4"), warned("novel")), (1, 0, 1), "{told}");
}

#[test]
fn each_client_is_told_what_it_needs() {
    let folder = TempDir::new().expect("a folder");
    for (client, expected) in [
        ("claude", "export ANTHROPIC_BASE_URL='http://127.0.0.1:7433'"),
        ("codex", "export OPENAI_BASE_URL='http://127.0.0.1:7433/v1'"),
        ("qwen", "export OPENAI_BASE_URL='http://127.0.0.1:7433/v1'"),
        ("gemini", "export GOOGLE_GEMINI_BASE_URL='http://127.0.0.1:7433'"),
        ("opencode", "\"baseURL\":\"http://127.0.0.1:7433/v1\""),
        ("pi", "# ~/.pi/agent/models.json"),
    ] {
        let output = plimsoll(&folder).args(["env", client]).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains(expected), "{client}: {text}");
    }
    let other = ["env", "claude", "--listen", "127.0.0.1:1"];
    let output = plimsoll(&folder).args(other).output().expect("it runs");
    assert!(String::from_utf8_lossy(&output.stdout).contains("http://127.0.0.1:1'"));
}

#[test]
fn the_doctor_says_what_is_in_the_way() {
    let folder = TempDir::new().expect("a folder");
    settings(&folder, "http://127.0.0.1:9");
    let doctor = |arguments: &[&str]| {
        let output = plimsoll(&folder).arg("doctor").args(arguments).output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, text) = doctor(&["--offline"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("store") && text.contains("not there yet"), "{text}");
    assert!(text.contains("`plimsoll serve` takes them"), "{text}");
    std::fs::write(
        folder.path().join("plimsoll.toml"),
        "[gateway]\nlisten = \"0.0.0.0:7433\"\npolicy = \"no\"\n",
    )
    .expect("written");
    trust(&folder);
    let (code, text) = doctor(&["--offline", "--json"]);
    let serve = plimsoll(&folder).arg("serve").output().expect("it ends");
    assert!(
        !serve.status.success() && serve.stdout.is_empty(),
        "it says nothing before it refuses"
    );
    assert_eq!(code, Some(1));
    assert!(text.contains("there are no keys") && text.contains("unknown policy"), "{text}");
}

#[test]
fn what_serve_would_refuse_the_doctor_finds() {
    for (more, told) in [
        ("[gateway.upstreams.x]\nbase_url = \"http://u\"\nkey_env = \"NOT_SET\"", "NOT_SET"),
        ("[gateway.upstreams.x]\nbase_url = \"ftp://u\"", "base_url"),
        ("[gateway.upstreams.x]\nbase_url = \"http://u\"\npaths = [\"files\"]", "is no path"),
        ("[gateway.keys.a]\nsha256 = \"abc\"", "SHA-256"),
        ("[gateway.upstreams.x]\nbase_url = \"http://u\"\nkey_env = \"EMPTY\"", "EMPTY is not set"),
        ("[gateway.upstreams.x]\nbase_url = \"http://127.0.0.1:0\"", "port 0"),
        ("[gateway.limits]\nconnections = 0", "`gateway.limits.connections` is 0"),
        ("[gateway.limits]\nheader_bytes = 0", "`gateway.limits.header_bytes` is 0"),
        ("[gateway.keep_warm]\nreturn_chance = 7.0", "`gateway.keep_warm.return_chance` is 7"),
        ("[gateway.keep_warm]\nmost_dollars = nan", "`gateway.keep_warm.most_dollars` is NaN"),
        ("[gateway.add]\ntools = -7", "`tools` is true, false or"),
    ] {
        let folder = TempDir::new().expect("a folder");
        settings(&folder, "http://127.0.0.1:9");
        set(&folder, more);
        for command in [&["doctor", "--offline"][..], &["serve"]] {
            let output = plimsoll(&folder).args(command).env("EMPTY", " ").output();
            let output = output.expect("it ends");
            assert!(!output.status.success(), "{more}");
            let all = [output.stdout, output.stderr].concat();
            assert!(String::from_utf8_lossy(&all).contains(told), "{command:?} {more}");
        }
    }
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("plimsoll.toml"), "budget = 10\n").expect("written");
    let output = plimsoll(&folder).arg("serve").output().expect("it ends");
    assert!(String::from_utf8_lossy(&output.stderr).contains("budget of 10"));
}

#[cfg(unix)]
#[test]
fn the_doctor_finds_places_where_no_store_can_be_made() {
    let folder = TempDir::new().expect("a folder");
    settings(&folder, "http://127.0.0.1:9");
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("file"), "").expect("written");
    std::os::unix::fs::symlink("loop.db", at("loop.db")).expect("a link");
    std::os::unix::fs::symlink("nothing.db", at("dangling.db")).expect("a link");
    let before = std::fs::read_dir(folder.path()).expect("a folder").count();
    let missing = ["file/x.db", "file/deep/x.db", "loop.db", "dangling.db"];
    for store in missing.into_iter().chain(cfg!(target_os = "linux").then_some("/proc/x.db")) {
        for command in [&["doctor", "--offline"][..], &["serve"]] {
            let output = plimsoll(&folder).args(command).args(["--store", store]).output();
            let output = output.expect("it ends");
            let all =
                String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert_eq!(output.status.code(), Some(1), "{command:?} {store}: {all}");
        }
    }
    let doctor =
        plimsoll(&folder).args(["doctor", "--offline", "--store", "new/deep/x.db"]).output();
    assert!(doctor.expect("it ends").status.success(), "folders are made with the store");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), before);
}

#[cfg(unix)]
#[test]
fn the_doctor_finds_a_store_that_cannot_be_written() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().expect("a folder");
    settings(&folder, "http://127.0.0.1:9");
    let doctor = |before: &str| {
        let output = shell(&folder, before, "doctor --offline").output().expect("it ends");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    // A limit of files stands for a disk that is full.
    let full = "ulimit -f 0;";
    let (code, text) = doctor(full);
    assert!(code == Some(1) && text.contains("cannot be written"), "{text}");
    assert!(!folder.path().join("kept.db").exists(), "a check makes nothing");
    drop(served(&folder, BODY));
    assert_eq!(doctor("").0, Some(0));
    let (code, text) = doctor(full);
    assert!(code == Some(1) && text.contains("cannot be written"), "{text}");
    let store = folder.path().join("kept.db");
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o444)).expect("changed");
    // The superuser may write it all the same.
    if std::fs::OpenOptions::new().write(true).open(&store).is_err() {
        let (code, text) = doctor("");
        assert!(code == Some(1) && text.contains("kept.db"), "{text}");
    }
}

#[test]
fn a_foreign_folders_settings_are_refused_by_what_sends() {
    let folder = TempDir::new().expect("a folder");
    let text = "[gateway.upstreams.openai]\nbase_url = \"http://127.0.0.1:9\"\nkey_env = \"GITHUB_TOKEN\"\n";
    std::fs::write(folder.path().join("plimsoll.toml"), text).expect("written");
    for command in [&["serve"][..], &["run-agent", "--", "true"], &["work", "--once"], &["models"]]
    {
        let output = plimsoll(&folder).args(command).output().expect("it ends");
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("not trusted") && told.contains("gateway.upstreams"), "{told}");
    }
}

#[test]
fn the_sdks_have_their_variables() {
    let folder = TempDir::new().expect("a folder");
    for (client, variable) in [("openai", "OPENAI_BASE_URL"), ("anthropic", "ANTHROPIC_BASE_URL")] {
        let output = plimsoll(&folder).args(["env", client]).output().expect("it runs");
        assert!(String::from_utf8_lossy(&output.stdout).contains(variable), "{client}");
    }
}

#[cfg(unix)]
#[test]
fn a_limit_of_file_sizes_is_a_store_that_takes_nothing() {
    let folder = TempDir::new().expect("a folder");
    settings(&folder, &upstream());
    drop(served(&folder, BODY));
    let mut command = shell(&folder, "ulimit -f 128;", "serve");
    command.stderr(Stdio::null());
    let gateway = Served::run(command);
    // Texts are stored compressed, so these are digits that repeat nothing.
    let digits = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string();
    let long = BODY.replace("hi", &(1..50_000).map(digits).collect::<String>());
    let answer = gateway.ask(&long);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("hello"), "{answer}");
    assert!(gateway.text("/healthz").starts_with("HTTP/1.1 200"), "it still serves");
    let ready = gateway.text("/readyz");
    assert!(ready.contains("the history is behind"), "{answer:.800} {ready}");
}

#[cfg(unix)]
#[test]
fn signals_to_run_agent_end_the_client_and_then_itself() {
    use std::os::unix::process::CommandExt as _;

    use rustix::process::{Pid, Signal, kill_process};
    let folder = TempDir::new().expect("a folder");
    settings(&folder, "http://127.0.0.1:9");
    for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM] {
        let mut command = plimsoll(&folder);
        command.args(["run-agent", "--", "sh", "-c", "echo ready; exec cat"]);
        // A group that is not in the foreground: no key of a terminal reaches it.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().expect("it starts");
        let input = child.stdin.take();
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        let id = Pid::from_raw(child.id().try_into().expect("an id")).expect("an id");
        kill_process(id, signal).expect("sent");
        // The client has it closed only when it has ended.
        let mut rest = String::new();
        out.read_to_string(&mut rest).expect("its end");
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(128 + signal.as_raw()), "{signal:?}");
        drop(input);
    }
}
