//! The context of a phase in mode `auto`: anchors, and what is chosen of the rest.
//!
//! Message texts are those of `auto-context.md`, `_gather_anchors`. What is chosen is sent as it was said, except that no
//! call stands without its result: a result by itself is quoted.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::select::{
    self, CardCandidate, Pool, Selection, SelectionConfig, Strategy, answer_schema, heuristic,
    hybrid_menu, menu, semantic,
};
use plimsoll_core::text::{Limit, error_lines, head};
use plimsoll_core::{ContentHash, Message, MillisSinceEpoch, Role, card};
use plimsoll_engine::cards::safe_text;
use plimsoll_engine::{HistoryBatch, ReceiptRecord};

use super::Run;
use super::context::{PhaseContext, indented};
use super::error::RunError;
use super::event::Event;
use super::journal::Journal;
use super::state::{Ran, RunState, text_of};
use crate::definition::{self, AnchorInclude, AutoSelection, Phase};

/// A message of an earlier phase.
struct Earlier<'a> {
    message: &'a Arc<Message>,
    candidate: CardCandidate,
}

impl Run {
    /// Chooses the context of a phase; every choice leaves a receipt.
    pub(crate) async fn chosen_context(
        &self,
        phase: &Phase,
        past: &RunState,
        journal: &mut Journal,
        auto: &AutoSelection,
    ) -> Result<PhaseContext, RunError> {
        let mut built = PhaseContext::default();
        let mut anchors: Vec<Arc<Message>> = Vec::new();
        if auto.include.contains(&AnchorInclude::Input) && !past.input.is_empty() {
            let text = format!("[Original Input]\n{}", indented(&past.input));
            anchors.push(Arc::new(Message::text(Role::User, text)));
        }
        if auto.include.contains(&AnchorInclude::Output) {
            for ran in resolved(auto, past, &mut built.notes) {
                let text = format!("[Output from {}]\n{}", ran.phase, ran.output);
                anchors.push(Arc::new(Message::text(Role::Assistant, text)));
            }
        }
        let earlier = candidates(auto, past);
        let tokenizer = plimsoll_core::Tokenizer::O200k { factor: 1.0 };
        let taken: u64 =
            anchors.iter().map(|message| u64::from(tokenizer.count_message(message))).sum();
        let config = SelectionConfig {
            strategy: Some(strategy(auto.strategy)),
            max_tokens: u64::from(auto.max_tokens).saturating_sub(taken),
            max_messages: auto.max_messages as usize,
            selector_model: None,
            recency_weight: auto.recency_weight,
            keyword_weight: auto.keyword_weight,
            callout_weight: auto.callout_weight,
            similarity_threshold: auto.similarity_threshold,
        };
        let task = match &phase.instructions {
            Some(template) => self.render(phase, past, template, [])?,
            None => String::new(),
        };
        let last = earlier.iter().map(|one| one.candidate.at).max().unwrap_or_default();
        let pool_of = earlier.iter().map(|one| one.candidate.clone()).collect();
        let pool = Pool::new(pool_of, &task, last, &config);
        let selection = self.selected(phase, past, journal, auto, &pool, &task).await?;
        if let Some(why) = &selection.fallback {
            built.notes.push(format!("the heuristic chose: {why}"));
        }
        let chosen: Vec<&str> = selection.hashes().collect();
        // In the order in which they were said, whatever the order of the choice.
        let said = earlier.iter().filter(|one| chosen.contains(&one.candidate.hash.as_str()));
        let said: Vec<Arc<Message>> = said.map(|one| standing_alone(one.message)).collect();
        self.keep_selection(phase, past, journal, &anchors, &selection, earlier.len()).await?;
        built.messages = anchors;
        built.messages.extend(said);
        Ok(built)
    }

