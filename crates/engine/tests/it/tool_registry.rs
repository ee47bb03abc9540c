//! Tools are registered once, and a change is a new version.

use plimsoll_core::lazy_tools::ToolDefinition;
use plimsoll_core::{MillisSinceEpoch, Tokenizer};
use plimsoll_engine::KnowledgeStore as _;
use plimsoll_engine::tool_registry::{RegisterError, Registered, register_tools, registered_tools};
use plimsoll_testkit::MemoryStore;
use plimsoll_testkit::sample::{tenant, tool_schema};

fn tool(name: &str, schema: &str) -> ToolDefinition {
    ToolDefinition { name: name.into(), description: "Does it.".into(), schema: schema.into() }
}

#[tokio::test]
async fn a_change_is_a_new_version_and_nothing_else_is_written() {
    let store = MemoryStore::default();
    let register = async |tools: &[ToolDefinition], at: i64| {
        let now = MillisSinceEpoch(at);
        register_tools(&store, &tenant("t"), "files", tools, Tokenizer::Estimate, now).await
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let first = register(&[tool("b", "{}"), tool("a", r#"{"x": 1, "y": 2}"#)], 1).await;
    let added = Registered { added: names(&["b", "a"]), ..Registered::default() };
    assert_eq!(first.expect("registered"), added);
    let again = register(&[tool("a", r#"{"y":2,"x":1}"#), tool("b", r#"{"z": 1}"#)], 2).await;
    let changed =
        Registered { changed: names(&["b"]), unchanged: names(&["a"]), ..Registered::default() };
    assert_eq!(again.expect("registered"), changed);
    let kept = registered_tools(&store, &tenant("t")).await.expect("tools");
    let shown: Vec<_> = kept
        .iter()
        .map(|tool| (&*tool.definition.name, &*tool.version, tool.updated_at.0, &*tool.server))
        .collect();
    assert_eq!(shown, [("a", "v1", 1, "files"), ("b", "v2", 2, "files")]);
    assert_eq!(kept[1].definition, tool("b", r#"{"z": 1}"#));
    assert!(kept[1].token_count > 0);
    assert_eq!(registered_tools(&store, &tenant("other")).await.expect("tools"), []);
}

#[tokio::test]
async fn a_broken_schema_registers_nothing() {
    let store = MemoryStore::default();
    let tools = [tool("a", "{}"), tool("b", "[]")];
    let now = MillisSinceEpoch(1);
    let failed =
        register_tools(&store, &tenant("t"), "files", &tools, Tokenizer::Estimate, now).await;
    assert!(matches!(failed, Err(RegisterError::NoSchema(error)) if error.name == "b"));
    assert_eq!(store.tool_schemas(&tenant("t")).await.expect("schemas"), []);
}

#[tokio::test]
async fn a_bare_schema_of_another_writer_is_read() {
    let store = MemoryStore::default();
    store.put_tool_schema(&tool_schema("t", "server", "look")).await.expect("stored");
    let kept = registered_tools(&store, &tenant("t")).await.expect("tools");
    assert_eq!(kept[0].definition.name, "look");
    assert_eq!(kept[0].definition.schema, r#"{"type": "object"}"#);
}
