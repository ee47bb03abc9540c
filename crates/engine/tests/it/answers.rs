//! Answers are kept, found by their question, and dropped with what they rest on.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use plimsoll_core::answer::{AnswerSettings, CacheExclusion, Refusal};
use plimsoll_core::{Block, Message, MillisSinceEpoch, Role, ToolCall};
use plimsoll_engine::answer::{
    AnswerCache, AnswerMatch, AnswerQuestion, Answered, AskedOf, By, answer, answer_of_key,
    evict_answer, find_answer, keep_answer, ref_changed,
};
use plimsoll_engine::{
    ChatModel, ChatReply, ChatRequest, ChatStream, ChatUsage, Embedder, KnowledgeStore as _,
    ModelError, StopReason, StoreError, TenantId, Tool,
};
use plimsoll_testkit::MemoryStore;
use plimsoll_testkit::sample::{artefact, tenant};

use crate::models::{Scripted, Unreachable, Words};

const NOW: MillisSinceEpoch = MillisSinceEpoch(1_000_000);

fn on() -> AnswerSettings {
    AnswerSettings { enabled: true, similar: true, ..AnswerSettings::default() }
}

fn later(seconds: i64) -> MillisSinceEpoch {
    MillisSinceEpoch(NOW.0 + seconds * 1000)
}

/// A store, a tenant and settings; what is asked of a cache with them.
struct Case {
    store: MemoryStore,
    tenant: TenantId,
    settings: AnswerSettings,
    embedder: Option<Box<dyn Embedder>>,
}

impl Case {
    fn new(settings: AnswerSettings) -> Self {
        let embedder: Option<Box<dyn Embedder>> = Some(Box::new(Words("words")));
        Self { store: MemoryStore::default(), tenant: tenant("t"), settings, embedder }
    }

    fn cache(&self) -> AnswerCache<'_> {
        AnswerCache {
            knowledge: &self.store,
            embedder: self.embedder.as_deref(),
            tenant: &self.tenant,
            settings: &self.settings,
        }
    }

    async fn keep(&self, text: &str, said: &str, used: &[&str], now: MillisSinceEpoch) -> String {
        let used: Vec<String> = used.iter().map(|used| (*used).to_owned()).collect();
        let question = AnswerQuestion { text, signature: "s" };
        keep_answer(&self.cache(), &question, said, &used, now).await.expect("kept")
    }

    async fn find(&self, text: &str, signature: &str, now: MillisSinceEpoch) -> AnswerMatch {
        find_answer(&self.cache(), &AnswerQuestion { text, signature }, now)
            .await
            .expect("an answer")
    }

    /// What is served, and whether by another question.
    async fn served(&self, text: &str, now: MillisSinceEpoch) -> Option<(String, bool)> {
        match self.find(text, "s", now).await {
            AnswerMatch::Exact(answer) => Some((answer.answer_text, false)),
            AnswerMatch::Similar { answer, .. } => Some((answer.answer_text, true)),
            AnswerMatch::Nothing { .. } => None,
        }
    }
}

#[tokio::test]
async fn exact_comes_before_similar_and_hits_are_counted() {
    let case = Case::new(on());
    let key = case.keep("How do I clear the cache?", "so", &[], NOW).await;
    let similar = Some(("so".into(), true));
    assert_eq!(case.served("How do I clear the cache?", NOW).await, Some(("so".into(), false)));
    assert_eq!(case.served("how can I clear my cache", NOW).await, similar);
    case.keep("how can I clear my cache", "thus", &[], NOW).await;
    assert_eq!(case.served("how can I clear my cache", NOW).await, Some(("thus".into(), false)));
    let kept = answer_of_key(&case.store, &case.tenant, &key[..8]).await.expect("kept");
    assert_eq!((kept.hit_count, kept.last_hit_at), (2, Some(NOW)));
}

#[tokio::test]
async fn another_question_says_why_it_is_not_served() {
    let case = Case::new(on());
    let key = case.keep("How do I clear the cache?", "so", &[], NOW).await;
    let AnswerMatch::Nothing { nearest: Some(nearest) } =
        case.find("How do I not clear the cache?", "s", NOW).await
    else {
        panic!("nothing is served");
    };
    assert_eq!((nearest.cache_key, nearest.refusal), (key, Refusal::Negation));
    let elsewhere = case.find("How do I clear the cache?", "another", NOW).await;
    assert_eq!(elsewhere, AnswerMatch::Nothing { nearest: None }, "a signature of its own");
}

