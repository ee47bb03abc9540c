//! Attempts of which one is picked.

use serde_json::{Value, json};

use super::count::Count;
use super::evaluation::{CostAware, Evaluator, Pareto};
use super::reforge::{MutationMode, Reforge};
use super::validator::Validator;
use crate::decode::{Decode, Decoder, Definitions};
use crate::node::{Node, NodeKind};
use crate::template::Template;

words! {
    /// The use of the attempts.
    pub enum SoundingMode {
        /// The best is picked.
        Evaluate "evaluate",
        /// All are brought together.
        Aggregate "aggregate",
    }
}

words! {
    /// The way in which attempts get their models.
    pub enum ModelStrategy {
        RoundRobin "round_robin" | "round-robin",
        Random "random",
        Weighted "weighted",
    }
}

record! {
    /// Several attempts at a phase or a cascade, and the choice among them.
    pub struct Soundings {
        /// Attempts.
        factor: Count = Count::Fixed(1),
        /// The most attempts at the same time.
        max_parallel: u32 = 3,
        /// The instructions of the evaluator.
        evaluator_instructions: Option<Template> = None,
        /// The evaluator's model, instead of the phase's.
        evaluator_model: Option<Template> = None,
        /// The check that attempts pass before they are evaluated.
        validator: Option<Validator> = None,
        /// The use of the attempts.
        mode: SoundingMode = SoundingMode::Evaluate,
        /// The instructions for combining the attempts; without them they stand one after another.
        aggregator_instructions: Option<Template> = None,
        /// The model that combines them, instead of the phase's.
        aggregator_model: Option<Template> = None,
        /// The models of the attempts, instead of the phase's.
        models: SoundingModels = SoundingModels::default(),
        /// The way in which attempts get their models.
        model_strategy: ModelStrategy = ModelStrategy::RoundRobin,
        /// Further rounds that improve the best attempt.
        reforge: Option<Reforge> = None,
        /// Whether attempts get different instructions, also where `mutations` are given; the first one keeps those of the phase.
        mutate: Option<bool> = None,
        /// The way in which attempts get different instructions.
        mutation_mode: MutationMode = MutationMode::Rewrite,
        /// The texts by which instructions change, instead of those that come with Plimsoll.
        mutations: Vec<Template> = Vec::new(),
        /// The evaluator.
        evaluator: Evaluator = Evaluator::Llm,
        /// The number of attempts that a model leaves for a person.
        llm_prefilter: Option<u32> = None,
        /// The instructions of that model.
        llm_prefilter_instructions: Option<Template> = None,
        /// A choice that weighs scores against costs.
        cost_aware_evaluation: Option<CostAware> = None,
        /// A choice among the attempts that no other one beats in both score and cost.
        pareto_frontier: Option<Pareto> = None,
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
    /// The rules for one of several models.
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
