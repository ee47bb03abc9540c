//! Remembering over a store: what is met again, changes, is superseded, ages and is forgotten.

use plimsoll_core::memory::extract::Extraction;
use plimsoll_core::memory::lifecycle::{Event, LifecycleSettings, Severity};
use plimsoll_core::memory::{MemoryKind, MemoryState, Outcome};
use plimsoll_core::safety::{Action, Handling, Safety};
use plimsoll_core::{ContentHash, Message, MillisSinceEpoch, Role};
use plimsoll_engine::cards::CardSettings;
use plimsoll_engine::remember::{
    Details, Edit, MemoryError, NewMemory, Novelty, Remember, SourceConfidence, from_line,
    queue_model_pass, to_line,
};
use plimsoll_engine::work::{MemoryRules, Workers};
use plimsoll_engine::{
    HistoryBatch, HistoryStore as _, KnowledgeStore as _, MemoryId, MemoryRecord, MemoryVersion,
    MessageRecord, Scope, StoreError,
};
use plimsoll_testkit::MemoryStore;
use plimsoll_testkit::sample::{session, tenant};

use crate::models::{Manual, Scripted, Words};

const NOW: MillisSinceEpoch = MillisSinceEpoch(1_700_000_000_000);
const DAY: i64 = 86_400_000;
const IGNORE: Handling = Handling { personal: Action::Ignore, secrets: Action::Redact };

struct Desk {
    store: MemoryStore,
    lifecycles: LifecycleSettings,
    confidence: SourceConfidence,
}

impl Desk {
    fn new() -> Self {
        Self {
            store: MemoryStore::new(),
            lifecycles: LifecycleSettings::default(),
            confidence: SourceConfidence::default(),
        }
    }

