//! The README's examples, run as they stand there.

use std::path::Path;

use crate::environment::Environment;

const README: &str = include_str!("../../../../README.md");

/// Returns the README's fenced blocks of a language, the empty one included.
fn blocks(language: &str) -> Vec<&'static str> {
    let mut parts = README.split("```");
    let mut found = Vec::new();
    parts.next();
    while let (Some(block), Some(_)) = (parts.next(), parts.next()) {
        let (name, text) = block.split_once('\n').unwrap_or((block, ""));
        if name == language {
            found.push(text);
        }
    }
    found
}

/// Splits a line as a shell does, as far as double quotes.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').enumerate().flat_map(|(at, part)| -> Vec<&str> {
        if at % 2 == 1 { vec![part] } else { part.split_whitespace().collect() }
    })
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn every_example_runs() {
    let environment = Environment::new();
    let example = repository().join("examples/session.jsonl");
    let recorded = std::fs::read(&example).expect("the example is shipped");
    environment.write_home(".pi/agent/sessions/example/session.jsonl", recorded);
    for folder in ["examples", "examples/cascades"] {
        for entry in std::fs::read_dir(repository().join(folder)).expect("the examples") {
            let entry = entry.expect("an entry");
            if entry.path().is_file() {
                let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
                environment.write(&name, std::fs::read(entry.path()).expect("an example"));
            }
        }
    }
    let mut ran = 0;
    for line in blocks("").into_iter().flat_map(str::lines) {
        let command = line.split('#').next().unwrap_or("").trim();
        let arguments = command
            .strip_prefix("plimsoll ")
            .or_else(|| command.strip_prefix("cargo run --release --bin plimsoll -- "));
        // One line shows the reader's own sessions, which are not here.
        let Some(arguments) = arguments.filter(|arguments| !arguments.contains('~')) else {
            continue;
        };
        let words: Vec<&str> = words(arguments).collect();
        let output = environment.run(&words);
        assert_eq!(output.code, 0, "{command}\n{}", output.stderr);
        assert!(!(output.stdout + &output.stderr).is_empty(), "{command}");
        ran += 1;
    }
    assert!(ran >= 8, "{ran} examples were found");
}

#[test]
fn the_settings_shown_are_the_defaults() {
    let environment = Environment::new();
    let example = repository().join("examples/session.jsonl");
    let example = example.to_string_lossy();
    let settings = blocks("toml");
    environment.write("shown.toml", settings[0]);
    let replay = |arguments: &[&str]| {
        let mut all = vec!["replay", &*example, "--json", "--policy", "plimsoll"];
        all.extend(["--policy", "window", "--policy", "clear-tool-uses", "--policy", "newest"]);
        all.extend(arguments);
        let output = environment.run(&all);
        assert_eq!(output.code, 0, "{}", output.stderr);
        output.stdout
    };
    assert_eq!(replay(&[]), replay(&["--config", "shown.toml"]));
    let dialogue = repository().join("examples/dialogue.jsonl");
    environment.data(&["import", &dialogue.to_string_lossy(), "--store", "talks.db"]);
    let recall = |more: &[&str]| {
        let query = ["recall", "--store", "talks.db", "--query", "Which boat?", "--explain"];
        environment.data(&[&query, more].concat())
    };
    assert_eq!(recall(&[]), recall(&["--config", "shown.toml"]));
}

#[test]
fn the_readme_installs_first() {
    let first = README.split("```").nth(1).expect("a block");
    assert_eq!(first.trim(), "cargo install --locked --path crates/cli");
}

/// Returns the commands of a page's blocks for shells, each as the words behind `plimsoll`.
fn shown(page: &str) -> Vec<Vec<String>> {
    let blocks = page.split("```").skip(1).step_by(2);
    let blocks = blocks.filter(|block| block.starts_with("sh\n") || block.starts_with('\n'));
    let lines = blocks.flat_map(str::lines).map(|line| line.split(" #").next().unwrap_or(line));
    let commands = lines.filter_map(|line| line.trim().strip_prefix("plimsoll "));
    // What stands behind `--` is another program's.
    let own = commands.map(|command| command.split(" -- ").next().unwrap_or(command));
    own.map(|command| words(command).map(str::to_owned).collect()).collect()
}

#[test]
fn every_command_and_flag_that_a_page_shows_exists() {
    let environment = Environment::new();
    let docs = std::fs::read_dir(repository().join("docs")).expect("the pages").flatten();
    let pages = docs.map(|entry| entry.path());
    let mut checked = 0;
    for page in pages.chain([repository().join("README.md")]) {
        let Ok(text) = std::fs::read_to_string(&page) else { continue };
        for command in shown(&text) {
            let names: Vec<&str> = command.iter().map(String::as_str).collect();
            let end = names.iter().position(|word| {
                !word.chars().all(|c| c.is_ascii_lowercase() || c == '-') || word.starts_with('-')
            });
            // A command, and perhaps one of its own.
            let mut depth = end.unwrap_or(names.len()).min(2);
            let help = loop {
                let asked = [&names[..depth], &["--help"]].concat();
                let ran = environment.run(&asked);
                if ran.code == 0 || depth == 1 {
                    break ran;
                }
                depth -= 1;
            };
            let told = format!("{}: plimsoll {}", page.display(), names.join(" "));
            assert_eq!(help.code, 0, "{told}\n{}", help.stderr);
            for flag in names.iter().filter(|word| word.starts_with("--") && word.len() > 2) {
                let flag = flag.trim_start_matches('[').split(['=', ']']).next().unwrap_or(flag);
                assert!(help.stdout.contains(flag), "{told}: no {flag}");
            }
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked} commands were found");
}