    async fn selected(
        &self,
        phase: &Phase,
        past: &RunState,
        journal: &mut Journal,
        auto: &AutoSelection,
        pool: &Pool,
        task: &str,
    ) -> Result<Selection, RunError> {
        let fallback = |why: String| {
            let mut selection = heuristic(pool);
            selection.asked = strategy(auto.strategy);
            selection.fallback = Some(why);
            selection
        };
        if pool.candidates().is_empty() {
            return Ok(heuristic(pool));
        }
        let by_model = matches!(strategy(auto.strategy), Strategy::Llm | Strategy::Hybrid);
        if by_model && !self.runner.settings.llm_selection_enabled {
            return Ok(fallback("choices by a model are turned off".to_owned()));
        }
        let safe = |text: &str| safe_text(text, self.runner.settings.safety);
        let menu = match strategy(auto.strategy) {
            Strategy::Heuristic => return Ok(heuristic(pool)),
            Strategy::Semantic => {
                return Ok(match self.similarities(pool, task).await {
                    Ok(similarities) => semantic(pool, &similarities),
                    Err(why) => fallback(why),
                });
            }
            Strategy::Llm => menu(pool, safe),
            Strategy::Hybrid => hybrid_menu(pool, safe),
        };
        let asked = self.of_template(phase, past, auto.selector_model.as_ref())?;
        let (model, asked_for) = match self.model(phase, past, asked) {
            Ok(model) => model,
            Err(error) => return Ok(fallback(error.to_string())),
        };
        let question = format!("{}\n\n{}", menu.system, menu.prompt);
        let answer =
            match self.ask(phase, journal, model, asked_for, question, answer_schema()).await {
                Ok(answer) => answer,
                Err(error @ (RunError::Model { .. } | RunError::Met { .. })) => {
                    let why = error.to_string();
                    journal.fail(phase.name.as_str(), &why).await?;
                    return Ok(fallback(why));
                }
                Err(error) => return Err(error),
            };
        Ok(match select::llm(pool, &menu, &answer.to_string()) {
            Ok(selection) => selection,
            Err(why) => fallback(why.to_string()),
        })
    }

    async fn similarities(&self, pool: &Pool, task: &str) -> Result<BTreeMap<String, f64>, String> {
        let Some(embedder) = &self.runner.embedder else {
            return Err("there is no embedder".to_owned());
        };
        // The first thousand characters of a task are asked for (`_semantic_selection`).
        let task = head(task, Limit::Characters(1_000));
        let mut texts: Vec<&str> = vec![task];
        texts.extend(pool.candidates().iter().map(|candidate| candidate.summary.as_str()));
        let vectors = embedder.embed(&texts).await.map_err(|error| error.to_string())?;
        let Some((asked, rest)) = vectors.split_first() else {
            return Err("the embedder gave no vectors".to_owned());
        };
        let cosines = pool.candidates().iter().zip(rest).map(|(candidate, embedding)| {
            let parts = asked.vector.iter().zip(&embedding.vector);
            (candidate.hash.clone(), parts.map(|(a, b)| f64::from(a * b)).sum())
        });
        Ok(cosines.collect())
    }

    async fn keep_selection(
        &self,
        phase: &Phase,
        past: &RunState,
        journal: &Journal,
        anchors: &[Arc<Message>],
        selection: &Selection,
        candidates: usize,
    ) -> Result<(), RunError> {
        let own = anchors.iter().map(|message| ContentHash::of(message).short());
        let marked = selection.anchors.iter().map(|chosen| chosen.hash.clone());
        let left_out: i64 = selection.left_out.iter().map(|passed| i64::from(passed.tokens)).sum();
        let (session, turn) = (journal.session(), journal.turn());
        let visits = past.visits(phase.name.as_str());
        let now = self.runner.clock.now();
        let mut record = ReceiptRecord::of_selection(session, turn, selection, candidates, now);
        record.trace_id = format!("{session}:{turn}:{}.{visits}", phase.name);
        record.cascade_id = Some(self.cascade.cascade_id.to_string());
        record.context_size += anchors.len() as u32;
        record.masked_count = selection.left_out.len() as u32;
        record.anchor_hashes = own.chain(marked).collect();
        record.tokens_saved = left_out;
        self.tell(&Event::Chosen {
            phase: phase.name.to_string(),
            strategy: selection.used.as_str().to_owned(),
            anchored: record.anchor_hashes.clone(),
            selected: record.selected_hashes.clone(),
        });
        let batch = HistoryBatch { receipts: vec![record], ..HistoryBatch::default() };
        self.runner.history.append(journal.tenant(), batch).await?;
        Ok(())
    }
}

