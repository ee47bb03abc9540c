//! The context of a phase: the messages that it sees of earlier phases.
//!
//! Order and message texts are those of `context-injection.md`. A phase sees all that went before (snowball); with `context` only
//! the sources that it names; with `inject_from` these sources, and then all that went before.

use std::sync::Arc;

use plimsoll_core::{Block, Image, Message, Role};
use serde_json::{Map, Value};

use super::error::RunError;
use super::state::{PhaseRun, RunState, text_of};
use crate::definition::{
    AsRole, ContextRetention, ImagesFilter, Include, MessagesFilter, Phase, Source, SourcePhase,
};
use crate::template::Template;

/// The messages that a phase sees of earlier ones.
#[derive(Debug, Clone, Default)]
pub struct PhaseContext {
    pub messages: Vec<Arc<Message>>,
    /// The messages that it would see if nothing was selected, where a strategy selects.
    pub everything: Option<Vec<Arc<Message>>>,
    /// A line for each source that is not there.
    pub notes: Vec<String>,
}

/// Returns whether a condition holds.
pub(crate) type Holds<'a> = dyn Fn(&Template) -> Result<bool, RunError> + 'a;

/// Returns the context of a phase whose sources are named, or that sees everything.
pub(crate) fn phase_context(
    phase: &Phase,
    past: &RunState,
    holds: &Holds<'_>,
) -> Result<PhaseContext, RunError> {
    let mut built = PhaseContext::default();
    if let Some(context) = &phase.context {
        if context.include_input {
            built.messages.extend(input(&past.input));
        }
        for source in &context.from {
            inject(source, &context.exclude, past, holds, &mut built)?;
        }
    } else {
        for source in &phase.inject_from {
            inject(source, &[], past, holds, &mut built)?;
        }
        built.messages.extend(snowball(past));
    }
    once(&mut built.messages);
    Ok(built)
}

/// Returns the whole past: the input, and each phase as far as it is retained.
pub(crate) fn snowball(past: &RunState) -> Vec<Arc<Message>> {
    let mut messages = Vec::new();
    messages.extend(input(&past.input));
    for run in &past.runs {
        match run.retention {
            ContextRetention::Full => messages.extend(run.messages.iter().cloned()),
            ContextRetention::OutputOnly => messages.push(output(run, Role::User)),
        }
    }
    messages
}

/// Returns the cascade's input as a message; one without input has none.
pub(crate) fn input(input: &Map<String, Value>) -> Option<Arc<Message>> {
    let text = format!("[Original Input]:\n{}", indented(input));
    (!input.is_empty()).then(|| Arc::new(Message::text(Role::User, text)))
}

pub(crate) fn indented(map: &Map<String, Value>) -> String {
    serde_json::to_string_pretty(map).unwrap_or_default()
}

fn inject(
    source: &Source,
    exclude: &[String],
    past: &RunState,
    holds: &Holds<'_>,
    built: &mut PhaseContext,
) -> Result<(), RunError> {
    if let Some(condition) = &source.condition
        && !holds(condition)?
    {
        return Ok(());
    }
    for run in runs_of(&source.phase, exclude, past, built) {
        for include in &source.include {
            include_of(*include, source, run, built);
        }
    }
    Ok(())
}

/// Returns the runs that a source names, the latest of each phase, in the order in which they ended.
fn runs_of<'a>(
    phase: &SourcePhase,
    exclude: &[String],
    past: &'a RunState,
    built: &mut PhaseContext,
) -> Vec<&'a PhaseRun> {
    match phase {
        SourcePhase::Named(name) => {
            let found = past.latest(name);
            if found.is_none() {
                built.notes.push(format!("nothing is injected from `{name}`: it did not run"));
            }
            found.into_iter().collect()
        }
        SourcePhase::Previous => past.runs.last().into_iter().collect(),
        SourcePhase::First => past.runs.first().into_iter().collect(),
        SourcePhase::All => {
            let is_latest = |place: usize, run: &PhaseRun| {
                past.runs[place + 1..].iter().all(|later| later.phase != run.phase)
            };
            let all = past.runs.iter().enumerate();
            all.filter(|(place, run)| is_latest(*place, run) && !exclude.contains(&run.phase))
                .map(|(_, run)| run)
                .collect()
        }
    }
}

