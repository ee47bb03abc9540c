//! The budget is a ceiling over all that leaves: messages, memory, our own tools, and lookups, within a turn and later.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_core::{ContentHash, Message, Role, Tokenizer};
use plimsoll_engine::live::AddedMemory;
use plimsoll_engine::{SessionId, TenantId};
use plimsoll_gateway::{Memory, Recalled};
use plimsoll_testkit::MemoryStore;
use plimsoll_testkit::upstream::{Scripted, ScriptedServer};
use plimsoll_wire::{ProviderRequest, Wire, check};
use serde_json::json;

use crate::harness::Running;
use crate::talk::{Talk, WIRES};

const CALLS: [&str; 6] = ["call_0", "call_1", "call_2", "call_3", "call_4", "call_5"];
const LOOKUPS: [&str; 6] = ["own_0", "own_1", "own_2", "own_3", "own_4", "own_5"];

/// Knows a paragraph for every question.
#[derive(Debug)]
struct Paragraph;

#[async_trait]
impl Memory for Paragraph {
    async fn recalled(
        &self,
        _: &TenantId,
        _: &SessionId,
        messages: &[Arc<Message>],
        _: &BTreeSet<Arc<str>>,
        _: Option<u64>,
    ) -> Option<Recalled> {
        let last = messages.last().filter(|message| message.role == Role::User)?;
        let berth = "the boat lies at berth 14. ".repeat(10);
        let text = format!("KNOWN of {}: {berth}", last.shown()).into();
        Some(Recalled { added: AddedMemory { text, records: Vec::new() }, assembly: None })
    }
}

fn file(number: usize) -> String {
    let lines = (0..120).map(|line| format!("fn part_{number}_{line}() {{ step({line}); }}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Counts a request as the gateway does: its messages by the model's tokenizer, our own tools by their size.
fn tokens(wire: Wire, path: &str, body: &[u8]) -> u64 {
    let request = ProviderRequest::parse(wire, body, path, 64).expect("a request");
    let tokenizer = Tokenizer::for_model(request.model().unwrap_or_default());
    let messages = request.messages().iter();
    let messages: u64 = messages.map(|one| u64::from(tokenizer.count_message(one))).sum();
    let tools = request.tools();
    let own = tools.iter().filter(|tool| tool.name != "read");
    messages + own.map(|tool| tool.raw.len() as u64 / 4).sum::<u64>()
}

/// Plays a session with a lookup in every turn; returns the tokens of each request that left, and how many lookups they hold.
async fn play(wire: Wire, budget: u64) -> (Vec<u64>, usize) {
    let mut talk = Talk::new(wire, false, "Read the first file.");
    let reference = ContentHash::of(&Message::result(CALLS[0], file(0)));
    let lookup = |turn: usize| {
        (LOOKUPS[turn], "expand_ref", json!({"ref": format!("ref:message:{reference}")}))
    };
    let read = |turn: usize| (CALLS[turn], "read", json!({"path": format!("{turn}.rs")}));
    let mut script: Vec<Scripted> = Vec::new();
    for turn in 0..CALLS.len() {
        script.push(talk.answer("Let me look.", &[lookup(turn)]));
        script.push(talk.answer("On to the next.", &[read(turn)]));
    }
    let upstream = ScriptedServer::start(script).await;
    let store = Arc::new(MemoryStore::default());
    let gateway =
        Running::with_memory(upstream.address(), store, Arc::new(Paragraph), |_| {}).await;
    let budget = budget.to_string();
    for (turn, call) in CALLS.into_iter().enumerate() {
        let answer =
            gateway.post(talk.path(), &[("x-plimsoll-budget", &budget)], &talk.body()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        talk.repeats(&answer.body);
        talk.result(call, &file(turn));
        talk.asks(&format!("Read file {} too.", turn + 1));
    }
    let requests = upstream.requests();
    let sizes = requests.iter().map(|request| {
        assert_eq!(check(wire, &request.body), []);
        tokens(wire, talk.path(), &request.body)
    });
    let last = requests.last().expect("requests").text();
    (sizes.collect(), last.matches("own_").count())
}

#[tokio::test]
async fn no_request_passes_it() {
    for wire in WIRES {
        let mut lookups = Vec::new();
        for budget in [2_500, 4_000, 8_000, 40_000] {
            let (sizes, count) = play(wire, budget).await;
            assert!(sizes.len() >= CALLS.len(), "{wire} {budget}: {sizes:?}");
            let largest = sizes.iter().max().copied().unwrap_or_default();
            assert!(largest <= budget, "{wire} {budget}: {sizes:?}");
            lookups.push(count);
        }
        // With more room more lookups of earlier turns are put back.
        assert!(lookups.is_sorted() && lookups[0] < lookups[3], "{wire}: {lookups:?}");
    }
}
