//! Measures from a session's usage what its file does not show: system prompt and tools, hidden thinking, the life of entries.

use serde::Serialize;

use crate::cost::Life;
use crate::message::Usage;
use crate::replay::Stretch;
use crate::terms::{ClientMarks, Surroundings};

/// The fewest requests with usage for a measurement (as in the scorer in use).
const LEAST_REQUESTS: usize = 8;

/// A smaller scale shows that the usage belongs to another session (chosen).
const LEAST_SCALE: f64 = 0.5;

/// A request whose usage was reported.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReportedRequest {
    /// Counted tokens of its messages.
    pub counted: f64,
    /// How many of its messages are answers of the model.
    pub answers: u32,
    pub usage: Usage,
}

/// The content of requests beside the messages that a session shows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RequestOverhead {
    /// Tokens of system prompt and tools.
    pub before: f64,
    /// Tokens of each answer: thinking without its text, attachments.
    pub unseen: f64,
    /// Tokens at the beginning that are always in the cache: other sessions and users begin alike.
    pub shared: f64,
    /// The life that the client asks for.
    pub life: Life,
    /// The factor for counted tokens, 1 at most: some messages of a session were never sent again, such as answers that broke
    /// off.
    pub scale: f64,
    /// Whether it was measured from usage; else it is the client's usual overhead.
    pub measured: bool,
}

impl RequestOverhead {
    /// Returns the surroundings of requests with this overhead.
    pub fn surroundings(&self) -> Surroundings {
        Surroundings {
            before: self.before,
            before_mark: Some(self.life),
            unseen: self.unseen,
            client: ClientMarks::Last(self.life),
            ..Surroundings::default()
        }
    }
}

/// Lists the requests of a session whose usage was reported, oldest first.
pub fn reported<'a>(stretches: impl IntoIterator<Item = Stretch<'a>>) -> Vec<ReportedRequest> {
    let mut found = Vec::new();
    for stretch in stretches {
        let (mut counted, mut answers) = (0.0, 0);
        for (position, entry) in stretch.transcript.entries().iter().enumerate() {
            let usage = entry.message.usage.filter(|usage| usage.prompt_tokens > 0);
            if let Some(usage) = usage.filter(|_| position >= stretch.known) {
                found.push(ReportedRequest { counted, answers, usage });
            }
            counted += f64::from(entry.tokens);
            answers += u32::from(entry.message.role == crate::message::Role::Assistant);
        }
    }
    found
}

/// Measures the overhead of requests; `usual` is the client's usual size before the messages if no request was reported.
///
/// The first request shows the size before the messages, and how much of it was in the cache already. The tokens that each
/// answer adds are the slope of the remaining tokens over all requests (least squares), since a single request may be odd.
pub fn unshown(requests: &[ReportedRequest], usual: f64) -> RequestOverhead {
    let life = life(requests);
    let Some(first) = requests.first() else {
        return RequestOverhead {
            before: usual,
            unseen: 0.0,
            shared: 0.0,
            scale: 1.0,
            life,
            measured: false,
        };
    };
    let prompt = |request: &ReportedRequest| request.usage.prompt_tokens as f64;
    let before = (prompt(first) - first.counted).max(0.0);
    let shared = (first.usage.cached_tokens as f64).min(before);
    let mut unshown =
        RequestOverhead { before, unseen: 0.0, shared, scale: 1.0, life, measured: true };
    if requests.len() >= LEAST_REQUESTS {
        // The growth of a prompt since the first, as reported and as counted.
        let grown = |request: &ReportedRequest| {
            (prompt(request) - prompt(first), request.counted - first.counted)
        };
        let slope = |of: &dyn Fn(&ReportedRequest) -> (f64, f64)| {
            let (mut both, mut squares) = (0.0, 0.0);
            for (value, along) in requests.iter().map(of) {
                both += value * along;
                squares += along * along;
            }
            if squares > 0.0 { both / squares } else { 0.0 }
        };
        let unseen = slope(&|request| {
            let (reported, counted) = grown(request);
            (reported - counted, f64::from(request.answers) - f64::from(first.answers))
        });
        if unseen >= 0.0 {
            unshown.unseen = unseen;
        } else {
            unshown.scale = slope(&grown).clamp(LEAST_SCALE, 1.0);
        }
    }
    unshown
}

