//! The answer cache: asked before the upstream, in every shape of answer, and given nothing that is not whole.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_core::answer::{AnswerFacts, AnswerSettings, keepable, servable};
use plimsoll_core::safety::Handling;
use plimsoll_engine::{HistoryStore, SessionId, TenantId};
use plimsoll_gateway::{Answers, KeptAnswer, KeyConfig, StoreFailure};
use plimsoll_testkit::MemoryStore;
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use plimsoll_wire::{
    AnswerUsage, CacheQuestion, Ending, Events, Moment, ProviderAnswer as Said, Watch, Wire, check,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use crate::gate::Gate;
use crate::harness::{Answer, Running};
use crate::talk::Talk;

/// What a shelf is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Find,
    Keep,
}

/// Answers in memory, by core's rules for exact questions.
#[derive(Debug)]
struct Shelf {
    kept: Mutex<HashMap<String, String>>,
    settings: AnswerSettings,
    /// At this work it never comes to an end.
    stuck: Option<Work>,
    waiting: watch::Sender<bool>,
}

impl Default for Shelf {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            settings: AnswerSettings { enabled: true, ..AnswerSettings::default() },
            stuck: None,
            waiting: watch::Sender::new(false),
        }
    }
}

impl Shelf {
    async fn pass(&self, work: Work) {
        if self.stuck == Some(work) {
            self.waiting.send_replace(true);
            std::future::pending::<()>().await;
        }
    }

    /// Waits until somebody stands before it.
    async fn waited(&self) {
        let _ = self.waiting.subscribe().wait_for(|waiting| *waiting).await;
    }

    fn size(&self) -> usize {
        self.kept.lock().expect("no test panics while it holds this").len()
    }
}

fn key(tenant: &TenantId, question: &CacheQuestion) -> String {
    let CacheQuestion { text, user, model, surroundings, .. } = question;
    let all = json!([tenant.as_str(), text, user, model, surroundings]).to_string();
    hex(&all)
}

