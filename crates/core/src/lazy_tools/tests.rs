use proptest::prelude::*;

use super::*;

fn tool(name: &str, description: &str) -> ToolDefinition {
    let schema = r#"{"type": "object", "properties": {"path": {"type": "string"}, "line": {"type": ["integer", "null"]}}, "required": ["path"]}"#;
    ToolDefinition { name: name.into(), description: description.into(), schema: schema.into() }
}

fn tools() -> Vec<ToolDefinition> {
    vec![
        tool("search", "Searches files by words. Slow on large folders."),
        tool("read", "Reads a file"),
        tool("write", ""),
        tool("read", "Another one of the name"),
    ]
}

fn lazy() -> LazySettings {
    LazySettings { least_tokens: 0, ..LazySettings::default() }
}

fn plan(session: &ToolSession, settings: &LazySettings) -> ToolPlan {
    plan_tools(&tools(), session, settings, Tokenizer::Estimate)
}

fn names(plan: &ToolPlan) -> Vec<&str> {
    plan.sent.iter().map(|tool| &*tool.name).collect()
}

fn call(session: &mut ToolSession, name: &str, arguments: &str) -> CallDecision {
    session.on_call(name, arguments, &tools(), &lazy())
}

#[test]
fn names_first_and_schemas_when_they_are_asked_for() {
    let mut session = ToolSession::default();
    let first = plan(&session, &lazy());
    assert_eq!(names(&first), [DESCRIBE_TOOL]);
    let lines: Vec<_> = first.directory.iter().map(|t| (&*t.name, &*t.intent)).collect();
    assert_eq!(
        lines,
        [("read", "Reads a file"), ("search", "Searches files by words"), ("write", "")]
    );
    let CallDecision::Described(text) = call(&mut session, DESCRIBE_TOOL, r#"{"name": "write"}"#)
    else {
        panic!("it is described");
    };
    assert_eq!(
        text,
        "write\nArguments, as JSON Schema: {\"properties\":{\"line\":{\"type\":[\"integer\",\"null\"]},\
         \"path\":{\"type\":\"string\"}},\"required\":[\"path\"],\"type\":\"object\"}"
    );
    call(&mut session, DESCRIBE_TOOL, r#"{"name": "read"}"#);
    let later = plan(&session, &lazy());
    assert_eq!(names(&later), [DESCRIBE_TOOL, "write", "read"], "in the order of loading");
    assert_eq!(later.directory, first.directory, "the header stays");
    assert!(first.tokens < later.tokens && later.tokens <= later.all_tokens + 100);
}

#[test]
fn a_call_that_was_never_described_is_run_if_it_fits() {
    let mut session = ToolSession::default();
    assert_eq!(call(&mut session, "read", r#"{"path": "a", "line": null}"#), CallDecision::Run);
    assert_eq!(session.loaded(), ["read"]);
    for unfit in ["{}", r#"{"path": 1}"#, r#"{"path": "a", "colour": 1}"#, "[", r#""a""#] {
        let mut session = ToolSession::default();
        let CallDecision::Unfit(text) = call(&mut session, "search", unfit) else {
            panic!("{unfit} does not fit");
        };
        assert!(text.contains("nothing was done") && text.contains("\"required\":[\"path\"]"));
        assert_eq!(
            call(&mut session, "search", unfit),
            CallDecision::Run,
            "now it knows the schema"
        );
    }
}

#[test]
fn an_unknown_tool_is_told_the_nearest() {
    let mut session = ToolSession::default();
    let told = CallDecision::Unknown("There is no tool `serch`. The nearest is `search`.".into());
    assert_eq!(call(&mut session, "serch", "{}"), told);
    assert_eq!(call(&mut session, DESCRIBE_TOOL, r#"{"name": "serch"}"#), told);
    let nothing = call(&mut session, DESCRIBE_TOOL, "nonsense");
    assert!(matches!(nothing, CallDecision::Unknown(_)));
    assert_eq!(session, ToolSession::default());
}

#[test]
fn what_is_always_sent_is_not_loaded() {
    let settings = LazySettings { always: vec!["read".into()], ..lazy() };
    let mut session = ToolSession::default();
    for name in ["read", "search", "write", "search"] {
        session.on_call(name, r#"{"path": "a"}"#, &tools(), &settings);
    }
    assert_eq!(session.loaded(), ["search", "write"]);
}

#[test]
fn every_setting_changes_the_plan() {
    let session = ToolSession::default();
    let base = plan(&session, &lazy());
    let off = plan(&session, &LazySettings { enabled: false, ..lazy() });
    assert_eq!((names(&off), off.directory.len()), (vec!["read", "search", "write"], 0));
    assert_eq!(plan(&session, &LazySettings { least_tokens: 10_000, ..lazy() }), off);
    let always = plan(&session, &LazySettings { always: vec!["search".into()], ..lazy() });
    assert_eq!(names(&always), [DESCRIBE_TOOL, "search"]);
    let short = plan(&session, &LazySettings { intent_tokens: 6, ..lazy() });
    assert_eq!(short.directory[1].intent, "Searches");
    assert_ne!(short.directory, base.directory);
    let native = LazySettings { native: NativeSearch::Bm25, always: vec!["read".into()], ..lazy() };
    let native = plan(&session, &native);
    assert_eq!(names(&native), ["read", "search", "write"]);
    assert_eq!(native.deferred, ["search", "write"]);
    assert!(native.tokens < native.all_tokens && native.directory.is_empty());
    assert!(serde_json::from_str::<LazySettings>(r#"{"lazy": 1}"#).is_err());
}

#[test]
fn a_hash_knows_the_content_and_not_its_form() {
    let hash = |schema: &str| {
        ToolDefinition { schema: schema.into(), ..tool("a", "b") }.hash().expect("a schema")
    };
    assert_eq!(
        hash(r#"{"a": 1, "b": [1.0, {"d": null, "c": "é"}]}"#),
        hash(r#"{"b":[1.0,{"c":"\u00e9","d":null}],"a":1}"#)
    );
    assert_ne!(hash(r#"{"a": [1, 2]}"#), hash(r#"{"a": [2, 1]}"#));
    assert_ne!(tool("a", "b").hash(), tool("a", "c").hash());
    assert_ne!(tool("a", "b").hash(), tool("ab", "").hash());
    for schema in ["", "[]", "{", "true"] {
        let broken = ToolDefinition { schema: schema.into(), ..tool("a", "b") };
        assert_eq!(broken.hash(), Err(NoSchema { name: "a".into() }));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_sent_stays_in_front(
        calls in prop::collection::vec((prop::sample::select(&["read", "search", "write", "x", DESCRIBE_TOOL][..]), "\\PC{0,20}"), 0..20),
    ) {
        let mut session = ToolSession::default();
        let mut before = plan(&session, &lazy());
        for (name, said) in calls {
            let arguments = if name == DESCRIBE_TOOL { r#"{"name": "write"}"#.to_owned() } else { said };
            call(&mut session, name, &arguments);
            let now = plan(&session, &lazy());
            prop_assert!(now.sent.starts_with(&before.sent));
            prop_assert_eq!(&now.directory, &before.directory);
            let kept: ToolSession = serde_json::from_str(&serde_json::to_string(&session).expect("JSON")).expect("read");
            prop_assert_eq!(&kept, &session);
            before = now;
        }
        prop_assert!(before.sent.len() <= 4);
    }
}
