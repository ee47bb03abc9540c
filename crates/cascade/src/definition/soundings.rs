//! Attempts of which one is picked.

use serde_json::{Value, json};

use super::count::Count;
use super::validator::Validator;
use crate::decode::{Decode, Decoder, Definitions};
use crate::node::{Node, NodeKind};
use crate::template::Template;

words! {
    /// What becomes of the attempts.
    pub enum SoundingMode {
        /// The best is picked.
        Evaluate "evaluate",
        /// All are brought together.
        Aggregate "aggregate",
    }
}

words! {
    /// How models are dealt to the attempts.
    pub enum ModelStrategy {
        RoundRobin "round_robin" | "round-robin",
        Random "random",
        Weighted "weighted",
    }
}

record! {
    /// How often a phase or a cascade is tried at once, and how one attempt is picked.
    pub struct Soundings {
        /// Attempts.
        factor: Count = Count::Fixed(1),
        /// The most attempts at the same time.
        max_parallel: u32 = 3,
        /// What the evaluator is asked.
        evaluator_instructions: Option<Template> = None,
        /// The evaluator's model, instead of the phase's.
        evaluator_model: Option<Template> = None,
        /// What must be valid before an attempt is evaluated.
        validator: Option<Validator> = None,
        /// What becomes of the attempts.
        mode: SoundingMode = SoundingMode::Evaluate,
        /// How the attempts are brought together; one after another where nothing is said.
        aggregator_instructions: Option<Template> = None,
        /// The model that does so, instead of the phase's.
        aggregator_model: Option<Template> = None,
        /// The models of the attempts, instead of the phase's.
        models: SoundingModels = SoundingModels::default(),
        /// How the models are dealt.
        model_strategy: ModelStrategy = ModelStrategy::RoundRobin,
    }
}

/// One model of several.
#[derive(Debug, Clone, PartialEq)]
pub struct SoundingModel {
    pub model: Template,
    /// Its attempts, where models are given with a factor each.
    pub factor: Option<u32>,
}

record! {
    /// What a model of several is given.
    pub(crate) struct SoundingModelRules {
        /// Its attempts.
        factor: u32 = 1,
    }
}

/// The models of attempts: a list of names, or names with a factor each.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SoundingModels(pub Vec<SoundingModel>);

impl Decode for SoundingModels {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let NodeKind::Map(entries) = &node.kind else {
            let models: Vec<Template> = Vec::decode(node, decoder)?;
            let models = models.into_iter().map(|model| SoundingModel { model, factor: None });
            return Some(Self(models.collect()));
        };
        let models = entries.iter().map(|(key, value)| {
            let rules = match value.kind {
                NodeKind::Null => SoundingModelRules { factor: 1 },
                NodeKind::Integer(..) => {
                    SoundingModelRules { factor: u32::decode(value, decoder)? }
                }
                _ => decoder
                    .under(&key.text, |decoder| SoundingModelRules::decode(value, decoder))?,
            };
            let model = Template::new(&key.text, key.place);
            Some(SoundingModel { model, factor: Some(rules.factor) })
        });
        models.collect::<Option<Vec<_>>>().map(Self)
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let rules = SoundingModelRules::schema(definitions);
        json!({"anyOf": [Vec::<String>::schema(definitions), {"type": "object", "additionalProperties": {"anyOf": [rules, {"type": ["integer", "null"]}]}}]})
    }
}
