//! The files of a release beside the binary: manual pages, completions, an archive, an image.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::environment::Environment;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A command with its help.
struct Documented {
    words: Vec<String>,
    help: String,
}

/// Returns all commands by their help, the program itself first.
fn commands(environment: &Environment) -> Vec<Documented> {
    let mut found = Vec::new();
    let mut waiting = vec![Vec::<String>::new()];
    while let Some(words) = waiting.pop() {
        let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        arguments.push("--help");
        let help = environment.data(&arguments);
        let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
        let listed = listed.take_while(|line| line.starts_with("  "));
        let names = listed.filter(|line| !line.starts_with("   "));
        let names = names.filter_map(|line| line.split_whitespace().next());
        for name in names.filter(|name| *name != "help") {
            waiting.push(words.iter().cloned().chain([name.to_owned()]).collect());
        }
        found.push(Documented { words, help });
    }
    found
}

/// Returns the long flags that a help text lists.
fn flags(help: &str) -> BTreeSet<String> {
    let lines = help.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix('-').is_some().then_some(line)
    });
    let words = lines.flat_map(|line| line.split([' ', ',', '=']).take(3));
    words.filter(|word| word.starts_with("--")).map(str::to_owned).collect()
}

#[test]
fn every_command_has_a_manual_page_with_its_flags_and_is_completed_in_every_shell() {
    let environment = Environment::new();
    environment.data(&["man", "man"]);
    let commands = commands(&environment);
    assert!(commands.len() > 60, "{} commands were found", commands.len());
    for Documented { words, help } in &commands {
        let name = ["plimsoll"].into_iter().chain(words.iter().map(String::as_str));
        let name = name.collect::<Vec<_>>().join("-");
        let page = environment.read(&format!("man/{name}.1")).replace('\\', "");
        for flag in flags(help) {
            assert!(page.contains(&flag), "{name}.1 has no {flag}");
        }
    }
    let pages = std::fs::read_dir(environment.work().join("man")).expect("the folder").count();
    assert_eq!(pages, commands.len());
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let text = environment.data(&["completions", shell]);
        for Documented { words, help } in &commands {
            for word in words {
                assert!(text.contains(word.as_str()), "{shell} does not complete `{word}`");
            }
            for flag in flags(help) {
                let name = flag.trim_start_matches('-');
                assert!(text.contains(name), "{shell} does not complete {flag} of {words:?}");
            }
        }
    }
}

#[test]
fn an_archive_holds_all_that_a_user_needs_and_is_the_same_each_time() {
    let environment = Environment::new();
    let pack = |folder: &str| {
        let out = environment.work().join(folder);
        let ran = Command::new(format!("{REPOSITORY}/scripts/dist"))
            .args(["--binary", env!("CARGO_BIN_EXE_plimsoll"), "--out"])
            .arg(&out)
            .output()
            .expect("the script runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let entries = std::fs::read_dir(&out).expect("the folder").flatten();
        let names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        let sum = names.iter().find(|name| name.ends_with(".sha256")).expect("a sum");
        let sum = environment.read(&format!("{folder}/{sum}"));
        let archive = sum.split_whitespace().nth(1).expect("a name").to_owned();
        (out.join(archive), sum)
    };
    let (archive, sum) = pack("one");
    assert_eq!(pack("two").1, sum, "the same input gives the same bytes");
    let listed = Command::new("tar").arg("tzf").arg(&archive).output().expect("tar");
    let listed = String::from_utf8(listed.stdout).expect("names");
    for name in [
        "/plimsoll\n",
        "/README.md",
        "/LICENSE-MIT",
        "/LICENSE-APACHE",
        "/NOTICE",
        "/man/plimsoll.1",
        "/man/plimsoll-replay.1",
        "/completions/plimsoll.bash",
        "/completions/plimsoll.zsh",
        "/completions/plimsoll.fish",
    ] {
        assert!(listed.contains(name), "{name} is missing in\n{listed}");
    }
}

#[test]
fn a_container_is_healthy_while_its_gateway_answers() {
    let environment = Environment::new();
    let mut command = environment.command(&["serve", "--listen", "127.0.0.1:0"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.expect("the binary starts");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    out.read_line(&mut line).expect("it says where it listens");
    let address = line.trim().rsplit('/').next().expect("an address");
    environment.write("plimsoll.toml", format!("[gateway]\nlisten = \"{address}\"\n"));
    let told = environment.data(&["doctor", "--running"]);
    assert!(told.contains(&format!("it answers on {address}")), "{told}");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let ran = environment.run(&["doctor", "--running"]);
    assert_eq!((ran.code, &*ran.stderr), (1, &*format!("note: no gateway answers on {address}\n")));
}

#[test]
fn the_image_runs_without_rights_and_checks_its_health() {
    let file = Path::new(REPOSITORY).join("Dockerfile");
    let text = std::fs::read_to_string(file).expect("the Dockerfile");
    let last = text.rsplit("\nFROM ").next().expect("a stage");
    assert!(last.lines().next().is_some_and(|image| image.ends_with(":nonroot")), "{last}");
    let line = |word: &str| {
        let found = last.lines().find(|line| line.starts_with(word));
        found.unwrap_or_else(|| panic!("no {word}"))
    };
    let list = |line: &str| -> Vec<String> {
        let start = line.find('[').expect("a list");
        serde_json::from_str(&line[start..]).expect("a list of words")
    };
    assert_eq!(list(line("HEALTHCHECK")), ["plimsoll", "doctor", "--running"]);
    assert_eq!(list(line("ENTRYPOINT")), ["plimsoll"]);
    let environment = Environment::new();
    let arguments = list(line("CMD"));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran = environment.run(&arguments);
    // Reachable from elsewhere and without keys it must not start.
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("[gateway.keys]"), "{}", ran.stderr);
}
