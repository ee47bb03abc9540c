//! The plan of a write: the changes of each block of each record, and the new messages between records.

use std::collections::HashMap;

use plimsoll_core::{Block, Message, MillisSinceEpoch};

use crate::error::WriteError;
use crate::session::{Compaction, Session};
use crate::write::ContextMessage;

/// The change of a block.
#[derive(Debug, Clone)]
pub(crate) enum Fate {
    Kept,
    Changed(Block),
    Dropped,
}

/// A block of a record.
#[derive(Debug, Clone)]
pub(crate) struct BlockPlan {
    pub(crate) index: Option<u32>,
    pub(crate) was: Block,
    pub(crate) fate: Fate,
}

/// The changes of a record that holds messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordPlan {
    pub(crate) parts: Vec<BlockPlan>,
    /// Whether one of its messages is in the context.
    pub(crate) kept: bool,
}

impl RecordPlan {
    /// Returns whether the record keeps its bytes.
    pub(crate) fn is_untouched(&self) -> bool {
        self.kept && self.parts.iter().all(|part| matches!(part.fate, Fate::Kept))
    }
}

/// A new message and its place.
#[derive(Debug, Clone)]
pub(crate) struct InsertedMessage<'a> {
    /// The record before which it stands; `None` for the end.
    pub(crate) before: Option<u32>,
    /// Whether no recorded message stands before it in the context.
    pub(crate) leads: bool,
    pub(crate) message: &'a Message,
    /// The time of the message or of a neighbour; no clock is read here.
    pub(crate) time: Option<MillisSinceEpoch>,
}

/// The changes of a session file.
#[derive(Debug)]
pub(crate) struct WritePlan<'a> {
    pub(crate) session: &'a Session,
    pub(crate) records: HashMap<u32, RecordPlan>,
    pub(crate) inserted: Vec<InsertedMessage<'a>>,
    /// Whether markers of earlier compactions are left out.
    pub(crate) without_compactions: bool,
}

impl<'a> WritePlan<'a> {
    /// Plans the write of a valid context.
    pub(crate) fn new(
        session: &'a Session,
        context: &'a [ContextMessage],
    ) -> Result<Self, WriteError> {
        let mut fates: Vec<Option<Vec<Fate>>> = vec![None; session.messages.len()];
        let mut inserted = Vec::new();
        let mut leads = true;
        for (at, written) in context.iter().enumerate() {
            if let Some(position) = written.position {
                let was = &session.messages[position];
                fates[position] = Some(align(&was.blocks, &written.message.blocks).ok_or(
                    WriteError::Change { position, why: "its blocks are not those of the record" },
                )?);
                leads &= session.origins[position].pieces.is_empty() && was.source.is_none();
                continue;
            }
            let neighbours = context[at..].iter().filter_map(|later| later.position);
            let before = neighbours.clone().find_map(|position| first_record(session, position));
            let mut time = written.message.time;
            time = time.or_else(|| {
                neighbours.clone().find_map(|position| session.messages[position].time)
            });
            time = time
                .or_else(|| context[..at].iter().rev().find_map(|earlier| earlier.message.time));
            inserted.push(InsertedMessage { before, leads, message: &written.message, time });
        }
        Ok(Self {
            session,
            records: records(session, fates),
            inserted,
            without_compactions: session.options.compaction == Compaction::PassOver,
        })
    }

    /// Returns the new messages before a record, or at the end.
    pub(crate) fn inserted_before(
        &self,
        record: Option<u32>,
    ) -> impl Iterator<Item = &InsertedMessage<'a>> {
        self.inserted.iter().filter(move |inserted| inserted.before == record)
    }

    /// Returns whether a message's record follows the first change, so that its prompt size is outdated.
    pub(crate) fn is_behind_change(&self, record: u32) -> bool {
        if !self.records.contains_key(&record) {
            return false;
        }
        let changed = self.records.iter().any(|(&at, plan)| at < record && !plan.is_untouched());
        changed || self.inserted.iter().any(|new| new.before.is_some_and(|before| before <= record))
    }
}

