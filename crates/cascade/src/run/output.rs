//! What becomes of a phase that ended: its output, what is taken out of it, and what is marked.

use std::sync::Arc;

use plimsoll_core::text::{Limit, head};
use plimsoll_core::{ContentHash, Role};
use plimsoll_engine::{ContextCard, HistoryBatch};
use serde_json::Value;

use super::Run;
use super::error::RunError;
use super::journal::Journal;
use super::state::{Ran, RunState};
use crate::definition::{ExtractionFormat, Phase};

impl Run {
    /// Adds a phase that ended to the past, with what is taken out of its output.
    pub(crate) async fn end(
        &self,
        phase: &Phase,
        past: &mut RunState,
        journal: &Journal,
        mut ran: Ran,
    ) -> Result<(), RunError> {
        if let Some(extraction) = &phase.output_extraction {
            let failed = |why: String| RunError::Failed { phase: phase.name.to_string(), why };
            let pattern = extraction.pattern.regex();
            let pattern =
                pattern.map_err(|error| failed(format!("`output_extraction.pattern`: {error}")))?;
            let found = pattern.captures(&ran.output).and_then(|groups| {
                groups.get(1).or_else(|| groups.get(0)).map(|part| part.as_str().trim().to_owned())
            });
            match found {
                Some(text) => {
                    let value = match extraction.format {
                        ExtractionFormat::Json => serde_json::from_str(&text).map_err(|error| {
                            failed(format!("what was extracted is no JSON: {error}"))
                        })?,
                        ExtractionFormat::Text | ExtractionFormat::Code => Value::String(text),
                    };
                    past.state.insert(extraction.store_as.clone(), value.clone());
                    ran.set.insert(extraction.store_as.clone(), value);
                }
                None if extraction.required => {
                    return Err(failed(
                        "nothing in its output matches `output_extraction.pattern`".to_owned(),
                    ));
                }
                None => {}
            }
        }
        if let Some(template) =
            phase.callouts.as_ref().and_then(|callouts| callouts.output.as_ref())
        {
            let name: Arc<str> = self.render(phase, past, template, [])?.into();
            self.call_out(journal, &mut ran, &name).await?;
        }
        past.ran.push(ran);
        Ok(())
    }

    /// Marks a phase's last answer.
    pub(crate) async fn call_out(
        &self,
        journal: &Journal,
        ran: &mut Ran,
        name: &Arc<str>,
    ) -> Result<(), RunError> {
        let last = ran.messages.iter_mut().rev().find(|message| message.role == Role::Assistant);
        let Some(last) = last else { return Ok(()) };
        let mut marked = (**last).clone();
        marked.callout = Some(name.clone());
        let now = self.runner.clock.now();
        let shown = marked.shown();
        let card = ContextCard {
            tenant: journal.tenant().clone(),
            session: journal.session().clone(),
            content_hash: ContentHash::of(&marked).short(),
            summary: head(&shown, Limit::Characters(200)).to_owned(),
            keywords: Vec::new(),
            embedding: None,
            estimated_tokens: plimsoll_core::tokens::estimate(&shown),
            role: marked.role,
            phase_name: Some(ran.phase.clone()),
            turn_number: None,
            is_anchor: false,
            is_callout: true,
            callout_name: Some(name.to_string()),
            generated_at: now,
            generator_model: "callout".to_owned(),
            message_timestamp: marked.time.unwrap_or(now),
        };
        let batch = HistoryBatch { cards: vec![card], ..HistoryBatch::default() };
        self.runner.history.append(journal.tenant(), batch).await?;
        *last = Arc::new(marked);
        Ok(())
    }
}
