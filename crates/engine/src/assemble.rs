//! Assembling: what is known and what was said, put together for one turn within a budget.
//!
//! The text is core's; here the records are found, the session is read, and a context that stands is refreshed or left alone.

mod frames;
mod receipt;
mod working_set;

use plimsoll_core::memory::assemble::{
    MemoryContext, MemoryInput, MemorySettings, MemoryTooLarge, assemble,
};
use plimsoll_core::memory::calibration::{
    CalibrationSettings, ConfidenceCalibration, ReviewedDecision, calibration,
};
use plimsoll_core::memory::frame::{CONVERSATION, Frame, FrameSelection};
use plimsoll_core::memory::refresh::{NewTurn, Refresh, RefreshReason, refresh};
use plimsoll_core::memory::score::MemoryCandidate;
use plimsoll_core::memory::{MemoryKind, MemoryState};
use plimsoll_core::policy::RequestSettings;
use plimsoll_core::request::{
    AssembledRequest, RequestInput, ToolIntent, TurnTooLarge, assemble_request,
};
use plimsoll_core::text::shortened;
use plimsoll_core::{MillisSinceEpoch, Tokenizer};
use serde::{Deserialize, Serialize};

use crate::embedder::Embedder;
use crate::error::StoreError;
use crate::history::HistoryStore;
use crate::id::{SessionId, TenantId};
use crate::knowledge::KnowledgeStore;
use crate::memories::{AskedMemory, FoundMemory, Memories, candidate};
use crate::memory::{MemoryId, MemoryRecord, Scope};
use crate::model_error::ModelError;
use crate::recall::Recall;
use crate::remember::Details;
use crate::search::Embedding;

pub use frames::FrameBook;
pub(crate) use receipt::answer_behind;
pub use receipt::{ASSEMBLE, AssemblyReceipt, ShownRecord, record_assembly};
use working_set::recalled;
pub use working_set::{WorkingSet, working_set};

/// Settings of assembly, beside those of the search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AssembleSettings {
    pub context: MemorySettings,
    pub frames: FrameSelection,
    pub request: RequestSettings,
}

/// The means of assembly. Without an embedder records are found by their words.
#[derive(Debug, Clone, Copy)]
pub struct Assembler<'a> {
    pub history: &'a dyn HistoryStore,
    pub knowledge: &'a dyn KnowledgeStore,
    pub embedder: Option<&'a dyn Embedder>,
    pub tenant: &'a TenantId,
    pub frames: &'a FrameBook,
    pub settings: &'a AssembleSettings,
    pub tokenizer: Tokenizer,
    /// The agent's identity, in the operator's words.
    pub identity: &'a str,
    /// The operator's rules, and the user's card: project, time zone, role.
    pub rules: &'a str,
    pub profile: &'a str,
    /// Finds what was said in the session before its newest messages; without it only they are in a request.
    pub recall: Option<&'a Recall>,
}

/// The turn that a context is assembled for.
#[derive(Debug, Clone, Copy)]
pub struct AssemblyTurn<'a> {
    pub scope: &'a Scope,
    /// The user's text; empty for the next step of the current task.
    pub text: &'a str,
    /// Without one it is chosen by what the text looks like.
    pub frame: Option<&'a str>,
    pub tags: &'a [String],
    /// The ceiling in tokens, in the place of the settings' own.
    pub budget: Option<u64>,
    /// The current task, in the operator's words; without it that of the session.
    pub focus: Option<&'a str>,
    /// Whether something is about to be decided or done.
    pub about_to_act: bool,
    /// Makes everything anew, whatever stands.
    pub force_refresh: bool,
    /// The context that the model saw before.
    pub previous: Option<&'a MemoryContext>,
    pub now: MillisSinceEpoch,
}

