//! Other instructions for attempts, so that they differ.

use super::error::RunError;
use super::event::Purpose;
use super::visit::Visit;
use crate::definition::{MutationMode, Soundings};

/// Texts before the instructions.
const AUGMENTS: [&str; 4] = [
    "Be as concrete as you can: names, numbers and examples before general words.",
    "Before you answer, name the hardest part of the task and make sure that your answer meets it.",
    "Write for a reader who knows the field and has little time.",
    "Question the first answer that comes to mind, and give a better one.",
];

/// Ways of thinking behind the instructions.
const APPROACHES: [&str; 4] = [
    "Work backwards from what a perfect answer would contain.",
    "Think of the problem from the point of view of the person who uses the result.",
    "Compare two different approaches first, then follow the stronger one.",
    "Begin with what can go wrong, then build an answer that avoids it.",
];

/// Ways in which a model rewrites instructions.
const REWRITES: [&str; 4] = [
    "in a more specific and demanding way",
    "as a list of clear steps",
    "with the criteria of a good answer made explicit",
    "in the shortest form that loses nothing",
];

impl Visit<'_> {
    /// Returns the instructions of each attempt; `None` where they are those of the phase.
    pub(crate) async fn mutated(
        &mut self,
        soundings: &Soundings,
        task: &str,
        factor: usize,
    ) -> Result<Vec<Option<String>>, RunError> {
        let built_in: &[&str] = match soundings.mutation_mode {
            MutationMode::Rewrite => &REWRITES,
            MutationMode::Augment => &AUGMENTS,
            MutationMode::Approach => &APPROACHES,
        };
        let mut texts: Vec<String> = Vec::new();
        for template in &soundings.mutations {
            texts.push(self.render(template, [])?);
        }
        if texts.is_empty() {
            texts.extend(built_in.iter().map(|text| (*text).to_owned()));
        }
        // The first attempt keeps the instructions as they are: other ones may be worse.
        let mut all = vec![None];
        for index in 1..factor {
            let text = &texts[(index - 1) % texts.len()];
            let changed = match soundings.mutation_mode {
                MutationMode::Augment => format!("{text}\n\n{task}"),
                MutationMode::Approach => format!("{task}\n\n{text}"),
                MutationMode::Rewrite => self.rewritten(task, text).await?,
            };
            all.push(Some(changed));
        }
        Ok(all)
    }

    async fn rewritten(&mut self, task: &str, way: &str) -> Result<String, RunError> {
        let question = format!(
            "Rewrite the instructions below so that they ask for the same result: {way}. Keep every fact, name, limit and output format. Answer with the new instructions only.\n\nINSTRUCTIONS:\n{task}"
        );
        let model = self.model(None)?;
        let text = self.ask_text(Purpose::Mutation, &model, question).await?;
        Ok(if text.trim().is_empty() { task.to_owned() } else { text })
    }
}