fn hex(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[async_trait]
impl Answers for Shelf {
    fn takes(&self, question: &CacheQuestion) -> bool {
        servable(&question.text, &question.facts, &self.settings).is_ok()
    }

    async fn find(&self, tenant: &TenantId, question: &CacheQuestion) -> Option<KeptAnswer> {
        self.pass(Work::Find).await;
        let key = key(tenant, question);
        let kept = self.kept.lock().expect("no test panics while it holds this");
        kept.get(&key).map(|text| KeptAnswer { key, text: text.clone(), is_exact: true })
    }

    async fn keep(
        &self,
        tenant: &TenantId,
        question: &CacheQuestion,
        answer: &str,
        facts: &AnswerFacts,
    ) -> bool {
        self.pass(Work::Keep).await;
        let may = keepable(&question.text, answer, facts).is_ok();
        if may {
            let mut kept = self.kept.lock().expect("no test panics while it holds this");
            kept.insert(key(tenant, question), answer.to_owned());
        }
        may
    }
}

const SAID: &str = "Light of short waves is scattered more.";

/// A question by itself: its path and body.
fn asked(wire: Wire, streams: bool, question: &str) -> (&'static str, String) {
    let user = json!([{"role": "user", "content": question}]);
    let system = json!({"role": "system", "content": "You help."});
    let (path, body) = match wire {
        Wire::AnthropicMessages => (
            "/v1/messages",
            json!({"model": "claude-sonnet-4-5", "max_tokens": 1000, "stream": streams, "system": "You help.", "messages": user}),
        ),
        Wire::ChatCompletions => (
            "/v1/chat/completions",
            json!({"model": "gpt-4.1", "stream": streams, "messages": [system, user[0]]}),
        ),
        Wire::Responses => (
            "/v1/responses",
            json!({"model": "gpt-5", "stream": streams, "store": false, "instructions": "You help.", "input": question}),
        ),
        Wire::Gemini => {
            let path = if streams {
                "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
            } else {
                "/v1beta/models/gemini-2.5-pro:generateContent"
            };
            (path, json!({"contents": [{"role": "user", "parts": [{"text": question}]}]}))
        }
    };
    (path, body.to_string())
}

/// What the provider answers.
fn answered(wire: Wire, streams: bool, text: &str) -> Scripted {
    Talk::new(wire, streams, "").answer(text, &[])
}

fn read(wire: Wire, streams: bool, answer: &Answer) -> Said {
    if !streams {
        return Said::of_body(wire, &answer.body);
    }
    let (mut events, mut watch) = (Events::default(), Watch::new(wire));
    events.push(&answer.body);
    let mut moments = Vec::new();
    while let Some(event) = events.next_event() {
        moments.push(watch.see(&event));
    }
    assert_eq!(moments.iter().filter(|moment| **moment == Moment::End).count(), 1, "{wire}");
    assert_eq!((moments.last(), events.rest()), (Some(&Moment::End), Vec::new()), "{wire}");
    watch.answer().clone()
}

fn outcome(answer: &Answer) -> &str {
    answer.header("x-plimsoll-outcome").unwrap_or_default()
}

async fn start(upstream: &ScriptedServer, shelf: &Arc<Shelf>) -> Running {
    let store = Arc::new(MemoryStore::default());
    Running::with_answers(upstream.address(), store, shelf.clone(), |_| {}).await
}

#[tokio::test]
async fn a_question_is_asked_once() {
    for wire in Wire::ALL {
        for streams in [true, false] {
            // The first is streamed where the second is whole: what travels is the same.
            let upstream = ScriptedServer::start([
                answered(wire, !streams, SAID),
                answered(wire, streams, "?"),
            ])
            .await;
            let shelf = Arc::new(Shelf::default());
            let gateway = start(&upstream, &shelf).await;
            let (path, body) = asked(wire, !streams, "Why is the sky blue?");
            let first = gateway.post(path, &[], body.as_bytes()).await;
            assert_eq!((first.status, outcome(&first)), (200, "untouched"), "{wire}");
            assert_eq!(upstream.requests()[0].body, body.as_bytes(), "{wire}");

            let (path, body) = asked(wire, streams, "Why is the sky blue?");
            let second = gateway.post(path, &[], body.as_bytes()).await;
            assert_eq!((second.status, outcome(&second)), (200, "cached"), "{wire} {streams}");
            assert_eq!(upstream.requests().len(), 1, "{wire} {streams}");
            assert!(second.is_whole);
            let key = second.header("x-plimsoll-answer-key").expect("a key").to_owned();
            let kind = if streams { "text/event-stream" } else { "application/json" };
            assert_eq!(second.header("content-type"), Some(kind));
            let said = read(wire, streams, &second);
            assert_eq!((said.ending.clone(), said.text()), (Ending::Complete, SAID.to_owned()));
            // A stream of chat counts where the client asks for it.
            let is_counted = !(streams && wire == Wire::ChatCompletions);
            assert_eq!(said.usage, is_counted.then(AnswerUsage::default), "{wire} {streams}");

            // It is a turn as any other, and the log tells who answered it.
            let session = second.header("x-plimsoll-session").expect("a session");
            let session = SessionId::new(session).expect("an id");
            let tenant = TenantId::default();
            let messages = gateway.store.messages(&tenant, &session, 0, 9).await.expect("a store");
            let last = messages.last().expect("messages");
            assert_eq!(last.message.shown(), SAID, "{wire}");
            let receipts = gateway.store.receipts(&tenant, &session).await.expect("a store");
            let by_cache: Vec<bool> =
                receipts.iter().map(|one| one.receipt.contains(&key)).collect();
            assert_eq!(by_cache, [false, true], "{wire} {streams}");

            let (path, body) = asked(wire, streams, "Why is the sea blue?");
            let other = gateway.post(path, &[], body.as_bytes()).await;
            assert_eq!(outcome(&other), "untouched", "another question");
            let metrics = gateway.send("GET", "/metrics", &[], b"").await.text();
            for line in [
                "plimsoll_outcomes_total{outcome=\"cached\"} 1",
                "plimsoll_answer_cache_total{result=\"exact\"} 1",
                "plimsoll_answer_cache_total{result=\"miss\"} 2",
                "plimsoll_answer_cache_total{result=\"kept\"} 2",
            ] {
                assert!(metrics.contains(line), "{line}");
            }
        }
    }
}

#[tokio::test]
async fn nothing_that_may_not_be_stored_is_kept() {
    let wire = Wire::ChatCompletions;
    let mail = "ann@example.com";
    for (question, said, kept) in [
        (format!("Is {mail} valid?"), "It is.".to_owned(), 0),
        ("Name a mail address.".to_owned(), format!("{mail} is one."), 0),
        ("Why is the sky blue?".to_owned(), SAID.to_owned(), 1),
    ] {
        for ingestion in [Handling::REDACT, Handling::default()] {
            let upstream = ScriptedServer::start([answered(wire, false, &said)]).await;
            let shelf = Arc::new(Shelf::default());
            let address = upstream.address();
            let gateway =
                Running::with_ingestion_and_answers(address, ingestion, shelf.clone()).await;
            let (path, body) = asked(wire, false, &question);
            gateway.post(path, &[], body.as_bytes()).await;
            let expected = if ingestion == Handling::REDACT { kept } else { 1 };
            assert_eq!(shelf.size(), expected, "{question} {ingestion:?}");
        }
    }
}

#[tokio::test]
async fn a_conversation_goes_on_behind_a_kept_answer() {
    let wire = Wire::ChatCompletions;
    let upstream =
        ScriptedServer::start([answered(wire, false, SAID), answered(wire, false, "Red.")]).await;
    let shelf = Arc::new(Shelf::default());
    let gateway = start(&upstream, &shelf).await;
    let (path, body) = asked(wire, false, "Why is the sky blue?");
    gateway.post(path, &[], body.as_bytes()).await;
    let cached = gateway.post(path, &[], body.as_bytes()).await;
    assert_eq!(outcome(&cached), "cached");
    let mut next: Value = serde_json::from_str(&body).expect("JSON");
    let messages = next["messages"].as_array_mut().expect("a list");
    messages.push(json!({"role": "assistant", "content": SAID}));
    messages.push(json!({"role": "user", "content": "And at dusk?"}));
    assert_eq!(check(wire, next.to_string().as_bytes()), [], "a provider accepts what comes of it");
    for expected in ["untouched", "cached"] {
        let answer = gateway.post(path, &[], next.to_string().as_bytes()).await;
        assert_eq!(outcome(&answer), expected);
        assert!(answer.text().contains("Red."), "{}", answer.text());
        let session = answer.header("x-plimsoll-session");
        assert_eq!(session, cached.header("x-plimsoll-session"), "no branch");
    }
    assert_eq!(upstream.requests()[1].body, next.to_string().as_bytes());
}

#[tokio::test]
async fn without_it_and_without_leave_the_upstream_is_asked() {
    let wire = Wire::ChatCompletions;
    let (path, body) = asked(wire, false, "Why is the sky blue?");
    let script = || (0..4).map(|_| answered(wire, false, SAID));
    let upstream = ScriptedServer::start(script()).await;
    let plain = Running::start(upstream.address(), |_| {}).await;
    for number in 0..2 {
        plain.post(path, &[], body.as_bytes()).await;
        assert_eq!(upstream.requests()[number].body, body.as_bytes(), "off until asked for");
    }
    let sessions = plain.store.sessions(&TenantId::default(), 9).await.expect("a store");
    assert_eq!(sessions, [], "a question beside a conversation is none of its turns");
    for headers in [
        [("x-plimsoll-cache", "off")],
        [("x-plimsoll-mode", "observe")],
        [("x-plimsoll-mode", "off")],
    ] {
        let upstream = ScriptedServer::start(script()).await;
        let shelf = Arc::new(Shelf::default());
        let gateway = start(&upstream, &shelf).await;
        gateway.post(path, &headers, body.as_bytes()).await;
        assert_eq!(shelf.size(), 0, "{headers:?}: it is not kept");
        gateway.post(path, &[("x-plimsoll-cache", "on")], body.as_bytes()).await;
        assert_eq!(shelf.size(), 1, "{headers:?}");
        gateway.post(path, &headers, body.as_bytes()).await;
        assert_eq!(upstream.requests().len(), 3, "{headers:?}: it is not served");
        let refused = gateway.post(path, &[("x-plimsoll-cache", "?")], body.as_bytes()).await;
        assert_eq!(refused.status, 400);
    }
}

#[tokio::test]
async fn nobody_sees_what_another_was_answered() {
    let wire = Wire::AnthropicMessages;
    let (path, body) = asked(wire, false, "Why is the sky blue?");
    let script = (0..9).map(|_| answered(wire, false, SAID));
    let upstream = ScriptedServer::start(script).await;
    let shelf = Arc::new(Shelf::default());
    let store = Arc::new(MemoryStore::default());
    let gateway = Running::with_answers(upstream.address(), store, shelf.clone(), |config| {
        for name in ["ann", "bob"] {
            let key = KeyConfig { sha256: hex(name), tenant: None, operator: false };
            config.keys.insert(name.to_owned(), key);
        }
        let other = config.upstreams["anthropic"].clone();
        config.upstreams.insert("other".to_owned(), other);
    })
    .await;
    let with = |from: &str, to: &str| body.replace(from, to);
    let elsewhere = format!("/upstream/other{path}");
    let cases = [
        ("ann", path, body.clone(), "untouched"),
        ("bob", path, body.clone(), "untouched"),
        ("ann", path, body.clone(), "cached"),
        ("ann", path, with("You help.", "You help"), "untouched"),
        ("ann", path, with("1000", "999"), "untouched"),
        ("ann", path, with("sonnet", "opus"), "untouched"),
        ("ann", path, body.replacen('{', "{\"metadata\":{\"user_id\":\"u\"},", 1), "untouched"),
        ("ann", &*elsewhere, body.clone(), "untouched"),
        ("bob", path, body.clone(), "cached"),
    ];
    for (tenant, path, body, expected) in cases {
        let answer = gateway.post(path, &[("x-plimsoll-key", tenant)], body.as_bytes()).await;
        assert_eq!(outcome(&answer), expected, "{tenant} {path} {body}");
    }
}

#[tokio::test]
async fn nothing_partial_and_no_failure_is_kept() {
    for wire in Wire::ALL {
        let error = json!({"error": {"message": "no", "type": "x"}}).to_string();
        let whole = String::from_utf8(whole_body(wire)).expect("text");
        let stop = |from: &str, to: &str| {
            assert!(whole.contains(from), "{whole}");
            Scripted::body(200, whole.replace(from, to)).header("content-type", "application/json")
        };
        let (short, refused) = match wire {
            Wire::AnthropicMessages => {
                (stop("end_turn", "max_tokens"), stop("end_turn", "refusal"))
            }
            Wire::ChatCompletions => {
                (stop("\"stop\"", "\"length\""), stop("\"stop\"", "\"content_filter\""))
            }
            Wire::Responses => (
                stop(
                    "\"status\":\"completed\",\"usage",
                    "\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"},\"usage",
                ),
                stop("output_text\"", "refusal\",\"refusal\":\"no\""),
            ),
            Wire::Gemini => (stop("STOP", "MAX_TOKENS"), stop("STOP", "SAFETY")),
        };
        let (begun, end) = whole.split_at(whole.len() / 2);
        let event = format!("data: {begun}");
        let faults = [
            (false, Scripted::body(500, &*error)),
            (false, Scripted::body(429, &*error)),
            (false, Scripted::body(200, &*error).header("content-type", "application/json")),
            (false, Scripted::body(200, &*whole).header("content-type", "text/html")),
            (false, Scripted::body(200, begun).header("content-type", "application/json").cut()),
            (false, Scripted::body(200, begun).header("content-type", "application/json")),
            (false, Scripted::body(200, end).header("content-type", "application/json")),
            (false, short),
            (false, refused),
            (true, Scripted::chunks([event.clone()]).cut()),
            (true, Scripted::chunks([event])),
            (true, Scripted::chunks([format!("data: {error}\n\n")])),
        ];
        for (number, (streams, fault)) in faults.into_iter().enumerate() {
            let upstream = ScriptedServer::start([fault, answered(wire, streams, SAID)]).await;
            let shelf = Arc::new(Shelf::default());
            let gateway = start(&upstream, &shelf).await;
            let (path, body) = asked(wire, streams, "Why is the sky blue?");
            gateway.post(path, &[], body.as_bytes()).await;
            assert_eq!(shelf.size(), 0, "{wire}: fault {number}");
            let answer = gateway.post(path, &[], body.as_bytes()).await;
            assert_eq!((answer.status, outcome(&answer)), (200, "untouched"), "{wire} {number}");
            assert_eq!(upstream.requests().len(), 2, "{wire}: fault {number}");
            assert_eq!(shelf.size(), 1, "{wire}: a whole one is kept behind fault {number}");
        }
    }
}