/// Returns the first record of a message; `None` for a message that a repair made.
fn first_record(session: &Session, position: usize) -> Option<u32> {
    let origin = &session.origins[position];
    let first = origin.pieces.iter().map(|piece| piece.record).min();
    first.or(if origin.repaired { None } else { session.messages[position].source })
}

fn records(session: &Session, fates: Vec<Option<Vec<Fate>>>) -> HashMap<u32, RecordPlan> {
    let mut records: HashMap<u32, RecordPlan> = HashMap::new();
    for ((message, origin), fates) in session.messages.iter().zip(&session.origins).zip(fates) {
        let kept = fates.is_some();
        // The first line of a message may have none of its blocks.
        if let Some(source) = message.source.filter(|_| !origin.repaired) {
            records.entry(source).or_default().kept |= kept;
        }
        let mut fates =
            fates.unwrap_or_else(|| vec![Fate::Dropped; message.blocks.len()]).into_iter();
        for (piece, block) in origin.pieces.iter().zip(&message.blocks) {
            let record = records.entry(piece.record).or_default();
            record.kept |= kept;
            let fate = fates.next().unwrap_or(Fate::Kept);
            record.parts.push(BlockPlan { index: piece.index, was: block.clone(), fate });
        }
    }
    records
}

/// Returns the fate of each old block. Errors: `None` unless the new blocks are old ones in order, some of them changed.
fn align(was: &[Block], now: &[Block]) -> Option<Vec<Fate>> {
    let mut next = now.iter().peekable();
    let mut fates = Vec::with_capacity(was.len());
    for (index, old) in was.iter().enumerate() {
        let spare = was.len() - index > next.len();
        let fate = match next.peek() {
            Some(new) if *new == old => Fate::Kept,
            // While blocks remain to be dropped, an equal block further on is the better match.
            Some(new) if replaces(new, old) && !(spare && was[index + 1..].contains(new)) => {
                Fate::Changed((*new).clone())
            }
            _ => Fate::Dropped,
        };
        if !matches!(fate, Fate::Dropped) {
            next.next();
        }
        fates.push(fate);
    }
    next.peek().is_none().then_some(fates)
}

fn replaces(new: &Block, old: &Block) -> bool {
    match (new, old) {
        (Block::Text(_), Block::Text(_) | Block::Image(_)) => true,
        (Block::ToolCall(new), Block::ToolCall(old)) => new.id == old.id,
        (Block::ToolResult(new), Block::ToolResult(old)) => new.call_id == old.call_id,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::{Thinking, ToolCall};

    fn check(was: &str, now: &str, expected: Option<&str>) {
        let blocks = |text: &str| -> Vec<Block> {
            text.chars()
                .map(|character| match character {
                    '1'..='9' => Block::ToolCall(ToolCall {
                        id: character.to_string().into(),
                        name: "t".into(),
                        arguments: "{}".into(),
                    }),
                    'T' => Block::Thinking(Thinking { text: "".into(), signature: "".into() }),
                    _ => Block::Text(character.to_string().into()),
                })
                .collect()
        };
        let fates = align(&blocks(was), &blocks(now));
        let found = fates.map(|fates| {
            let letter = |fate: &Fate| match fate {
                Fate::Kept => 'k',
                Fate::Changed(_) => 'c',
                Fate::Dropped => 'd',
            };
            fates.iter().map(letter).collect::<String>()
        });
        assert_eq!(found.as_deref(), expected);
    }

    #[test]
    fn blocks_find_their_old_ones() {
        check("Ta1", "Ta1", Some("kkk"));
        check("Ta1", "b1", Some("dck"));
        check("ab", "b", Some("dk"));
        check("ab", "x", Some("cd"));
        check("a12", "a2", Some("kdk"));
        check("a", "ab", None);
        check("a1", "a2", None);
    }
}
