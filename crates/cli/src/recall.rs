//! `plimsoll recall`: finds the messages of a store that answer a question.

mod batch;
mod page;

use std::mem::ManuallyDrop;
use std::sync::Arc;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::recall::{Match, ScoreParts};
use plimsoll_engine::{Recall, RecallHit, RecallScope, SessionId};
use plimsoll_models::BuiltInEmbedder;
use serde::Serialize;

use crate::arguments::RecallArguments;
use crate::config;
use crate::error::CommandError;
use crate::load::tokenizer;
use crate::output;
use crate::store::{Store, session_id};

/// Everything that was recalled, as JSON shows it.
#[derive(Debug, Serialize)]
struct RecallAnswer<'a> {
    query: &'a str,
    budget: u64,
    tokens: u64,
    /// Messages that match the question.
    ranked: usize,
    /// Better messages that did not fit.
    passed_over: usize,
    hits: Vec<AnswerHit<'a>>,
}

#[derive(Debug, Serialize)]
struct AnswerHit<'a> {
    id: String,
    session: &'a SessionId,
    position: u32,
    r#ref: String,
    time: Option<MillisSinceEpoch>,
    speaker: &'a str,
    text: String,
    tokens: u32,
    score: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<ScoreParts>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    matches: Vec<Match>,
}

pub(crate) fn run(arguments: &RecallArguments) -> Result<(), CommandError> {
    let tokenizer = tokenizer(&arguments.tokens)?;
    let settings = config::read(arguments.config.as_deref())?.recall;
    let session = arguments.session.as_deref().map(session_id).transpose()?;
    let store = Store::open_existing(&arguments.store, arguments.config.as_deref())?;
    // The process ends here: freeing an index of thousands of messages would take a tenth of its time.
    let recall = ManuallyDrop::new(Recall::new(settings, Some(Arc::new(BuiltInEmbedder))));
    if let (Some(queries), Some(out)) = (&arguments.batch, &arguments.out) {
        return batch::run(&store, &recall, session.as_ref(), queries, out);
    }
    let query = arguments.query.as_deref().unwrap_or_default();
    store.recall(&recall, session.as_ref(), |scope| {
        let found = scope.recall(query, arguments.budget, tokenizer);
        if arguments.json {
            let hits = found.hits.iter().map(|hit| json(hit, scope, arguments)).collect();
            let (tokens, ranked, passed_over) = (found.tokens, found.ranked, found.passed_over);
            let budget = arguments.budget;
            return output::json(&RecallAnswer {
                query,
                budget,
                tokens,
                ranked,
                passed_over,
                hits,
            });
        }
        output::page(&page::page(&found, scope, arguments))
    })?
}

fn json<'a>(
    hit: &RecallHit<'a>,
    scope: &RecallScope,
    arguments: &RecallArguments,
) -> AnswerHit<'a> {
    let record = hit.record;
    let message = &record.message;
    let explained = arguments.query.as_deref().filter(|_| arguments.explain);
    AnswerHit {
        id: record.name(),
        session: &record.session,
        position: record.position,
        r#ref: format!("ref:message:{}", record.hash),
        time: message.time,
        speaker: message.speaker.as_deref().unwrap_or(message.role.as_str()),
        text: message.shown(),
        tokens: hit.tokens,
        score: hit.recalled.score,
        why: explained.map(|_| hit.recalled.why),
        matches: explained.map_or_else(Vec::new, |query| scope.matches(query, &hit.recalled)),
    }
}
