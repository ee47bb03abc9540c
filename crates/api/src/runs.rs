//! Runs of cascades: begun, watched, answered and stopped by callers of the interface.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_cascade::parse;
use plimsoll_cascade::run::RunError;
use plimsoll_core::text::{Limit, head};
use plimsoll_engine::SessionId;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::Notify;

use crate::asked::ApiRequest;
use crate::held_runs::{Changing, HeldRun, HeldState, check_room};
use crate::paging::{PageQuery, page};
use crate::parts::CascadeRequest;
use crate::problem::ApiError;
use crate::query::body;

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
struct PersonAnswer {
    phase: String,
    answer: String,
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
            state: HeldState::Stopped,
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
    head(name, Limit::Characters(60)).chars().map(plain).collect()
}

/// Runs a cascade beside all requests, from its beginning or from its record.
fn start(asked: &ApiRequest<'_>, run: &Arc<HeldRun>) -> Result<(), ApiError> {
    allowed(asked)?;
    let Some(cascades) = asked.parts.cascades.clone() else { return Err(ApiError::Lost) };
    {
        let mut changing = run.changing();
        changing.state = HeldState::Running;
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
            Ok(output) => HeldState::Ended { output },
            Err(RunError::Waiting { phase, question }) => HeldState::Waiting { phase, question },
            Err(error) => HeldState::Failed { error: told(&error) },
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
        changing.events.len() > from || !matches!(changing.state, HeldState::Running)
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
    let PersonAnswer { phase, answer } = body(&asked.body)?;
    {
        let list = asked.runs.list();
        check_room(&list)?;
        let mut changing = run.changing();
        match &changing.state {
            HeldState::Waiting { phase: own, .. } if *own == phase => {}
            HeldState::Waiting { phase: own, .. } => {
                return Err(ApiError::Conflict(format!("the phase `{own}` asks, not `{phase}`")));
            }
            _ => return Err(ApiError::Conflict("the run asks nothing".to_owned())),
        }
        changing.answers.insert(phase, answer);
        changing.state = HeldState::Stopped;
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
        if matches!(changing.state, HeldState::Running | HeldState::Waiting { .. }) {
            changing.state = HeldState::Stopped;
        }
    }
    run.changed.notify_waiters();
    Ok(run.written())
}
