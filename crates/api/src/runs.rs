//! Runs of cascades that callers of the interface began: their states, their events, and questions to a person.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_cascade::run::{Human, Observer, RunError, RunEvent};
use plimsoll_cascade::{Cascade, parse};
use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{SessionId, TenantId};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::asked::ApiRequest;
use crate::paging::{PageQuery, page};
use crate::parts::CascadeRequest;
use crate::problem::ApiError;
use crate::query::body;

/// Runs that are held, and that go on at the same time, of all tenants together (chosen: a screen; and what small machines take).
const HELD: usize = 50;
const GOING: usize = 8;

/// Events of a run that are held (chosen: some megabytes).
const EVENTS: usize = 10_000;

/// The longest wait for an event, in seconds (chosen: shorter than the time-outs of proxies).
const LONGEST_WAIT: u64 = 25;

/// The body that begins a run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunBody {
    source: String,
    #[serde(default = "usual_name")]
    name: String,
    #[serde(default)]
    input: Map<String, Value>,
    session: Option<String>,
    /// Whether the session may have a record, which then goes on.
    #[serde(default)]
    resume: bool,
    /// Answers to questions, by phase.
    #[serde(default)]
    answers: BTreeMap<String, String>,
}

fn usual_name() -> String {
    "cascade.yaml".to_owned()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerBody {
    phase: String,
    answer: String,
}

/// The state of a run.
#[derive(Debug, Clone)]
enum RunState {
    Running,
    /// A person must answer.
    Waiting {
        phase: String,
        question: String,
    },
    Ended {
        output: String,
    },
    Failed {
        error: String,
    },
    Stopped,
}

/// A run of a tenant.
#[derive(Debug)]
pub(crate) struct HeldRun {
    tenant: TenantId,
    session: SessionId,
    cascade: Arc<Cascade>,
    input: Map<String, Value>,
    began: MillisSinceEpoch,
    changing: Mutex<Changing>,
    changed: Notify,
}

#[derive(Debug)]
struct Changing {
    state: RunState,
    events: Vec<Value>,
    /// Events that a resumed run tells again.
    told: usize,
    answers: BTreeMap<String, String>,
    task: Option<AbortHandle>,
}

impl HeldRun {
    fn changing(&self) -> MutexGuard<'_, Changing> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, state: RunState) {
        let mut changing = self.changing();
        // A run that was stopped stays so.
        if matches!(changing.state, RunState::Running) {
            changing.state = state;
            changing.task = None;
        }
        drop(changing);
        self.changed.notify_waiters();
    }

    fn is_going(&self) -> bool {
        matches!(self.changing().state, RunState::Running)
    }

    fn written(&self) -> Value {
        let changing = self.changing();
        let (mut question, mut output, mut error) = (None, None, None);
        let state = match &changing.state {
            RunState::Running => "running",
            RunState::Waiting { phase, question: text } => {
                question = Some(json!({"phase": phase, "question": text}));
                "waiting"
            }
            RunState::Ended { output: text } => {
                output = Some(text.clone());
                "ended"
            }
            RunState::Failed { error: text } => {
                error = Some(text.clone());
                "failed"
            }
            RunState::Stopped => "stopped",
        };
        json!({
            "session": self.session,
            "cascade": self.cascade.cascade_id.as_str(),
            "state": state,
            "began_at": self.began,
            "events": changing.events.len(),
            "question": question,
            "output": output,
            "error": error,
        })
    }
}

impl Observer for HeldRun {
    fn tell(&self, event: &RunEvent) {
        let mut changing = self.changing();
        if changing.told > 0 {
            changing.told -= 1;
            return;
        }
        let number = changing.events.len();
        if number < EVENTS
            && let Ok(mut written) = serde_json::to_value(event)
        {
            written["number"] = json!(number);
            changing.events.push(written);
        }
        drop(changing);
        self.changed.notify_waiters();
    }
}

#[async_trait]
impl Human for HeldRun {
    async fn ask(&self, phase: &str, _: &str) -> Option<String> {
        self.changing().answers.remove(phase)
    }
}

