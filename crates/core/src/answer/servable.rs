//! Decides which requests may be answered from the cache, and which answers may be stored.

use crate::safety;

use super::lexicon::TIME_BOUND;
use super::settings::AnswerSettings;
use super::split::split;

/// The facts of a request that decide whether its answer may come from the cache.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of the request by itself")]
pub struct RequestFacts {
    /// Tools are offered: the answer may act.
    pub tools: bool,
    /// The provider keeps a state, or calls and their results stand in the conversation.
    pub state: bool,
    /// The question holds more than text.
    pub attachments: bool,
    /// More than one answer is asked for.
    pub several: bool,
    /// `None` where the request does not say.
    pub temperature: Option<f32>,
}

/// The facts of an answer that decide whether it may be stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of the answer by itself")]
pub struct AnswerFacts {
    pub error: bool,
    /// It ended at the token limit, or the stream broke off.
    pub cut: bool,
    /// The model or a filter refused.
    pub refused: bool,
    pub calls: bool,
}

/// Why a request or its answer is kept out of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum CacheExclusion {
    #[error("the answer cache is off")]
    Off,
    #[error("tools are offered")]
    Tools,
    #[error("the conversation has a state")]
    State,
    #[error("the question holds more than text")]
    Attachments,
    #[error("several answers are asked for")]
    Several,
    #[error("sampling asks for variety")]
    Variety,
    #[error("the question has another answer later")]
    TimeBound,
    #[error("the question is empty")]
    Empty,
    #[error("the answer is an error")]
    Error,
    #[error("the answer is cut")]
    Cut,
    #[error("the model would not answer")]
    Refused,
    #[error("the answer calls tools")]
    Calls,
    #[error("the answer is empty")]
    EmptyAnswer,
    #[error("the question or its answer holds a secret")]
    Secret,
}

/// Decides whether a request may be answered from the cache; the same holds for storing its answer.
pub fn servable(
    question: &str,
    facts: &RequestFacts,
    settings: &AnswerSettings,
) -> Result<(), CacheExclusion> {
    // NaN is not known to be low.
    let is_varied = facts.temperature.is_some_and(|t| t.is_nan() || t > settings.most_temperature);
    let reasons = [
        (!settings.enabled, CacheExclusion::Off),
        (facts.tools, CacheExclusion::Tools),
        (facts.state, CacheExclusion::State),
        (facts.attachments, CacheExclusion::Attachments),
        (facts.several, CacheExclusion::Several),
        (is_varied, CacheExclusion::Variety),
        (question.trim().is_empty(), CacheExclusion::Empty),
        (settings.refuse_time_bound && is_time_bound(question), CacheExclusion::TimeBound),
    ];
    first(&reasons)
}

/// Decides whether an answer may be stored under its question.
pub fn keepable(question: &str, answer: &str, facts: &AnswerFacts) -> Result<(), CacheExclusion> {
    let holds_secret = |text| safety::find(text).iter().any(|found| !found.kind.is_personal());
    first(&[
        (facts.error, CacheExclusion::Error),
        (facts.calls, CacheExclusion::Calls),
        (facts.cut, CacheExclusion::Cut),
        (facts.refused, CacheExclusion::Refused),
        (answer.trim().is_empty(), CacheExclusion::EmptyAnswer),
        (holds_secret(question) || holds_secret(answer), CacheExclusion::Secret),
    ])
}

fn first(reasons: &[(bool, CacheExclusion)]) -> Result<(), CacheExclusion> {
    reasons.iter().find(|(holds, _)| *holds).map_or(Ok(()), |(_, why)| Err(*why))
}

fn is_time_bound(question: &str) -> bool {
    split(question).iter().any(|token| TIME_BOUND.contains(&&*token.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on() -> AnswerSettings {
        AnswerSettings { enabled: true, ..AnswerSettings::default() }
    }

    #[test]
    fn tools_state_and_variety_are_never_served() {
        let plain = RequestFacts::default();
        let served = |facts: &RequestFacts| servable("Why is the sky blue?", facts, &on());
        assert_eq!(served(&plain), Ok(()));
        assert_eq!(served(&RequestFacts { temperature: Some(0.0), ..plain }), Ok(()));
        for (facts, why) in [
            (RequestFacts { tools: true, ..plain }, CacheExclusion::Tools),
            (RequestFacts { state: true, ..plain }, CacheExclusion::State),
            (RequestFacts { attachments: true, ..plain }, CacheExclusion::Attachments),
            (RequestFacts { several: true, ..plain }, CacheExclusion::Several),
            (RequestFacts { temperature: Some(0.2), ..plain }, CacheExclusion::Variety),
            (RequestFacts { temperature: Some(f32::NAN), ..plain }, CacheExclusion::Variety),
        ] {
            assert_eq!(served(&facts), Err(why));
        }
        assert_eq!(servable(" \n", &plain, &on()), Err(CacheExclusion::Empty));
    }

    #[test]
    fn settings_decide() {
        let warm = RequestFacts { temperature: Some(0.2), ..RequestFacts::default() };
        let settings = AnswerSettings { most_temperature: 0.3, ..on() };
        assert_eq!(servable("why?", &warm, &settings), Ok(()));
        assert_eq!(servable("why?", &warm, &AnswerSettings::default()), Err(CacheExclusion::Off));
        let plain = RequestFacts::default();
        let later = "What is the latest version of Rust?";
        assert_eq!(servable(later, &plain, &on()), Err(CacheExclusion::TimeBound));
        let settings = AnswerSettings { refuse_time_bound: false, ..on() };
        assert_eq!(servable(later, &plain, &settings), Ok(()));
    }

    #[test]
    fn only_whole_answers_are_kept() {
        let good = AnswerFacts::default();
        let kept = |text, facts: &AnswerFacts| keepable("why?", text, facts);
        assert_eq!(kept("so", &good), Ok(()));
        assert_eq!(kept(" \n", &good), Err(CacheExclusion::EmptyAnswer));
        let secret = concat!("gh", "p_0123456789abcdefghijklmnopqrstuvwxyzAB");
        assert_eq!(kept(secret, &good), Err(CacheExclusion::Secret));
        assert_eq!(keepable(secret, "so", &good), Err(CacheExclusion::Secret));
        for (facts, why) in [
            (AnswerFacts { error: true, ..good }, CacheExclusion::Error),
            (AnswerFacts { cut: true, ..good }, CacheExclusion::Cut),
            (AnswerFacts { refused: true, ..good }, CacheExclusion::Refused),
            (AnswerFacts { calls: true, ..good }, CacheExclusion::Calls),
        ] {
            assert_eq!(kept("so", &facts), Err(why));
        }
    }
}