/// Why nothing was assembled.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    TooLarge(#[from] TurnTooLarge),
    #[error(transparent)]
    MemoryTooLarge(#[from] MemoryTooLarge),
    #[error("there is no session `{}`", .0.as_str())]
    UnknownSession(SessionId),
    #[error("there is no frame `{0}`")]
    UnknownFrame(String),
}

/// The fate of the context that stood before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refreshed {
    /// There was none.
    Built,
    Kept,
    Rebuilt(RefreshReason),
    Forced,
    /// Made smaller.
    Evicted,
}

/// A memory context with what it was chosen by.
#[derive(Debug, Clone, PartialEq)]
pub struct AssembledMemory {
    pub context: MemoryContext,
    pub refreshed: Refreshed,
    /// Whether something spoke for the frame, and how many of its triggers did.
    pub is_frame_certain: bool,
    pub triggers: usize,
    /// Records that the search gave.
    pub found: usize,
    /// The mean similarity of the records that stand in it and were searched for; 0 without any.
    pub relevance: f64,
}

/// A request with the memory in it.
#[derive(Debug, Clone, PartialEq)]
pub struct AssembledContext {
    pub request: AssembledRequest,
    pub memory: AssembledMemory,
    /// Tokens of the session's messages, had all been sent.
    pub full_tokens: u64,
}

