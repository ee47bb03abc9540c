//! Cascades inside a phase.

use std::sync::Arc;

use plimsoll_core::{Message, Role};
use serde_json::Map;

use super::error::RunError;
use super::journal::Journal;
use super::state::RunState;
use super::turns::{Set, own_message};
use super::{Run, part_of};
use crate::definition::{Cascade, Phase};

impl Run {
    /// Runs the cascades inside a phase, and returns what the phase sees of them.
    pub(crate) async fn sub_cascades(
        &self,
        phase: &Phase,
        past: &mut RunState,
        journal: &mut Journal,
        set: &mut Set,
    ) -> Result<Vec<Arc<Message>>, RunError> {
        let mut seen = Vec::new();
        for (number, sub) in phase.sub_cascades.iter().enumerate() {
            let cascade = self
                .runner
                .library
                .cascade(&sub.reference)
                .map_err(|what| RunError::Missing { what })?;
            let name = cascade.cascade_id.to_string();
            let inner = self.inside(cascade)?;
            inner.check()?;
            // What flows in is seen as state and, by the names of the inner cascade, as input.
            let (mut input, state) = if sub.context_in {
                let mut input = past.input.clone();
                input.extend(past.state.clone());
                (input, past.state.clone())
            } else {
                (Map::new(), Map::new())
            };
            input.extend(self.templated(phase, past, &sub.input_map)?);
            let part = format!("{}.{}.{number}", phase.name, past.visits(phase.name.as_str()));
            let session = part_of(journal.session(), &part)?;
            let outcome = Box::pin(inner.start(input, state, &session)).await?;
            if sub.context_out {
                for (key, value) in outcome.past.state {
                    if past.state.get(&key) != Some(&value) {
                        past.state.insert(key.clone(), value.clone());
                        set.state.insert(key, value);
                    }
                }
            }
            let text = format!("[Output from {name}]:\n{}", outcome.output);
            seen.push(journal.say(own_message(phase, Role::User, text)).await?);
        }
        Ok(seen)
    }

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
        Ok(Self { cascade, depth, sounding: None, ..self.clone() })
    }
}
