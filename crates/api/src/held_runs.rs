//! Runs of cascades that the server holds, with their states and events.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use plimsoll_cascade::Cascade;
use plimsoll_cascade::run::{Human, Observer, RunEvent};
use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{SessionId, TenantId};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::problem::ApiError;

/// Runs that are held, and that go on at the same time, of all tenants together (chosen: a screen; and what small machines take).
const HELD: usize = 50;
const GOING: usize = 8;

/// Events of a run that are held (chosen: some megabytes).
const EVENTS: usize = 10_000;

/// The state of a run.
#[derive(Debug, Clone)]
pub(crate) enum HeldState {
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
    pub(crate) tenant: TenantId,
    pub(crate) session: SessionId,
    pub(crate) cascade: Arc<Cascade>,
    pub(crate) input: Map<String, Value>,
    pub(crate) began: MillisSinceEpoch,
    pub(crate) changing: Mutex<Changing>,
    pub(crate) changed: Notify,
}

#[derive(Debug)]
pub(crate) struct Changing {
    pub(crate) state: HeldState,
    pub(crate) events: Vec<Value>,
    /// Events that a resumed run tells again.
    pub(crate) told: usize,
    pub(crate) answers: BTreeMap<String, String>,
    pub(crate) task: Option<AbortHandle>,
}

impl HeldRun {
    pub(crate) fn changing(&self) -> MutexGuard<'_, Changing> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn end(&self, state: HeldState) {
        let mut changing = self.changing();
        // A run that was stopped stays so.
        if matches!(changing.state, HeldState::Running) {
            changing.state = state;
            changing.task = None;
        }
        drop(changing);
        self.changed.notify_waiters();
    }

    fn is_going(&self) -> bool {
        matches!(self.changing().state, HeldState::Running)
    }

    pub(crate) fn written(&self) -> Value {
        let changing = self.changing();
        let (mut question, mut output, mut error) = (None, None, None);
        let state = match &changing.state {
            HeldState::Running => "running",
            HeldState::Waiting { phase, question: text } => {
                question = Some(json!({"phase": phase, "question": text}));
                "waiting"
            }
            HeldState::Ended { output: text } => {
                output = Some(text.clone());
                "ended"
            }
            HeldState::Failed { error: text } => {
                error = Some(text.clone());
                "failed"
            }
            HeldState::Stopped => "stopped",
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
pub(crate) struct HeldRuns(Mutex<Vec<Arc<HeldRun>>>);

impl HeldRuns {
    pub(crate) fn list(&self) -> MutexGuard<'_, Vec<Arc<HeldRun>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn of(&self, tenant: &TenantId) -> Vec<Arc<HeldRun>> {
        self.list().iter().rev().filter(|run| run.tenant == *tenant).cloned().collect()
    }

    pub(crate) fn find(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Arc<HeldRun>, ApiError> {
        let found = self
            .list()
            .iter()
            .find(|run| run.tenant == *tenant && run.session == *session)
            .cloned();
        found.ok_or_else(|| ApiError::NotFound(format!("run `{session}`")))
    }

    /// Adds a run. Errors: too many go on, or one of this session does.
    pub(crate) fn add(&self, run: &Arc<HeldRun>) -> Result<(), ApiError> {
        let mut list = self.list();
        let same = |one: &Arc<HeldRun>| (&one.tenant, &one.session) == (&run.tenant, &run.session);
        if list.iter().any(|one| same(one) && one.is_going()) {
            return Err(ApiError::Conflict(format!("the run `{}` goes on already", run.session)));
        }
        check_room(&list)?;
        list.retain(|one| !same(one));
        if list.len() >= HELD
            && let Some(oldest) = list.iter().position(|one| !one.is_going())
        {
            list.remove(oldest);
        }
        list.push(run.clone());
        Ok(())
    }
}

/// Refuses a run where too many go on.
pub(crate) fn check_room(list: &[Arc<HeldRun>]) -> Result<(), ApiError> {
    let going = list.iter().filter(|one| one.is_going()).count();
    if going >= GOING {
        return Err(ApiError::Conflict(format!("{going} runs go on already")));
    }
    Ok(())
}
