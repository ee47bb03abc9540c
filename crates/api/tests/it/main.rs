//! Every operation of the document, asked for real, and its answers held against the document's schemas.

mod errors;
mod operations;
mod pages;
mod runs;

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use plimsoll_api::{ApiCascades, ApiParts, ApiPolicies, CascadeRequest, StoreApi, document};
use plimsoll_cascade::run::{RunError, RunEvent};
use plimsoll_core::cost::Pricing;
use plimsoll_core::memory::frame::Frames;
use plimsoll_core::policy::{Bounds, Policy, RequestSettings};
use plimsoll_core::recall::RecallSettings;
use plimsoll_core::safety::Handling;
use plimsoll_core::{Block, ContentHash, Message, MillisSinceEpoch, Role, ToolCall};
use plimsoll_engine::assemble::FrameBook;
use plimsoll_engine::memories::Memories;
use plimsoll_engine::{
    HistoryBatch, HistoryStore, MemoryConfig, MessageRecord, Recall, SessionId, TenantId,
};
use plimsoll_testkit::{ManualClock, MemoryStore, sample};
use serde_json::Value;

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(document()).expect("the document is JSON"));

/// The policies that tests name.
#[derive(Debug)]
struct Named(Pricing);

impl ApiPolicies for Named {
    fn policy(&self, name: &str, budget: Option<u64>) -> Option<Policy> {
        match name {
            "full" => Some(Policy::Full),
            "plimsoll" | "window" => Some(Policy::Bounded(Bounds::default())),
            "newest" => Some(Policy::Newest { budget: budget.unwrap_or(3000) }),
            _ => None,
        }
    }

    fn pricing(&self) -> &Pricing {
        &self.0
    }
}

/// A run of one phase that works, and then asks a person.
#[derive(Debug)]
struct Reviewed;

#[async_trait::async_trait]
impl ApiCascades for Reviewed {
    async fn run(&self, request: CascadeRequest) -> Result<String, RunError> {
        let tell = |note: String| {
            request.observer.tell(&RunEvent::Noted { phase: "review".to_owned(), note });
        };
        tell("the work is done".to_owned());
        let (phase, question) = ("review".to_owned(), "Is it good?".to_owned());
        match request.human.ask(&phase, &question).await.as_deref() {
            None => Err(RunError::Waiting { phase, question }),
            Some("never") => {
                Err(RunError::Failed { phase, why: "the person said never".to_owned() })
            }
            Some("hold") => std::future::pending().await,
            Some(answer) => {
                tell(format!("answered {answer}"));
                Ok(format!("a {answer} result"))
            }
        }
    }
}

/// The interface over a store in memory, and the operations that were asked.
struct Asking {
    api: StoreApi,
    asked: Mutex<Vec<String>>,
}

/// An answer.
#[derive(Debug)]
struct Got {
    status: u16,
    kind: String,
    body: Value,
}

fn call(id: &str) -> Message {
    Message::new(
        Role::Assistant,
        vec![
            Block::Text("I read the file.".into()),
            Block::ToolCall(ToolCall {
                id: id.into(),
                name: "read_file".into(),
                arguments: r#"{"path":"src/main.rs"}"#.into(),
            }),
        ],
    )
}

/// Makes a session of an agent: a question, and turns that each read a file.
fn agent(session: &str, turns: u32) -> Vec<MessageRecord> {
    let mut messages = vec![
        Message::text(Role::System, "You are an agent."),
        Message::text(Role::User, "Why does the ledger fail?"),
    ];
    for turn in 0..turns {
        let id = format!("call-{turn}");
        let text = format!("fn step_{turn}() {{ /* the ledger of turn {turn} */ }}\n").repeat(40);
        messages.extend([call(&id), Message::result(id.as_str(), text)]);
    }
    messages.push(Message::text(Role::Assistant, "The port is 7443."));
    let record = |(position, message): (usize, Message)| MessageRecord {
        session: SessionId::new(session).expect("an id"),
        position: position as u32,
        hash: ContentHash::of(&message),
        tokens: 20,
        turn: position as u32 / 2,
        recorded_at: MillisSinceEpoch(1_000 + i64::try_from(position).expect("few")),
        message,
    };
    messages.into_iter().enumerate().map(record).collect()
}