impl Assembler<'_> {
    /// Assembles what is known for a turn within `budget` tokens, or the frame's own.
    pub async fn memory(
        &self,
        memories: &Memories,
        turn: &AssemblyTurn<'_>,
        focus: Option<(&str, &str)>,
        budget: Option<u64>,
    ) -> Result<AssembledMemory, AssembleError> {
        let search = memories.settings().clone();
        let question = if turn.text.trim().is_empty() {
            focus.map_or("", |(text, _)| text)
        } else {
            turn.text
        };
        let vector = self.vector(question).await?;
        let (frame, is_certain, triggers) = self.frame(turn, question, vector.as_ref())?;
        let known = memories.of(self.knowledge, self.tenant).await?;
        let asked = AskedMemory {
            question,
            vector: vector.as_ref(),
            scope: turn.scope,
            tags: turn.tags,
            now: turn.now,
        };
        let factors = &self.settings.context.scoring.states;
        let found = known.search(&asked, &search, factors);
        let mut settings = self.settings.context.clone();
        settings.budget = budget.or(settings.budget);
        let room = settings.budget.unwrap_or(frame.budget.total);
        let mut refreshed = Refreshed::Built;
        let mut frame = frame;
        let previous = turn.previous.map(|previous| {
            // A record that the asker may no longer see does not stay because it stood there.
            let is_gone = |id: &str| !known.is_visible(&MemoryId(id.to_owned()), &asked, &search);
            previous.without(is_gone, self.tokenizer)
        });
        if let Some(previous) = previous.as_ref() {
            let new = NewTurn {
                frame: is_certain.then_some(&*frame.name),
                similarity: shown_similarity(previous, &found),
                about_to_act: turn.about_to_act,
                room,
            };
            refreshed = match refresh(previous, &new, &settings.refresh) {
                _ if turn.force_refresh => Refreshed::Forced,
                Refresh::Keep => Refreshed::Kept,
                Refresh::Evict { .. } => Refreshed::Evicted,
                Refresh::Rebuild { frame: name, reason } => {
                    frame = self.frames.get(&name).unwrap_or(frame);
                    Refreshed::Rebuilt(reason)
                }
            };
        }
        let context = match (&previous, refreshed) {
            (Some(previous), Refreshed::Kept) => previous.clone(),
            (Some(previous), Refreshed::Evicted) => previous.evicted(room, self.tokenizer),
            _ => {
                let candidates: Vec<MemoryCandidate> = found.iter().map(candidate).collect();
                let calibration = calibrated(known.visible(&asked, &search), &settings.calibration);
                let task = current_task(known.visible(&asked, &search), turn, focus);
                let input = MemoryInput {
                    identity: self.identity,
                    frame,
                    working: task.as_ref().map_or(("", ""), |(text, origin)| (text, origin)),
                    question,
                    candidates: &candidates,
                    calibration: calibration.as_ref(),
                    previous: previous.as_ref().filter(|_| refreshed != Refreshed::Forced),
                    now: turn.now,
                    tokenizer: self.tokenizer,
                };
                assemble(&input, &settings)?
            }
        };
        let relevance = relevance(&context, &found);
        let found = found.len();
        Ok(AssembledMemory {
            context,
            refreshed,
            is_frame_certain: is_certain,
            triggers,
            found,
            relevance,
        })
    }

    /// Assembles a request for a turn: header, what is known, and the working set of the session.
    ///
    /// The budget is a ceiling over all of it; what is known gets what the rest leaves, up to its frame's budget.
    pub async fn request(
        &self,
        memories: &Memories,
        turn: &AssemblyTurn<'_>,
        tools: &[ToolIntent],
    ) -> Result<AssembledContext, AssembleError> {
        let mut settings = self.settings.request.clone();
        settings.total = turn.budget.unwrap_or(settings.total);
        let set = working_set(self, turn, &settings).await?;
        let facts = recalled(self, turn, &set, &settings).await?;
        let mut input = RequestInput {
            rules: self.rules,
            tools,
            profile: self.profile,
            memory: None,
            history: &set.history,
            facts: &facts,
            artefacts: &set.artefacts,
            user_turn: &set.turn,
            tokenizer: self.tokenizer,
        };
        let overhead = u64::from(plimsoll_core::tokens::MESSAGE_OVERHEAD);
        let left = |used: u64| settings.total.saturating_sub(used + overhead);
        let beside = left(assemble_request(&input, &settings)?.budget.used);
        let focus = set.focus.as_deref().map(|text| (text, "user"));
        let mut memory = self.memory(memories, turn, focus, None).await?;
        // The history takes the room that nothing else uses, and gives way to the share of the facts.
        let share = settings.facts.max(beside);
        if memory.context.used > share {
            memory = match self.memory(memories, turn, focus, Some(share)).await {
                Err(AssembleError::MemoryTooLarge(MemoryTooLarge { needed, .. })) => {
                    // What must stand goes before history and artefacts, and the turn before all.
                    let bare = RequestInput { history: &[], artefacts: &[], ..input };
                    let most = left(assemble_request(&bare, &settings)?.budget.used);
                    self.memory(memories, turn, focus, Some(needed.min(most))).await?
                }
                memory => memory?,
            };
        }
        let text = memory.context.text();
        input.memory = Some(&*text).filter(|text| !text.is_empty());
        let mut request = assemble_request(&input, &settings)?;
        if request.memory.is_none() && !text.is_empty() {
            // The request had no room for all of it: what must stand goes before everything but the rules and the turn.
            let bare =
                RequestInput { memory: None, history: &[], facts: &[], artefacts: &[], ..input };
            let most = left(assemble_request(&bare, &settings)?.budget.used);
            memory = self.memory(memories, turn, focus, Some(most)).await?;
            let least = memory.context.text();
            let input = RequestInput { memory: Some(&least), ..input };
            request = assemble_request(&input, &settings)?;
            if request.memory.is_none() && !least.is_empty() {
                let needed = memory.context.used;
                return Err(
                    MemoryTooLarge { needed, limit: most.min(needed.saturating_sub(1)) }.into()
                );
            }
        }
        if set.is_turn_shortened {
            request.budget.warnings.push("the session's newest messages are shortened".to_owned());
        }
        Ok(AssembledContext { request, memory, full_tokens: set.full_tokens })
    }

    /// Returns the vector of a question; none without an embedder, and for a question without a known word.
    async fn vector(&self, question: &str) -> Result<Option<Embedding>, ModelError> {
        let Some(embedder) = self.embedder.filter(|_| !question.trim().is_empty()) else {
            return Ok(None);
        };
        let vector = embedder.embed(&[question]).await?.pop();
        Ok(vector.filter(|vector| Embedding::check(vector).is_ok()))
    }

    fn frame(
        &self,
        turn: &AssemblyTurn<'_>,
        question: &str,
        vector: Option<&Embedding>,
    ) -> Result<(&Frame, bool, usize), AssembleError> {
        if let Some(name) = turn.frame {
            let frame = self.frames.get(name);
            let frame = frame.ok_or_else(|| AssembleError::UnknownFrame(name.to_owned()))?;
            return Ok((frame, true, 0));
        }
        let none = || AssembleError::UnknownFrame(CONVERSATION.to_owned());
        let selected = self.frames.select(question, vector, &self.settings.frames);
        let selected = selected.ok_or_else(none)?;
        let is_certain = selected.triggers > 0 || selected.similarity > 0.0;
        Ok((selected.frame, is_certain, selected.triggers))
    }
}

