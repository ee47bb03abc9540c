//! Messages get cards and jobs as they are stored, where the settings ask for it.

use std::sync::Arc;

use plimsoll_engine::cards::CardSettings;
use plimsoll_engine::{
    ContextCard, HistoryStore as _, Job, KnowledgeStore as _, SessionId, TenantId,
};
use plimsoll_gateway::Observation;
use plimsoll_testkit::MemoryStore;
use plimsoll_testkit::upstream::ScriptedServer;
use plimsoll_wire::Wire;

use crate::harness::Running;
use crate::talk::Talk;

/// Long enough that a model may find facts in it.
const QUESTION: &str = "Where does the boat lie? She came in on Monday with a torn sail, and the harbour \
    master said that she would be moved before the regatta.";
const ANSWER: &str = "At berth 14.";

/// Plays two turns, of which the second repeats the words of the first; returns the cards and jobs that are left.
async fn played(
    observation: impl FnOnce(Arc<MemoryStore>) -> Option<Observation>,
) -> (Vec<ContextCard>, Vec<Job>) {
    let mut talk = Talk::new(Wire::AnthropicMessages, false, QUESTION);
    let upstream =
        ScriptedServer::start([talk.answer(ANSWER, &[]), talk.answer(ANSWER, &[])]).await;
    let store = Arc::new(MemoryStore::default());
    let gateway = match observation(store.clone()) {
        Some(observation) => {
            Running::with_observation(upstream.address(), store.clone(), observation).await
        }
        None => Running::with_store(upstream.address(), store.clone(), |_| {}).await,
    };
    let mut session = None;
    for _ in 0..2 {
        let answer = gateway.post(talk.path(), &[], &talk.body()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        session = answer.header("x-plimsoll-session").and_then(|id| SessionId::new(id).ok());
        talk.said(ANSWER, &[]);
        talk.asks(QUESTION);
    }
    // A gateway that stops has ended what works behind its answers.
    gateway.stopped().await;
    let (tenant, session) = (TenantId::default(), session.expect("a session is named"));
    let messages = store.messages(&tenant, &session, 0, 99).await.expect("messages");
    // With the system prompt, which gets no card.
    assert_eq!(messages.len(), 5);
    let cards = store.cards(&tenant, &session).await.expect("cards");
    (cards, store.jobs(&tenant, None, 99).await.expect("jobs"))
}

#[tokio::test]
async fn each_content_gets_a_card_and_its_jobs() {
    for facts in [false, true] {
        let (cards, jobs) = played(|knowledge| {
            let cards = CardSettings { facts, ..CardSettings::default() };
            Some(Observation { knowledge, cards })
        })
        .await;
        assert_eq!(cards.len(), 2, "{cards:?}");
        let input = cards.iter().find(|card| card.is_anchor).expect("the question is the input");
        assert!(QUESTION.starts_with(&input.summary[..20]));
        assert!(cards.iter().any(|card| card.summary == ANSWER));
        let kinds: Vec<&str> = jobs.iter().map(|job| &*job.job.kind).collect();
        let expected = ["context_card", "context_card", "extract_facts"];
        assert_eq!(kinds, expected[..2 + usize::from(facts)]);
    }
}

#[tokio::test]
async fn without_the_setting_messages_are_stored_only() {
    let (cards, jobs) = played(|_| None).await;
    assert!(cards.is_empty() && jobs.is_empty());
}
