//! Wards: checks before, after and between the turns of a phase.

use serde_json::{Value, json};

use super::validator::Validator;
use crate::decode::{Decode, Decoder, Definitions};
use crate::node::{Node, NodeKind};

words! {
    /// The effect of a failed check.
    pub enum WardMode {
        /// The phase fails.
        Blocking "blocking",
        /// The failure is noted.
        Advisory "advisory",
        /// The phase is tried again.
        Retry "retry",
    }
}

record! {
    /// One check.
    pub struct Ward short {
        /// The validator.
        validator: Validator,
        /// The effect of a failed check.
        mode: WardMode = WardMode::Blocking,
        /// The most attempts, where the phase is tried again.
        max_attempts | "max_retries": u32 = 1,
    }
}

record! {
    /// The checks of a phase; a list alone is that of `post`.
    pub struct Wards short {
        /// Checks before the first turn.
        pre: Vec<Ward> = Vec::new(),
        /// Checks after the last turn.
        post: Vec<Ward> = Vec::new(),
        /// Checks after each turn.
        turn: Vec<Ward> = Vec::new(),
    }
}

#[expect(
    clippy::derivable_impls,
    reason = "`record!` declares the struct, and derives the same for all"
)]
impl Default for Wards {
    fn default() -> Self {
        Self { pre: Vec::new(), post: Vec::new(), turn: Vec::new() }
    }
}

impl Wards {
    /// Returns every check.
    pub fn all(&self) -> impl Iterator<Item = &Ward> {
        self.pre.iter().chain(&self.post).chain(&self.turn)
    }
}

impl Decode for Ward {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        if matches!(node.kind, NodeKind::Map(_)) && node.get("validator").is_some() {
            return Self::decode_map(node, decoder);
        }
        // A validator alone.
        let validator = Validator::decode(node, decoder)?;
        Some(Self { validator, mode: WardMode::Blocking, max_attempts: 1 })
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [Self::schema_map(definitions), Validator::schema(definitions)]})
    }
}

impl Decode for Wards {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        match &node.kind {
            NodeKind::List(_) => {
                Some(Self { post: Vec::decode(node, decoder)?, ..Self::default() })
            }
            _ => Self::decode_map(node, decoder),
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let list = json!({"type": "array", "items": Ward::schema(definitions)});
        json!({"anyOf": [Self::schema_map(definitions), list]})
    }
}