/// Returns the current task with who said it: the operator's word, else what the session is about, else its newest open task,
/// else the turn.
fn current_task<'a>(
    visible: impl Iterator<Item = &'a MemoryRecord>,
    turn: &AssemblyTurn<'_>,
    session: Option<(&str, &str)>,
) -> Option<(String, String)> {
    let operator = plimsoll_core::memory::score::OPERATOR;
    if let Some(focus) = turn.focus {
        return Some((focus.to_owned(), operator.to_owned()));
    }
    let in_short = |text: &str| shortened(text.trim(), FOCUS).into_owned();
    if let Some((text, origin)) = session {
        return Some((in_short(text), origin.to_owned()));
    }
    let own = turn.scope.session.as_ref();
    let open = visible.filter(|record| {
        record.kind == MemoryKind::Task
            && own.is_some_and(|own| record.scope.session.as_ref() == Some(own))
            && record.state.is_current()
    });
    let newest = open.max_by_key(|record| (record.updated_at, record.event_at, &record.id));
    if let Some(newest) = newest {
        return Some((in_short(&newest.micro), newest.origin.clone()));
    }
    let asked = in_short(turn.text);
    (!asked.is_empty()).then(|| (asked, "user".to_owned()))
}

/// Characters of a focus that is not the operator's own: a few sentences (chosen). The turn itself stands behind it whole.
const FOCUS: usize = 300;

/// Returns how similar a question is to a context: as much as the record in it that is most like it.
fn shown_similarity(context: &MemoryContext, found: &[FoundMemory<'_>]) -> f64 {
    let shown = |one: &&FoundMemory<'_>| {
        one.record.kind != MemoryKind::Censor && context.item(&one.record.id.0).is_some()
    };
    found.iter().filter(shown).map(|one| one.similarity).fold(0.0, f64::max)
}

fn relevance(context: &MemoryContext, found: &[FoundMemory<'_>]) -> f64 {
    let (mut sum, mut count) = (0.0, 0_u32);
    for one in found {
        if one.record.kind != MemoryKind::Censor && context.item(&one.record.id.0).is_some() {
            sum += one.similarity;
            count += 1;
        }
    }
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

/// Measures the reviewed decisions among `visible`.
fn calibrated<'a>(
    visible: impl Iterator<Item = &'a MemoryRecord>,
    settings: &CalibrationSettings,
) -> Option<ConfidenceCalibration> {
    let own = visible.filter(|record| record.state == MemoryState::Reviewed);
    let mut reviewed: Vec<(&MemoryId, ReviewedDecision)> = own
        .filter_map(|record| {
            let outcome = Details::of(record).outcome?;
            Some((
                &record.id,
                ReviewedDecision { confidence: f64::from(record.confidence), outcome },
            ))
        })
        .collect();
    // Sums of floats depend on their order.
    reviewed.sort_by_key(|(id, _)| *id);
    calibration(reviewed.into_iter().map(|(_, reviewed)| reviewed), settings)
}
