//! Layers: the parts of a memory context, and how many tokens each may have.

use serde::{Deserialize, Serialize};

use crate::choose::{Share, allocate, flow};
use crate::memory::MemoryKind;

/// A part of a context, in the order in which they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    Identity,
    Censors,
    Frame,
    Working,
    Decisions,
    Facts,
    Procedures,
    Episodes,
    Calibration,
}

impl Layer {
    /// Every layer, in order.
    pub const ALL: [Self; 9] = [
        Self::Identity,
        Self::Censors,
        Self::Frame,
        Self::Working,
        Self::Decisions,
        Self::Facts,
        Self::Procedures,
        Self::Episodes,
        Self::Calibration,
    ];
    /// The layers that are filled by relevance and may have each other's room.
    pub const FLEXIBLE: [Self; 4] =
        [Self::Decisions, Self::Facts, Self::Procedures, Self::Episodes];

    /// Returns the layer that records of `kind` stand in.
    pub fn of(kind: MemoryKind) -> Self {
        match kind {
            MemoryKind::Decision => Self::Decisions,
            MemoryKind::Entity
            | MemoryKind::Task
            | MemoryKind::Metric
            | MemoryKind::Link
            | MemoryKind::Fact => Self::Facts,
            MemoryKind::Procedure => Self::Procedures,
            MemoryKind::Episode => Self::Episodes,
            MemoryKind::Censor => Self::Censors,
        }
    }

    /// Returns whether it is filled by relevance.
    pub fn is_flexible(self) -> bool {
        Self::FLEXIBLE.contains(&self)
    }
}

/// Priorities of the kinds of records in a frame, 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Priorities {
    /// The priority of decisions.
    pub decisions: f64,
    /// The priority of facts.
    pub facts: f64,
    /// The priority of procedures.
    pub procedures: f64,
    /// The priority of episodes.
    pub episodes: f64,
}

impl Default for Priorities {
    /// Source: the document's score takes 0.5 where a frame says nothing.
    fn default() -> Self {
        Self { decisions: 0.5, facts: 0.5, procedures: 0.5, episodes: 0.5 }
    }
}

impl Priorities {
    /// Returns the priority of `layer`; 1 for those that are always there.
    pub fn of_layer(&self, layer: Layer) -> f64 {
        match layer {
            Layer::Decisions => self.decisions,
            Layer::Facts => self.facts,
            Layer::Procedures => self.procedures,
            Layer::Episodes => self.episodes,
            _ => 1.0,
        }
    }

    /// Returns the priority of records of `kind`.
    pub fn of(&self, kind: MemoryKind) -> f64 {
        self.of_layer(Layer::of(kind))
    }
}

/// Tokens for each layer of a frame, and the ceiling over all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LayerBudget {
    /// The most tokens of a context.
    pub total: u64,
    /// Tokens for who the agent is.
    pub identity: u64,
    /// Tokens for censors.
    pub censors: u64,
    /// Tokens for the frame's description and questions.
    pub frame: u64,
    /// Tokens for the current task and open threads.
    pub working: u64,
    /// Tokens for decisions.
    pub decisions: u64,
    /// Tokens for facts.
    pub facts: u64,
    /// Tokens for procedures.
    pub procedures: u64,
    /// Tokens for episodes.
    pub episodes: u64,
    /// Tokens for the calibration note.
    pub calibration: u64,
}

impl Default for LayerBudget {
    fn default() -> Self {
        Self {
            total: 8000,
            identity: 500,
            censors: 300,
            frame: 500,
            working: 700,
            decisions: 2000,
            facts: 1500,
            procedures: 1500,
            episodes: 1000,
            calibration: 100,
        }
    }
}

impl LayerBudget {
    /// Returns the tokens of `layer`.
    pub fn of(&self, layer: Layer) -> u64 {
        match layer {
            Layer::Identity => self.identity,
            Layer::Censors => self.censors,
            Layer::Frame => self.frame,
            Layer::Working => self.working,
            Layer::Decisions => self.decisions,
            Layer::Facts => self.facts,
            Layer::Procedures => self.procedures,
            Layer::Episodes => self.episodes,
            Layer::Calibration => self.calibration,
        }
    }

