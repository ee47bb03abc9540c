//! The working set: what was last said in a session, and what its tools last answered.

use std::collections::HashSet;

use plimsoll_core::aging::{Aging, at_age, truncate_middle};
use plimsoll_core::policy::RequestSettings;
use plimsoll_core::request::{FoundFact, HotArtefact, PastMessage};
use plimsoll_core::{ContentHash, Ref, Role};

use super::{AssembleError, Assembler, AssemblyTurn};
use crate::artefact::RefQuery;
use crate::history::MessageRecord;
use crate::recall::RecallHit;

/// Messages of a session that are looked at: as many as a request's history holds, with the tools' answers between them (chosen).
const LOOKED_AT: u32 = 96;
/// Answers of tools, and artefacts of the session, that are hot: what fills a request's summaries at about 40 tokens each (chosen).
const HOT: usize = 12;
/// Characters of an answer that has no summary.
const EXTRACT: usize = 300;

/// The parts of a request beside its header.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkingSet {
    /// Oldest first.
    pub history: Vec<PastMessage>,
    pub artefacts: Vec<HotArtefact>,
    pub turn: String,
    /// Whether the turn is not all that its messages say.
    pub is_turn_shortened: bool,
    /// The user's last question, if the turn is a step towards its answer.
    pub focus: Option<String>,
    /// Tokens of all messages of the session.
    pub full_tokens: u64,
}

/// Reads the working set of a turn.
///
/// Where the turn says nothing, it is what the session's newest messages bring: a user's question, or what tools answered. Where
/// these pass half of the budget each is shortened to its share of it: lines that report errors stay, and a ref has the rest.
pub async fn working_set(
    assembler: &Assembler<'_>,
    turn: &AssemblyTurn<'_>,
    settings: &RequestSettings,
) -> Result<WorkingSet, AssembleError> {
    let mut set = WorkingSet { turn: turn.text.to_owned(), ..WorkingSet::default() };
    let Some(session) = &turn.scope.session else { return Ok(set) };
    let found = assembler.history.session(assembler.tenant, session).await?;
    let summary = found.ok_or_else(|| AssembleError::UnknownSession(session.clone()))?;
    set.full_tokens = summary.tokens;
    let from = summary.messages.saturating_sub(LOOKED_AT);
    let most = LOOKED_AT as usize;
    let mut records = assembler.history.messages(assembler.tenant, session, from, most).await?;
    if turn.text.trim().is_empty() {
        let first = newest(&records);
        let answers = records.split_off(first);
        (set.turn, set.is_turn_shortened) = text_of_turn(&answers, settings, assembler);
        if answers.iter().all(|record| record.message.role != Role::User) {
            let asked = records.iter().rev().find(|record| record.message.role == Role::User);
            set.focus = asked.map(|record| record.message.shown());
        }
    }
    let said = records.iter().filter(|record| {
        matches!(record.message.role, Role::User | Role::Assistant)
            && !record.message.shown().trim().is_empty()
    });
    set.history = said
        .map(|record| PastMessage {
            role: record.message.role,
            text: record.message.shown(),
            hash: record.hash,
        })
        .collect();
    let answers = records.iter().rev().filter(|record| record.message.role == Role::Tool);
    set.artefacts = answers.take(HOT).map(hot).collect();
    let query = RefQuery { kind: None, session: Some(session.clone()), limit: HOT };
    for artefact in assembler.knowledge.artefacts(assembler.tenant, &query).await? {
        let extract = artefact.compressed.as_deref().map(|text| truncate_middle(text, EXTRACT));
        set.artefacts.push(HotArtefact {
            reference: artefact.reference.print(),
            extract: extract.unwrap_or_default(),
            stale: artefact.is_stale(turn.now),
            summary: artefact.summary,
        });
    }
    Ok(set)
}

/// Messages at the end of a history that a request shows whole, so that nothing of them is recalled: eight pairs, the most
/// that `context-strategy.md` keeps.
const WHOLE: usize = 16;

/// Returns what a session's older messages say to the turn, best first, in at most a tenth of the budget.
pub(super) async fn recalled(
    assembler: &Assembler<'_>,
    turn: &AssemblyTurn<'_>,
    set: &WorkingSet,
    settings: &RequestSettings,
) -> Result<Vec<FoundFact>, AssembleError> {
    let (Some(recall), Some(session)) = (assembler.recall, &turn.scope.session) else {
        return Ok(Vec::new());
    };
    let question = if turn.text.trim().is_empty() { set.focus.as_deref() } else { Some(turn.text) };
    let Some(question) = question else { return Ok(Vec::new()) };
    let scope = recall.scope(assembler.history, assembler.tenant, Some(session)).await?;
    let shown: HashSet<ContentHash> =
        set.history.iter().rev().take(WHOLE).map(|message| message.hash).collect();
    // The share that the document gives to facts: 800 of 8,000 tokens. In a small budget the newest messages come first.
    let most = settings.facts.min(settings.total / 10);
    let found = scope.recall(question, most, assembler.tokenizer);
    let best = found.hits.first().map_or(1.0, |hit| hit.recalled.score);
    let hits = found.hits.into_iter().filter(|hit| !shown.contains(&hit.record.hash));
    let fact = |hit: RecallHit<'_>| FoundFact {
        id: Ref::message(hit.record.hash).to_string(),
        text: hit.text.trim_end().to_owned(),
        origin: hit.record.message.role.as_str().to_owned(),
        similarity: f64::from(hit.recalled.score / best),
    };
    Ok(hits.map(fact).collect())
}

/// Returns where the newest messages begin: what tools answered last, or what the user last said.
fn newest(records: &[MessageRecord]) -> usize {
    let Some(last) = records.last() else { return 0 };
    let role = last.message.role;
    if role == Role::Assistant {
        return records.len();
    }
    let others = records.iter().rposition(|record| record.message.role != role);
    others.map_or(0, |at| at + 1)
}

fn text_of_turn(
    records: &[MessageRecord],
    settings: &RequestSettings,
    assembler: &Assembler<'_>,
) -> (String, bool) {
    let whole: Vec<String> = records.iter().map(|record| record.message.shown()).collect();
    let tokens: u64 = whole.iter().map(|text| u64::from(assembler.tokenizer.count(text))).sum();
    if tokens <= settings.total / 2 {
        return (whole.join("\n\n"), false);
    }
    // A character for each token of the budget: every vocabulary has two or more to a token in the mean.
    let share = usize::try_from(settings.total).unwrap_or(usize::MAX) / whole.len().max(1);
    let aging = Aging { light_from: 0, light_characters: share, ..Aging::default() };
    let short = records.iter().zip(&whole).map(|(record, text)| {
        if text.chars().count() <= share {
            return text.clone();
        }
        format!("{} [{}]", at_age(text, 0, &aging), Ref::message(record.hash))
    });
    (short.collect::<Vec<_>>().join("\n\n"), true)
}

fn hot(record: &MessageRecord) -> HotArtefact {
    let text = record.message.shown();
    // At an age of its own: errors stay, whatever is left of the rest.
    let aging = Aging { heavy_from: 0, line_characters: EXTRACT, ..Aging::default() };
    HotArtefact {
        reference: Ref::message(record.hash).to_string(),
        summary: Some(at_age(&text, u32::MAX, &aging)),
        extract: String::new(),
        stale: false,
    }
}
