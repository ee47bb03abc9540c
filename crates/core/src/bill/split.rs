//! Splits a request's reported tokens by their content and by the reason why they were paid for.

use crate::cost::{CacheKind, Charge, Life, Prices};
use crate::message::Usage;

use super::{AddedContent, Amount, Cause, Rate, Request, Row, rate};

/// The end of the last request that a provider does not read: steps of up to 512 tokens with OpenAI and Gemini (measured).
const STEP: f64 = 512.0;
/// The same for entries that end at marks: the few tokens behind the last mark.
const BEHIND_MARK: f64 = 128.0;
/// A difference of fewer tokens is no sign of hidden changes.
const NOTICED: f64 = 1000.0;

/// The tokens of a request by content. Those of the prompt add up to the reported prompt.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SplitTokens {
    pub system_read: f64,
    pub visible_read: f64,
    pub unseen_read: f64,
    pub system_first: f64,
    pub new: f64,
    pub system_again: f64,
    pub visible_again: f64,
    pub unseen_again: f64,
    pub thinking: f64,
    pub output: f64,
}

impl SplitTokens {
    /// Returns the tokens that were read from the cache.
    pub fn read(&self) -> f64 {
        self.system_read + self.visible_read + self.unseen_read
    }

    /// Returns the tokens that had been sent before and were not read from the cache.
    pub fn again(&self) -> f64 {
        self.system_again + self.visible_again + self.unseen_again
    }

    pub(super) fn visible_mut(&mut self) -> [&mut f64; 2] {
        [&mut self.visible_read, &mut self.visible_again]
    }

    pub(super) fn history_mut(&mut self) -> [&mut f64; 4] {
        let Self { visible_read, unseen_read, visible_again, unseen_again, .. } = self;
        [visible_read, unseen_read, visible_again, unseen_again]
    }

    /// Returns the tokens that were not read from the cache.
    pub fn fresh(&self) -> f64 {
        self.system_first + self.new + self.again()
    }

    /// Returns all tokens of the prompt.
    pub fn prompt(&self) -> f64 {
        self.read() + self.fresh()
    }
}

/// A request with its tokens split into parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    pub usage: Usage,
    pub prices: Prices,
    /// Whether the prices are those of another model.
    pub is_estimate: bool,
    pub tokens: SplitTokens,
    /// Why content was sent again, if it was.
    pub cause: Option<Cause>,
    /// Price of a token that was not read from the cache, plain input = 1.
    pub fresh_price: f64,
    /// Milliseconds since the request that it continues, where both times are known.
    pub pause: Option<i64>,
    /// Whether entries of the longer life were written in this conversation, up to this request.
    pub long_life: bool,
    /// Tokens of the conversation up to this request that the file shows.
    pub shown: f64,
    /// The shares of text, calls and results in `shown`; all 0 if nothing is shown.
    pub kinds: [f64; 3],
}

impl Split {
    /// Returns each part with its tokens and dollars; their dollars add up to [`Prices::billed`].
    pub fn amounts(&self) -> [(Row, Amount); 9] {
        let (tokens, prices) = (&self.tokens, &self.prices);
        let read =
            |tokens: f64| Amount { tokens, dollars: prices.dollars(tokens * prices.cache_read) };
        let fresh =
            |tokens: f64| Amount { tokens, dollars: prices.dollars(tokens * self.fresh_price) };
        let output = |tokens: f64| Amount { tokens, dollars: tokens * prices.output / 1e6 };
        let again = Row::again(self.cause.unwrap_or(Cause::Unknown));
        let mut amounts = [
            (Row::SystemFirst, fresh(tokens.system_first)),
            (Row::SystemRead, read(tokens.system_read)),
            (Row::HistoryRead, read(tokens.visible_read)),
            (Row::UnseenRead, read(tokens.unseen_read)),
            (Row::New, fresh(tokens.new)),
            (again, fresh(tokens.again())),
            (Row::Thinking, output(tokens.thinking)),
            (Row::Output, output(tokens.output)),
            (Row::Cliff, Amount::default()),
        ];
        let (input_times, output_times) = prices.band(Charge::of(&self.usage).prompt());
        let sum = |amounts: &[(Row, Amount)]| -> f64 {
            amounts.iter().map(|(_, amount)| amount.dollars).sum()
        };
        let surplus =
            sum(&amounts[..6]) * (input_times - 1.0) + sum(&amounts[6..8]) * (output_times - 1.0);
        amounts[8].1.dollars = surplus;
        amounts
    }
}

/// The state of a conversation at a request.
#[derive(Debug, Clone, Copy, Default)]
struct ConversationState {
    /// Tokens of system prompt and tools.
    system: f64,
    /// Content that the file shows since the last compaction.
    shown: AddedContent,
    long_life: bool,
}

