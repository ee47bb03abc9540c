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

    /// Returns the tokens of each source of a message.
    fn parts(&self, position: usize, tokens: u32) -> impl Iterator<Item = (&Arc<str>, u64)> {
        let shares = self.shares.get(position).into_iter().flatten();
        shares.map(move |(source, share)| (source, (f64::from(tokens) * share).round() as u64))
    }

    /// Returns the source of most of a message.
    pub(crate) fn main(&self, position: usize) -> &str {
        let shares = self.shares.get(position).into_iter().flatten();
        shares.max_by(|one, other| one.1.total_cmp(&other.1)).map_or("other", |(source, _)| source)
    }
}

/// Sums by source over the messages of a turn; from turn to turn only messages whose size changed are counted again.
#[derive(Debug)]
pub(crate) struct SourceSums<'s> {
    sources: &'s MessageSources,
    /// The tokens of each message as it was sent last, and whole.
    sent: Vec<(u32, u32)>,
    sums: TokensBySource,
    /// Tokens by which messages were made smaller, each as it was sent last.
    reduced: u64,
}

impl<'s> SourceSums<'s> {
    pub(crate) fn of(sources: &'s MessageSources) -> Self {
        Self { sources, sent: Vec::new(), sums: TokensBySource::new(), reduced: 0 }
    }

    /// Returns the sums of a turn whose messages have these tokens, sent and whole, and what they were made smaller by.
    pub(crate) fn at(
        &mut self,
        messages: impl Iterator<Item = (u32, u32)>,
    ) -> (TokensBySource, u64) {
        let mut count = 0;
        for (position, (sent, whole)) in messages.enumerate() {
            count = position + 1;
            let known = self.sent.get(position).copied();
            if known == Some((sent, whole)) {
                continue;
            }
            match known {
                Some(before) => {
                    self.take(position, before);
                    self.sent[position] = (sent, whole);
                }
                None => self.sent.push((sent, whole)),
            }
            self.reduced += u64::from(whole.saturating_sub(sent));
            self.change(position, sent, |sum, tokens| sum + tokens);
        }
        // A conversation that went back has fewer messages.
        for position in (count..self.sent.len()).rev() {
            if let Some(gone) = self.sent.pop() {
                self.take(position, gone);
            }
        }
        let sums = self.sums.iter().filter(|(_, tokens)| **tokens > 0);
        (sums.map(|(source, tokens)| (source.clone(), *tokens)).collect(), self.reduced)
    }

    /// Takes a message out of the sums.
    fn take(&mut self, position: usize, (sent, whole): (u32, u32)) {
        self.reduced -= u64::from(whole.saturating_sub(sent));
        self.change(position, sent, |sum, tokens| sum.saturating_sub(tokens));
    }

    fn change(&mut self, position: usize, tokens: u32, by: impl Fn(u64, u64) -> u64) {
        for (source, part) in self.sources.parts(position, tokens) {
            match self.sums.get_mut(source) {
                Some(sum) => *sum = by(*sum, part),
                None => {
                    self.sums.insert(source.clone(), by(0, part));
                }
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_follow_messages_that_shrink_come_and_go() {
        let messages = [
            Message::text(Role::User, "a"),
            Message::text(Role::Assistant, "b"),
            Message::text(Role::User, "c"),
        ];
        let sources = MessageSources::of(messages.iter());
        let mut sums = SourceSums::of(&sources);
        let turns: [&[(u32, u32)]; 5] = [
            &[(10, 10)],
            &[(10, 10), (20, 20), (5, 5)],
            &[(3, 10), (20, 20), (5, 5)],
            &[(3, 10)],
            &[(10, 10), (8, 20)],
        ];
        for turn in turns {
            let expected = SourceSums::of(&sources).at(turn.iter().copied());
            assert_eq!(sums.at(turn.iter().copied()), expected, "{turn:?}");
        }
    }
}
