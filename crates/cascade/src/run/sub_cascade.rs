//! Cascades inside a phase.

use std::panic::resume_unwind;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use plimsoll_core::{Message, Role};
use plimsoll_engine::SessionId;
use serde_json::{Map, Value};
use tokio::task::JoinSet;

use super::error::RunError;
use super::tool_cache::ToolCache;
use super::visit::Visit;
use super::{CascadeRun, RunOutcome, part_of};
use crate::definition::Cascade;

impl Visit<'_> {
    /// Runs the cascades inside a phase, and returns the messages that the phase sees of them.
    pub(crate) async fn sub_cascades(&mut self) -> Result<Vec<Arc<Message>>, RunError> {
        let mut seen = Vec::new();
        for (number, sub) in self.phase.sub_cascades.iter().enumerate() {
            let found = self.run.runner.library.cascade(&sub.reference);
            let cascade = found.map_err(|what| RunError::Missing { what })?;
            let name = cascade.cascade_id.to_string();
            let inner = self.run.inside(cascade)?;
            inner.check()?;
            // The inner cascade sees the state of this one as its state, and as input by name.
            let (mut input, state) = if sub.context_in {
                let mut input = self.past.input.clone();
                input.extend(self.past.state.clone());
                (input, self.past.state.clone())
            } else {
                (Map::new(), Map::new())
            };
            input.extend(self.inputs(&sub.input_map)?);
            let part = format!("{}.{}.{number}", self.name(), self.past.visits(self.name()));
            let session = part_of(self.journal.session(), &part)?;
            let outcome = inner.start_inside(input, state, session).await?;
            if sub.context_out {
                for (key, value) in outcome.past.state {
                    if self.past.state.get(&key) != Some(&value) {
                        self.set(key, value);
                    }
                }
            }
            let text = format!("[Output from {name}]:\n{}", outcome.output);
            seen.push(self.say(Role::User, text).await?);
        }
        Ok(seen)
    }
}

impl CascadeRun {
    /// Returns a run of another cascade inside this one.
    pub(crate) fn inside(&self, cascade: Arc<Cascade>) -> Result<Self, RunError> {
        let depth = self.depth + 1;
        if depth > self.runner.settings.max_depth {
            let what = format!(
                "`{}` would be the cascade number {depth} inside others: they call each other in a circle",
                cascade.cascade_id
            );
            return Err(RunError::Missing { what });
        }
        let tool_cache = Arc::new(ToolCache::new(cascade.tool_caching.as_ref()));
        Ok(Self { cascade, tool_cache, depth, sounding: None, ..self.clone() })
    }

    /// Runs this cascade to its end as a task of its own.
    ///
    /// On the stack of the outer run, eight levels of cascades need more than the two megabytes of a thread in a build
    /// without optimisation. The task ends with the outer run.
    pub(crate) fn start_inside(
        self,
        input: Map<String, Value>,
        state: Map<String, Value>,
        session: SessionId,
    ) -> BoxFuture<'static, Result<RunOutcome, RunError>> {
        Box::pin(async move {
            let phase = self.cascade.cascade_id.to_string();
            let mut task = JoinSet::new();
            task.spawn(async move { self.start(input, state, &session).await });
            match task.join_next().await {
                Some(Ok(outcome)) => outcome,
                Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
                // The runtime ends, and this task with it.
                _ => Err(RunError::Failed { phase, why: "the program ends".to_owned() }),
            }
        })
    }
}
