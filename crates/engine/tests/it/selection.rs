//! Selection falls back, says so, and records what it decided.

use plimsoll_core::safety::Safety;
use plimsoll_core::select::{InterPhaseContextConfig, SelectionConfig, Strategy};
use plimsoll_core::{ContentHash, Message, MillisSinceEpoch, Role};
use plimsoll_engine::selection::{Selected, SelectionRequest, Selectors, select};
use plimsoll_engine::{
    ChatModel, ContextCard, Embedder, HistoryBatch, HistoryStore as _, MessageRecord, SelectionType,
};
use plimsoll_testkit::MemoryStore;
use plimsoll_testkit::sample::{card, session, tenant};

use crate::models::{Scripted, Unreachable, Words, unavailable};

fn record(position: u32, role: Role, phase: &str, text: &str) -> MessageRecord {
    let mut message = Message::text(role, text);
    message.phase = Some(phase.into());
    message.time = Some(MillisSinceEpoch(i64::from(position) * 60_000));
    MessageRecord {
        session: session("s"),
        position,
        hash: ContentHash::of(&message),
        message,
        tokens: 100,
        turn: position,
        recorded_at: MillisSinceEpoch(0),
    }
}

fn records() -> Vec<MessageRecord> {
    [
        (Role::System, "plan", "be exact"),
        (Role::User, "plan", "write the parser"),
        (Role::Assistant, "plan", "the cache comes first"),
        (Role::Assistant, "plan", "the weather is fine"),
        (Role::Assistant, "plan", "the plan is made"),
        (Role::Assistant, "build", "the parser has a cache"),
        (Role::Assistant, "build", "the build is done"),
    ]
    .iter()
    .enumerate()
    .map(|(at, (role, phase, text))| record(at as u32, *role, phase, text))
    .collect()
}

/// Cards with the vectors of [`Words`].
async fn embedded(messages: &[MessageRecord]) -> Vec<ContextCard> {
    let all: Vec<String> = messages.iter().map(|it| it.message.shown()).collect();
    let texts: Vec<&str> = all.iter().map(String::as_str).collect();
    let vectors = Words("words").embed(&texts).await.expect("vectors");
    let card = |(it, vector): (&MessageRecord, plimsoll_engine::Embedding)| ContextCard {
        is_anchor: false,
        embedding: Some(vector).filter(|vector| vector.check().is_ok()),
        ..card("t", it, &it.message.shown())
    };
    messages.iter().zip(vectors).map(card).collect()
}

async fn selected(
    config: &InterPhaseContextConfig,
    model: Option<&dyn ChatModel>,
    embedder: Option<&dyn Embedder>,
) -> Option<Selected> {
    let store = MemoryStore::default();
    let messages = records();
    let cards = if embedder.is_some() { embedded(&messages).await } else { Vec::new() };
    let batch = HistoryBatch { messages, cards, ..HistoryBatch::default() };
    store.append(&tenant("t"), batch).await.expect("appended");
    let safety = Safety::default();
    let selectors = Selectors { history: &store, model, embedder, safety: &safety };
    let name = session("s");
    let asked = SelectionRequest {
        session: &name,
        task: "test the cache of the parser",
        phases: &["plan".to_owned(), "build".to_owned()],
        current: Some("test"),
        config,
        turn: 3,
        cascade_id: Some("cascade"),
    };
    let found =
        select(&selectors, &tenant("t"), &asked, MillisSinceEpoch(9)).await.expect("selected");
    let kept = store.receipts(&tenant("t"), &name).await.expect("receipts");
    assert_eq!(kept, found.iter().map(|it| it.receipt.clone()).collect::<Vec<_>>());
    found
}

fn config(strategy: Strategy, max_tokens: u64) -> InterPhaseContextConfig {
    let selection = SelectionConfig { max_tokens, ..SelectionConfig::default() };
    InterPhaseContextConfig { strategy, selection, ..InterPhaseContextConfig::default() }
}

