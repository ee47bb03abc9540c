//! The terms of a request: what its provider charges, what stands before its messages, and where its client sets marks.

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

/// What a request has around its messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Surroundings {
    /// Tokens of tools and system prompt, as far as the transcript does not hold them.
    pub before: f64,
    /// A digest of them: another one is another prefix.
    pub before_key: u64,
    /// Whether a mark ends them.
    pub before_mark: Option<Life>,
    /// Tokens of each turn that the transcript does not show: thinking that was recorded without its text, attachments.
    pub unseen: f64,
    pub client: ClientMarks,
    /// Marks that may be added: a request has four at most, and some providers have none.
    pub free_marks: usize,
    /// Whether the model can look up what is behind a ref; else none is shown.
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
    /// Returns those of an agent that marks its system prompt, its tools and its last message, and of which no more is known.
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
    /// Returns the life that the client asks for where it marks messages, else where it marks what stands before them.
    pub fn life(&self) -> Life {
        match &self.client {
            ClientMarks::Last(life) => *life,
            ClientMarks::At(marks) => {
                marks.last().map_or(self.before_mark.unwrap_or_default(), |(_, life)| *life)
            }
        }
    }
}

/// What holds for a request beside its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    pub prices: Prices,
    pub around: Surroundings,
    /// Whether a message may never change once it was sent.
    pub append_only: bool,
}

impl Terms {
    /// Returns the terms of an agent of which no more is known than what its model costs.
    pub fn new(prices: Prices) -> Self {
        Self { prices, around: Surroundings::default(), append_only: false }
    }

    /// Returns what a request of `context` is to a cache: tools and system prompt first, then each message.
    ///
    /// `own` are the places of our marks in `context`, and the life that they ask for.
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
            let unseen =
                if sent.message.role == Role::Assistant { self.around.unseen } else { 0.0 };
            Piece {
                key: sent.hash.key(),
                tokens: f64::from(sent.tokens) + unseen,
                blocks: sent.message.blocks.len().max(1) as u32,
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

    /// Returns the prices of what this client writes: for the life that it asks for.
    pub fn effective_prices(&self) -> Prices {
        self.prices.living(self.around.life())
    }

    /// Tells whether a message that thinking stands behind must stay as it was sent.
    pub fn binds(&self) -> bool {
        self.append_only || self.prices.bound_thinking
    }
}

impl From<Prices> for Terms {
    fn from(prices: Prices) -> Self {
        Self::new(prices)
    }
}
