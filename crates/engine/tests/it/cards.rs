//! Cards are made once, kept whatever fails, and held to quotas.

use plimsoll_core::safety::{Action, Handling, Safety};
use plimsoll_core::{ContentHash, Message, MillisSinceEpoch, Role};
use plimsoll_engine::cards::{CardSettings, FAST, TRUNCATED, queue_summaries};
use plimsoll_engine::observe::{MessageObserver, catch_up};
use plimsoll_engine::work::{Audit, SummaryAuthor, Worked, Workers, queue_embedding};
use plimsoll_engine::{
    ChatModel, Clock as _, ContextCard, Embedder, HistoryBatch, HistoryStore as _, JobState,
    KnowledgeStore as _, MessageRecord, TenantId,
};
use plimsoll_testkit::MemoryStore;
use plimsoll_testkit::sample::{artefact, session, tenant};

use crate::models::{Manual, Scripted, Stuck, Unreachable, Words, unavailable};

const LONG: &str = "The parser was rewritten so that the cache is no longer read twice. ";

struct World {
    store: MemoryStore,
    clock: Manual,
    settings: CardSettings,
    safety: Safety,
    tenant: TenantId,
}

impl World {
    fn new() -> Self {
        Self {
            store: MemoryStore::default(),
            clock: Manual::default(),
            settings: CardSettings { worker_threads: 1, observe: true, ..CardSettings::default() },
            safety: Safety::default(),
            tenant: tenant("t"),
        }
    }

    /// Stores messages in a session and observes them.
    async fn say(&self, session_name: &str, messages: &[Message]) {
        let from = self.store.messages(&self.tenant, &session(session_name), 0, 999).await;
        let earlier = from.expect("a session");
        let from = earlier.len();
        let records: Vec<MessageRecord> = messages
            .iter()
            .enumerate()
            .map(|(at, message)| MessageRecord {
                session: session(session_name),
                position: (from + at) as u32,
                hash: ContentHash::of(message),
                message: message.clone(),
                tokens: 50,
                turn: at as u32,
                recorded_at: self.clock.now(),
            })
            .collect();
        let batch = HistoryBatch { messages: records, ..HistoryBatch::default() };
        let is_known =
            |record: &MessageRecord| earlier.iter().any(|known| known.hash == record.hash);
        let observed = self.observer().observe(batch, is_known, self.clock.now()).await;
        observed.expect("observed");
    }

    fn observer(&self) -> MessageObserver<'_> {
        let (history, knowledge) = (&self.store, &self.store);
        MessageObserver { history, knowledge, tenant: &self.tenant, settings: &self.settings }
    }

    fn workers<'a>(
        &'a self,
        model: Option<&'a dyn ChatModel>,
        embedder: Option<&'a dyn Embedder>,
    ) -> Workers<'a> {
        Workers {
            history: &self.store,
            knowledge: &self.store,
            model,
            embedder,
            clock: &self.clock,
            settings: &self.settings,
            safety: &self.safety,
            memory: None,
            owner: "one",
        }
    }

    async fn work(&self, model: Option<&dyn ChatModel>, embedder: Option<&dyn Embedder>) -> Worked {
        self.workers(model, embedder).work(&self.tenant, |_| ()).await.expect("worked")
    }

    async fn cards(&self, name: &str) -> Vec<ContextCard> {
        self.store.cards(&self.tenant, &session(name)).await.expect("cards")
    }

    /// The audit of the job with this place in the queue.
    async fn audit(&self, at: usize) -> Audit {
        let jobs = self.store.jobs(&self.tenant, None, 999).await.expect("jobs");
        serde_json::from_str(jobs[at].result.as_deref().expect("a result")).expect("an audit")
    }

    async fn states(&self) -> Vec<JobState> {
        let jobs = self.store.jobs(&self.tenant, None, 999).await.expect("jobs");
        jobs.into_iter().map(|job| job.state).collect()
    }
}

fn long(text: &str) -> Message {
    Message::text(Role::Assistant, format!("{text} {}", LONG.repeat(4)))
}

