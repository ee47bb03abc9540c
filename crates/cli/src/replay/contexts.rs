//! The contexts of a replay as JSON Lines, for scorers of other hands.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_core::Position;
use plimsoll_core::cost::CacheKind;
use plimsoll_core::replay::Turn;
use plimsoll_core::terms::ClientMarks;
use plimsoll_core::{Block, Message, ToolCall};
use plimsoll_formats::SessionFormat;
use serde::Serialize;
use serde_json::ser::Formatter;

use crate::error::CommandError;

/// A file that gets one line a turn: `{"turn": k, "messages": [{"role", "text"}]}`.
#[derive(Debug)]
pub(crate) struct Writer {
    path: PathBuf,
    file: BufWriter<File>,
    arguments: Arguments,
    failed: Option<std::io::Error>,
}

/// How the arguments of calls are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arguments {
    /// As the session has them.
    Recorded,
    /// With a blank behind commas and colons. A session that records a value and no text has no spelling of its own, and
    /// scorers that read it themselves print it so.
    Spaced,
}

#[derive(Serialize)]
struct Line<'a> {
    turn: u32,
    messages: Vec<ShownMessage<'a>>,
}

#[derive(Serialize)]
struct ShownMessage<'a> {
    role: &'a str,
    text: String,
    /// A mark of the cache at its end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    mark: bool,
}

impl Writer {
    pub(crate) fn create(path: &Path, format: SessionFormat) -> Result<Self, CommandError> {
        let file = File::create(path).map_err(|error| cannot_write(path, error))?;
        let arguments = match format {
            SessionFormat::Pi | SessionFormat::ClaudeCode => Arguments::Spaced,
            _ => Arguments::Recorded,
        };
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), arguments, failed: None })
    }

    /// Writes a turn; the first failure is kept for [`Writer::finish`].
    pub(crate) fn write(&mut self, turn: &Turn<'_>) {
        if self.failed.is_some() {
            return;
        }
        let marked = marked(turn);
        let messages = turn
            .context
            .iter()
            .enumerate()
            .map(|(at, sent)| ShownMessage {
                role: sent.message.role.as_str(),
                text: shown(&sent.message, self.arguments),
                mark: marked.contains(&at),
            })
            .collect();
        let turn = turn.receipt.turn;
        let written = serde_json::to_writer(&mut self.file, &Line { turn, messages })
            .map_err(std::io::Error::from)
            .and_then(|()| self.file.write_all(b"\n"));
        self.failed = written.err();
    }

    pub(crate) fn finish(mut self) -> Result<(), CommandError> {
        let flushed = self.file.flush().err();
        match self.failed.or(flushed) {
            Some(error) => Err(cannot_write(&self.path, error)),
            None => Ok(()),
        }
    }
}

/// Returns all that a model reads of a message.
fn shown(message: &Message, arguments: Arguments) -> String {
    if arguments == Arguments::Recorded || message.calls().next().is_none() {
        return message.shown();
    }
    let blocks = message.blocks.iter().map(|block| match block {
        Block::ToolCall(call) => match spaced(&call.arguments) {
            Some(arguments) => Block::ToolCall(ToolCall { arguments, ..call.clone() }),
            None => block.clone(),
        },
        other => other.clone(),
    });
    Message::new(message.role, blocks.collect()).shown()
}

/// Writes JSON with a blank behind commas and colons; `None` where it is none.
fn spaced(json: &str) -> Option<Arc<str>> {
    let value: serde_json::Value = serde_json::from_str(json).ok()?;
    let mut out = Vec::with_capacity(json.len() + json.len() / 8);
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, Spaced)).ok()?;
    String::from_utf8(out).ok().map(Arc::from)
}

struct Spaced;

impl Spaced {
    fn separate<W: ?Sized + Write>(out: &mut W, is_first: bool) -> std::io::Result<()> {
        if is_first { Ok(()) } else { out.write_all(b", ") }
    }
}

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        Self::separate(out, first)
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        Self::separate(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> std::io::Result<()> {
        out.write_all(b": ")
    }
}

/// Returns the messages of a context whose ends carry a mark, the client's and ours.
///
/// None where we set none: a reader takes those that it is told for all that there are.
fn marked(turn: &Turn<'_>) -> HashSet<usize> {
    let own = &turn.receipt.marks;
    if own.is_empty() || turn.terms.prices.cache != CacheKind::Marks {
        return HashSet::new();
    }
    let last = turn.context.len().saturating_sub(1);
    let is_marked = |at: usize, position: Position| {
        own.contains(&position)
            || match &turn.terms.around.client {
                ClientMarks::Last(_) => at == last,
                ClientMarks::At(marks) => marks.iter().any(|(at, _)| *at == position),
            }
    };
    turn.context
        .iter()
        .enumerate()
        .filter(|(at, sent)| match sent.position {
            Some(position) => is_marked(*at, position),
            None => matches!(turn.terms.around.client, ClientMarks::Last(_)) && *at == last,
        })
        .map(|(at, _)| at)
        .collect()
}

fn cannot_write(path: &Path, error: std::io::Error) -> CommandError {
    CommandError::failure(
        anyhow::Error::new(error).context(format!("cannot write {}", path.display())),
    )
}

#[cfg(test)]
mod tests {
    use plimsoll_core::cost::Prices;
    use plimsoll_core::policy::Policy;
    use plimsoll_core::replay::replay;
    use plimsoll_core::terms::Terms;
    use plimsoll_core::{Message, Role, Tokenizer, Transcript};

    use super::*;

    /// Returns the marked messages of the last of two requests in which marks of ours end `own`.
    fn marks(cache: CacheKind, client: &ClientMarks, own: &[Position]) -> Vec<usize> {
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        for role in [Role::User, Role::Assistant, Role::User, Role::User, Role::Assistant] {
            transcript.push(Message::text(role, "said"));
        }
        let mut terms = Terms::new(Prices { cache, ..Prices::PLAIN });
        terms.around.client = client.clone();
        let mut found = Vec::new();
        replay(&transcript, &Policy::Full, &terms, |turn| {
            let mut receipt = turn.receipt.clone();
            receipt.marks = own.to_vec();
            found = marked(&Turn { receipt: &receipt, ..turn }).into_iter().collect();
            found.sort_unstable();
        });
        found
    }

    #[test]
    fn marks_are_written_where_we_set_one() {
        use plimsoll_core::cost::Life;
        let last = ClientMarks::Last(Life::Short);
        assert_eq!(marks(CacheKind::Marks, &last, &[0]), [0, 3]);
        assert_eq!(marks(CacheKind::Marks, &ClientMarks::At(vec![(2, Life::Long)]), &[1]), [1, 2]);
        assert_eq!(
            marks(CacheKind::Marks, &last, &[]),
            [0; 0],
            "the client's are those that there are"
        );
        assert_eq!(marks(CacheKind::Steps, &last, &[0]), [0; 0]);
    }
}