#[tokio::test]
async fn settings_decide_what_is_found() {
    let asked = "how can I clear my cache";
    for (settings, expected) in [
        (on(), true),
        (AnswerSettings { similar: false, ..on() }, false),
        (AnswerSettings { candidates: 0, ..on() }, false),
        (AnswerSettings { similarity_threshold: 1.1, ..on() }, false),
        (AnswerSettings { max_age_seconds: 0, ..on() }, false),
    ] {
        let mut case = Case::new(on());
        case.keep("How do I clear the cache?", "so", &[], NOW).await;
        case.settings = settings;
        assert_eq!(case.served(asked, NOW).await.is_some(), expected, "{:?}", case.settings);
    }
    let mut case = Case::new(on());
    case.keep("How do I clear the cache?", "so", &[], NOW).await;
    for embedder in [None, Some(Box::new(Unreachable) as Box<dyn Embedder>)] {
        case.embedder = embedder;
        assert_eq!(case.served(asked, NOW).await, None);
        assert!(case.served("How do I clear the cache?", NOW).await.is_some());
    }
}

#[tokio::test]
async fn answers_live_as_long_as_the_setting_says() {
    let mut case = Case::new(AnswerSettings { max_age_seconds: 60, ..on() });
    case.keep("why?", "so", &[], NOW).await;
    assert!(case.served("why?", later(59)).await.is_some());
    assert_eq!(case.served("why?", later(60)).await, None);
    // Stricter than when it was kept: it goes.
    case.settings.max_age_seconds = 30;
    assert_eq!(case.served("why?", later(30)).await, None);
    assert_eq!(case.store.answers(&case.tenant, 9).await.expect("answers"), []);
}

#[tokio::test]
async fn an_answer_goes_with_what_it_rests_on() {
    let case = Case::new(on());
    let mut page = artefact("t", "page", "text");
    page.ttl_expires_at = Some(later(100));
    case.store.put_artefact(&page).await.expect("stored");
    let used = page.reference.print();
    for (text, now, expected) in
        [("cache a?", NOW, true), ("cache b?", later(99), true), ("cache c?", later(100), false)]
    {
        case.keep(text, "so", &[&used], NOW).await;
        assert_eq!(case.served(text, now).await.is_some(), expected, "{text}");
    }
    case.keep("cache d?", "so", &["ref:page:0123456789abcdef"], NOW).await;
    assert_eq!(case.served("cache d?", NOW).await, None, "nobody has it");
    case.keep("cache e?", "so", &["ref:message:0123456789abcdef"], NOW).await;
    assert!(case.served("cache e?", NOW).await.is_some(), "a message never changes");
    let dropped = ref_changed(&case.store, &case.tenant, &used).await.expect("dropped");
    assert_eq!(dropped, 2);
    assert_eq!(case.served("cache a?", NOW).await, None);
    let left = case.store.answers(&case.tenant, 9).await.expect("answers");
    assert_eq!(left.len(), 1, "what could not be served is gone");
}

#[tokio::test]
async fn quotas_let_the_oldest_go() {
    let case = Case::new(AnswerSettings { most_entries: 2, ..on() });
    for (at, text) in [(0, "a?"), (1, "b?"), (2, "c?")] {
        case.keep(text, "so", &[], later(at)).await;
    }
    assert_eq!(case.served("a?", later(3)).await, None);
    assert!(case.served("b?", later(3)).await.is_some());
    let mut case = Case::new(AnswerSettings { most_bytes: 8, ..on() });
    for (at, text) in [(0, "a?"), (1, "b?"), (2, "c?")] {
        case.keep(text, "so", &[], later(at)).await;
    }
    assert_eq!(case.store.answers(&case.tenant, 9).await.expect("answers").len(), 2);
    case.settings.most_bytes = 1;
    case.keep("d?", "so", &[], later(3)).await;
    assert_eq!(case.store.answers(&case.tenant, 9).await.expect("answers"), []);
}

#[tokio::test]
async fn a_false_hit_is_evicted_by_its_key() {
    let case = Case::new(on());
    let key = case.keep("why?", "so", &[], NOW).await;
    case.keep("who?", "they", &[], NOW).await;
    let evict = async |prefix: &str| evict_answer(&case.store, &case.tenant, prefix).await;
    assert!(matches!(evict("zz").await, Err(StoreError::NotFound { .. })));
    assert!(matches!(evict("").await, Err(StoreError::NotFound { .. })));
    assert_eq!(evict(&key[..12]).await.expect("evicted").query_text, "why?");
    assert_eq!(case.served("why?", NOW).await, None);
    let foreign = evict_answer(&case.store, &tenant("other"), &key).await;
    assert!(matches!(foreign, Err(StoreError::NotFound { .. })));
}

async fn ask(case: &Case, model: &dyn ChatModel, request: &ChatRequest, user: &str) -> Answered {
    let asked = AskedOf { model, request, user, used_refs: &[] };
    answer(&case.cache(), &asked, NOW).await.expect("answered")
}

fn request(text: &str) -> ChatRequest {
    let system = Message::text(Role::System, "Answer briefly.");
    ChatRequest::new(vec![system, Message::text(Role::User, text)])
}

const UNCACHED: By = By::Model { uncached: None };