#[tokio::test]
async fn every_message_that_deserves_it_has_a_card_at_once() {
    let world = World::new();
    let mut callout = Message::text(Role::Assistant, "remember this");
    callout.callout = Some("key".into());
    let messages = [
        Message::text(Role::System, "be exact"),
        Message::text(Role::User, "fix the parser"),
        long("done"),
        Message::result("1", r#"{"error": "no such file"}"#),
        callout,
    ];
    world.say("s", &messages).await;
    let mut cards = world.cards("s").await;
    cards.sort_by_key(|card| card.turn_number);
    let told: Vec<(&str, &str)> = cards
        .iter()
        .map(|card| (card.summary.get(..10).unwrap_or_default(), &*card.generator_model))
        .collect();
    assert_eq!(
        told,
        [
            ("fix the pa", FAST),
            ("done The p", TRUNCATED),
            ("Tool error", FAST),
            ("remember t", FAST)
        ]
    );
    assert!(cards[0].is_anchor && !cards[1].is_anchor, "the input is an anchor");
    assert_eq!(cards[3].callout_name.as_deref(), Some("key"));
    assert_eq!(cards[0].keywords, ["parser"]);
}

#[tokio::test]
async fn a_model_summarises_once_whatever_is_said_again() {
    let world = World::new();
    let model = Scripted::saying(&["The parser reads the cache once now."]);
    world.say("s", &[long("a"), long("a")]).await;
    world.say("other", &[long("a")]).await;
    let worked = world.work(Some(&model), None).await;
    assert_eq!((worked.summarised, worked.done, worked.tokens), (1, 2, 120));
    world.say("s", &[long("a")]).await;
    let again = world.work(Some(&model), None).await;
    assert_eq!((again.taken, model.asked().len()), (0, 1));
    for name in ["s", "other"] {
        let cards = world.cards(name).await;
        assert_eq!(cards.len(), 1);
        assert_eq!(cards[0].summary, "The parser reads the cache once now.");
        assert_eq!(cards[0].generator_model, "test/scripted");
        assert!(cards[0].keywords.contains(&"parser".to_owned()));
    }
    assert!(matches!(world.audit(0).await.summary, SummaryAuthor::Model { .. }));
    assert!(matches!(world.audit(1).await.summary, SummaryAuthor::Known { .. }));
}

#[tokio::test]
async fn the_second_session_first_is_no_second_summary_either() {
    let world = World::new();
    world.say("first", &[long("a")]).await;
    world.say("second", &[long("a")]).await;
    // The first session's job is held by a worker that died; the second's is worked on before it.
    let lease = std::time::Duration::from_secs(9);
    let quota = world.settings.quota(world.clock.now());
    let held = world.store.lease_job(&world.tenant, "dead", world.clock.now(), lease, &quota);
    assert!(held.await.expect("leased").is_some());
    let model = Scripted::saying(&["The cache is read once."]);
    world.work(Some(&model), None).await;
    world.clock.forward(10);
    world.work(Some(&model), None).await;
    assert_eq!(model.asked().len(), 1);
    assert_eq!(world.cards("first").await[0].summary, "The cache is read once.");
}

#[tokio::test]
async fn a_worker_that_dies_leaves_its_job_to_another() {
    let world = World::new();
    world.say("s", &[long("a")]).await;
    let quota = world.settings.quota(world.clock.now());
    let lease = std::time::Duration::from_secs(9);
    let now = world.clock.now();
    let dead = world.store.lease_job(&world.tenant, "dead", now, lease, &quota).await;
    let dead = dead.expect("leased").expect("a job");
    let model = Scripted::saying(&["The cache is read once."]);
    assert_eq!(world.work(Some(&model), None).await.taken, 0, "the lease holds");
    world.clock.forward(10);
    assert_eq!(world.work(Some(&model), None).await.done, 1);
    assert_eq!((world.cards("s").await.len(), model.asked().len()), (1, 1));
    let outcome = plimsoll_engine::JobOutcome::Done { result: "late".into(), token_cost: 9 };
    let late = world.store.finish_job(&world.tenant, dead.id, "dead", world.clock.now(), outcome);
    assert!(late.await.is_err(), "the dead worker's result counts for nothing");
}

#[tokio::test]
async fn quotas_hold_back_and_the_plain_card_stays() {
    let mut world = World::new();
    world.settings.per_session = 200;
    let messages: Vec<Message> = (0..4).map(|n| long(["a", "b", "c", "d"][n])).collect();
    world.say("s", &messages).await;
    let model = Scripted::saying(&["One.", "Two.", "Three.", "Four."]);
    let worked = world.work(Some(&model), None).await;
    assert_eq!((worked.summarised, worked.tokens), (2, 240), "the second passes the quota");
    let states = world.states().await;
    assert_eq!(states.iter().filter(|state| **state == JobState::Skipped).count(), 2);
    let plain = world.cards("s").await;
    assert_eq!(plain.iter().filter(|card| card.generator_model == TRUNCATED).count(), 2);

    let mut world = World::new();
    world.settings.per_day = 100;
    world.say("s", &[long("a")]).await;
    world.say("r", &[long("b")]).await;
    let model = Scripted::saying(&["One.", "Two."]);
    world.work(Some(&model), None).await;
    assert_eq!(model.asked().len(), 1);
    world.say("q", &[long("c")]).await;
    world.clock.forward(86_400);
    world.work(Some(&model), None).await;
    assert_eq!(model.asked().len(), 2, "another day");
}

#[tokio::test]
async fn a_model_that_fails_leaves_the_beginning_and_a_reason() {
    let world = World::new();
    world.say("s", &[long("a"), long("b")]).await;
    let model = Scripted::new([
        Ok("It changed 17 files, see https://example.com/x.".to_owned()),
        Err(plimsoll_engine::ModelError::Denied("no key".into())),
    ]);
    let worked = world.work(Some(&model), None).await;
    assert_eq!((worked.truncated, worked.tokens, worked.done), (2, 120, 2));
    assert!(world.cards("s").await.iter().all(|card| card.generator_model == TRUNCATED));
    let why = |audit: Audit| match audit.summary {
        SummaryAuthor::Truncated { why } => why,
        other => panic!("{other:?}"),
    };
    assert!(why(world.audit(0).await).contains("a number that what it summarises does not hold"));
    assert!(why(world.audit(1).await).contains("no access"));
}

#[tokio::test]
async fn a_busy_model_is_asked_again_until_the_last_attempt() {
    let world = World::new();
    world.say("s", &[long("a"), long("b")]).await;
    let busy = || Err(unavailable());
    let model = Scripted::new([busy(), busy(), Ok("Later.".to_owned()), busy(), busy()]);
    assert_eq!(world.work(Some(&model), None).await.failed, 2);
    world.clock.forward(29);
    assert_eq!(world.work(Some(&model), None).await.taken, 0, "it said 30 seconds");
    world.clock.forward(1);
    let second = world.work(Some(&model), None).await;
    assert_eq!((second.summarised, second.failed), (1, 1));
    world.clock.forward(30);
    let last = world.work(Some(&model), None).await;
    assert_eq!((last.done, last.truncated), (1, 1));
    assert_eq!(world.states().await, [JobState::Done, JobState::Done]);
}

#[tokio::test]
async fn a_job_that_cannot_be_done_is_parked() {
    let mut world = World::new();
    world.settings.max_attempts = 2;
    let message = long("a");
    let record = MessageRecord {
        session: session("s"),
        position: 7,
        hash: ContentHash::of(&message),
        message,
        tokens: 1,
        turn: 0,
        recorded_at: MillisSinceEpoch(0),
    };
    world.observer().queue(&[record], MillisSinceEpoch(0)).await.expect("queued");
    assert_eq!(world.work(None, None).await.failed, 1);
    world.clock.forward(60);
    assert_eq!(world.work(None, None).await.failed, 1);
    assert_eq!(world.states().await, [JobState::Parked]);
}

#[tokio::test]
async fn nothing_secret_leaves_and_what_was_found_is_on_record() {
    let mut world = World::new();
    let text = format!("mail jane@example.com, key AKIAQ2X4K7M4WBT3ZN5H {}", LONG.repeat(4));
    world.say("s", &[Message::text(Role::User, text)]).await;
    let model = Scripted::saying(&["A mail was asked for.", "Again."]);
    world.work(Some(&model), None).await;
    let asked = model.asked().concat();
    assert!(asked.contains("[redacted:aws_key]") && asked.contains("jane@example.com"));
    let flags = world.audit(0).await.flags;
    assert_eq!(plimsoll_core::safety::told(&flags), "1 email, 1 aws_key");

    world.safety.summariser = Handling { personal: Action::Redact, secrets: Action::Redact };
    let text = format!("again jane@example.com {}", LONG.repeat(4));
    world.say("s", &[Message::text(Role::User, text)]).await;
    world.work(Some(&model), None).await;
    assert!(!model.asked()[1].contains("jane@"), "by setting");
}

#[tokio::test]
async fn cards_have_vectors_of_one_model_and_a_changed_model_makes_new_ones() {
    let world = World::new();
    world.say("s", &[Message::text(Role::User, "the parser and the cache"), long("a")]).await;
    world.say("s", &[Message::text(Role::User, "nothing known")]).await;
    let model = Scripted::saying(&["The cache is read once."]);
    let (old, new) = (Words("old"), Words("new"));
    assert_eq!(world.work(Some(&model), Some(&old)).await.embedded, 2);
    let models = |cards: Vec<ContextCard>| -> Vec<String> {
        cards.into_iter().filter_map(|card| card.embedding).map(|it| it.model).collect()
    };
    assert_eq!(models(world.cards("s").await), ["old", "old"]);

    let (store, settings) = (&world.store, &world.settings);
    for queued in [1, 0] {
        let now = world.clock.now();
        let found = queue_embedding(store, store, &world.tenant, &new, settings, now).await;
        assert_eq!(found.expect("queued"), queued);
    }
    assert_eq!(world.work(None, Some(&new)).await.embedded, 2);
    let cards = world.cards("s").await;
    assert!(cards.iter().any(|card| card.summary == "The cache is read once."), "summaries stay");
    assert_eq!(models(cards), ["new", "new"]);
}

#[tokio::test]
async fn an_embedder_that_fails_costs_the_vector_and_not_the_card() {
    let world = World::new();
    world.say("s", &[Message::text(Role::User, "the parser and the cache")]).await;
    let worked = world.work(None, Some(&Unreachable)).await;
    assert_eq!((worked.done, worked.embedded), (1, 0));
    assert!(world.audit(0).await.no_embedding.expect("a reason").contains("busy"));
    assert_eq!(world.cards("s").await.len(), 1);
}

#[tokio::test]
async fn every_setting_of_work_changes_something() {
    let base = CardSettings::default();
    let CardSettings {
        summarizer_model: _, // whom the command line builds; the workers take what they are given
        batch_size,
        worker_threads,
        per_session,
        per_day,
        per_artifact,
        max_attempts,
        lease_seconds,
        retry_seconds,
        observe,
        facts,
    } = base.clone();
    assert!(!observe && !facts);
    let base = CardSettings { observe: true, ..base };
    assert_eq!((batch_size, worker_threads), (10, 2));
    assert_eq!((per_session, per_day, per_artifact), (5000, 50_000, 120));
    assert_eq!((max_attempts, lease_seconds, retry_seconds), (3, 300, 60));

    // A batch, and all batches of a round, take no more jobs than they may.
    let taken = async |settings: CardSettings| {
        let world = World { settings, ..World::new() };
        let messages: Vec<Message> =
            (0..30).map(|n| Message::text(Role::User, format!("number {n}"))).collect();
        world.say("s", &messages).await;
        let mut rounds = Vec::new();
        let workers = world.workers(None, None);
        workers.work(&world.tenant, |worked| rounds.push(worked.taken)).await.expect("worked");
        rounds[0]
    };
    assert_eq!(taken(base.clone()).await, 20);
    assert_eq!(taken(CardSettings { batch_size: 5, ..base.clone() }).await, 10);
    assert_eq!(taken(CardSettings { worker_threads: 1, ..base.clone() }).await, 10);

    // When a failed job is tried again, how long an answer may be, and how long a dead worker's job is held.
    let mut world = World::new();
    world.settings = CardSettings {
        lease_seconds: 7,
        retry_seconds: 3,
        per_artifact: 33,
        observe: true,
        ..base
    };
    world.say("s", &[long("a")]).await;
    let model = Scripted::saying(&["Done."]);
    world.work(Some(&model), None).await;
    assert_eq!(model.longest(), 33);
    let late = MessageRecord {
        session: session("gone"),
        position: 0,
        hash: ContentHash::of(&long("b")),
        message: long("b"),
        tokens: 1,
        turn: 0,
        recorded_at: MillisSinceEpoch(0),
    };
    world.observer().queue(&[late], MillisSinceEpoch(0)).await.expect("queued");
    assert_eq!(world.work(None, None).await.failed, 1);
    let jobs = world.store.jobs(&world.tenant, Some(JobState::Failed), 9).await.expect("jobs");
    assert_eq!(jobs[0].job.next_attempt_at, MillisSinceEpoch(3000));
    world.clock.forward(3);
    let stuck = Stuck;
    let workers = world.workers(Some(&stuck), None);
    world.say("s", &[long("c")]).await;
    let work = workers.work(&world.tenant, |_| ());
    let dead = tokio::time::timeout(std::time::Duration::ZERO, work).await;
    assert!(dead.is_err(), "it waits for its model until it is killed");
    let jobs = world.store.jobs(&world.tenant, Some(JobState::Running), 9).await.expect("jobs");
    assert_eq!(jobs[0].lease_until, Some(MillisSinceEpoch(10_000)));
}

#[tokio::test]
async fn an_artefact_without_summary_gets_one_that_its_content_holds() {
    let world = World::new();
    let page = |text: &str| {
        let mut page = artefact("t", "page", text);
        page.summary = None;
        page
    };
    let pages = [page("The plan has 12 rows."), page("The list has 7 rows.")];
    let mut refs = Vec::new();
    for page in &pages {
        world.store.put_artefact(page).await.expect("stored");
        refs.push(page.reference.print());
    }
    let queue = async || {
        let now = world.clock.now();
        queue_summaries(&world.store, &world.tenant, None, &refs, &world.settings, now).await
    };
    assert_eq!((queue().await.expect("queued"), queue().await.expect("known")), (2, 0));
    let model = Scripted::saying(&["A plan of 12 rows.", "A list of 99 rows."]);
    let worked = world.work(Some(&model), None).await;
    assert_eq!((worked.done, worked.failed), (2, 0));
    let mut summaries = Vec::new();
    for reference in &refs {
        let found = world.store.artefact(&world.tenant, reference, world.clock.now()).await;
        summaries.push(found.expect("there").summary.expect("a summary"));
    }
    assert_eq!(summaries, ["A plan of 12 rows.", "The list has 7 rows...."], "nothing is invented");
}

#[tokio::test]
async fn cards_and_jobs_are_made_at_once_where_they_are_wanted_and_caught_up_with_elsewhere() {
    for (observe, facts, now_queued) in [(false, false, 0), (true, false, 2), (true, true, 3)] {
        let mut world = World::new();
        world.settings = CardSettings { observe, facts, ..CardSettings::default() };
        world.say("s", &[Message::text(Role::User, "go on"), long("a")]).await;
        world.say("s", &[Message::text(Role::User, "go on")]).await;
        assert_eq!(world.cards("s").await.len(), if observe { 2 } else { 0 });
        assert_eq!(world.states().await.len(), now_queued);
        let (store, settings) = (&world.store, &world.settings);
        let now = world.clock.now();
        let found = catch_up(store, store, &world.tenant, None, settings, now).await;
        assert_eq!(found.expect("observed").cards, if observe { 0 } else { 2 });
        let cards = world.cards("s").await;
        let anchors: Vec<&str> =
            cards.iter().filter(|card| card.is_anchor).map(|card| &*card.summary).collect();
        assert_eq!((cards.len(), anchors), (2, vec!["go on"]));
        assert_eq!(world.states().await.len(), now_queued.max(2));
    }
}

#[tokio::test]
async fn a_card_without_its_job_gets_it_later() {
    let world = World::new();
    world.say("s", &[long("a")]).await;
    let mut orphan = world.cards("s").await.remove(0);
    orphan.session = session("t");
    let record = MessageRecord {
        session: session("t"),
        position: 0,
        hash: ContentHash::of(&long("a")),
        message: long("a"),
        tokens: 50,
        turn: 0,
        recorded_at: MillisSinceEpoch(0),
    };
    let batch =
        HistoryBatch { messages: vec![record], cards: vec![orphan], ..HistoryBatch::default() };
    world.store.append(&world.tenant, batch).await.expect("appended");
    let (store, settings) = (&world.store, &world.settings);
    let found = catch_up(store, store, &world.tenant, None, settings, world.clock.now()).await;
    assert_eq!(found.expect("observed").cards, 0);
    assert_eq!(world.states().await.len(), 2);
}
