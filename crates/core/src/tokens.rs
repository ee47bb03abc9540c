//! Token counts: exact for `OpenAI`'s vocabularies, scaled for others, by characters for speed or comparison.

use std::str::FromStr;

use serde::Serialize;

use crate::message::Message;

/// Tokens that a message costs beside its text: role and delimiters.
///
/// Source: `OpenAI`'s chat format adds 3 a message and 1 for the role; the scorer in use counts 4 as well.
pub const MESSAGE_OVERHEAD: u32 = 4;

/// A way to count tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tokenizer {
    /// Byte-pair encoding of GPT-4o and later, times a factor; 1 is exact.
    O200k { factor: f32 },
    /// Byte-pair encoding of GPT-3.5 and GPT-4, exact.
    Cl100k,
    /// 4 characters a token, 3.5 inside code fences (`context-window.md`, step 1).
    Estimate,
    /// A fixed number of characters a token.
    Characters { per_token: f32 },
}

/// Tokens that a Claude model counts for one of o200k; a session's own usage replaces the figure.
///
/// Source: published comparisons, about 1.18 for models before Opus 4.7 and about 1.5 from it on; no tokenizer is public.
pub const CLAUDE_FACTOR: f32 = 1.18;
/// As [`CLAUDE_FACTOR`], from Opus 4.7 on.
pub const CLAUDE_FACTOR_SINCE_OPUS_4_7: f32 = 1.5;

/// A name that is no tokenizer.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unknown tokenizer `{0}`")]
pub struct UnknownTokenizer(pub String);

impl FromStr for Tokenizer {
    type Err = UnknownTokenizer;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownTokenizer(name.to_owned());
        let number = |text: &str, at_least: f32| {
            text.parse::<f32>().ok().filter(|n| n.is_finite() && *n >= at_least).ok_or_else(unknown)
        };
        match name.split_once(':') {
            None => match name {
                "o200k" => Ok(Self::O200k { factor: 1.0 }),
                "cl100k" => Ok(Self::Cl100k),
                "claude" => Ok(Self::O200k { factor: CLAUDE_FACTOR }),
                "estimate" => Ok(Self::Estimate),
                _ => Err(unknown()),
            },
            Some(("chars", per_token)) => {
                Ok(Self::Characters { per_token: number(per_token, 0.1)? })
            }
            Some(("o200k", factor)) => Ok(Self::O200k { factor: number(factor, 0.01)? }),
            Some(_) => Err(unknown()),
        }
    }
}

impl std::fmt::Display for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::O200k { factor } if (factor - 1.0).abs() < f32::EPSILON => f.write_str("o200k"),
            Self::O200k { factor } => write!(f, "o200k × {factor:.2}"),
            Self::Cl100k => f.write_str("cl100k"),
            Self::Estimate => f.write_str("estimate (4 / 3.5 characters)"),
            Self::Characters { per_token } => write!(f, "characters / {per_token}"),
        }
    }
}

impl Tokenizer {
    /// Chooses by a model's name, as recorded or as `provider/model`.
    pub fn for_model(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
        if name.starts_with("gpt-4o") || name.starts_with("gpt-4.1") {
            return Self::O200k { factor: 1.0 };
        }
        if name.starts_with("gpt-3.5") || name.starts_with("gpt-4") {
            return Self::Cl100k;
        }
        if name.contains("claude") {
            return Self::O200k {
                factor: if claude_counts_more(&name) {
                    CLAUDE_FACTOR_SINCE_OPUS_4_7
                } else {
                    CLAUDE_FACTOR
                },
            };
        }
        Self::O200k { factor: 1.0 }
    }

    /// Counts the tokens of `text`, without any overhead.
    pub fn count(self, text: &str) -> u32 {
        let count = match self {
            Self::O200k { factor } => {
                let exact = encoding("o200k_base", text);
                if (factor - 1.0).abs() < f32::EPSILON {
                    return exact;
                }
                f64::from(exact) * f64::from(factor)
            }
            Self::Cl100k => return encoding("cl100k_base", text),
            Self::Estimate => return estimate(text),
            Self::Characters { per_token } => characters(text) as f64 / f64::from(per_token),
        };
        count.round() as u32
    }

    /// Counts the tokens that a model reads of `message`, [`MESSAGE_OVERHEAD`] included.
    pub fn count_message(self, message: &Message) -> u32 {
        self.count(&message.shown()) + MESSAGE_OVERHEAD
    }

    /// Returns the same tokenizer scaled to what a provider reported, where it has a factor.
    #[must_use]
    pub fn calibrated(self, measured: f32) -> Self {
        match self {
            Self::O200k { .. } => Self::O200k { factor: measured },
            other => other,
        }
    }
}

fn claude_counts_more(name: &str) -> bool {
    let Some(version) = name.split("opus-").nth(1) else { return false };
    let mut numbers = version.split(['-', '.']).map_while(|part| part.parse::<u32>().ok());
    matches!((numbers.next(), numbers.next()), (Some(major), minor)
        if major > 4 || (major == 4 && minor.is_some_and(|minor| (7..100).contains(&minor))))
}

fn encoding(name: &str, text: &str) -> u32 {
    tiktoken::get_encoding(name).map_or_else(|| estimate(text), |bpe| bpe.count(text) as u32)
}

