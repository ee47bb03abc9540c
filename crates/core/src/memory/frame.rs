//! Frames: approaches to a question, each with the memories that it needs.
//!
//! A frame is triggers, description, questions, priorities and a budget. The intents of `context-strategy.md` are frames
//! like the others, and operators define their own in TOML.

use std::collections::BTreeMap;

use regex::{RegexSet, RegexSetBuilder};
use serde::{Deserialize, Serialize};

use crate::memory::layers::{LayerBudget, Priorities};

/// The frame if no other one matches.
pub const CONVERSATION: &str = "conversation";
/// The frame that is loaded before a decision or an action.
pub const DECISION: &str = "decision";

/// An approach to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frame {
    /// The name by which the frame is chosen; it replaces a built-in frame of the same name.
    pub name: String,
    /// The description of the frame, as the model reads it.
    #[serde(default)]
    pub description: String,
    /// Questions that the model should consider.
    #[serde(default)]
    pub questions: Vec<String>,
    /// Regular expressions that speak for the frame; case does not matter.
    #[serde(default)]
    pub triggers: Vec<String>,
    /// Typical inputs; an input that is similar to them speaks for the frame.
    #[serde(default)]
    pub examples: Vec<String>,
    #[serde(default)]
    pub priorities: Priorities,
    #[serde(default)]
    pub budget: LayerBudget,
}

/// An error in a definition of frames.
#[derive(Debug, thiserror::Error)]
pub enum FramesError {
    #[error("frame `{frame}`: a trigger is no regular expression")]
    Trigger {
        frame: String,
        #[source]
        source: Box<regex::Error>,
    },
    #[error("two frames are called `{0}`")]
    Twice(String),
    #[error("a frame has no name")]
    NoName,
}

/// Settings of the choice of a frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FrameSelection {
    /// The weight of one trigger, beside a similarity of 0 to 1.
    pub trigger: f64,
    /// A similarity below this counts nothing.
    pub least_similarity: f64,
}

impl Default for FrameSelection {
    fn default() -> Self {
        // Chosen: a trigger counts as much as an identical example. Below the 0.5 of the document an input is unrelated to
        // a context.
        Self { trigger: 1.0, least_similarity: 0.5 }
    }
}

/// A frame with the reasons of its selection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelectedFrame<'a> {
    pub frame: &'a Frame,
    /// How many of its triggers matched.
    pub triggers: usize,
    /// The similarity of the input to its examples.
    pub similarity: f64,
}

/// The frames to choose from, their triggers compiled.
#[derive(Debug, Clone)]
pub struct Frames {
    frames: Vec<(Frame, RegexSet)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FrameFile {
    #[serde(default)]
    frame: Vec<Frame>,
}

impl Frames {
    /// Returns the built-in frames.
    pub fn built_in() -> Self {
        Self::from_frames(written(BUILT_IN).expect("a constant definition that a test reads"))
            .expect("constant triggers that a test compiles")
    }

    /// Adds to `frames` the built-in ones that they do not replace.
    pub fn with_own(mut frames: Vec<Frame>) -> Result<Self, FramesError> {
        for (built_in, _) in Self::built_in().frames {
            if frames.iter().all(|frame| frame.name != built_in.name) {
                frames.push(built_in);
            }
        }
        Self::from_frames(frames)
    }

    /// Compiles frames to choose from; of equal scores the earlier frame wins.
    pub fn from_frames(frames: Vec<Frame>) -> Result<Self, FramesError> {
        let mut compiled: Vec<(Frame, RegexSet)> = Vec::new();
        for frame in frames {
            if frame.name.trim().is_empty() {
                return Err(FramesError::NoName);
            }
            if compiled.iter().any(|(other, _)| other.name == frame.name) {
                return Err(FramesError::Twice(frame.name));
            }
            let triggers = RegexSetBuilder::new(&frame.triggers)
                .case_insensitive(true)
                .build()
                .map_err(|source| FramesError::Trigger {
                    frame: frame.name.clone(),
                    source: Box::new(source),
                })?;
            compiled.push((frame, triggers));
        }
        Ok(Self { frames: compiled })
    }

    /// Returns the frame called `name`.
    pub fn get(&self, name: &str) -> Option<&Frame> {
        self.iter().find(|frame| frame.name == name)
    }

    /// Returns the frames in order.
    pub fn iter(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().map(|(frame, _)| frame)
    }

    /// Selects the frame with the best score by its triggers in `input` and its similarity, from `similarities` by name.
    ///
    /// Shape: [`CONVERSATION`] if no frame has a score; `None` only if there are no frames at all.
    pub fn select(
        &self,
        input: &str,
        similarities: &BTreeMap<String, f64>,
        selection: &FrameSelection,
    ) -> Option<SelectedFrame<'_>> {
        let mut best: Option<(f64, SelectedFrame<'_>)> = None;
        for (frame, triggers) in &self.frames {
            let triggers = triggers.matches(input).iter().count();
            let similarity = similarities
                .get(&frame.name)
                .copied()
                .filter(|&similarity| similarity >= selection.least_similarity)
                .unwrap_or_default();
            let score = selection.trigger.mul_add(triggers as f64, similarity);
            if score > best.as_ref().map_or(0.0, |(best, _)| *best) {
                best = Some((score, SelectedFrame { frame, triggers, similarity }));
            }
        }
        let plain = || {
            let frame = self.get(CONVERSATION).or_else(|| self.iter().next())?;
            Some(SelectedFrame { frame, triggers: 0, similarity: 0.0 })
        };
        best.map(|(_, selected)| selected).or_else(plain)
    }
}

fn written(text: &str) -> Result<Vec<Frame>, toml::de::Error> {
    Ok(toml::from_str::<FrameFile>(text)?.frame)
}

/// The built-in frames.
const BUILT_IN: &str = include_str!("frames.toml");

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(frames: &Frames, input: &str) -> String {
        let selected = frames.select(input, &BTreeMap::new(), &FrameSelection::default());
        selected.expect("there are frames").frame.name.clone()
    }