/// Returns the life for which most tokens were written.
fn life(requests: &[ReportedRequest]) -> Life {
    let sum = |of: fn(&Usage) -> u64| requests.iter().map(|one| of(&one.usage)).sum::<u64>();
    let written = sum(|usage| usage.written_tokens);
    let long = sum(|usage| usage.written_long_tokens);
    if 2 * long > written { Life::Long } else { Life::Short }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "sums and products of whole numbers are exact")]
mod tests {
    use super::*;
    use crate::cost::Charge;

    /// A request after so many answers: what is counted of it, its prompt, and of that what was read and written for long.
    fn request(answers: u32, counted: f64, prompt: u64, cached: u64, long: u64) -> ReportedRequest {
        let usage = Usage {
            prompt_tokens: prompt,
            cached_tokens: cached,
            written_tokens: prompt - cached,
            written_long_tokens: long,
            ..Usage::default()
        };
        ReportedRequest { counted, answers, usage }
    }

    fn requests(number: u32, unseen: f64) -> Vec<ReportedRequest> {
        let one = |answers: u32| {
            let counted = 500.0 * f64::from(answers) + 300.0;
            let prompt = 20_000.0 + counted + unseen * f64::from(answers);
            let cached = if answers == 0 { 15_000 } else { 20_000 };
            request(answers, counted, prompt as u64, cached, if answers > 1 { 200 } else { 0 })
        };
        (0..number).map(one).collect()
    }

    #[test]
    fn usage_tells_what_a_session_does_not_show() {
        let found = unshown(&requests(12, 40.0), 1.0);
        assert_eq!((found.before, found.shared, found.measured), (20_000.0, 15_000.0, true));
        assert!((found.unseen - 40.0).abs() < 1.0, "{found:?}");
        assert_eq!((found.life, found.scale), (Life::Short, 1.0));
    }

    #[test]
    fn few_requests_tell_what_stands_before_and_none_what_is_usual() {
        let few = unshown(&requests(3, 40.0), 1.0);
        assert_eq!((few.before, few.unseen, few.measured), (20_000.0, 0.0, true));
        let none = unshown(&[], 42_000.0);
        assert_eq!((none.before, none.shared, none.measured), (42_000.0, 0.0, false));
    }

    #[test]
    fn what_was_shown_and_never_sent_scales_the_count() {
        let found = unshown(&requests(12, -100.0), 1.0);
        assert_eq!(found.unseen, 0.0);
        // Of 500 tokens an answer, 400 were sent.
        assert!((found.scale - 0.8).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn the_life_is_that_of_most_writes() {
        let long = [request(0, 10.0, 5000, 0, 5000), request(1, 20.0, 6000, 5000, 0)];
        assert_eq!(unshown(&long, 0.0).life, Life::Long);
        let around = unshown(&long, 0.0).surroundings();
        assert_eq!(around.client, ClientMarks::Last(Life::Long));
        assert_eq!((around.before_mark, around.before), (Some(Life::Long), 4990.0));
    }

    #[test]
    fn what_others_keep_in_the_cache_is_read() {
        let mut charge =
            Charge { written: 700.0, written_long: 700.0, plain: 400.0, ..Charge::default() };
        charge.share(900.0);
        assert_eq!((charge.cached, charge.written, charge.plain), (900.0, 0.0, 200.0));
        assert_eq!(charge.written_long, 0.0);
        charge.share(100.0);
        assert_eq!(charge.cached, 900.0);
    }
}
