//! What a command promises, with real programs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::{Clock, ToolAnswer, ToolError, ToolSource as _};
use plimsoll_tools::{Command, Commands};

use crate::clocks::{racing, standing};

fn command(program: &[&str]) -> Command {
    Command {
        description: "A program.".to_owned(),
        schema: r#"{"type":"object"}"#.to_owned(),
        program: program.iter().map(|word| (*word).to_owned()).collect(),
        folder: None,
        environment: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        timeout: Duration::from_secs(3),
        output_limit: 1_000,
    }
}

async fn call_with(
    clock: Arc<dyn Clock>,
    command: Command,
    arguments: &str,
) -> Result<ToolAnswer, ToolError> {
    let commands = BTreeMap::from([("it".to_owned(), command)]);
    Commands::new(commands, clock).call("it", arguments).await
}

async fn call(program: &[&str], arguments: &str) -> Result<ToolAnswer, ToolError> {
    call_with(standing(), command(program), arguments).await
}

#[tokio::test]
async fn it_reads_its_arguments_as_they_were_written() {
    let arguments = r#"{"b": 1.10, "a": "é\n"}"#;
    assert_eq!(call(&["cat"], arguments).await, Ok(ToolAnswer::text(arguments)));
    let filled = call(&["printf", "%s|", "{b}", "{a}"], arguments).await.expect("an answer");
    assert_eq!(filled.text, "1.1|é\n|");
    let own = call(&["printf", "%s", r#"{"a": 1}"#], arguments).await.expect("an answer");
    assert_eq!(own.text, r#"{"a": 1}"#);
}

#[tokio::test]
async fn what_a_model_wrote_is_one_word_and_no_shell_reads_it() {
    let arguments = r#"{"name": "$(id); x' \" | y"}"#;
    let answer = call(&["printf", "%s", "{name}"], arguments).await.expect("an answer");
    assert_eq!(answer.text, "$(id); x' \" | y");
    for bad in ["[]", "no", r#"{"name": "a\u0000b"}"#, "{}"] {
        let result = call(&["printf", "%s", "{name}"], bad).await;
        assert!(matches!(result, Err(ToolError::Invalid { .. })), "{bad}: {result:?}");
    }
}

#[tokio::test]
async fn it_finds_nothing_in_its_environment_that_was_not_given() {
    let mut given = command(&["env"]);
    given.environment.insert("TOKEN".to_owned(), "given".to_owned());
    let answer = call_with(standing(), given, "{}").await.expect("an answer");
    let names: Vec<&str> = answer.text.lines().filter_map(|line| line.split('=').next()).collect();
    assert!(names.contains(&"TOKEN") && !names.contains(&"CARGO_MANIFEST_DIR"), "{names:?}");
}

#[tokio::test]
async fn a_failure_is_an_answer_with_its_status_and_what_it_said() {
    let answer = call(&["sh", "-c", "echo half; echo why >&2; exit 3"], "{}").await;
    assert_eq!(answer, Ok(ToolAnswer::failed("half\nwhy\n\n[exit status 3]")));
    let missing = call(&["no-such-program"], "{}").await;
    assert!(matches!(missing, Err(ToolError::Unavailable { .. })), "{missing:?}");
    let unknown = Commands::new(BTreeMap::new(), standing()).call("it", "{}").await;
    assert_eq!(unknown, Err(ToolError::Unknown { name: "it".to_owned() }));
}

#[tokio::test]
async fn too_much_output_ends_it() {
    let answer = call(&["sh", "-c", "while true; do echo more; done"], "{}").await;
    let answer = answer.expect("an answer");
    assert!(answer.is_error && answer.text.ends_with("[ended: more than 1000 bytes of output]"));
    assert!(answer.text.len() < 1_100);
}

#[tokio::test]
async fn what_takes_too_long_is_ended_with_all_that_it_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let mark = folder.path().join("mark");
    let script = format!("(sleep 100; touch {}) & echo $! ; sleep 100", mark.display());
    let slow = command(&["sh", "-c", &script]);
    let result = call_with(racing(), slow, "{}").await;
    let Err(ToolError::Unavailable { why, .. }) = result else { panic!("{result:?}") };
    assert_eq!(why, "it ran longer than 3 s and was ended");
    assert!(!mark.exists());
}

#[tokio::test]
async fn tools_are_listed_by_name() {
    let commands = ["b", "a"].map(|name| (name.to_owned(), command(&["true"])));
    let tools = Commands::new(commands.into(), standing()).tools().await.expect("tools");
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["a", "b"]);
}