#[tokio::test]
async fn a_question_is_asked_once() {
    let case = Case::new(on());
    let model = Scripted::saying(&["first", "second", "third", "fourth", "fifth"]);
    let why = request("Why is the cache cold?");
    let told = async |request: &ChatRequest, user: &str| {
        let answered = ask(&case, &model, request, user).await;
        assert!(answered.trouble.is_none());
        (answered.reply.text(), matches!(answered.by, By::Cache { .. }))
    };
    assert_eq!(told(&why, "u").await, ("first".into(), false));
    assert_eq!(told(&why, "u").await, ("first".into(), true));
    assert_eq!(told(&request("Why is cache cold"), "u").await, ("first".into(), true));
    assert_eq!(told(&why, "v").await, ("second".into(), false), "another user");
    let longer = ChatRequest { max_tokens: 9, ..why.clone() };
    assert_eq!(told(&longer, "u").await, ("third".into(), false), "other parameters");
    let mut system = why.clone();
    system.messages[0] = Message::text(Role::System, "Answer at length.");
    assert_eq!(told(&system, "u").await, ("fourth".into(), false), "another system prompt");
    let mut context = why.clone();
    context.messages.insert(1, Message::text(Role::User, "Hello."));
    assert_eq!(told(&context, "u").await, ("fifth".into(), false), "another context");
    assert_eq!(model.asked().len(), 5);
}

#[tokio::test]
async fn what_may_not_be_cached_is_neither_looked_for_nor_kept() {
    let why = request("Why is the cache cold?");
    let call = ToolCall { id: "1".into(), name: "t".into(), arguments: "{}".into() };
    let tool = Tool { name: "t".into(), description: "".into(), schema: "{}".into() };
    let mut state = why.clone();
    state.messages.insert(1, Message::new(Role::Assistant, vec![Block::ToolCall(call)]));
    for (request, uncached) in [
        (ChatRequest { tools: vec![tool], ..why.clone() }, CacheExclusion::Tools),
        (ChatRequest { temperature: Some(0.7), ..why.clone() }, CacheExclusion::Variety),
        (state, CacheExclusion::State),
        (request("What is in the cache now?"), CacheExclusion::TimeBound),
    ] {
        let case = Case::new(on());
        let model = Scripted::saying(&["one", "two"]);
        for expected in ["one", "two"] {
            let answered = ask(&case, &model, &request, "u").await;
            assert_eq!(answered.reply.text(), expected);
            assert_eq!(answered.by, By::Model { uncached: Some(uncached) });
        }
        assert_eq!(case.store.answers(&case.tenant, 9).await.expect("answers"), []);
    }
    let off = Case::new(AnswerSettings::default());
    let answered = ask(&off, &Scripted::saying(&["one"]), &why, "u").await;
    assert_eq!(answered.by, By::Model { uncached: Some(CacheExclusion::Off) });
}

/// Answers as it is told, once.
#[derive(Debug)]
struct Ends(StopReason, Vec<Block>, AtomicBool);

#[async_trait]
impl ChatModel for Ends {
    fn model(&self) -> &'static str {
        "test/ends"
    }

    async fn complete(&self, _: &ChatRequest) -> Result<ChatReply, ModelError> {
        assert!(!self.2.swap(true, Ordering::Relaxed), "asked once");
        Ok(ChatReply::new(self.1.clone(), ChatUsage::default(), self.0.clone(), "ends"))
    }

    async fn stream(&self, _: &ChatRequest) -> Result<Box<dyn ChatStream>, ModelError> {
        Err(ModelError::Invalid("it does not stream".into()))
    }
}

#[tokio::test]
async fn errors_and_what_is_cut_are_never_kept() {
    let text = || vec![Block::Text("so".into())];
    let call = ToolCall { id: "1".into(), name: "t".into(), arguments: "{}".into() };
    for (stop, blocks, expected) in [
        (StopReason::End, text(), None),
        (StopReason::Length, text(), Some(CacheExclusion::Cut)),
        (StopReason::Other("paused".into()), text(), Some(CacheExclusion::Cut)),
        (StopReason::Refused, text(), Some(CacheExclusion::Refused)),
        (StopReason::End, vec![Block::ToolCall(call)], Some(CacheExclusion::Calls)),
        (StopReason::End, vec![], Some(CacheExclusion::EmptyAnswer)),
    ] {
        let case = Case::new(on());
        let model = Ends(stop, blocks, AtomicBool::new(false));
        let answered = ask(&case, &model, &request("why?"), "u").await;
        assert_eq!(answered.by, By::Model { uncached: expected });
        let kept = case.store.answers(&case.tenant, 9).await.expect("answers").len();
        assert_eq!(kept, usize::from(expected.is_none()));
    }
    let case = Case::new(on());
    let fails = Scripted::new([Err(crate::models::unavailable())]);
    let (why, used_refs) = (request("why?"), []);
    let asked = AskedOf { model: &fails, request: &why, user: "u", used_refs: &used_refs };
    assert!(answer(&case.cache(), &asked, NOW).await.is_err());
    assert_eq!(case.store.answers(&case.tenant, 9).await.expect("answers"), []);
    let answered = ask(&case, &Scripted::saying(&["so"]), &why, "u").await;
    assert_eq!(answered.by, UNCACHED);
}