/// Returns the phases whose output is an anchor, in the order in which they are named.
fn resolved<'a>(auto: &AutoSelection, past: &'a RunState, notes: &mut Vec<String>) -> Vec<&'a Ran> {
    let mut found: Vec<&Ran> = Vec::new();
    for name in &auto.from_phases {
        match name.to_ascii_lowercase().as_str() {
            "previous" | "prev" => found.extend(past.ran.last()),
            "first" => found.extend(past.ran.first()),
            "all" => found.extend(&past.ran),
            _ => match past.latest(name) {
                Some(ran) => found.push(ran),
                None => notes.push(format!("no output of `{name}` is an anchor: it did not run")),
            },
        }
    }
    found
}

/// Returns what may be chosen: what earlier phases said and were told, except for the outputs that are anchors anyway.
fn candidates<'a>(auto: &AutoSelection, past: &'a RunState) -> Vec<Earlier<'a>> {
    let with_outputs = auto.include.contains(&AnchorInclude::Output);
    let anchored: Vec<&str> = if with_outputs {
        resolved(auto, past, &mut Vec::new()).iter().map(|ran| ran.output.as_str()).collect()
    } else {
        Vec::new()
    };
    let tokenizer = plimsoll_core::Tokenizer::O200k { factor: 1.0 };
    let mut all: Vec<Earlier<'a>> = Vec::new();
    for ran in &past.ran {
        for (turn, message) in ran.messages.iter().enumerate() {
            let text = text_of(message);
            let is_anchored = message.role == Role::Assistant && anchored.contains(&text.as_str());
            if message.role == Role::System || is_anchored {
                continue;
            }
            let summary = match card::summarise(message) {
                card::Summary::Fast(summary) => summary,
                card::Summary::Model => card::truncated(&message.shown()),
            };
            let is_callout =
                message.callout.is_some() && auto.include.contains(&AnchorInclude::Callouts);
            let is_error = error_lines(&text).next().is_some();
            let is_anchor =
                is_callout || (is_error && auto.include.contains(&AnchorInclude::Errors));
            all.push(Earlier {
                message,
                candidate: CardCandidate {
                    hash: ContentHash::of(message).short(),
                    keywords: card::card_keywords(&summary).into_iter().collect(),
                    summary,
                    tokens: tokenizer.count_message(&standing_alone(message)),
                    role: message.role,
                    phase: Some(ran.phase.clone()),
                    turn: Some(turn as u32),
                    at: message.time.unwrap_or(MillisSinceEpoch(0)),
                    is_anchor,
                    is_callout: message.callout.is_some(),
                    is_error,
                },
            });
        }
    }
    all
}

/// Returns a message as it can stand without its exchange: calls are told, results are quoted.
fn standing_alone(message: &Arc<Message>) -> Arc<Message> {
    let told = match message.role {
        Role::Tool => Message::text(Role::User, format!("[Tool result]: {}", message.shown())),
        Role::Assistant if message.calls().next().is_some() => {
            Message::text(Role::Assistant, message.shown())
        }
        _ => return message.clone(),
    };
    Arc::new(told)
}

fn strategy(strategy: definition::Strategy) -> Strategy {
    match strategy {
        definition::Strategy::Heuristic => Strategy::Heuristic,
        definition::Strategy::Semantic => Strategy::Semantic,
        definition::Strategy::Llm => Strategy::Llm,
        definition::Strategy::Hybrid => Strategy::Hybrid,
    }
}