    #[test]
    fn the_built_in_frames_are_those_of_the_documents() {
        let frames = Frames::built_in();
        let names: Vec<&str> = frames.iter().map(|frame| &*frame.name).collect();
        assert_eq!(
            names,
            [
                "decision",
                "debugging",
                "planning",
                "deep_analysis",
                "quick_capture",
                "context_lookup",
                "creative",
                "task",
                "question",
                "conversation",
            ]
        );
        let decision = frames.get(DECISION).expect("built in");
        assert_eq!(
            decision.priorities,
            Priorities { decisions: 1.0, procedures: 0.8, facts: 0.6, episodes: 0.4 }
        );
        assert!(frames.iter().all(|frame| !frame.description.is_empty()));
        assert!(frames.iter().all(|frame| frame.budget.total <= 8000));
    }

    #[test]
    fn triggers_choose_a_frame() {
        let frames = Frames::built_in();
        for (input, expected) in [
            ("Should we use Redis for caching in Newton?", "decision"),
            ("SQLite or Postgres, which is better for us?", "decision"),
            ("The gateway crashes with a stack trace, why?", "debugging"),
            ("tests fail: thread panicked at src/main.rs", "debugging"),
            ("Remember that Tim prefers Celsius", "quick_capture"),
            ("note: the demo is on Friday", "quick_capture"),
            ("What did we discuss about caching?", "context_lookup"),
            ("Make a plan for the migration, step by step", "planning"),
            ("Analyse the trade-offs of both designs in depth", "deep_analysis"),
            ("Brainstorm names for the new crate", "creative"),
            ("Implement the context strategy", "task"),
            ("Please add a test for the parser", "task"),
            ("How does the tokenizer count emoji?", "question"),
            ("Hello there", "conversation"),
            ("", "conversation"),
        ] {
            assert_eq!(selected(&frames, input), expected, "{input}");
        }
    }

    #[test]
    fn operators_define_their_own_and_replace_built_in_ones() {
        let read = |text: &str| written(text).map(Frames::with_own);
        let frames = read(
            r#"
            [[frame]]
            name = "billing"
            triggers = ['\binvoice\b']
            budget = { total = 3000 }

            [[frame]]
            name = "question"
            description = "Ask the handbook first."
            "#,
        )
        .expect("TOML")
        .expect("valid");
        assert_eq!(selected(&frames, "where is the INVOICE?"), "billing");
        let billing = frames.get("billing").expect("own");
        assert_eq!((billing.budget.total, billing.budget.identity), (3000, 500));
        assert!(frames.get("question").expect("replaced").triggers.is_empty());
        for bad in [
            "[[frame]]\nname = \"a\"\ntriggers = ['(']",
            "[[frame]]\nname = \"a\"\ncolour = 1",
            "[[frame]]\nname = \" \"",
            "[[frame]]\nname = \"a\"\n[[frame]]\nname = \"a\"",
            "[[frame]]\nname = \"a\"\nbudget = { tokens = 3 }",
        ] {
            assert!(!matches!(read(bad), Ok(Ok(_))), "{bad}");
        }
    }

    #[test]
    fn similarity_from_outside_counts_and_so_does_every_setting() {
        let frames = Frames::built_in();
        let name = |similarities: &[(&str, f64)], input, selection: &FrameSelection| {
            let similarities =
                similarities.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
            let selected =
                frames.select(input, &similarities, selection).expect("there are frames");
            selected.frame.name.clone()
        };
        let base = FrameSelection::default();
        assert_eq!(name(&[("creative", 0.8)], "the moon", &base), "creative");
        assert_eq!(name(&[("creative", 0.4)], "the moon", &base), "conversation");
        assert_eq!(name(&[("creative", f64::NAN)], "the moon", &base), "conversation");
        let low = FrameSelection { least_similarity: 0.3, ..base.clone() };
        assert_eq!(name(&[("creative", 0.4)], "the moon", &low), "creative");
        let input = "How does it work?";
        assert_eq!(name(&[("creative", 0.8)], input, &base), "question");
        let weak = FrameSelection { trigger: 0.5, ..base };
        assert_eq!(name(&[("creative", 0.8)], input, &weak), "creative");
    }

    #[test]
    fn without_frames_there_is_none() {
        let none = Frames::from_frames(Vec::new()).expect("nothing is wrong");
        assert!(none.select("x", &BTreeMap::new(), &FrameSelection::default()).is_none());
    }
}