    /// Returns the sum of all layers.
    pub fn sum(&self) -> u64 {
        Layer::ALL.iter().fold(0, |sum, &layer| sum.saturating_add(self.of(layer)))
    }

    fn set(&mut self, layer: Layer, tokens: u64) {
        *match layer {
            Layer::Identity => &mut self.identity,
            Layer::Censors => &mut self.censors,
            Layer::Frame => &mut self.frame,
            Layer::Working => &mut self.working,
            Layer::Decisions => &mut self.decisions,
            Layer::Facts => &mut self.facts,
            Layer::Procedures => &mut self.procedures,
            Layer::Episodes => &mut self.episodes,
            Layer::Calibration => &mut self.calibration,
        } = tokens;
    }

    /// Returns the same with each layer under its share, so that the sum does not exceed the total.
    ///
    /// The fixed layers come first, in order; the flexible ones share the rest in proportion. The
    /// document's own numbers sum to 8,100 with the calibration note, so its 8,000 needs this to be a ceiling.
    #[must_use]
    pub fn allocated(&self) -> Self {
        self.with(&allocate(self.total, &self.shares(&Priorities::default())))
    }

    /// Returns the same with at least `needed` tokens for each layer that is not filled by relevance.
    #[must_use]
    pub fn with_at_least(&self, needed: impl Fn(Layer) -> u64) -> Self {
        let mut raised = self.clone();
        for layer in Layer::ALL.into_iter().filter(|layer| !layer.is_flexible()) {
            // What a fixed layer does not need is free for all others, fixed ones too.
            raised.set(layer, needed(layer));
        }
        let freed = self.sum().saturating_sub(raised.sum());
        let flexible = Layer::FLEXIBLE.iter().fold(0, |sum, &layer| sum + self.of(layer));
        for layer in Layer::FLEXIBLE {
            let share =
                u128::from(freed) * u128::from(self.of(layer)) / u128::from(flexible.max(1));
            raised.set(layer, self.of(layer).saturating_add(u64::try_from(share).unwrap_or(0)));
        }
        raised
    }

    /// Returns the same for an input of `complexity`.
    ///
    /// A short question halves the flexible layers; a complex one gives more to decisions and procedures.
    #[must_use]
    pub fn adjusted(&self, complexity: Complexity, settings: &ComplexitySettings) -> Self {
        let mut adjusted = self.clone();
        let (layers, factor): (&[Layer], f64) = match complexity {
            Complexity::Plain => return adjusted,
            Complexity::Short => (&Layer::FLEXIBLE, settings.short_factor),
            Complexity::Complex => {
                (&[Layer::Decisions, Layer::Procedures], settings.complex_factor)
            }
        };
        for &layer in layers {
            // A factor that is no number gives 0 tokens, by the rules of the cast.
            adjusted.set(layer, (self.of(layer) as f64 * factor) as u64);
        }
        adjusted
    }

    /// Lets the room that layers do not use flow to flexible ones that want more, by priority.
    ///
    /// Shape: no layer gets more than it wants; the sum is at most that of the allocated layers, and at most `total`.
    #[must_use]
    pub fn flowed(&self, wanted: impl Fn(Layer) -> u64, priorities: &Priorities) -> Self {
        let shares = self.shares(priorities);
        self.with(&flow(&allocate(self.total, &shares), &Layer::ALL.map(wanted), &shares))
    }

    /// Returns the shares of all layers, in order.
    fn shares(&self, priorities: &Priorities) -> [Share; Layer::ALL.len()] {
        Layer::ALL.map(|layer| Share {
            tokens: self.of(layer),
            is_flexible: layer.is_flexible(),
            priority: priorities.of_layer(layer),
        })
    }

    /// Returns the same with other tokens for each layer, in order.
    fn with(&self, tokens: &[u64]) -> Self {
        let mut changed = self.clone();
        for (layer, tokens) in Layer::ALL.into_iter().zip(tokens) {
            changed.set(layer, *tokens);
        }
        changed
    }
}

/// How much context an input asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Complexity {
    Short,
    Plain,
    Complex,
}

