//! The context of a phase in mode `auto`: anchors, and the messages that a strategy selects.
//!
//! Message texts are those of `auto-context.md`, `_gather_anchors`. Selected messages are sent unchanged, except that no
//! call stands without its result: a result by itself is quoted.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::select::{
    CardCandidate, Menu, Pool, SELECTOR_MODEL, Selection, SelectionConfig, Strategy, answer_schema,
};
use plimsoll_core::text::{Limit, error_lines, head};
use plimsoll_core::{ContentHash, Message, MillisSinceEpoch, Role, card};
use plimsoll_engine::selection::choose;
use plimsoll_engine::{Embedder, HistoryBatch, ReceiptRecord};

use super::context::{PhaseContext, indented, snowball};
use super::error::RunError;
use super::event::{Purpose, RunEvent};
use super::state::{PhaseRun, RunState, text_of};
use super::visit::Visit;
use crate::definition::{self, AnchorInclude, AutoSelection, Phase};

/// A message of an earlier phase.
struct EarlierMessage {
    message: Arc<Message>,
    candidate: CardCandidate,
}

/// The anchors of a phase, and the messages that a strategy selects from.
pub(crate) struct Prepared {
    pub(crate) anchors: Vec<Arc<Message>>,
    earlier: Vec<EarlierMessage>,
    pub(crate) pool: Pool,
    pub(crate) notes: Vec<String>,
}

impl Prepared {
    /// Returns the anchors and what was selected, in the order of the conversation, whatever the order of the choice.
    pub(crate) fn messages(&self, selection: &Selection) -> Vec<Arc<Message>> {
        let hashes: Vec<&str> = selection.hashes().collect();
        let chosen =
            self.earlier.iter().filter(|one| hashes.contains(&one.candidate.hash.as_str()));
        let chosen = chosen.map(|one| standing_alone(&one.message));
        self.anchors.iter().cloned().chain(chosen).collect()
    }
}

/// Returns the anchors of a phase and the messages that a strategy selects from for a task.
pub(crate) fn prepared(
    phase: &Phase,
    auto: &AutoSelection,
    past: &RunState,
    task: &str,
) -> Prepared {
    let mut notes = Vec::new();
    let mut anchors: Vec<Arc<Message>> = Vec::new();
    if auto.include.contains(&AnchorInclude::Input) && !past.input.is_empty() {
        let text = format!("[Original Input]\n{}", indented(&past.input));
        anchors.push(Arc::new(Message::text(Role::User, text)));
    }
    if auto.include.contains(&AnchorInclude::Output) {
        for run in resolved(auto, excluded(phase), past, &mut notes) {
            let text = format!("[Output from {}]\n{}", run.phase, run.output);
            anchors.push(Arc::new(Message::text(Role::Assistant, text)));
        }
    }
    let earlier = candidates(phase, auto, past);
    let taken: u64 =
        anchors.iter().map(|message| u64::from(TOKENIZER.count_message(message))).sum();
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
    let last = earlier.iter().map(|one| one.candidate.at).max().unwrap_or_default();
    let pool_of = earlier.iter().map(|one| one.candidate.clone()).collect();
    let pool = Pool::new(pool_of, task, last, &config);
    Prepared { anchors, earlier, pool, notes }
}

/// Returns the phases that the context of a phase leaves out.
fn excluded(phase: &Phase) -> &[String] {
    phase.context.as_ref().map_or(&[], |context| context.exclude.as_slice())
}

