//! The terms of a request: the provider's prices, the size of tools and system prompt, and the client's cache marks.

use serde::{Deserialize, Serialize};

use crate::cost::{CacheKind, Life, MOST_MARKS, Piece, Prices};
use crate::message::Role;
use crate::plan::Sent;
use crate::transcript::Position;

/// Where a client sets marks in the messages of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientMarks {
    /// At the end of the last message, as agents do.
    Last(Life),
    /// At the ends of these messages, ascending.
    At(Vec<(Position, Life)>),
}

/// The surroundings of a request's messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Surroundings {
    /// Tokens of the tools and the system prompt that the transcript does not hold.
    pub before: f64,
    /// A digest of tools and system prompt: another digest is another prefix.
    pub before_key: u64,
    /// The mark at their end, if there is one.
    pub before_mark: Option<Life>,
    /// Tokens of each turn that the transcript does not show: thinking recorded without its text, attachments.
    pub unseen: f64,
    pub client: ClientMarks,
    /// Marks that may be added: a request has four at most, and some providers have none.
    pub free_marks: usize,
    /// Whether the model can look up the original behind a ref; without lookups no ref is shown.
    pub lookups: bool,
    /// Tokens of our own tools in the request; they count in its budget.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub own_tools: u32,
    /// Tokens of each lookup of earlier turns that can be put back, oldest first; they count in the budget too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub put_back: Vec<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(tokens: &u32) -> bool {
    *tokens == 0
}

impl Default for Surroundings {
    /// Returns the surroundings of an unknown agent: it marks its system prompt, its tools and its last message.
    fn default() -> Self {
        Self {
            before: 0.0,
            before_key: 0,
            before_mark: Some(Life::Short),
            unseen: 0.0,
            client: ClientMarks::Last(Life::Short),
            free_marks: MOST_MARKS - 3,
            lookups: true,
            own_tools: 0,
            put_back: Vec::new(),
        }
    }
}

impl Surroundings {
    /// Returns the life that the client asks for at its marks of messages, else at the mark before them.
    pub fn life(&self) -> Life {
        match &self.client {
            ClientMarks::Last(life) => *life,
            ClientMarks::At(marks) => {
                marks.last().map_or(self.before_mark.unwrap_or_default(), |(_, life)| *life)
            }
        }
    }
}

/// Everything that holds for a request beside its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    pub prices: Prices,
    pub around: Surroundings,
    /// Whether a message that was sent must never change.
    pub append_only: bool,
}

impl Terms {
    /// Returns the terms of an agent of which only the model's prices are known.
    pub fn new(prices: Prices) -> Self {
        Self { prices, around: Surroundings::default(), append_only: false }
    }

    /// Returns a request of `context` as pieces for the cache: tools and system prompt first, then each message.
    ///
    /// `own` are the places of our own marks in `context`.
    pub fn pieces<'a>(
        &self,
        context: impl IntoIterator<Item = &'a Sent>,
        own: &[usize],
    ) -> Vec<Piece> {
        let before = Piece {
            key: self.around.before_key,
            tokens: self.around.before,
            blocks: 1,
            mark: self.around.before_mark,
        };
        let mut pieces = vec![before];
        pieces.extend(context.into_iter().map(|sent| {
            let unseen = if sent.role == Role::Assistant { self.around.unseen } else { 0.0 };
            Piece {
                key: sent.hash.key(),
                tokens: f64::from(sent.tokens) + unseen,
                blocks: sent.blocks.max(1),
                mark: sent.position.and_then(|position| self.mark_at(position)),
            }
        }));
        if let (ClientMarks::Last(life), 2..) = (&self.around.client, pieces.len())
            && self.prices.cache == CacheKind::Marks
            && let Some(last) = pieces.last_mut()
        {
            last.mark = Some(*life);
        }
        for &at in own {
            if let Some(piece) = pieces.get_mut(at + 1) {
                piece.mark = piece.mark.or(Some(self.around.life()));
            }
        }
        pieces
    }

    fn mark_at(&self, position: Position) -> Option<Life> {
        let ClientMarks::At(marks) = &self.around.client else { return None };
        let found = marks.binary_search_by_key(&position, |(at, _)| *at).ok()?;
        Some(marks[found].1)
    }

    /// Returns the prices for the life of cache entries that the client asks for.
    pub fn effective_prices(&self) -> Prices {
        self.prices.living(self.around.life())
    }

    /// Returns whether a message with thinking behind it must stay as it was sent.
    pub fn binds(&self) -> bool {
        self.append_only || self.prices.bound_thinking
    }
}

impl From<Prices> for Terms {
    fn from(prices: Prices) -> Self {
        Self::new(prices)
    }
}