    async fn with<T>(&self, work: impl AsyncFnOnce(Remember<'_>) -> T) -> T {
        let tenant = tenant("a");
        work(Remember {
            knowledge: &self.store,
            embedder: Some(&Words("w")),
            tenant: &tenant,
            lifecycles: &self.lifecycles,
            confidence: &self.confidence,
            handling: IGNORE,
        })
        .await
    }

    async fn add(&self, new: NewMemory) -> (MemoryRecord, Novelty) {
        self.with(async |remember| remember.add(new, NOW).await.expect("remembered")).await
    }

    async fn change(&self, id: &MemoryId, event: Event) -> Result<MemoryRecord, MemoryError> {
        self.with(async |remember| remember.change(id, &event, NOW).await).await
    }

    async fn all(&self) -> Vec<MemoryRecord> {
        let changes = self.store.memory_changes(&tenant("a"), MemoryVersion::default()).await;
        let mut records = changes.expect("records").records;
        records.sort_by(|a, b| a.id.cmp(&b.id));
        records
    }
}

fn fact(text: &str) -> NewMemory {
    NewMemory::new(MemoryKind::Fact, text)
}

fn from(text: &str, source: &str) -> NewMemory {
    NewMemory { source_ref: Some(source.into()), origin: "user".into(), ..fact(text) }
}

#[tokio::test]
async fn what_is_met_again_is_confirmed_by_each_source_once() {
    let desk = Desk::new();
    let (first, met) = desk.add(from("Tim prefers Celsius.", "ref:message:1111111111111111")).await;
    assert_eq!((met, first.state, first.origin.as_str()), (Novelty::New, MemoryState::New, "user"));
    let again = from("tim prefers  celsius", "ref:message:1111111111111111");
    let (same, met) = desk.add(again).await;
    assert_eq!((met, &same.id, same.state), (Novelty::Known, &first.id, MemoryState::New));
    let mut state = Vec::new();
    for source in ["2222222222222222", "3333333333333333", "4444444444444444"] {
        let (record, met) =
            desk.add(from("Tim prefers Celsius", &format!("ref:message:{source}"))).await;
        assert_eq!(met, Novelty::Confirmed);
        state.push(record.state);
    }
    assert_eq!(state, [MemoryState::Confirmed, MemoryState::Confirmed, MemoryState::Core]);
    assert_eq!(desk.all().await.len(), 1);
    // Another user's word is another record, another session's is not.
    let theirs = Scope { user: Some("ann".into()), ..Scope::default() };
    let (other, met) = desk.add(NewMemory { scope: theirs, ..fact("Tim prefers Celsius") }).await;
    assert_eq!(met, Novelty::New);
    assert_ne!(other.id, first.id);
    let later = Scope { session: Some(session("s2")), ..Scope::default() };
    let said =
        NewMemory { scope: later, ..from("Tim prefers Celsius", "ref:message:5555555555555555") };
    assert_eq!(desk.add(said).await.1, Novelty::Confirmed);
}

#[tokio::test]
async fn only_the_operator_takes_a_record_over() {
    let desk = Desk::new();
    let (heard, _) = desk.add(NewMemory { origin: "tool".into(), ..fact("The port is 80") }).await;
    assert!((heard.confidence - 0.6).abs() < 1e-6);
    let (same, met) = desk.add(NewMemory { origin: "user".into(), ..fact("The port is 80") }).await;
    assert_eq!((met, same.origin.as_str()), (Novelty::Known, "tool"));
    let (own, met) = desk.add(fact("The port is 80")).await;
    assert_eq!((met, own.origin.as_str()), (Novelty::Confirmed, "operator"));
    let (still, _) = desk.add(NewMemory { origin: "tool".into(), ..fact("The port is 80") }).await;
    assert_eq!(still.origin, "operator");
}

#[tokio::test]
async fn levels_are_written_again_when_the_outcome_is_known() {
    let desk = Desk::new();
    let decision = NewMemory {
        points: vec!["One backup".into()],
        confidence: Some(0.85),
        full: Some("all of the discussion".into()),
        ..NewMemory::new(MemoryKind::Decision, "Chose Postgres")
    };
    let (recorded, _) = desk.add(decision).await;
    assert_eq!(recorded.micro, "Chose Postgres [pending, 0.85]");
    assert_eq!(recorded.summary.as_deref(), Some("Chose Postgres [pending, 0.85] — One backup."));
    let reviewed = desk
        .with(async |remember| {
            let later = MillisSinceEpoch(NOW.0 + DAY);
            remember.review(&recorded.id, Outcome::Success, "8.5x faster", later).await
        })
        .await
        .expect("reviewed");
    assert_eq!(
        (reviewed.state, &*reviewed.micro),
        (MemoryState::Reviewed, "Chose Postgres [success, 0.85]")
    );
    let summary = "Chose Postgres [success, 0.85] — One backup. 8.5x faster.";
    assert_eq!(reviewed.summary.as_deref(), Some(summary));
    // As of the day before it was open.
    let before = desk.store.memory(&tenant("a"), &recorded.id, Some(NOW)).await.expect("as it was");
    assert_eq!(before, recorded);
    let refused = desk.change(&recorded.id, Event::Confirmed).await;
    assert!(matches!(refused, Err(MemoryError::Refused(_))), "only facts are confirmed");
    let twice = desk
        .with(async |remember| remember.review(&recorded.id, Outcome::Failure, "", NOW).await)
        .await;
    assert!(matches!(twice, Err(MemoryError::Refused(_))));
}

#[tokio::test]
async fn a_record_is_superseded_once_and_never_in_a_circle() {
    let desk = Desk::new();
    let (old, _) = desk.add(fact("The server is in Graz")).await;
    let supersede = async |id: &MemoryId, text: &str| {
        desk.with(async |remember| remember.supersede(id, fact(text), NOW).await).await
    };
    let (before, next) = supersede(&old.id, "The server is in Wien").await.expect("superseded");
    assert_eq!(
        (before.state, before.superseded_by.as_ref()),
        (MemoryState::Superseded, Some(&next.id))
    );
    assert_eq!(desk.all().await.len(), 2);
    assert!(matches!(
        supersede(&old.id, "The server is in Linz").await,
        Err(MemoryError::Refused(_))
    ));
    assert!(matches!(
        supersede(&next.id, "The server is in Graz").await,
        Err(MemoryError::Circle(_))
    ));
    assert_eq!(desk.all().await.len(), 2, "what was refused left nothing behind");
    let missing = supersede(&MemoryId("none".into()), "x").await;
    assert!(matches!(missing, Err(MemoryError::Store(StoreError::NotFound { .. }))));
}

#[tokio::test]
async fn censors_escalate_and_procedures_prove_themselves() {
    let desk = Desk::new();
    let censor = NewMemory {
        name: "push to main".into(),
        ..NewMemory::new(MemoryKind::Censor, "review first")
    };
    let (censor, _) = desk.add(censor).await;
    let mut last = censor.clone();
    for _ in 0..6 {
        last = desk.change(&censor.id, Event::Triggered).await.expect("it speaks");
    }
    assert_eq!(last.state, MemoryState::Escalated);
    assert_eq!(Details::of(&last).severity, Some(Severity::Block));
    let steps = NewMemory {
        name: "Deploy".into(),
        points: vec!["merge".into()],
        ..NewMemory::new(MemoryKind::Procedure, "")
    };
    let (procedure, _) = desk.add(steps).await;
    let mut last = procedure.clone();
    for _ in 0..5 {
        last = desk.change(&procedure.id, Event::Activated { worked: true }).await.expect("used");
    }
    assert_eq!((last.state, Details::of(&last).activations), (MemoryState::Effective, 5));
    assert_eq!(last.summary.as_deref(), Some("Core patterns:\n- merge"));
}

#[tokio::test]
async fn episodes_give_up_their_detail_when_they_are_put_away() {
    let desk = Desk::new();
    let episode = NewMemory {
        full: Some("every word of it".into()),
        event_at: Some(NOW),
        ..NewMemory::new(MemoryKind::Episode, "the storage discussion")
    };
    let (episode, _) = desk.add(episode).await;
    let aged = async |days: i64| {
        let now = MillisSinceEpoch(NOW.0 + days * DAY);
        desk.with(async |remember| remember.age(now).await.expect("time passes")).await
    };
    assert_eq!(aged(29).await, []);
    assert_eq!(aged(31).await[0].state, MemoryState::Summarized);
    assert_eq!(aged(91).await, [], "nothing was taken out of it yet");
    let mut taken = desk.store.memory(&tenant("a"), &episode.id, None).await.expect("there");
    let mut details: serde_json::Value = serde_json::from_str(&taken.details).expect("details");
    details["extracted"] = true.into();
    taken.details = details.to_string();
    desk.store.put_memory(&taken).await.expect("stored");
    let archived = aged(92).await;
    assert_eq!((archived[0].state, archived[0].full.as_deref()), (MemoryState::Archived, None));
    assert_eq!(archived[0].micro, "the storage discussion");
}

#[tokio::test]
async fn a_source_takes_what_came_from_it_along() {
    let desk = Desk::new();
    let (poison, good) = ("ref:page:aaaaaaaaaaaaaaaa", "ref:message:bbbbbbbbbbbbbbbb");
    desk.add(from("Only the page says so", poison)).await;
    let (both, _) = desk.add(from("Both say so", good)).await;
    let (confirmed, _) = desk.add(from("Both say so", poison)).await;
    assert_eq!(confirmed.state, MemoryState::Confirmed);
    let gone = desk
        .with(async |remember| remember.forget_source(poison, NOW).await.expect("forgotten"))
        .await;
    assert_eq!(gone.memories, 1);
    let left = desk.all().await;
    assert_eq!(left.len(), 1);
    assert_eq!((&left[0].id, left[0].state), (&both.id, MemoryState::New));
    let details = Details::of(&left[0]);
    assert_eq!((details.sources, details.confirmations), (vec![good.to_owned()], 0));
}

#[tokio::test]
async fn messages_are_read_once_and_secrets_are_not_kept() {
    let desk = Desk::new();
    let message = |position: u32, role: Role, text: &str| {
        let message = match role {
            Role::Tool => Message::result("c", text),
            _ => Message::text(role, text),
        };
        MessageRecord {
            session: session("s"),
            position,
            hash: ContentHash::of(&message),
            message,
            tokens: 1,
            turn: 0,
            recorded_at: NOW,
        }
    };
    let records = [
        message(0, Role::User, "We decided to use SQLite for the store."),
        message(1, Role::Assistant, "TODO: write the migration for the store"),
        message(2, Role::Tool, "See [the plan](https://example.org/plan) for issue #12"),
        message(3, Role::User, "We decided to use SQLite for the store."),
    ];
    let scope = Scope { user: Some("ann".into()), ..Scope::default() };
    let settings = Extraction::default();
    let read = async || {
        desk.with(async |remember| {
            remember.extract(&records, &scope, &settings, NOW).await.expect("read")
        })
        .await
    };
    let first = read().await;
    assert_eq!((first.messages, first.confirmed), (4, 0), "the same message twice is one source");
    assert!(first.new >= 1, "{first:?}");
    let again = read().await;
    assert_eq!((again.new, again.confirmed, again.known), (0, 0, first.new + first.known));
    let all = desk.all().await;
    assert_eq!(all.len() as u64, first.new);
    for record in &all {
        assert_eq!(record.scope.user.as_deref(), Some("ann"));
        assert!(["user", "assistant", "tool"].contains(&&*record.origin));
        assert!(record.source_ref.as_deref().expect("a source").starts_with("ref:message:"));
    }
    let key = format!("the key is ghp{}", "_16C7e42F292c6912E7710c838347Ae178B4a");
    let (kept, _) = desk.add(fact(&key)).await;
    assert!(!kept.micro.contains("42F2") && !kept.details.contains("42F2"), "{}", kept.micro);
}

#[tokio::test]
async fn a_model_finds_facts_by_jobs_and_each_message_is_asked_about_once() {
    let desk = Desk::new();
    let (a, clock) = (tenant("a"), Manual::default());
    let text =
        format!("We will move the log to Postgres 18. {}", "The reasons are many. ".repeat(9));
    let message = Message::text(Role::Assistant, text);
    let record = MessageRecord {
        session: session("s"),
        position: 0,
        hash: ContentHash::of(&message),
        message,
        tokens: 1,
        turn: 0,
        recorded_at: NOW,
    };
    let records = [record];
    let batch = HistoryBatch { messages: records.to_vec(), ..HistoryBatch::default() };
    desk.store.append(&a, batch).await.expect("appended");
    let (settings, safety) = (CardSettings::default(), Safety::default());
    let scope = Scope { user: Some("ann".into()), ..Scope::default() };
    let queue = async || {
        queue_model_pass(&desk.store, &a, &records, &scope, &settings, MillisSinceEpoch(0)).await
    };
    assert_eq!((queue().await.expect("queued"), queue().await.expect("known")), (1, 0));
    let model = Scripted::saying(&[r#"{"facts": [
            {"kind": "decision", "text": "The log moves to Postgres 18.", "points": ["The reasons are many."]},
            {"kind": "procedure", "text": "Moving the log", "points": ["Install Postgres 18."]},
            {"kind": "censor", "text": "No log outside Postgres", "points": ["It would be late."]},
            {"kind": "preference", "text": "The user likes Postgres 18.", "points": []},
            {"kind": "fact", "text": "It costs 99 euros.", "points": []}]}"#]);
    let extraction = Extraction::default();
    let workers = Workers {
        history: &desk.store,
        knowledge: &desk.store,
        model: Some(&model),
        embedder: None,
        clock: &clock,
        settings: &settings,
        safety: &safety,
        memory: Some(MemoryRules {
            lifecycles: &desk.lifecycles,
            confidence: &desk.confidence,
            extraction: &extraction,
        }),
        owner: "one",
    };
    let worked = workers.work(&a, |_| ()).await.expect("worked");
    assert_eq!((worked.done, worked.failed, worked.tokens), (1, 0, 120));
    let all = desk.all().await;
    let mut kinds: Vec<MemoryKind> = all.iter().map(|record| record.kind).collect();
    kinds.sort_unstable();
    assert_eq!(
        kinds,
        [MemoryKind::Decision, MemoryKind::Procedure, MemoryKind::Censor],
        "neither what the message does not hold nor what its author cannot state: {all:?}"
    );
    assert_eq!((&*all[0].origin, all[0].scope.user.as_deref()), ("assistant", Some("ann")));
    assert_eq!(all[0].tags, ["by:model"]);
}

#[tokio::test]
async fn what_is_incomplete_or_says_something_else_is_refused_and_nothing_is_stored() {
    let desk = Desk::new();
    let named = |text: &str| NewMemory { id: Some(MemoryId("it".into())), ..fact(text) };
    let all = [
        vec![fact(" ")],
        vec![NewMemory::new(MemoryKind::Procedure, "without a name")],
        vec![NewMemory::new(MemoryKind::Censor, "")],
        vec![named("one"), named("another")],
    ];
    for new in all {
        let refused = desk.with(async |remember| remember.add_all(new, NOW).await).await;
        assert!(matches!(refused, Err(MemoryError::Incomplete { .. } | MemoryError::Taken { .. })));
    }
    assert_eq!(desk.all().await, []);
}

#[tokio::test]
async fn records_go_out_and_come_in_as_lines() {
    let desk = Desk::new();
    let (record, _) = desk.add(from("Tim likes the weather", "ref:message:1111111111111111")).await;
    assert!(record.embedding.is_some());
    let line = to_line(&record).expect("a line");
    let back = from_line(&line, &tenant("b")).expect("a record");
    assert_eq!(back, MemoryRecord { tenant: tenant("b"), embedding: None, ..record });
    assert!(matches!(from_line("{}", &tenant("b")), Err(StoreError::Invalid { .. })));
}

#[tokio::test]
async fn every_source_has_its_own_confidence() {
    let base = SourceConfidence::default();
    let all = [
        ("operator", SourceConfidence { operator: 0.11, ..base.clone() }),
        ("user", SourceConfidence { user: 0.12, ..base.clone() }),
        ("assistant", SourceConfidence { assistant: 0.13, ..base.clone() }),
        ("tool", SourceConfidence { tool: 0.14, ..base.clone() }),
        ("somebody", SourceConfidence { other: 0.15, ..base.clone() }),
    ];
    for (origin, changed) in all {
        let new = NewMemory { origin: origin.into(), ..fact("x") };
        let (usual, _) = Desk::new().add(new.clone()).await;
        let desk = Desk { confidence: changed, ..Desk::new() };
        let own = desk.add(new).await.0.confidence;
        assert!((own - usual.confidence).abs() > 0.01, "{origin}");
    }
}

#[tokio::test]
async fn what_was_forgotten_is_not_taken_from_a_message_again() {
    let desk = Desk::new();
    let one = || from("The port is 8080", "ref:message:1111111111111111");
    let (record, _) = desk.add(one()).await;
    desk.with(async |remember| {
        remember.forget(std::slice::from_ref(&record.id)).await.expect("gone")
    })
    .await;
    assert_eq!(desk.add(one()).await.1, Novelty::Forgotten);
    let elsewhere = from("the port is 8080.", "ref:message:2222222222222222");
    assert_eq!(desk.add(elsewhere).await.1, Novelty::Forgotten);
    assert_eq!(desk.all().await.len(), 0);
    // The operator may say it again.
    assert_eq!(desk.add(fact("The port is 8080")).await.1, Novelty::New);
    let source = "ref:message:3333333333333333";
    desk.with(async |remember| remember.forget_source(source, NOW).await.expect("gone")).await;
    assert_eq!(desk.add(from("The host is north", source)).await.1, Novelty::Forgotten);
}

#[tokio::test]
async fn what_was_corrected_is_not_taken_from_a_message_again() {
    let desk = Desk::new();
    let one = || from("The port is 80", "ref:message:1111111111111111");
    let (record, _) = desk.add(one()).await;
    let edit = Edit { text: Some("The port is 8080".into()), ..Edit::default() };
    let edited = desk
        .with(async |remember| remember.edit(&record.id, &edit, NOW).await)
        .await
        .expect("edited");
    assert_eq!((&*edited.micro, &*edited.origin), ("The port is 8080", "operator"));
    assert_eq!(desk.add(one()).await.1, Novelty::Known);
    let before = desk.store.memory(&tenant("a"), &record.id, Some(record.updated_at)).await;
    assert_eq!(before.expect("its history").micro, "The port is 80");
    // Forgotten, neither text comes back.
    desk.with(async |remember| {
        remember.forget(std::slice::from_ref(&record.id)).await.expect("gone")
    })
    .await;
    assert_eq!(desk.add(one()).await.1, Novelty::Forgotten);
    let other = from("The port is 8080", "ref:message:2222222222222222");
    assert_eq!(desk.add(other).await.1, Novelty::Forgotten);
}

#[tokio::test]
async fn every_kind_can_be_disproved_and_retired() {
    for kind in MemoryKind::ALL {
        let desk = Desk::new();
        for (event, state) in
            [(Event::Disproved, MemoryState::Inactive), (Event::Retired, MemoryState::Retired)]
        {
            let text = format!("one that is {}", state.as_str());
            let new = NewMemory { name: "name".into(), ..NewMemory::new(*kind, text) };
            let (record, _) = desk.add(new).await;
            let changed = desk.change(&record.id, event).await.expect("corrected");
            assert_eq!(changed.state, state, "{kind:?}");
        }
        // Time passes for all of them.
        desk.with(async |remember| remember.age(NOW).await.expect("aged")).await;
    }
}
