//! A runner with a scripted model, a store in memory and tools that count their calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_cascade::run::{
    Human, Library, ModelSource, Nobody, Observer, RunError, RunEvent, RunOutcome, RunSettings,
    Runner,
};
use plimsoll_cascade::{Cascade, parse};
use plimsoll_core::cost::Pricing;
use plimsoll_core::{Image, Message, MillisSinceEpoch};
use plimsoll_engine::{
    ChatModel, ChatReply, ChatRequest, ChatStream, ModelError, SessionId, TenantId, Tool,
    ToolAnswer, ToolError, ToolSource,
};
use plimsoll_models::ScriptedModel;
use plimsoll_testkit::{ManualClock, MemoryStore};
use serde_json::{Map, Value};

/// One runner, and what it saw.
#[derive(Debug)]
pub(crate) struct Harness {
    pub(crate) runner: Runner,
    pub(crate) model: Arc<Watched>,
    pub(crate) tools: Arc<Tools>,
    pub(crate) events: Arc<Events>,
}

/// A scripted model that keeps what it was asked.
#[derive(Debug)]
pub(crate) struct Watched {
    inner: ScriptedModel,
    pub(crate) asked: Mutex<Vec<ChatRequest>>,
    /// The names by which it was asked for.
    pub(crate) names: Mutex<Vec<Option<String>>>,
    /// Told when the script has ended, where the run is to be killed then.
    pub(crate) end: Option<tokio::sync::Notify>,
}

impl Watched {
    /// Returns the messages of a request, each with its role and what it shows.
    pub(crate) fn context(&self, request: usize) -> String {
        let asked = self.asked.lock().expect("no test panics with it");
        let lines = asked[request]
            .messages
            .iter()
            .map(|message: &Message| format!("{}: {}", message.role.as_str(), message.shown()));
        lines.collect::<Vec<_>>().join("\n---\n")
    }

    pub(crate) fn requests(&self) -> usize {
        self.asked.lock().expect("no test panics with it").len()
    }
}

#[async_trait]
impl ChatModel for Watched {
    fn model(&self) -> &str {
        self.inner.model()
    }

    async fn complete(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        self.asked.lock().expect("no test panics with it").push(request.clone());
        if let Some(end) = self.end.as_ref().filter(|_| self.inner.left() == 0) {
            end.notify_one();
            std::future::pending::<()>().await;
        }
        self.inner.complete(request).await
    }

    async fn stream(&self, request: &ChatRequest) -> Result<Box<dyn ChatStream>, ModelError> {
        self.inner.stream(request).await
    }
}

#[derive(Debug)]
struct OneModel(Arc<Watched>);

impl ModelSource for OneModel {
    fn model(&self, name: Option<&str>) -> Result<Arc<dyn ChatModel>, ModelError> {
        let name = name.map(str::to_owned);
        self.0.names.lock().expect("no test panics with it").push(name);
        Ok(self.0.clone())
    }

    fn passed_over(&self, _: Option<&str>) {
        self.0.inner.pass_over();
    }
}

/// Tools of a test: what they answer, and how often they were called.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    pub(crate) answers: Mutex<BTreeMap<String, ToolAnswer>>,
    pub(crate) calls: Mutex<Vec<(String, String)>>,
    /// What tools answer that failed the first time.
    pub(crate) later: Mutex<BTreeMap<String, ToolAnswer>>,
}

#[async_trait]
impl ToolSource for Tools {
    async fn tools(&self) -> Result<Vec<Tool>, ToolError> {
        let answers = self.answers.lock().expect("no test panics with it");
        let tools = answers.keys().map(|name| Tool {
            name: name.as_str().into(),
            description: format!("Does {name}.").into(),
            schema: r#"{"type":"object"}"#.into(),
        });
        Ok(tools.collect())
    }

    async fn call(&self, name: &str, arguments: &str) -> Result<ToolAnswer, ToolError> {
        self.calls.lock().expect("no test panics with it").push((name.into(), arguments.into()));
        let answer = self.answers.lock().expect("no test panics with it").get(name).cloned();
        let mut answer = answer.ok_or_else(|| ToolError::Unknown { name: name.to_owned() })?;
        if let Some(later) = self.later.lock().expect("no test panics with it").remove(name) {
            self.answers.lock().expect("no test panics with it").insert(name.to_owned(), later);
        }
        // A validator that changes its mind has its answers a line each.
        if let Some((first, rest)) = answer.text.clone().split_once('\n')
            && name.starts_with("check")
        {
            first.clone_into(&mut answer.text);
            let later = ToolAnswer { text: rest.to_owned(), ..answer.clone() };
            self.answers.lock().expect("no test panics with it").insert(name.to_owned(), later);
        }
        Ok(answer)
    }
}

