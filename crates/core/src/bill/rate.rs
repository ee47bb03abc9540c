//! Tokens for a character: measured from the growth of prompts and the content that the file shows to be added.

use serde::Serialize;

use super::Request;

/// Tokens for a character, and the spread of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rate {
    pub tokens_per_character: f64,
    /// Half of the distance between the quartiles, as a share of the rate; 0.25 if the rate is not measured.
    pub spread: f64,
    /// Steps from one request to the next that were measured; 0 for the usual rate.
    pub steps: u32,
}

/// The usual rate, for sessions with too few steps: 3.3 characters a token (measured over four agents; sessions have 2.8 to 4.2).
const USUAL: Rate = Rate { tokens_per_character: 1.0 / 3.3, spread: 0.25, steps: 0 };
/// Shorter steps are mostly delimiters and thinking.
const LEAST_CHARACTERS: u64 = 400;
const LEAST_STEPS: usize = 4;

/// Measures tokens for a character from the growth of a session's prompts.
///
/// Thinking and attachments also grow a prompt, and matter least in steps with many characters. So the half of the steps with
/// the most characters is taken, and of these the half whose own ratio is nearest to the median.
pub fn rate(requests: &[Request]) -> Rate {
    let mut steps: Vec<(f64, f64)> = requests
        .iter()
        .filter(|request| !request.compacted && request.added.visible() >= LEAST_CHARACTERS)
        .filter_map(|request| {
            let before = requests.get(request.continues?)?.usage.prompt_tokens;
            let grown =
                request.usage.prompt_tokens.checked_sub(before).filter(|grown| *grown > 0)?;
            Some((request.added.visible() as f64, grown as f64))
        })
        .collect();
    if steps.len() < LEAST_STEPS {
        return USUAL;
    }
    steps.sort_by(|a, b| b.0.total_cmp(&a.0));
    steps.truncate((steps.len() / 2).max(LEAST_STEPS));
    let ratio = |step: &(f64, f64)| step.1 / step.0;
    steps.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    // Hidden content only ever adds to a step, so the smaller half is more exact; its smallest steps are errors of a file.
    let middle = &steps[steps.len() / 8..steps.len().div_ceil(2).max(2)];
    let (characters, grown) =
        middle.iter().fold((0.0, 0.0), |sum, step| (sum.0 + step.0, sum.1 + step.1));
    let apart = ratio(&middle[middle.len() - 1]) - ratio(&middle[0]);
    // Outside of this range the file does not show what the model was sent.
    let tokens_per_character = (grown / characters).clamp(0.2, 0.6);
    Rate {
        tokens_per_character,
        spread: (apart / 2.0 / tokens_per_character).min(1.0),
        steps: middle.len() as u32,
    }
}