impl Asking {
    async fn start() -> Self {
        let store = Arc::new(MemoryStore::new());
        let receipts = (0..3).map(|turn| sample::receipt("agent", turn, "plimsoll")).collect();
        let batch =
            HistoryBatch { messages: agent("agent", 12), receipts, ..HistoryBatch::default() };
        store.append(&TenantId::default(), batch).await.expect("it is stored");
        for name in ["beta", "gamma", "delta"] {
            let messages = vec![sample::message(name, 0, &format!("hello from {name}"))];
            let batch = HistoryBatch { messages, ..HistoryBatch::default() };
            store.append(&TenantId::default(), batch).await.expect("it is stored");
        }
        let messages = vec![sample::message("secret", 0, "only the other tenant knows the ledger")];
        let batch = HistoryBatch { messages, ..HistoryBatch::default() };
        store.append(&sample::tenant("other"), batch).await.expect("it is stored");
        let memory = MemoryConfig::default();
        let frames = FrameBook::new(Frames::built_in(), None).await.expect("frames need no model");
        let api = StoreApi::new(ApiParts {
            history: store.clone(),
            knowledge: store,
            clock: Arc::new(ManualClock::new(MillisSinceEpoch(5_000), Duration::from_mins(1))),
            embedder: None,
            recall: Recall::new(RecallSettings::default(), None),
            memories: Memories::new(memory.search.clone()),
            memory,
            request: RequestSettings::default(),
            frames,
            policies: Arc::new(Named(Pricing::shipped())),
            cascades: Some(Arc::new(Reviewed)),
            handling: Handling::default(),
        });
        Self { api, asked: Mutex::default() }
    }

    async fn send(&self, tenant: &str, method: &str, path: &str, body: &str) -> Got {
        let kind = if method == "GET" || method == "DELETE" { "" } else { "application/json" };
        self.send_as(tenant, method, path, body, kind).await
    }

    async fn send_as(&self, tenant: &str, method: &str, path: &str, body: &str, kind: &str) -> Got {
        let tenant = if tenant.is_empty() { TenantId::default() } else { sample::tenant(tenant) };
        let request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).expect("a method"))
            .uri(path)
            .header("content-type", kind)
            .body(Bytes::copy_from_slice(body.as_bytes()))
            .expect("a request");
        let answer = self.api.answer(&tenant, request).await;
        let kind = answer.headers()["content-type"].to_str().expect("a type").to_owned();
        Got {
            status: answer.status().as_u16(),
            kind,
            body: serde_json::from_slice(answer.body()).unwrap_or_default(),
        }
    }

    /// Asks for an operation of the document and returns an answer that fits its schema.
    async fn ask(&self, operation: &str, path: &str, body: &str) -> Value {
        let (method, schema) = schema_of(operation);
        self.asked.lock().expect("no panic").push(operation.to_owned());
        let got = self.send("", &method, &format!("/api/v1{path}"), body).await;
        assert_eq!(got.status, 200, "{operation}: {}", got.body);
        assert_eq!(got.kind, "application/json", "{operation}");
        check(operation, &schema, &got.body);
        got.body
    }
}

/// Returns the method of an operation and the schema of its answer.
fn schema_of(operation: &str) -> (String, Value) {
    for methods in DOCUMENT["paths"].as_object().expect("paths").values() {
        for (method, found) in methods.as_object().expect("methods") {
            if found["operationId"] == operation {
                let schema = &found["responses"]["200"]["content"]["application/json"]["schema"];
                return (method.to_ascii_uppercase(), schema.clone());
            }
        }
    }
    panic!("{operation} is not in the document");
}

/// Fails where an answer does not fit a schema of the document.
fn check(what: &str, schema: &Value, answer: &Value) {
    let mut whole = schema.clone();
    whole["components"] = DOCUMENT["components"].clone();
    let validator = jsonschema::validator_for(&whole).expect("a schema");
    let errors: Vec<String> = validator
        .iter_errors(answer)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what}: {errors:#?}");
}