impl Visit<'_> {
    /// Selects the context of the phase, and records the selection in a receipt.
    pub(crate) async fn select_context(
        &mut self,
        auto: &AutoSelection,
    ) -> Result<PhaseContext, RunError> {
        let task = self.task()?;
        let prepared = prepared(self.phase, auto, self.past, &task);
        let selection = self.select(auto, &prepared.pool, &task).await?;
        let mut built = PhaseContext { notes: prepared.notes.clone(), ..PhaseContext::default() };
        if let Some(why) = &selection.fallback {
            built.notes.push(format!("the heuristic chose: {why}"));
        }
        let count = |messages: &[Arc<Message>]| -> u64 {
            messages.iter().map(|message| u64::from(TOKENIZER.count_message(message))).sum()
        };
        let everything = snowball(self.past);
        built.messages = prepared.messages(&selection);
        let tokens = [count(&everything), count(&built.messages)];
        let candidates = prepared.earlier.len();
        self.record_selection(&prepared.anchors, &selection, candidates, tokens).await?;
        built.everything = Some(everything);
        Ok(built)
    }

    async fn select(
        &mut self,
        auto: &AutoSelection,
        pool: &Pool,
        task: &str,
    ) -> Result<Selection, RunError> {
        let run = self.run;
        let settings = &run.runner.settings;
        let ask = async |menu: &Menu| {
            if !settings.llm_selection_enabled {
                return Ok(Err("choices by a model are turned off".to_owned()));
            }
            let name = self.render_option(auto.selector_model.as_ref())?;
            let model = match self.model(Some(name.unwrap_or_else(|| SELECTOR_MODEL.to_owned()))) {
                Ok(model) => model,
                Err(error) => return Ok(Err(error.to_string())),
            };
            let question = format!("{}\n\n{}", menu.system, menu.prompt);
            match self.ask(Purpose::Selector, &model, question, answer_schema()).await {
                Ok(answer) => Ok(Ok(answer.to_string())),
                Err(error @ (RunError::Model { .. } | RunError::Recorded { .. })) => {
                    let why = error.to_string();
                    self.journal.fail(self.phase.name.as_str(), &why).await?;
                    Ok(Err(why))
                }
                Err(error) => Err(error),
            }
        };
        let embedder = run.runner.embedder.as_deref();
        let similarities = async || similarities(embedder, pool, task).await;
        choose(pool, strategy(auto.strategy), settings.safety, similarities, ask).await
    }

    async fn record_selection(
        &self,
        anchors: &[Arc<Message>],
        selection: &Selection,
        candidates: usize,
        [full_tokens, selected_tokens]: [u64; 2],
    ) -> Result<(), RunError> {
        let own = anchors.iter().map(|message| ContentHash::of(message).short());
        let marked = selection.anchors.iter().map(|chosen| chosen.hash.clone());
        let (session, turn) = (self.journal.session(), self.journal.turn());
        let (name, visits) = (self.name(), self.past.visits(self.name()));
        let now = self.run.runner.clock.now();
        let mut record = ReceiptRecord::of_selection(session, turn, selection, candidates, now);
        record.trace_id = format!("{session}:{turn}:{name}.{visits}");
        record.cascade_id = Some(self.run.cascade.cascade_id.to_string());
        record.context_size += anchors.len() as u32;
        record.masked_count = selection.left_out.len() as u32;
        record.anchor_hashes = own.chain(marked).collect();
        record.tokens_saved = full_tokens.cast_signed() - selected_tokens.cast_signed();
        self.run.tell(&RunEvent::ContextSelected {
            phase: self.name().to_owned(),
            strategy: selection.used.as_str().to_owned(),
            anchored: record.anchor_hashes.clone(),
            selected: record.selected_hashes.clone(),
            full_tokens,
            selected_tokens,
        });
        let batch = HistoryBatch { receipts: vec![record], ..HistoryBatch::default() };
        self.run.runner.history.append(self.journal.tenant(), batch).await?;
        Ok(())
    }
}

