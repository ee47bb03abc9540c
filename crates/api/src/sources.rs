//! Where the tokens of a message come from: who said it, or which tool.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plimsoll_core::{Block, Message, Role};

/// Tokens by source; a result of a tool is `result: NAME`.
pub(crate) type TokensBySource = BTreeMap<Arc<str>, u64>;

/// The parts of each message of a session, by their sources.
#[derive(Debug, Default)]
pub(crate) struct MessageSources {
    /// Shares that add up to 1.
    shares: Vec<Vec<(Arc<str>, f64)>>,
}

impl MessageSources {
    /// Finds the sources of all messages.
    pub(crate) fn of<'m>(messages: impl Iterator<Item = &'m Message>) -> Self {
        let mut names: HashMap<Arc<str>, Arc<str>> = HashMap::new();
        let mut found = Self::default();
        for message in messages {
            for call in message.calls() {
                names.insert(call.id.clone(), format!("result: {}", call.name).into());
            }
            let sized: Vec<(Arc<str>, f64)> = message
                .blocks
                .iter()
                .map(|block| {
                    let (source, size) = source(message.role, block, &names);
                    // An empty block has a size too: it stands in the request.
                    (source, size as f64 + 1.0)
                })
                .collect();
            let whole: f64 = sized.iter().map(|(_, size)| size).sum();
            found.shares.push(
                sized.into_iter().map(|(source, size)| (source, size / whole.max(1.0))).collect(),
            );
        }
        found
    }

    /// Adds the tokens of a message to those of its sources.
    pub(crate) fn add(&self, position: usize, tokens: u32, sum: &mut TokensBySource) {
        for (source, share) in self.shares.get(position).into_iter().flatten() {
            *sum.entry(source.clone()).or_default() += (f64::from(tokens) * share).round() as u64;
        }
    }

    /// Returns the source of most of a message.
    pub(crate) fn main(&self, position: usize) -> &str {
        let shares = self.shares.get(position).into_iter().flatten();
        shares.max_by(|one, other| one.1.total_cmp(&other.1)).map_or("other", |(source, _)| source)
    }
}

fn source(role: Role, block: &Block, names: &HashMap<Arc<str>, Arc<str>>) -> (Arc<str>, usize) {
    match block {
        Block::ToolResult(result) => {
            let name = names.get(&result.call_id).cloned();
            (name.unwrap_or_else(|| "result".into()), result.text.len())
        }
        Block::ToolCall(call) => ("tool calls".into(), call.name.len() + call.arguments.len()),
        Block::Thinking(thinking) => ("thinking".into(), thinking.text.len()),
        Block::Text(text) => (role.as_str().into(), text.len()),
        Block::Image(_) => ("images".into(), 4000),
        Block::Opaque(opaque) => ("other".into(), opaque.raw.len()),
    }
}
