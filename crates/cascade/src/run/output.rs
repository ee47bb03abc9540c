//! The end of a phase: its output goes into the past, a part of it into the state, and callouts are marked.

use std::sync::Arc;

use plimsoll_core::text::{Limit, head};
use plimsoll_core::{ContentHash, Role};
use plimsoll_engine::{ContextCard, HistoryBatch};
use serde_json::Value;

use super::error::RunError;
use super::state::PhaseRun;
use super::visit::Visit;
use crate::definition::ExtractionFormat;

impl Visit<'_> {
    /// Adds the finished run of the phase to the past, and the extracted part of its output to the state.
    pub(crate) async fn end(&mut self, mut run: PhaseRun) -> Result<(), RunError> {
        if let Some(extraction) = &self.phase.output_extraction {
            let pattern = extraction.pattern.regex();
            let pattern = pattern
                .map_err(|error| self.failed(format!("`output_extraction.pattern`: {error}")))?;
            let found = pattern.captures(&run.output).and_then(|groups| {
                groups.get(1).or_else(|| groups.get(0)).map(|part| part.as_str().trim().to_owned())
            });
            match found {
                Some(text) => {
                    let value = match extraction.format {
                        ExtractionFormat::Json => serde_json::from_str(&text).map_err(|error| {
                            self.failed(format!("the extracted text is not JSON: {error}"))
                        })?,
                        ExtractionFormat::Text | ExtractionFormat::Code => Value::String(text),
                    };
                    self.past.state.insert(extraction.store_as.clone(), value.clone());
                    run.changes.insert(extraction.store_as.clone(), value);
                }
                None if extraction.required => {
                    let why = "nothing in its output matches `output_extraction.pattern`";
                    return Err(self.failed(why));
                }
                None => {}
            }
        }
        let callout = self.phase.callouts.as_ref().and_then(|callouts| callouts.output.as_ref());
        if let Some(name) = self.render_option(callout)? {
            self.call_out(&mut run, &name.into()).await?;
        }
        self.remember(&run).await?;
        self.past.runs.push(run);
        Ok(())
    }

    /// Marks the last answer of a phase as important.
    async fn call_out(&self, run: &mut PhaseRun, name: &Arc<str>) -> Result<(), RunError> {
        let last = run.messages.iter_mut().rev().find(|message| message.role == Role::Assistant);
        let Some(last) = last else { return Ok(()) };
        let mut marked = (**last).clone();
        marked.callout = Some(name.clone());
        let now = self.run.runner.clock.now();
        let shown = marked.shown();
        let card = ContextCard {
            tenant: self.journal.tenant().clone(),
            session: self.journal.session().clone(),
            content_hash: ContentHash::of(&marked).short(),
            summary: head(&shown, Limit::Characters(200)).to_owned(),
            keywords: Vec::new(),
            embedding: None,
            estimated_tokens: plimsoll_core::tokens::estimate(&shown),
            role: marked.role,
            phase_name: Some(run.phase.clone()),
            turn_number: None,
            is_anchor: false,
            is_callout: true,
            callout_name: Some(name.to_string()),
            generated_at: now,
            generator_model: "callout".to_owned(),
            message_timestamp: marked.time.unwrap_or(now),
        };
        let batch = HistoryBatch { cards: vec![card], ..HistoryBatch::default() };
        self.run.runner.history.append(self.journal.tenant(), batch).await?;
        *last = Arc::new(marked);
        Ok(())
    }
}
