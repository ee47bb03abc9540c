//! `tools`: registered once, told by version, and sent as a directory.

use crate::environment::Environment;

const TOOLS: &str = r#"{"tools": [
    {"name": "search_files", "description": "Searches files by words. Slow on large folders.",
     "inputSchema": {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]}},
    {"name": "read_file", "description": "Reads a file.", "inputSchema": {"type": "object"}}
]}"#;

fn tools(environment: &Environment, arguments: &[&str]) -> String {
    let all: Vec<&str> = ["tools"]
        .into_iter()
        .chain(arguments.iter().copied())
        .chain(["--store", "kept.db"])
        .collect();
    environment.data(&all)
}

#[test]
fn tools_are_registered_and_a_change_is_a_version() {
    let environment = Environment::new();
    environment.write("files.json", TOOLS);
    let ran = environment.run(&["tools", "list", "--store", "kept.db"]);
    assert!(ran.stderr.contains("there is no store"), "a list makes none: {}", ran.stderr);
    let add =
        |arguments: &[&str]| tools(&environment, &[&["add", "files.json"], arguments].concat());
    assert_eq!(add(&[]), "2 tools added, 0 changed, 0 as before\n");
    environment.write("files.json", TOOLS.replace("Reads a file", "Reads a whole file"));
    assert_eq!(add(&[]), "0 tools added, 1 changed, 1 as before\n");
    assert_eq!(
        tools(&environment, &["list"]),
        "read_file                         v2      13 tokens  files\n\
         search_files                      v1      35 tokens  files\n"
    );
    let shown = tools(&environment, &["show", "search_files"]);
    assert_eq!(
        shown,
        "search_files: Searches files by words. Slow on large folders.\nArguments, as JSON Schema: \
         {\"properties\":{\"words\":{\"type\":\"string\"}},\"required\":[\"words\"],\"type\":\"object\"}\n"
    );
    let unknown = environment.run(&["tools", "show", "serch_files", "--store", "kept.db"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("the nearest is `search_files`"), "{}", unknown.stderr);
    add(&["--server", "other"]);
    let two = environment.run(&["tools", "show", "read_file", "--store", "kept.db"]);
    assert!(two.code == 2 && two.stderr.contains("--server"), "{}", two.stderr);
    tools(&environment, &["show", "read_file", "--server", "other"]);
}

#[test]
fn a_directory_stands_for_the_schemas() {
    let environment = Environment::new();
    environment.write("files.json", TOOLS);
    tools(&environment, &["add", "files.json"]);
    assert!(tools(&environment, &["directory"]).starts_with("all schemas are sent: "));
    environment.write("plimsoll.toml", "[lazy_tools]\nleast_tokens = 0\nalways = ['read_file']\n");
    let page = tools(&environment, &["directory"]);
    let lines: Vec<&str> = page.lines().collect();
    assert_eq!(
        lines[..2],
        [
            "read_file                      Reads a file",
            "search_files                   Searches files by words"
        ]
    );
    let json = environment.json(&["tools", "directory", "--store", "kept.db"]);
    assert_eq!(json["sent"], serde_json::json!(["describe_tool", "read_file"]));
    assert_eq!(json["directory"][1]["intent"], "Searches files by words");
    environment.write("plimsoll.toml", "[lazy_tools]\nleast_tokens = 0\nnative = 'bm25'\n");
    let json = environment.json(&["tools", "directory", "--store", "kept.db"]);
    assert_eq!(json["deferred"], serde_json::json!(["read_file", "search_files"]));
    let broken = "[{\"name\": \"x\"}]";
    environment.write("broken.json", broken);
    assert_eq!(environment.run(&["tools", "add", "broken.json", "--store", "kept.db"]).code, 2);
}