fn characters(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// Estimates by the rule of `context-window.md`, step 1: code fences at 3.5 characters a token, the rest at 4.
///
/// Units: UTF-16 units in the document's language; characters here, which differ only outside the basic plane.
pub fn estimate(text: &str) -> u32 {
    const FENCE: &str = "```";
    let (mut code_tokens, mut prose_characters) = (0, 0);
    let mut rest = text;
    loop {
        let block = rest.find(FENCE).and_then(|start| {
            let inner = start + FENCE.len();
            rest[inner..].find(FENCE).map(|end| (start, inner + end + FENCE.len()))
        });
        let Some((start, end)) = block else { break };
        prose_characters += characters(&rest[..start]);
        // ceil(n / 3.5) in whole numbers.
        code_tokens += (characters(&rest[start..end]) * 2).div_ceil(7);
        rest = &rest[end..];
    }
    prose_characters += characters(rest);
    (code_tokens + prose_characters.div_ceil(4)) as u32
}

/// A tokenizer's factor and a request's overhead, measured from a session's reported usage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Calibration {
    /// Reported tokens for each counted one.
    pub factor: f32,
    /// Tokens of every request that are not in the transcript: system prompt and tool schemas.
    pub overhead: u32,
    /// Steps from one request to the next that the factor rests on.
    pub samples: u32,
}

/// Measures a tokenizer by counted and reported prompt sizes, `(counted, reported)` for each request in order.
///
/// The growth from one request to the next does not contain the unknown system prompt, so the factor is the ratio of
/// the sums of growth, over the half of the steps whose own ratio is nearest to the median. The overhead is the median
/// of the reported sizes less the scaled counts. Returns `None` with fewer than 4 usable steps.
pub fn calibrate(requests: &[(u32, u64)]) -> Option<Calibration> {
    // Below 50 tokens a step is mostly rounding and delimiters.
    const LEAST_GROWTH: u32 = 50;
    const LEAST_STEPS: usize = 4;
    let mut steps: Vec<(f64, f64)> = requests
        .windows(2)
        .filter_map(|pair| {
            let counted = pair[1].0.checked_sub(pair[0].0)?;
            let reported = pair[1].1.checked_sub(pair[0].1)?;
            (counted >= LEAST_GROWTH && reported > 0 && pair[0].1 > 0)
                .then_some((f64::from(counted), reported as f64))
        })
        .collect();
    if steps.len() < LEAST_STEPS {
        return None;
    }
    let ratio = |step: &(f64, f64)| step.1 / step.0;
    steps.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let quarter = steps.len() / 4;
    let middle = &steps[quarter..steps.len() - quarter];
    let (counted, reported) =
        middle.iter().fold((0.0, 0.0), |sum, step| (sum.0 + step.0, sum.1 + step.1));
    // Outside this range the file does not show what the model was sent, and the figure would mislead.
    let factor = (reported / counted).clamp(0.7, 2.5);
    let mut left: Vec<f64> = requests
        .iter()
        .filter(|request| request.1 > 0)
        .map(|request| request.1 as f64 - f64::from(request.0) * factor)
        .collect();
    left.sort_by(f64::total_cmp);
    let overhead = left.get(left.len() / 2).copied().unwrap_or(0.0).max(0.0);
    Some(Calibration {
        factor: factor as f32,
        overhead: overhead as u32,
        samples: middle.len() as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bpe_counts_are_those_of_the_published_vocabularies() {
        // Figures of OpenAI's own tokenizer for these strings.
        for (text, o200k, cl100k) in [
            ("hello world", 2, 2),
            ("", 0, 0),
            ("tiktoken is great!", 6, 6),
            ("お誕生日おめでとう", 8, 9),
        ] {
            assert_eq!(Tokenizer::O200k { factor: 1.0 }.count(text), o200k, "{text}");
            assert_eq!(Tokenizer::Cl100k.count(text), cl100k, "{text}");
        }
    }

    #[test]
    fn estimate_counts_code_apart() {
        assert_eq!(estimate("12345678"), 2);
        assert_eq!(estimate("12345"), 2);
        assert_eq!(estimate("```abc```"), 3);
        assert_eq!(estimate("1234```abcdefgh```5678"), 2 + 4);
        assert_eq!(estimate("``` never closed"), 4);
    }

    #[test]
    fn names_choose_a_tokenizer() {
        assert_eq!("chars:3.3".parse(), Ok(Tokenizer::Characters { per_token: 3.3 }));
        assert_eq!("o200k".parse(), Ok(Tokenizer::O200k { factor: 1.0 }));
        assert!("chars:0".parse::<Tokenizer>().is_err());
        assert!("chars:NaN".parse::<Tokenizer>().is_err());
        assert!("word".parse::<Tokenizer>().is_err());
        let factor = |model| match Tokenizer::for_model(model) {
            Tokenizer::O200k { factor } => factor,
            _ => 0.0,
        };
        assert!((factor("claude-opus-4-5-20251101") - CLAUDE_FACTOR).abs() < 1e-6);
        assert!((factor("claude-opus-4-20250514") - CLAUDE_FACTOR).abs() < 1e-6);
        assert!((factor("anthropic/claude-opus-4.7") - CLAUDE_FACTOR_SINCE_OPUS_4_7).abs() < 1e-6);
        assert_eq!(Tokenizer::for_model("gpt-4-turbo"), Tokenizer::Cl100k);
    }

    #[test]
    fn calibration_finds_factor_and_overhead() {
        let requests: Vec<(u32, u64)> =
            (0..10).map(|k| (k * 100, u64::from(k) * 120 + 5000)).collect();
        let found = calibrate(&requests).expect("ten requests are enough");
        assert!((found.factor - 1.2).abs() < 0.001);
        assert_eq!(found.overhead, 5000);
        assert_eq!(calibrate(&requests[..3]), None);
    }
}