fn texts(selected: &Selected) -> Vec<String> {
    selected.messages.iter().map(|it| it.message.shown()).collect()
}

/// The hash of the message at a position.
fn hash(position: usize) -> String {
    records()[position].hash.short()
}

#[tokio::test]
async fn anchors_and_choice_come_in_the_order_of_the_session() {
    let found = selected(&config(Strategy::Heuristic, 300), None, None).await.expect("selected");
    assert_eq!(texts(&found), ["write the parser", "the parser has a cache", "the build is done"]);
    let receipt = &found.receipt;
    assert_eq!(receipt.selection_type, SelectionType::InterPhase);
    assert_eq!((receipt.full_history_size, receipt.context_size), (7, 3));
    assert_eq!((&*receipt.strategy, receipt.tokens_saved), ("heuristic", 400));
    assert_eq!(receipt.anchor_hashes, [hash(1), hash(6)]);
    assert_eq!(receipt.selected_hashes, [hash(5)]);
    assert_eq!(receipt.cascade_id.as_deref(), Some("cascade"));
}

#[tokio::test]
async fn a_model_chooses_by_short_hashes() {
    let answer = format!(r#"{{"selected": ["{}", "ffffffff"], "reasoning": "r"}}"#, &hash(3)[..8]);
    for strategy in [Strategy::Llm, Strategy::Hybrid] {
        let model = Scripted::saying(&[&answer]);
        let found = selected(&config(strategy, 900), Some(&model), None).await.expect("selected");
        assert_eq!(found.receipt.selected_hashes, [hash(3)]);
        assert_eq!((found.selection.used, found.selection.unknown_hashes), (strategy, 1));
        assert!(
            model.asked()[0].contains(&format!("[{}] assistant (plan, ~100 tok): ", &hash(3)[..8]))
        );
    }
}

#[tokio::test]
async fn any_failure_falls_back_and_says_so() {
    let why = async |strategy, model: Option<&dyn ChatModel>, embedder: Option<&dyn Embedder>| {
        let found = selected(&config(strategy, 300), model, embedder).await.expect("selected");
        assert_eq!(found.receipt.selected_hashes, [hash(5)], "as the heuristic chooses");
        assert_eq!(found.receipt.strategy, "heuristic");
        let receipt: serde_json::Value =
            serde_json::from_str(&found.receipt.receipt).expect("JSON");
        assert_eq!(receipt["asked"], strategy.as_str());
        receipt["fallback"].as_str().expect("a reason").to_owned()
    };
    assert!(why(Strategy::Llm, None, None).await.contains("no model"));
    assert!(why(Strategy::Semantic, None, None).await.contains("no embedder"));
    let busy = Scripted::new([Err(unavailable())]);
    assert!(why(Strategy::Llm, Some(&busy), None).await.contains("busy"));
    let prose = Scripted::saying(&["I would take the first"]);
    assert!(why(Strategy::Hybrid, Some(&prose), None).await.contains("no JSON object"));
    assert!(why(Strategy::Semantic, None, Some(&Unreachable)).await.contains("busy"));
    let other = Words("another model");
    assert!(why(Strategy::Semantic, None, Some(&other)).await.contains("no card has a vector"));
}

#[tokio::test]
async fn likeness_of_meaning_needs_vectors_of_the_same_model() {
    let words = Words("words");
    let found = selected(&config(Strategy::Semantic, 900), None, Some(&words)).await;
    let found = found.expect("selected");
    assert_eq!(found.selection.used, Strategy::Semantic);
    // Both words: 1; one of them: .71; another, or none: no.
    assert_eq!(found.receipt.selected_hashes, [hash(5), hash(2)]);
}

#[tokio::test]
async fn off_is_off() {
    let off = InterPhaseContextConfig { enabled: false, ..InterPhaseContextConfig::default() };
    assert!(selected(&off, None, None).await.is_none());
}
