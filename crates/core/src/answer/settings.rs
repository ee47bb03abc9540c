//! Settings of cached answers.

use serde::{Deserialize, Serialize};

/// When answers are kept and served, and how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnswerSettings {
    /// Whether answers are kept and served at all.
    pub enabled: bool,
    /// Whether a question in other words may have a cached answer; off, since no labelled set shows how seldom that is wrong.
    pub similar: bool,
    /// The least cosine of two questions in their normal form.
    ///
    /// Source: `context-strategy.md` 7.2.
    pub similarity_threshold: f64,
    /// Seconds after which an answer is not served any more.
    ///
    /// Source: `context-strategy.md` 7.2.
    pub max_age_seconds: u64,
    /// The most answers of a tenant; the oldest go first.
    pub most_entries: u64,
    /// The most bytes that questions and answers of a tenant have together.
    pub most_bytes: u64,
    /// The highest temperature of a request that is served from the cache; above it a client wants a new answer each time.
    pub most_temperature: f32,
    /// Whether questions are refused whose answer changes with time: `today`, `latest`, `now`.
    pub refuse_time_bound: bool,
    /// The most words of a question that is compared; a longer one, and one that holds code, has its own answer only.
    pub most_words: usize,
    /// The most similar answers that are looked at.
    pub candidates: usize,
    /// A part of the key of every answer: raising it leaves all kept answers behind.
    pub policy_version: u32,
    pub agree: AgreementRules,
    pub alike: EquivalenceRules,
}

impl Default for AnswerSettings {
    /// Quotas and candidates are chosen: a few megabytes, and more than the near ones there are.
    fn default() -> Self {
        Self {
            enabled: false,
            similar: false,
            similarity_threshold: 0.97,
            max_age_seconds: 3600,
            most_entries: 10_000,
            most_bytes: 64 << 20,
            most_temperature: 0.0,
            refuse_time_bound: true,
            // Chosen: a question is one or two sentences; in more, what matters may be in a mark.
            most_words: 40,
            candidates: 8,
            policy_version: 1,
            agree: AgreementRules::default(),
            alike: EquivalenceRules::default(),
        }
    }
}

/// Points in which two questions must agree; each is a reason to refuse.
///
/// `words` holds all others: the whole reading must be the same. Without it the others say what may not differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a rule that is on or off by itself")]
pub struct AgreementRules {
    /// Both are English, by its function words: the rules know no other language.
    pub language: bool,
    /// Figures, dates, versions, and symbols such as `+`, `%` and `$`.
    pub numbers: bool,
    /// Words with a capital inside the sentence, and words that mean something else with one.
    pub names: bool,
    /// `not`, `never`, `without`.
    pub negation: bool,
    /// The question word: `why`, `how`, `who`, or yes and no.
    pub question: bool,
    /// Opposites (`before` and `after`), and what is compared (`more`, `best`).
    pub comparison: bool,
    /// `all`, `only`, `some`, `each`.
    pub quantity: bool,
    /// Persons: `I`, `you`, `my`, `their`.
    pub person: bool,
    /// `did`, `will`, `should`.
    pub tense: bool,
    /// Words of both stand in the same order, and so do words of direction (`from`, `to`).
    pub order: bool,
    /// Nothing stands in one and not in the other.
    pub words: bool,
}

impl Default for AgreementRules {
    fn default() -> Self {
        Self {
            language: true,
            numbers: true,
            names: true,
            negation: true,
            question: true,
            comparison: true,
            quantity: true,
            person: true,
            tense: true,
            order: true,
            words: true,
        }
    }
}

/// Differences that do not count; each is measured in `docs/answers.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a rule that is on or off by itself")]
pub struct EquivalenceRules {
    /// `the`, `a` and `an` before a word.
    pub articles: bool,
    /// `is` and `are`, `was` and `were`, `do` and `does`, and a noun's plural.
    pub plurals: bool,
    /// `colour` and `color`, `two` and `2`.
    pub spelling: bool,
    /// `really`, `exactly`, `please`, and `some of` in `what are some of`.
    pub fillers: bool,
    /// `which` and `what`.
    pub which: bool,
    /// `how do I`, `how can I`, `how to`, `how can we`, and `what is the best way to`.
    pub how_to: bool,
    /// `rules of` and `rules for`, behind `what is`.
    pub prepositions: bool,
    /// `my` and no word, where the one who asks `how` has it.
    pub possessives: bool,
}

impl Default for EquivalenceRules {
    fn default() -> Self {
        Self {
            articles: true,
            plurals: true,
            spelling: true,
            fillers: true,
            which: true,
            how_to: true,
            prepositions: true,
            possessives: true,
        }
    }
}