fn include_of(include: Include, source: &Source, run: &PhaseRun, built: &mut PhaseContext) {
    let role = match source.as_role {
        AsRole::User => Role::User,
        AsRole::System => Role::System,
    };
    let name = &run.phase;
    match include {
        Include::Images => {
            let images = filtered_images(run.images(), source);
            if !images.is_empty() {
                let mut blocks = vec![Block::Text(format!("[Images from {name}]:").into())];
                blocks.extend(images.into_iter().cloned().map(Block::Image));
                built.messages.push(Arc::new(Message::new(role, blocks)));
            }
        }
        Include::Output => built.messages.push(output(run, role)),
        Include::Messages => {
            let head = format!("[Conversation from {name}]:");
            built.messages.push(Arc::new(Message::text(role, head)));
            built.messages.extend(filtered_messages(&run.messages, source.messages_filter));
        }
        Include::State => {
            if !run.changes.is_empty() {
                let text = format!("[State from {name}]:\n{}", indented(&run.changes));
                built.messages.push(Arc::new(Message::text(role, text)));
            }
        }
    }
}

fn output(run: &PhaseRun, role: Role) -> Arc<Message> {
    Arc::new(Message::text(role, format!("[Output from {}]:\n{}", run.phase, run.output)))
}

fn filtered_images<'a>(mut images: Vec<&'a Image>, source: &Source) -> Vec<&'a Image> {
    let keep = match source.images_filter {
        ImagesFilter::All => images.len(),
        ImagesFilter::Last => 1,
        ImagesFilter::LastN => source.images_count as usize,
    };
    images.split_off(images.len().saturating_sub(keep))
}

/// Returns the messages of a conversation that a filter lets through, whole exchanges only.
fn filtered_messages(messages: &[Arc<Message>], filter: MessagesFilter) -> Vec<Arc<Message>> {
    match filter {
        // The task of that phase is no order for this one, so the user says it.
        MessagesFilter::All => messages
            .iter()
            .map(|message| match message.role {
                Role::System => Arc::new(Message { role: Role::User, ..(**message).clone() }),
                _ => message.clone(),
            })
            .collect(),
        MessagesFilter::AssistantOnly => messages
            .iter()
            .filter(|message| message.role == Role::Assistant)
            .filter_map(|message| {
                // A call without its result is refused by every API.
                let text = text_of(message);
                (!text.trim().is_empty()).then(|| Arc::new(Message::text(Role::Assistant, text)))
            })
            .collect(),
        MessagesFilter::LastTurn => {
            let Some(last) = messages.iter().rposition(|message| message.role == Role::Assistant)
            else {
                return Vec::new();
            };
            let asked = messages[..last].last().is_some_and(|before| before.role == Role::User);
            messages[last - usize::from(asked)..].to_vec()
        }
    }
}

/// Leaves out images that an earlier message shows.
fn once(messages: &mut Vec<Arc<Message>>) {
    let mut shown: Vec<Image> = Vec::new();
    messages.retain_mut(|message| {
        let is_known = |block: &Block| matches!(block, Block::Image(image) if shown.contains(image));
        if message.blocks.iter().any(is_known) {
            let mut changed = (**message).clone();
            changed.blocks.retain(|block| !is_known(block));
            *message = Arc::new(changed);
        }
        let images = message.blocks.iter().filter_map(|block| match block {
            Block::Image(image) => Some(image.clone()),
            _ => None,
        });
        let had_images = message.blocks.len();
        shown.extend(images);
        // A headline without images is left out too.
        let is_bare = had_images == 1
            && matches!(&message.blocks[0], Block::Text(text) if text.starts_with("[Images from ") && text.ends_with("]:"));
        !is_bare
    });
}
