//! What a recorded session does not show and its usage tells: system prompt and tools, hidden thinking, the life of cache entries.

use serde::Serialize;

use crate::cost::Life;
use crate::message::Usage;
use crate::replay::Stretch;
use crate::terms::{ClientMarks, Surroundings};

/// Requests with usage below which nothing is measured (the scorer in use asks for as many).
const LEAST_REQUESTS: usize = 8;
/// A prompt below this part of the one before it is a compaction that was not recorded, or another conversation.
const FALL: f64 = 0.8;

/// A request whose usage was reported.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reported {
    /// Tokens that are counted of its messages.
    pub counted: f64,
    /// Answers of the model among them.
    pub answers: u32,
    pub usage: Usage,
}

/// What requests hold beside the messages that a session shows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Unshown {
    /// Tokens of system prompt and tools.
    pub before: f64,
    /// Tokens of each answer: thinking without its text, attachments.
    pub unseen: f64,
    /// The life that the client asks for.
    pub life: Life,
    /// Whether usage told it, or it is what the client usually has.
    pub measured: bool,
}

impl Unshown {
    /// Returns the surroundings of requests that have this around their messages.
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
pub fn reported<'a>(stretches: impl IntoIterator<Item = Stretch<'a>>) -> Vec<Reported> {
    let mut found = Vec::new();
    for stretch in stretches {
        let (mut counted, mut answers) = (0.0, 0);
        for (position, entry) in stretch.transcript.entries().iter().enumerate() {
            let usage = entry.message.usage.filter(|usage| usage.prompt_tokens > 0);
            if let Some(usage) = usage.filter(|_| position >= stretch.known) {
                found.push(Reported { counted, answers, usage });
            }
            counted += f64::from(entry.tokens);
            answers += u32::from(entry.message.role == crate::message::Role::Assistant);
        }
    }
    found
}

/// Finds what requests hold beside their messages; `usual` is what the client has before them where too few were reported.
///
/// The first request says how much stands before the messages; the largest up to a compaction, how much each answer adds.
pub fn unshown(requests: &[Reported], usual: f64) -> Unshown {
    let life = life(requests);
    let (Some(first), true) = (requests.first(), requests.len() >= LEAST_REQUESTS) else {
        return Unshown { before: usual, unseen: 0.0, life, measured: false };
    };
    let prompt = |request: &Reported| request.usage.prompt_tokens as f64;
    let falls = requests.windows(2).position(|pair| prompt(&pair[1]) <= FALL * prompt(&pair[0]));
    let last = &requests[falls.unwrap_or(requests.len() - 1)];
    let before = (prompt(first) - first.counted).max(0.0);
    let answers = f64::from((last.answers - first.answers.min(last.answers)).max(1));
    let unseen = ((prompt(last) - before - last.counted) / answers).max(0.0);
    Unshown { before, unseen, life, measured: true }
}

/// Returns the life for which most tokens were written.
fn life(requests: &[Reported]) -> Life {
    let sum = |of: fn(&Usage) -> u64| requests.iter().map(|one| of(&one.usage)).sum::<u64>();
    let written = sum(|usage| usage.written_tokens);
    let long = sum(|usage| usage.written_long_tokens);
    if 2 * long > written { Life::Long } else { Life::Short }
}