/// The bounds of short and complex inputs, and the factors for them.
///
/// The document asks for the adjustment and names no numbers; all of these are chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ComplexitySettings {
    /// An input of at most so many words is short.
    pub short_words: usize,
    /// An input of at least so many words is complex.
    pub complex_words: usize,
    /// An input of at least so many questions is complex.
    pub complex_questions: usize,
    /// The factor of the budget for a short input.
    pub short_factor: f64,
    /// The factor of the budget for a complex input.
    pub complex_factor: f64,
}

impl Default for ComplexitySettings {
    fn default() -> Self {
        Self {
            short_words: 6,
            complex_words: 60,
            complex_questions: 3,
            short_factor: 0.5,
            complex_factor: 1.25,
        }
    }
}

/// Returns how much context `input` asks for.
pub fn complexity(input: &str, settings: &ComplexitySettings) -> Complexity {
    let words = input.split_whitespace().count();
    let questions = input.matches(['?', '？']).count();
    if words >= settings.complex_words || questions >= settings.complex_questions {
        Complexity::Complex
    } else if words <= settings.short_words {
        Complexity::Short
    } else {
        Complexity::Plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_fit_under_the_documents_ceiling() {
        let budget = LayerBudget::default().allocated();
        assert!(budget.sum() <= 8000, "{}", budget.sum());
        assert_eq!((budget.identity, budget.censors, budget.calibration), (500, 300, 100));
        assert_eq!((budget.decisions, budget.facts), (1966, 1475));
        let tiny = LayerBudget { total: 600, ..LayerBudget::default() }.allocated();
        assert_eq!((tiny.identity, tiny.censors, tiny.frame, tiny.decisions), (500, 100, 0, 0));
    }

    #[test]
    fn unused_room_flows_by_priority() {
        let priorities = Priorities { facts: 0.9, ..Priorities::default() };
        let budget = LayerBudget::default();
        let wanted = |layer| match layer {
            Layer::Decisions | Layer::Facts => 5000,
            _ => 0,
        };
        let given = budget.flowed(wanted, &priorities);
        assert_eq!((given.facts, given.decisions, given.episodes), (5000, 2999, 0));
        let given = budget.flowed(wanted, &Priorities::default());
        assert_eq!((given.decisions, given.facts), (5000, 2999));
        assert_eq!(budget.flowed(|_| 10, &priorities).sum(), 90);
    }

    #[test]
    fn complexity_changes_the_flexible_layers() {
        let settings = ComplexitySettings::default();
        let long = "word ".repeat(60);
        for (input, expected) in [
            ("what is Redis?", Complexity::Short),
            ("what did we say about the cache of the gateway?", Complexity::Plain),
            ("why? where? and how?", Complexity::Complex),
            (&long, Complexity::Complex),
        ] {
            assert_eq!(complexity(input, &settings), expected, "{input}");
        }
        let budget = LayerBudget::default();
        let short = budget.adjusted(Complexity::Short, &settings);
        assert_eq!((short.identity, short.decisions, short.episodes), (500, 1000, 500));
        let complex = budget.adjusted(Complexity::Complex, &settings);
        assert_eq!((complex.decisions, complex.procedures, complex.facts), (2500, 1875, 1500));
    }

    #[test]
    fn every_setting_of_complexity_changes_something() {
        let base = ComplexitySettings::default();
        let found = |input: &str, settings: &ComplexitySettings| {
            let complexity = complexity(input, settings);
            LayerBudget::default().adjusted(complexity, settings)
        };
        let (short, long) = ("what is Redis?", "word ".repeat(60));
        for (input, changed) in [
            (short, ComplexitySettings { short_words: 2, ..base.clone() }),
            (&long, ComplexitySettings { complex_words: 61, ..base.clone() }),
            (short, ComplexitySettings { complex_questions: 1, ..base.clone() }),
            (short, ComplexitySettings { short_factor: 0.1, ..base.clone() }),
            (&long, ComplexitySettings { complex_factor: 2.0, ..base.clone() }),
        ] {
            assert_ne!(found(input, &base), found(input, &changed), "{changed:?}");
        }
    }
}