/// Returns the cosines of the candidates' summaries to the task.
async fn similarities(
    embedder: Option<&dyn Embedder>,
    pool: &Pool,
    task: &str,
) -> Result<BTreeMap<String, f64>, String> {
    let embedder = embedder.ok_or_else(|| "there is no embedder".to_owned())?;
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

/// Returns the phases whose output is an anchor, in the order in which they are named.
fn resolved<'a>(
    auto: &AutoSelection,
    excluded: &[String],
    past: &'a RunState,
    notes: &mut Vec<String>,
) -> Vec<&'a PhaseRun> {
    let mut found: Vec<&PhaseRun> = Vec::new();
    for name in &auto.from_phases {
        match name.to_ascii_lowercase().as_str() {
            "previous" | "prev" => found.extend(past.runs.last()),
            "first" => found.extend(past.runs.first()),
            "all" => found.extend(&past.runs),
            _ => match past.latest(name) {
                Some(run) => found.push(run),
                None => notes.push(format!("no output of `{name}` is an anchor: it did not run")),
            },
        }
    }
    found.retain(|run| !excluded.contains(&run.phase));
    found
}

/// Returns the messages of earlier phases that may be selected: all but outputs that are anchors, and what the run itself said
/// as the user to steer a phase.
fn candidates(phase: &Phase, auto: &AutoSelection, past: &RunState) -> Vec<EarlierMessage> {
    let with_outputs = auto.include.contains(&AnchorInclude::Output);
    let anchored: Vec<&str> = if with_outputs {
        let runs = resolved(auto, excluded(phase), past, &mut Vec::new());
        runs.iter().map(|run| run.output.as_str()).collect()
    } else {
        Vec::new()
    };
    let last_visit = past.runs.iter().rposition(|run| run.phase == phase.name.as_str());
    let mut all = Vec::new();
    for (number, run) in past.runs.iter().enumerate() {
        if excluded(phase).contains(&run.phase) {
            continue;
        }
        let is_steered = run.messages.iter().any(|message| message.role == Role::System);
        // The last turns of the same phase, where it ran before, are anchors.
        let window = if last_visit == Some(number) { auto.window as usize } else { 0 };
        let window = window_begin(&run.messages, window);
        for (turn, message) in run.messages.iter().enumerate() {
            let text = text_of(message);
            let is_anchored = message.role == Role::Assistant && anchored.contains(&text.as_str());
            let is_order =
                is_steered && message.role == Role::User && !text.starts_with("[Answer to ");
            if message.role == Role::System || is_anchored || is_order {
                continue;
            }
            all.push(earlier_message(auto, run, turn, &text, turn >= window));
        }
    }
    all
}

/// Returns the index of the first message of the last `turns` turns.
fn window_begin(messages: &[Arc<Message>], turns: usize) -> usize {
    if turns == 0 {
        return messages.len();
    }
    let answers = messages.iter().enumerate().rev();
    let answers = answers.filter(|(_, message)| message.role == Role::Assistant);
    answers.take(turns).last().map_or(0, |(index, _)| index)
}

fn earlier_message(
    auto: &AutoSelection,
    run: &PhaseRun,
    turn: usize,
    text: &str,
    is_in_window: bool,
) -> EarlierMessage {
    let message = &run.messages[turn];
    let summary = match card::summarise(message) {
        card::Summary::Fast(summary) => summary,
        card::Summary::Model => card::truncated(&message.shown()),
    };
    let has = |include| auto.include.contains(&include);
    let is_callout = message.callout.is_some() && has(AnchorInclude::Callouts);
    let is_error = error_lines(text).next().is_some();
    let is_anchor = is_in_window || is_callout || (is_error && has(AnchorInclude::Errors));
    EarlierMessage {
        message: message.clone(),
        candidate: CardCandidate {
            hash: ContentHash::of(message).short(),
            keywords: card::card_keywords(&summary).into_iter().collect(),
            summary,
            tokens: TOKENIZER.count_message(&standing_alone(message)),
            role: message.role,
            phase: Some(run.phase.clone()),
            turn: Some(turn as u32),
            at: message.time.unwrap_or(MillisSinceEpoch(0)),
            is_anchor,
            is_callout: message.callout.is_some(),
            is_error,
        },
    }
}

/// The tokenizer that measures candidates, whatever the model of the phase.
const TOKENIZER: plimsoll_core::Tokenizer = plimsoll_core::Tokenizer::O200k { factor: 1.0 };

/// Returns a message in a form that stands without its exchange: calls and results become text.
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
