//! Compares the model of the cache with the usage that a provider reported.

use std::collections::HashMap;

use serde::Serialize;

use crate::calibrate::RequestOverhead;
use crate::cost::{Cache, Charge, Life, Pricing};
use crate::message::MillisSinceEpoch;
use crate::plan::Sent;
use crate::replay::Stretch;
use crate::terms::{ClientMarks, Terms};

/// Tokens and dollars of all requests of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Sums {
    pub cached: f64,
    pub written: f64,
    pub plain: f64,
    pub dollars: f64,
}

impl Sums {
    fn add(&mut self, charge: &Charge, dollars: f64) {
        self.cached += charge.cached;
        self.written += charge.written;
        self.plain += charge.plain;
        self.dollars += dollars;
    }
}

/// A session's bill as reported and as the model of the cache computes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Verification {
    pub requests: u32,
    pub reported: Sums,
    pub modelled: Sums,
}

/// By how much the model of the cache is off, as a part of what was reported.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct VerifyErrors {
    pub cached: Option<f64>,
    pub written: Option<f64>,
    pub plain: Option<f64>,
    pub dollars: Option<f64>,
}

impl Verification {
    /// Returns the errors of the model; none where nothing was reported.
    pub fn errors(&self) -> VerifyErrors {
        let part = |of: fn(&Sums) -> f64| {
            let (reported, modelled) = (of(&self.reported), of(&self.modelled));
            (reported > 0.0).then(|| (modelled - reported) / reported)
        };
        VerifyErrors {
            cached: part(|sums| sums.cached),
            written: part(|sums| sums.written),
            plain: part(|sums| sums.plain),
            dollars: part(|sums| sums.dollars),
        }
    }
}

/// Half of the sessions are off by no more than `median`, a quarter by no more than `first`, three by no more than `third`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quartiles {
    pub sessions: usize,
    pub first: f64,
    pub median: f64,
    pub third: f64,
}

impl Quartiles {
    /// Returns the quartiles of the sizes of errors.
    pub fn of(errors: impl Iterator<Item = Option<f64>>) -> Option<Self> {
        let mut sizes: Vec<f64> = errors.flatten().map(f64::abs).collect();
        sizes.sort_by(f64::total_cmp);
        let most = sizes.len().checked_sub(1)?;
        // Between two sessions, the line between them.
        let at = |part: f64| {
            let place = part * most as f64;
            let (below, above) = (sizes[place as usize], sizes[(place.ceil() as usize).min(most)]);
            below + (above - below) * place.fract()
        };
        Some(Self { sessions: sizes.len(), first: at(0.25), median: at(0.5), third: at(0.75) })
    }
}

/// One request of a session, as reported and as modelled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VerifiedRequest {
    pub reported: Charge,
    pub modelled: Charge,
    pub time: Option<MillisSinceEpoch>,
}

