//! `plimsoll run`: the examples, what they save, and runs that stop.

use serde_json::Value;

use crate::environment::Environment;

/// An environment with the example cascades where the README has them.
fn examples() -> Environment {
    let environment = Environment::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/cascades");
    for entry in std::fs::read_dir(folder).expect("the examples") {
        let entry = entry.expect("an entry");
        let name = format!("examples/cascades/{}", entry.file_name().to_string_lossy());
        environment.write(&name, std::fs::read(entry.path()).expect("an example"));
    }
    environment
}

fn arguments<'a>(file: &'a str, script: &'a str, session: &'a [&'a str]) -> Vec<&'a str> {
    let config = "examples/cascades/plimsoll.toml";
    let mut all = vec!["run", file, "--model", script, "--config", config, "--store", "runs.db"];
    all.extend(session);
    all
}

/// Runs an example and returns the totals of its account.
fn totals(environment: &Environment, name: &str) -> [f64; 4] {
    let file = format!("examples/cascades/{name}.yaml");
    let script = format!("scripted:examples/cascades/{name}.script.jsonl");
    let events = environment.data(&arguments(&file, &script, &["--json"]));
    let account: Value =
        serde_json::from_str(events.lines().last().expect("an account")).expect("JSON");
    ["sent_tokens", "full_tokens", "cost", "full_cost"]
        .map(|key| account["total"][key].as_f64().expect("a number"))
}

#[test]
fn the_three_examples_save_what_they_promise_and_cost_no_more() {
    let environment = examples();
    for (name, least) in [("research", 0.62), ("loop", 0.80), ("soundings", 0.70)] {
        let [sent, full, cost, full_cost] = totals(&environment, name);
        let saved = 1.0 - sent / full;
        assert!(saved >= least, "{name} saves {saved:.2}");
        assert!(cost <= full_cost, "{name} costs {cost} and not {full_cost}");
    }
}

#[test]
fn without_a_ceiling_short_phases_are_left_as_they_are() {
    let environment = examples();
    let example = environment.read("examples/cascades/research.yaml");
    let lines = example.lines().filter(|line| !line.starts_with("token_budget"));
    let free = lines.collect::<Vec<_>>().join("\n");
    assert_ne!(free, example);
    environment.write("examples/cascades/research.yaml", free);
    let [sent, full, cost, full_cost] = totals(&environment, "research");
    // Sixteen turns are too few: what an excerpt hides may be needed again, and the break has to pay back.
    assert_eq!((sent, cost), (full, full_cost));
}

#[test]
fn a_run_that_stopped_goes_on_where_its_record_ends() {
    let environment = examples();
    let file = "examples/cascades/research.yaml";
    let whole = environment.read("examples/cascades/research.script.jsonl");
    let half = whole.lines().take(8).collect::<Vec<_>>().join("\n");
    environment.write("half.jsonl", half);
    let ran = environment.run(&arguments(file, "scripted:half.jsonl", &["--session", "s"]));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let error = ran.stderr.lines().last().expect("an error");
    assert!(error.contains("--resume s"), "{error}");
    let script = "scripted:examples/cascades/research.script.jsonl";
    let ended = environment.run(&arguments(file, script, &["--resume", "s"])).stdout;
    let undisturbed = environment.run(&arguments(file, script, &["--session", "t"])).stdout;
    assert!(!ended.is_empty());
    assert_eq!(ended, undisturbed);
    let messages = |session: &str| {
        let log = [
            "log",
            "--session",
            session,
            "--node-type",
            "message",
            "--store",
            "runs.db",
            "--limit",
            "1000",
        ];
        environment.json(&log).as_array().expect("rows").len()
    };
    assert_eq!(messages("s"), messages("t"));
}

#[test]
fn a_dry_run_shows_each_context_and_asks_nobody() {
    let environment = Environment::new();
    environment.write(
        "c.yaml",
        "cascade_id: c\nphases:\n  - {name: a, instructions: 'About {{ input.x }}.'}\n  - {name: b, instructions: B, context: {from: [a]}}\n",
    );
    let shown = environment.data(&["run", "c.yaml", "--input", r#"{"x": "tides"}"#, "--dry-run"]);
    insta::assert_snapshot!(shown, @r#"
    a 3 messages, 36 tokens
      user
        [Original Input]:
        {
          "x": "tides"
        }
      system
        About tides.
      user
        Carry out the phase `a`.

    b 4 messages, 47 tokens
      user
        [Original Input]:
        {
          "x": "tides"
        }
      user
        [Output from a]:
        (output of a)
      system
        B
      user
        Carry out the phase `b`.
    "#);
    assert_eq!(environment.files(), ["c.yaml"]);
}

#[test]
fn what_is_wrong_is_said_on_one_line_and_nothing_is_kept() {
    let environment = Environment::new();
    environment.write(
        "tools.yaml",
        "cascade_id: c\nphases: [{name: a, instructions: A, tackle: [fly]}]\n",
    );
    environment.write("fine.yaml", "cascade_id: c\nphases: [{name: a, instructions: A}]\n");
    environment.write(
        "out.yaml",
        "cascade_id: c\nphases: [{name: a, instructions: A, sub_cascades: ['../x.yaml']}]\n",
    );
    environment.write("bad.toml", "[tools.mcp.x]\ntimeout_seconds = 3\n");
    environment.write("s.jsonl", "{\"text\": \"x\", \"repeat\": true}\n");
    let script = ["--model", "scripted:s.jsonl", "--store", "kept.db"];
    for arguments in [
        &["run", "tools.yaml"][..],
        &["run", "out.yaml"],
        &["run", "fine.yaml", "--input", "[1]"],
        &["run", "fine.yaml", "--input", "@none.json"],
        &["run", "fine.yaml", "--config", "bad.toml"],
        &["run", "none.yaml"],
    ] {
        let ran = environment.run(&[arguments, &script].concat());
        assert_eq!(ran.code, 2, "{arguments:?} {}", ran.stderr);
        let errors = ran.stderr.lines().filter(|line| line.starts_with("error")).count();
        assert_eq!(errors, 1, "{arguments:?} {}", ran.stderr);
    }
    let ran = environment.run(&["run", "fine.yaml", "--store", "kept.db"]);
    assert!(ran.stderr.contains("no model is named"), "{}", ran.stderr);
    let kept = environment.json(&["log", "--store", "kept.db"]);
    assert_eq!(kept.as_array().map(Vec::len), Some(0), "{kept}");
}

#[test]
fn tools_that_nobody_has_can_be_stood_in_for() {
    let environment = Environment::new();
    environment.write(
        "c.yaml",
        "cascade_id: c\nphases: [{name: a, instructions: A, tackle: [fly], rules: {loop_until: judge}}]\n",
    );
    environment.write(
        "s.jsonl",
        "{\"calls\": [{\"name\": \"fly\"}]}\n{\"expect\": \"not available\", \"text\": \"done\"}\n",
    );
    let run =
        ["run", "c.yaml", "--model", "scripted:s.jsonl", "--stub-tools", "--store", "kept.db"];
    let ran = environment.run(&run);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "done\n"), "{}", ran.stderr);
}

#[test]
fn every_setting_of_a_run_changes_it() {
    let cascade = "cascade_id: c\nauto_context: {intra_phase: {window: 1, mask_observations_after: 1, cadence: every_turn}}\nphases:\n  - {name: a, instructions: A, tackle: [say]}\n  - {name: b, instructions: B, rules: {loop_until: no}, context: {mode: auto, selection: {strategy: llm}}}\n";
    let script = "{\"calls\": [{\"name\": \"say\"}]}\n{\"calls\": [{\"name\": \"say\"}]}\n{\"text\": \"a\", \"repeat\": true}\n";
    let say = r#"["seq", "1000", "1400"]"#;
    let run = |say: &str, settings: &str| {
        let environment = Environment::new();
        environment.write("c.yaml", cascade);
        environment.write("s.jsonl", script);
        let tools = format!(
            "[tools.commands.say]\ncommand = {say}\n[tools.commands.no]\ncommand = [\"printf\", '{{\"valid\": false, \"reason\": \"no\"}}']\n"
        );
        environment.write("p.toml", format!("{tools}[run]\n{settings}\n"));
        let ran = environment.run(&[
            "run",
            "c.yaml",
            "--model",
            "scripted:s.jsonl",
            "--config",
            "p.toml",
            "--store",
            "k.db",
            "--session",
            "s",
            "--json",
        ]);
        let refs = environment.json(&["ref", "list", "--store", "k.db"]);
        let refs = refs.as_array().expect("a list").len();
        format!("{} {} {refs}", ran.stdout, ran.stderr)
    };
    let usual = run(say, "");
    for setting in [
        "max_turns = 1",
        "max_attempts = 1",
        "artefact_from = 100000",
        "inter_phase_enabled = false",
        "intra_phase_enabled = false",
        "llm_selection_enabled = false",
    ] {
        assert_ne!(run(say, setting), usual, "{setting}");
    }
}

#[test]
fn recorded_cascades_run_to_their_end() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/cascades");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("skipped: there is no folder of recorded cascades");
        return;
    };
    let environment = Environment::new();
    environment.write("s.jsonl", "{\"text\": \"I am satisfied.\", \"repeat\": true}\n");
    let folder = folder.to_string_lossy().into_owned();
    for entry in entries {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        let input = r#"{"topic": "tides", "company": "Quay", "year": 2024, "task": "t", "theme": "sea", "problem": "p", "user_name": "Ada"}"#;
        let ran = environment.run(&["run", &path, "--dry-run", "--input", input]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        let run = [
            "run",
            &path,
            "--model",
            "scripted:s.jsonl",
            "--stub-tools",
            "--input",
            input,
            "--store",
            "k.db",
        ];
        let ran = environment.run(&run);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
    }
}

#[test]
fn sessions_that_are_not_there_or_in_use_are_refused_before_anything_is_asked() {
    let environment = examples();
    let file = "examples/cascades/loop.yaml";
    let script = "scripted:examples/cascades/loop.script.jsonl";
    let ran = environment.run(&arguments(file, script, &["--resume", "typo"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(ran.stderr, @"error: there is no record of the session typo; `plimsoll sessions` lists those in the store; `--session` begins a new one");
    let first = environment.run(&arguments(file, script, &["--session", "s"]));
    assert_eq!(first.code, 0, "{}", first.stderr);
    let ran = environment.run(&arguments(file, script, &["--session", "s"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(ran.stderr, @"error: the session s has a record already; `--resume s` goes on with it, another id begins anew");
}

#[test]
fn what_a_run_lacks_is_named_before_the_first_call() {
    let environment = Environment::new();
    environment.write(
        "c.yaml",
        "cascade_id: c\nphases:\n  - {name: a, instructions: A, model: nobody/m}\n  - {name: b, instructions: B, tackle: [fly], model: openai/gpt-4.1}\n",
    );
    let ran = environment.run(&["run", "c.yaml", "--store", "k.db"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(ran.stderr, @"error: phase `b` needs the tool `fly`, and no source has it, the nearest is `route_to`");
}

#[test]
fn models_are_given_by_phase_and_by_name() {
    let environment = Environment::new();
    environment.write(
        "c.yaml",
        "cascade_id: c\nphases:\n  - {name: a, instructions: A, model: openai/gpt-4.1}\n  - {name: b, instructions: B, model: old/m}\n",
    );
    environment.write("a.jsonl", "{\"text\": \"from a\"}\n");
    environment.write("b.jsonl", "{\"text\": \"from b\"}\n");
    environment.write("all.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
    let all =
        environment.run(&["run", "c.yaml", "--model", "scripted:all.jsonl", "--store", "k.db"]);
    assert_eq!((all.code, all.stdout.as_str()), (0, "two\n"), "{}", all.stderr);
    let ran = environment.run(&["run", "c.yaml", "--model-for", "nobody=m/x", "--store", "k.db"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    insta::assert_snapshot!(ran.stderr, @"error: `--model-for nobody`: the cascade has no such phase");
    let mapped = ["run", "c.yaml", "--model-map", "old/m=new/m", "--store", "k.db"];
    let ran = environment.run(&mapped);
    assert!(
        ran.code == 2 && ran.stderr.contains("new") && !ran.stderr.contains("old/m"),
        "{}",
        ran.stderr
    );
}