/// The bytes of a whole answer.
fn whole_body(wire: Wire) -> Vec<u8> {
    let body = match wire {
        Wire::AnthropicMessages => {
            json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": [{"type": "text", "text": SAID}], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 1, "output_tokens": 1}})
        }
        Wire::ChatCompletions => {
            json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": SAID}, "finish_reason": "stop"}]})
        }
        Wire::Responses => json!({"id": "r", "object": "response", "created_at": 1, "model": "m",
            "output": [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": SAID}]}],
            "status": "completed", "usage": null}),
        Wire::Gemini => {
            json!({"candidates": [{"content": {"role": "model", "parts": [{"text": SAID}]}, "finishReason": "STOP"}]})
        }
    };
    body.to_string().into_bytes()
}

#[tokio::test]
async fn what_acts_or_varies_is_never_taken_from_it() {
    let wire = Wire::ChatCompletions;
    let (path, body) = asked(wire, false, "Why is the sky blue?");
    let with = |more: &str| body.replacen('{', &format!("{{{more},"), 1);
    for body in [
        with(
            r#""tools":[{"type":"function","function":{"name":"t","parameters":{"type":"object"}}}]"#,
        ),
        with(r#""temperature":0.7"#),
        with(r#""web_search_options":{}"#),
        body.replace("sky blue", "latest sky blue"),
    ] {
        let upstream = ScriptedServer::start((0..2).map(|_| answered(wire, false, SAID))).await;
        let shelf = Arc::new(Shelf::default());
        let gateway = start(&upstream, &shelf).await;
        for _ in 0..2 {
            gateway.post(path, &[], body.as_bytes()).await;
        }
        assert_eq!((upstream.requests().len(), shelf.size()), (2, 0), "{body}");
    }
}

#[tokio::test]
async fn a_cache_that_does_not_answer_stands_in_nobodys_way() {
    let wire = Wire::AnthropicMessages;
    let (path, body) = asked(wire, true, "Why is the sky blue?");
    for work in [Work::Find, Work::Keep] {
        let upstream = ScriptedServer::start([answered(wire, true, SAID)]).await;
        let shelf = Arc::new(Shelf { stuck: Some(work), ..Shelf::default() });
        let gateway = start(&upstream, &shelf).await;
        let (answer, ()) = tokio::join!(gateway.post(path, &[], body.as_bytes()), async {
            shelf.waited().await;
            // Half of what our own work may take.
            gateway.clock.advance(Duration::from_millis(125));
        });
        assert_eq!(outcome(&answer), "untouched", "{work:?}");
        assert!(answer.text().contains("message_stop") && answer.is_whole, "{work:?}");
        assert_eq!(shelf.size(), usize::from(work == Work::Find), "{work:?}");
        let sessions = gateway.store.sessions(&TenantId::default(), 9).await.expect("a store");
        assert_eq!(sessions[0].messages, 3, "{work:?}: it is in the history");
    }
}

#[tokio::test]
async fn a_kept_answer_is_in_the_history_before_the_client_has_it() {
    let wire = Wire::AnthropicMessages;
    let (path, body) = asked(wire, true, "Why is the sky blue?");
    let upstream = ScriptedServer::start([answered(wire, true, SAID)]).await;
    let (shelf, gate) = (Arc::new(Shelf::default()), Arc::new(Gate::default()));
    let store: Arc<dyn HistoryStore> = gate.clone();
    let gateway = Running::with_answers(upstream.address(), store, shelf.clone(), |config| {
        config.on_store_failure = StoreFailure::Refuse;
    })
    .await;
    gateway.post(path, &[], body.as_bytes()).await;
    assert_eq!(shelf.size(), 1);
    gate.refuse();
    let answer = gateway.post(path, &[], body.as_bytes()).await;
    assert_eq!((answer.status, answer.header("x-plimsoll-refused")), (503, Some("not_kept")));
    assert!(!answer.text().contains(SAID));
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn what_the_history_has_not_the_cache_has_not() {
    let wire = Wire::AnthropicMessages;
    let (path, body) = asked(wire, true, "Why is the sky blue?");
    let upstream = ScriptedServer::start([answered(wire, true, SAID)]).await;
    let (shelf, gate) = (Arc::new(Shelf::default()), Arc::new(Gate::default()));
    gate.refuse();
    let store: Arc<dyn HistoryStore> = gate;
    let gateway = Running::with_answers(upstream.address(), store, shelf.clone(), |config| {
        config.on_store_failure = StoreFailure::Refuse;
    })
    .await;
    let answer = gateway.post(path, &[], body.as_bytes()).await;
    assert!(answer.text().contains("could not be kept") && !answer.is_whole);
    assert_eq!(shelf.size(), 0);
}

#[tokio::test]
async fn the_question_is_what_the_model_reads() {
    let wire = Wire::ChatCompletions;
    let (path, body) = asked(wire, false, "Hello");
    let asks = |address: &str| {
        let mut body: Value = serde_json::from_str(&body).expect("JSON");
        let messages = body["messages"].as_array_mut().expect("a list");
        messages.push(json!({"role": "assistant", "content": "Good morning."}));
        let question = format!("How do I write to {address} in a friendly way?");
        messages.push(json!({"role": "user", "content": question}));
        body.to_string()
    };
    for (redact, expected) in [(true, "cached"), (false, "untouched")] {
        let upstream = ScriptedServer::start((0..2).map(|_| answered(wire, false, SAID))).await;
        let (store, shelf) = (Arc::new(MemoryStore::default()), Arc::new(Shelf::default()));
        let gateway = Running::with_answers(upstream.address(), store, shelf, |config| {
            config.add.redact = redact;
        })
        .await;
        gateway.post(path, &[], asks("ann@example.com").as_bytes()).await;
        let other = gateway.post(path, &[], asks("bob@example.com").as_bytes()).await;
        assert_eq!(outcome(&other), expected, "{}", upstream.requests()[0].text());
    }
}
