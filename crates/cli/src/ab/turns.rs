//! The turns of recorded sessions, sampled, with both contexts as `replay` builds them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_core::Message;
use plimsoll_core::ab::{SampledTurns, TurnSize, observed_tools, sample};
use plimsoll_core::policy::Policy;
use plimsoll_core::replay::{Turn, replay_stretches};
use plimsoll_engine::ab::AbTurn;
use plimsoll_formats::Compaction;

use crate::arguments::{AbArguments, ReadingArguments};
use crate::error::CommandError;
use crate::load::{Loaded, load};
use crate::output;
use crate::sessions::{self, ENDINGS};

/// The chosen turns, and how they were chosen.
#[derive(Debug)]
pub(crate) struct Sampled {
    pub(crate) turns: Vec<AbTurn>,
    pub(crate) choice: SampledTurns,
    pub(crate) sessions: usize,
}

/// Replays all sessions once for the sizes of their turns, and those with chosen turns again: no session stays in memory.
pub(crate) fn sampled(arguments: &AbArguments, policy: &Policy) -> Result<Sampled, CommandError> {
    let files = sessions::files(&arguments.files)?;
    if files.is_empty() {
        let error = anyhow::anyhow!("there is no session in the folder");
        return Err(CommandError::usage(error).hint(ENDINGS));
    }
    let mut sizes: Vec<TurnSize> = Vec::new();
    let mut read: Vec<(PathBuf, String)> = Vec::new();
    for path in files {
        let loaded = match session(&path) {
            Ok(loaded) => loaded,
            // Much in a folder is no session; a file that was named should be one.
            Err(error) if !arguments.files.contains(&path) => {
                output::warning(&error.to_string());
                continue;
            }
            Err(error) => return Err(error),
        };
        let name = name(&path);
        turns(&loaded, policy, |turn| {
            sizes.push(TurnSize {
                session: name.clone(),
                turn: turn.receipt.turn,
                full_tokens: turn.receipt.full_tokens,
                tokens: turn.receipt.tokens,
                is_same: is_same(&loaded, turn),
            });
        });
        read.push((path, name));
    }
    let choice = sample(&sizes, arguments.turns, arguments.seed, arguments.most_tokens);
    let chosen: HashSet<(&str, u32)> =
        choice.chosen.iter().map(|at| (sizes[*at].session.as_str(), sizes[*at].turn)).collect();
    let mut found = Vec::new();
    for (path, name) in &read {
        if chosen.iter().any(|(session, _)| session == name) {
            let is_chosen = |turn| chosen.contains(&(name.as_str(), turn));
            found.append(&mut chosen_of(&session(path)?, name, policy, is_chosen));
        }
    }
    Ok(Sampled { turns: found, choice, sessions: read.len() })
}

fn session(path: &Path) -> Result<Loaded, CommandError> {
    load(path, &ReadingArguments::default(), Compaction::Honour)
}

/// Returns the name of a session: its path as it was given, which another run gives alike.
fn name(path: &Path) -> String {
    output::plain(&path.display().to_string())
}

fn turns(loaded: &Loaded, policy: &Policy, each: impl FnMut(&Turn<'_>)) {
    let mut each = each;
    let terms = |message: &Message| loaded.terms_of(message);
    let shared = loaded.counted.overhead.shared;
    replay_stretches(loaded.counted.stretches(), policy, shared, terms, |turn| each(&turn));
}

/// Returns the messages before a turn.
fn before(loaded: &Loaded, turn: &Turn<'_>) -> Vec<Arc<Message>> {
    let stretch = loaded.counted.stretches().nth(turn.stretch);
    let entries = stretch.map_or(&[][..], |stretch| stretch.transcript.entries());
    let end = turn.receipt.position.min(entries.len());
    entries[..end].iter().map(|entry| entry.message.clone()).collect()
}

fn is_same(loaded: &Loaded, turn: &Turn<'_>) -> bool {
    let full = before(loaded, turn);
    let sent = turn.context.iter().map(|sent| &sent.message.blocks);
    sent.eq(full.iter().map(|message| &message.blocks))
}

fn chosen_of(
    loaded: &Loaded,
    name: &str,
    policy: &Policy,
    is_chosen: impl Fn(u32) -> bool,
) -> Vec<AbTurn> {
    let tools = observed_tools(loaded.counted.stretches().map(|stretch| stretch.transcript));
    let mut found = Vec::new();
    turns(loaded, policy, |turn| {
        let receipt = turn.receipt;
        let stretch = loaded.counted.stretches().nth(turn.stretch);
        let answer = stretch.and_then(|one| one.transcript.entries().get(receipt.position));
        let Some(answer) = answer.filter(|_| is_chosen(receipt.turn)) else { return };
        found.push(AbTurn {
            session: name.to_owned(),
            turn: receipt.turn,
            full_tokens: receipt.full_tokens,
            tokens: receipt.tokens,
            full: before(loaded, turn).iter().map(|message| (**message).clone()).collect(),
            bounded: turn.context.iter().map(|sent| (*sent.message).clone()).collect(),
            recorded: (*answer.message).clone(),
            tools: tools.clone(),
        });
    });
    found
}