/// The runs that are held, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Runs(Mutex<Vec<Arc<HeldRun>>>);

impl Runs {
    fn list(&self) -> MutexGuard<'_, Vec<Arc<HeldRun>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, tenant: &TenantId) -> Vec<Arc<HeldRun>> {
        self.list().iter().rev().filter(|run| run.tenant == *tenant).cloned().collect()
    }

    fn find(&self, tenant: &TenantId, session: &SessionId) -> Result<Arc<HeldRun>, ApiError> {
        let found = self
            .list()
            .iter()
            .find(|run| run.tenant == *tenant && run.session == *session)
            .cloned();
        found.ok_or_else(|| ApiError::NotFound(format!("run `{session}`")))
    }

    /// Adds a run. Errors: too many go on, or one of this session does.
    fn add(&self, run: &Arc<HeldRun>) -> Result<(), ApiError> {
        let mut list = self.list();
        let same = |one: &Arc<HeldRun>| (&one.tenant, &one.session) == (&run.tenant, &run.session);
        if list.iter().any(|one| same(one) && one.is_going()) {
            return Err(ApiError::Conflict(format!("the run `{}` goes on already", run.session)));
        }
        self.check_room(&list)?;
        list.retain(|one| !same(one));
        if list.len() >= HELD
            && let Some(oldest) = list.iter().position(|one| !one.is_going())
        {
            list.remove(oldest);
        }
        list.push(run.clone());
        Ok(())
    }

    fn check_room(&self, list: &[Arc<HeldRun>]) -> Result<(), ApiError> {
        let going = list.iter().filter(|one| one.is_going()).count();
        if going >= GOING {
            return Err(ApiError::Conflict(format!("{going} runs go on already")));
        }
        Ok(())
    }
}

/// Begins a run, or goes on with a recorded one.
pub(crate) async fn begin(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    allowed(asked)?;
    let body: RunBody = body(&asked.body)?;
    let (cascade, problems) = parse(&body.source, &body.name);
    let Some(cascade) = cascade else {
        let first = problems.first().map(ToString::to_string).unwrap_or_default();
        return Err(ApiError::Invalid(first));
    };
    let began = asked.parts.clock.now();
    let session = match &body.session {
        Some(session) => session.clone(),
        None => format!("{}-{}", plain(cascade.cascade_id.as_str()), began.0),
    };
    let invalid = |error| ApiError::Invalid(format!("`session`: {error}"));
    let session = SessionId::new(&session).map_err(invalid)?;
    let recorded = asked.parts.history.session(asked.tenant, &session).await?.is_some();
    if recorded && !body.resume {
        return Err(ApiError::Conflict(format!(
            "the session `{session}` has a record; `resume` goes on with it"
        )));
    }
    if body.resume && !recorded {
        return Err(ApiError::NotFound(format!("record of the session `{session}`")));
    }
    let run = Arc::new(HeldRun {
        tenant: asked.tenant.clone(),
        session,
        cascade: Arc::new(cascade),
        input: body.input,
        began,
        changing: Mutex::new(Changing {
            state: RunState::Stopped,
            events: Vec::new(),
            told: 0,
            answers: body.answers,
            task: None,
        }),
        changed: Notify::new(),
    });
    asked.runs.add(&run)?;
    start(asked, &run)?;
    Ok(run.written())
}

fn allowed(asked: &ApiRequest<'_>) -> Result<(), ApiError> {
    let off = "cascades are not run here; `cascades = true` under `[gateway]` allows it";
    asked.parts.cascades.as_ref().map(drop).ok_or_else(|| ApiError::Off(off.to_owned()))
}

fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().take(60).map(plain).collect()
}