/// Keeps what happened.
#[derive(Debug, Default)]
pub(crate) struct Events(pub(crate) Mutex<Vec<RunEvent>>);

impl Observer for Events {
    fn tell(&self, event: &RunEvent) {
        self.0.lock().expect("no test panics with it").push(event.clone());
    }
}

impl Events {
    pub(crate) fn notes(&self) -> Vec<String> {
        let events = self.0.lock().expect("no test panics with it");
        let notes = events.iter().filter_map(|event| match event {
            RunEvent::Noted { note, .. } => Some(note.clone()),
            _ => None,
        });
        notes.collect()
    }
}

#[derive(Debug, Default)]
struct Files(BTreeMap<String, Arc<Cascade>>);

impl Library for Files {
    fn cascade(&self, reference: &str) -> Result<Arc<Cascade>, String> {
        self.0.get(reference).cloned().ok_or_else(|| format!("there is no cascade `{reference}`"))
    }
}

pub(crate) fn cascade(text: &str) -> Arc<Cascade> {
    let (cascade, problems) = parse(text, "test.yaml");
    Arc::new(cascade.unwrap_or_else(|| panic!("{problems:#?}")))
}

pub(crate) fn object(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).expect("an object")
}

impl Harness {
    /// Makes a runner whose model answers from a script, one JSON object a line.
    pub(crate) fn new(script: &str) -> Self {
        Self::on(Arc::new(MemoryStore::default()), script)
    }

    /// Makes a runner on a store that others used.
    pub(crate) fn on(store: Arc<MemoryStore>, script: &str) -> Self {
        Self::with(store, script, None)
    }

    /// Makes a runner whose runs are to be killed when the script has ended.
    pub(crate) fn until_killed(store: Arc<MemoryStore>, script: &str) -> Self {
        Self::with(store, script, Some(tokio::sync::Notify::new()))
    }

    fn with(store: Arc<MemoryStore>, script: &str, end: Option<tokio::sync::Notify>) -> Self {
        let inner = ScriptedModel::parse("claude-sonnet-4-5", script).expect("a script");
        let model =
            Arc::new(Watched { inner, asked: Mutex::default(), names: Mutex::default(), end });
        let tools = Arc::new(Tools::default());
        let events = Arc::new(Events::default());
        let clock = ManualClock::new(MillisSinceEpoch(1_000), Duration::ZERO);
        let human: Arc<dyn Human> = Arc::new(Nobody);
        let runner = Runner {
            tenant: TenantId::default(),
            history: store.clone(),
            knowledge: store,
            models: Arc::new(OneModel(model.clone())),
            tools: vec![tools.clone()],
            human,
            library: Arc::new(Files::default()),
            embedder: None,
            clock: Arc::new(clock),
            pricing: Arc::new(Pricing::shipped()),
            observer: events.clone(),
            settings: RunSettings::default(),
        };
        Self { runner, model, tools, events }
    }

    pub(crate) fn with_tool(self, name: &str, answer: &str) -> Self {
        self.with_answer(name, ToolAnswer::text(answer))
    }

    pub(crate) fn with_image(self, name: &str, data: &str) -> Self {
        let image = Image { media_type: "image/png".into(), data: data.into() };
        self.with_answer(
            name,
            ToolAnswer { text: "drawn".into(), images: vec![image], is_error: false },
        )
    }

    pub(crate) fn with_answer(self, name: &str, answer: ToolAnswer) -> Self {
        self.tools.answers.lock().expect("no test panics with it").insert(name.to_owned(), answer);
        self
    }

    pub(crate) fn with_failing_once(self, name: &str, why: &str, later: &str) -> Self {
        let answer = ToolAnswer::text(later);
        self.tools.later.lock().expect("no test panics with it").insert(name.to_owned(), answer);
        self.with_answer(name, ToolAnswer::failed(why))
    }

    pub(crate) fn with_cascade(mut self, name: &str, text: &str) -> Self {
        let library = Files(BTreeMap::from([(name.to_owned(), cascade(text))]));
        self.runner.library = Arc::new(library);
        self
    }

    pub(crate) async fn run(&self, text: &str, input: &str) -> Result<RunOutcome, RunError> {
        let session = SessionId::new("run").expect("an id");
        self.runner.run(cascade(text), object(input), &session).await
    }

    pub(crate) fn calls(&self, name: &str) -> usize {
        let calls = self.tools.calls.lock().expect("no test panics with it");
        calls.iter().filter(|(called, _)| called == name).count()
    }
}