/// Charges every request of a session with reported usage as its client sent it, and sums up both sides.
///
/// Both sides take the output as reported. `model` stands in for messages that name none.
pub fn verify<'a>(
    stretches: impl IntoIterator<Item = Stretch<'a>>,
    unshown: &RequestOverhead,
    pricing: &Pricing,
    model: Option<&str>,
    mut each: impl FnMut(VerifiedRequest),
) -> Verification {
    let mut verified = Verification::default();
    // Each model has a cache of its own.
    let mut caches: HashMap<String, Cache> = HashMap::new();
    let mut life = unshown.life;
    for stretch in stretches {
        let entries = stretch.transcript.entries();
        let whole: Vec<Sent> =
            entries.iter().enumerate().map(|(at, entry)| Sent::whole(at, entry)).collect();
        for (position, entry) in entries.iter().enumerate().skip(stretch.known) {
            let usage = entry.message.usage.filter(|usage| usage.prompt_tokens > 0);
            let Some(usage) = usage else { continue };
            // The life of an entry begins when its request does.
            let time = stretch.transcript.time_before(position).or(entry.message.time);
            let model = entry.message.model.as_deref().or(model);
            let prices = pricing.of(model, time).prices;
            if usage.written_tokens > 0 {
                life = if usage.written_long_tokens > 0 { Life::Long } else { Life::Short };
            }
            let mut around = unshown.surroundings();
            around.client = ClientMarks::Last(life);
            around.before_mark = Some(life);
            let terms = Terms { around, ..Terms::new(prices) };
            let pieces = terms.pieces(&whole[..position], &[]);
            let cache = caches.entry(model.unwrap_or_default().to_owned()).or_default();
            let mut modelled = cache.charge(&prices, &pieces, time);
            modelled.share(unshown.shared);
            let reported = Charge::of(&usage);
            let bill = prices.billed(&usage);
            let output = bill - prices.dollars(prices.input_cost(&reported));
            verified.requests += 1;
            verified.reported.add(&reported, bill);
            let dollars = prices.dollars(prices.input_cost(&modelled)) + output;
            verified.modelled.add(&modelled, dollars);
            each(VerifiedRequest { reported, modelled, time });
        }
    }
    verified
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::{reported, unshown};
    use crate::message::{Message, Role, Usage};
    use crate::tokens::Tokenizer;
    use crate::transcript::Transcript;

    /// A session whose provider reports what the rules say: what stood before is read, the rest written.
    fn session(pause: i64) -> Transcript {
        let mut transcript = Transcript::new(Tokenizer::Characters { per_token: 1.0 });
        let (mut before, mut time) = (0, 0);
        for turn in 0..10 {
            let mut user = Message::text(Role::User, "x".repeat(996));
            time += if turn == 5 { pause } else { 1000 };
            user.time = Some(MillisSinceEpoch(time));
            transcript.push(user);
            let prompt = 5000 + transcript.tokens();
            let mut answer = Message::text(Role::Assistant, "y".repeat(96));
            answer.usage = Some(Usage {
                prompt_tokens: prompt,
                cached_tokens: before,
                written_tokens: prompt - before,
                output_tokens: 100,
                ..Usage::default()
            });
            answer.model = Some("claude-sonnet-4-5".into());
            before = prompt;
            transcript.push(answer);
        }
        transcript
    }

    #[test]
    fn a_provider_that_keeps_its_rules_is_met_exactly() {
        let transcript = session(1000);
        let pricing = Pricing::shipped();
        let unshown = unshown(&reported([(&transcript).into()]), 0.0);
        assert_eq!((unshown.before, unshown.unseen), (5000.0, 0.0));
        let found = verify([(&transcript).into()], &unshown, &pricing, None, |_| ());
        assert_eq!(found.requests, 10);
        assert_eq!(found.reported, found.modelled);
        assert!(found.reported.dollars > 0.0);
    }

    #[test]
    fn a_pause_that_outlives_the_cache_is_written_again() {
        let transcript = session(900_000);
        let pricing = Pricing::shipped();
        let unshown = unshown(&reported([(&transcript).into()]), 0.0);
        let mut cold = 0;
        let found = verify([(&transcript).into()], &unshown, &pricing, None, |request| {
            cold += u32::from(request.modelled.cold);
        });
        assert_eq!(cold, 1);
        assert!(found.modelled.written > found.reported.written);
        assert!(found.modelled.dollars > found.reported.dollars);
    }

    #[test]
    fn quartiles_are_those_of_sizes() {
        let errors = [Some(-0.4), None, Some(0.1), Some(0.2), Some(-0.3), Some(0.0)];
        let found = Quartiles::of(errors.into_iter()).expect("five");
        assert_eq!((found.sessions, found.first, found.median, found.third), (5, 0.1, 0.2, 0.3));
        assert_eq!(Quartiles::of([None].into_iter()), None);
    }

    #[test]
    fn errors_are_parts_of_what_was_reported() {
        let sums = |cached| Sums { cached, ..Sums::default() };
        let verified = Verification { requests: 1, reported: sums(10.0), modelled: sums(8.0) };
        let errors = verified.errors();
        assert_eq!((errors.cached, errors.written), (Some(-0.2), None));
    }
}