/// Runs a cascade beside all requests, from its beginning or from its record.
fn start(asked: &ApiRequest<'_>, run: &Arc<HeldRun>) -> Result<(), ApiError> {
    allowed(asked)?;
    let Some(cascades) = asked.parts.cascades.clone() else { return Err(ApiError::Lost) };
    {
        let mut changing = run.changing();
        changing.state = RunState::Running;
        changing.told = changing.events.len();
    }
    let held = run.clone();
    let task = tokio::spawn(async move {
        let request = CascadeRequest {
            tenant: held.tenant.clone(),
            cascade: held.cascade.clone(),
            input: held.input.clone(),
            session: held.session.clone(),
            human: held.clone(),
            observer: held.clone(),
        };
        let state = match cascades.run(request).await {
            Ok(output) => RunState::Ended { output },
            Err(RunError::Waiting { phase, question }) => RunState::Waiting { phase, question },
            Err(error) => RunState::Failed { error: told(&error) },
        };
        held.end(state);
    });
    run.changing().task = Some(task.abort_handle());
    Ok(())
}

fn told(error: &RunError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

pub(crate) fn list(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let query = PageQuery::of(&asked.query)?;
    let (runs, next) = query.take(asked.runs.of(asked.tenant), |run| run.session.to_string())?;
    Ok(page(runs.iter().map(|run| run.written()), next.as_deref()))
}

pub(crate) fn one(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    Ok(found(asked)?.written())
}

fn found(asked: &ApiRequest<'_>) -> Result<Arc<HeldRun>, ApiError> {
    let name = asked.query.path("session");
    let unknown = || ApiError::NotFound(format!("run `{name}`"));
    let session = SessionId::new(name).map_err(|_| unknown())?;
    asked.runs.find(asked.tenant, &session)
}

/// Lists events of a run; with `wait`, the answer comes when there is one, or when the run changes its state.
pub(crate) async fn events(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let run = found(asked)?;
    let query = PageQuery::of(&asked.query)?;
    let (from, limit) = (query.number()? as usize, query.limit);
    let wait: u64 = asked.query.parsed("wait")?.unwrap_or(0);
    if wait > LONGEST_WAIT {
        return Err(ApiError::Invalid(format!("`wait` is from 0 to {LONGEST_WAIT}")));
    }
    let changed = run.changed.notified();
    let mut changed = std::pin::pin!(changed);
    // From here on no change is missed.
    changed.as_mut().enable();
    let is_there = {
        let changing = run.changing();
        changing.events.len() > from || !matches!(changing.state, RunState::Running)
    };
    if !is_there && wait > 0 {
        let _ = tokio::time::timeout(Duration::from_secs(wait), changed).await;
    }
    let (items, next) = {
        let changing = run.changing();
        let behind = changing.events.get(from..).unwrap_or_default();
        let items: Vec<Value> = behind.iter().take(limit).cloned().collect();
        let has_more = behind.len() > items.len();
        let next = items.last().filter(|_| has_more).map(|last| last["number"].to_string());
        (items, next)
    };
    let mut answer = page(items, next.as_deref());
    answer["run"] = run.written();
    Ok(answer)
}

/// Answers the question that a run waits for, and goes on with it.
pub(crate) fn answer(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let run = found(asked)?;
    let AnswerBody { phase, answer } = body(&asked.body)?;
    {
        let list = asked.runs.list();
        asked.runs.check_room(&list)?;
        let mut changing = run.changing();
        match &changing.state {
            RunState::Waiting { phase: own, .. } if *own == phase => {}
            RunState::Waiting { phase: own, .. } => {
                return Err(ApiError::Conflict(format!("the phase `{own}` asks, not `{phase}`")));
            }
            _ => return Err(ApiError::Conflict("the run asks nothing".to_owned())),
        }
        changing.answers.insert(phase, answer);
        changing.state = RunState::Stopped;
    }
    start(asked, &run)?;
    Ok(run.written())
}

/// Stops a run; its record stays, so that it can go on later.
pub(crate) fn stop(asked: &ApiRequest<'_>) -> Result<Value, ApiError> {
    let run = found(asked)?;
    {
        let mut changing = run.changing();
        if let Some(task) = changing.task.take() {
            task.abort();
        }
        if matches!(changing.state, RunState::Running | RunState::Waiting { .. }) {
            changing.state = RunState::Stopped;
        }
    }
    run.changed.notify_waiters();
    Ok(run.written())
}