/// Splits each request; `prices` are the prices of each, and whether they are an estimate.
///
/// Shape: one split for each request, in the same order; requests beyond the end of `prices` are left out.
pub fn split(requests: &[Request], prices: &[(Prices, bool)]) -> Vec<Split> {
    let rate = rate(requests);
    let mut standing: Vec<ConversationState> = Vec::with_capacity(requests.len());
    let mut splits = Vec::with_capacity(requests.len());
    for (index, (request, (prices, is_estimate))) in requests.iter().zip(prices).enumerate() {
        let earlier = request.continues.filter(|earlier| *earlier < index);
        let before = earlier.map(|earlier| (&requests[earlier], standing[earlier]));
        let now = stand(request, before.map(|(_, standing)| standing), rate);
        standing.push(now);
        let split = one(request, before, now, rate, prices);
        splits.push(Split { is_estimate: *is_estimate, ..split });
    }
    splits
}

fn stand(request: &Request, before: Option<ConversationState>, rate: Rate) -> ConversationState {
    let added = request.added;
    let long_life = request.usage.written_long_tokens > 0;
    if let Some(before) = before {
        let mut shown = if request.compacted { AddedContent::default() } else { before.shown };
        shown.add(&added);
        return ConversationState { shown, long_life: long_life || before.long_life, ..before };
    }
    let prompt = request.usage.prompt_tokens as f64;
    let system = (prompt - added.visible() as f64 * rate.tokens_per_character).max(0.0);
    ConversationState { system, shown: added, long_life }
}

fn one(
    request: &Request,
    before: Option<(&Request, ConversationState)>,
    now: ConversationState,
    rate: Rate,
    prices: &Prices,
) -> Split {
    let charge = Charge::of(&request.usage);
    let prompt = charge.prompt();
    let fresh = prompt - charge.cached;
    let system = now.system.min(prompt);
    let history = prompt - system;
    let shown = (now.shown.visible() as f64 * rate.tokens_per_character).min(history);
    let visible = if history > 0.0 { shown / history } else { 0.0 };
    let system_read = charge.cached.min(system);
    let system_fresh = system - system_read;
    let history_read = charge.cached - system_read;
    let mut tokens = SplitTokens {
        system_read,
        visible_read: history_read * visible,
        unseen_read: history_read - history_read * visible,
        ..SplitTokens::default()
    };
    let added = request.added.visible() as f64 * rate.tokens_per_character;
    match before {
        None => {
            tokens.system_first = system_fresh;
            tokens.new = fresh - system_fresh;
        }
        Some((earlier, _)) => {
            let grown = prompt - earlier.usage.prompt_tokens as f64;
            // A prompt that grew by less than the added content lost something; then the added content is the better figure.
            let new = if request.compacted || grown < added / 2.0 { added } else { grown };
            tokens.new = new.clamp(0.0, fresh - system_fresh);
            let again = fresh - system_fresh - tokens.new;
            tokens.system_again = system_fresh;
            tokens.visible_again = again * visible;
            tokens.unseen_again = again - again * visible;
        }
    }
    let output = request.usage.output_tokens as f64;
    tokens.thinking = request.thinking_tokens.map_or(0.0, |thinking| thinking as f64).min(output);
    tokens.output = output - tokens.thinking;
    let long = charge.written_long.min(charge.written);
    let paid = (charge.written - long) * prices.cache_write
        + long * prices.write(Life::Long)
        + charge.plain;
    let pause = before.and_then(|(earlier, _)| {
        let pause = request.sent?.0.saturating_sub(earlier.sent?.0);
        Some(pause.max(0))
    });
    Split {
        usage: request.usage,
        prices: *prices,
        is_estimate: false,
        cause: before.and_then(|(earlier, standing)| {
            cause(request, earlier, &tokens, added, (prices, standing.long_life, pause))
        }),
        tokens,
        fresh_price: if fresh > 0.0 { paid / fresh } else { 1.0 },
        pause,
        long_life: now.long_life,
        shown,
        kinds: kinds(&now.shown),
    }
}

fn kinds(shown: &AddedContent) -> [f64; 3] {
    let all = shown.visible().max(1) as f64;
    [shown.text, shown.calls, shown.results].map(|part| part as f64 / all)
}

/// Returns why content was sent again, if it was.
fn cause(
    request: &Request,
    earlier: &Request,
    tokens: &SplitTokens,
    added: f64,
    (prices, long_life, pause): (&Prices, bool, Option<i64>),
) -> Option<Cause> {
    let again = tokens.again();
    let edge = if prices.cache == CacheKind::Steps { STEP } else { BEHIND_MARK };
    let life = if long_life { Life::Long } else { Life::Short };
    let grown = tokens.prompt() - earlier.usage.prompt_tokens as f64;
    let noticed = NOTICED.max(added / 4.0);
    if again <= 0.0 {
        return None;
    }
    Some(if request.compacted {
        Cause::Compaction
    } else if again <= edge {
        Cause::Step
    } else if let Some(told) = request.told {
        told
    } else if request.model != earlier.model {
        Cause::Model
    } else if pause.is_some_and(|pause| pause > i64::from(prices.seconds(life)) * 1000) {
        Cause::Pause
    } else if added - grown > noticed {
        Cause::Rewind
    } else if tokens.system_again > edge
        && grown - added - earlier.usage.output_tokens as f64 > noticed
    {
        // Hidden content was added, and the provider read nothing behind it from the cache.
        Cause::Tools
    } else {
        Cause::Unknown
    })
}
