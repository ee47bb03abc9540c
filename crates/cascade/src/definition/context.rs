//! What a phase sees of the phases before it.

use serde_json::{Value, json};

use super::auto_context::{Anchors, Selection};
use crate::decode::{Decode, Decoder, Definitions};
use crate::node::{Node, NodeKind};
use crate::problem::Kind;
use crate::template::Template;

words! {
    /// Whether the sources are named or selected.
    pub enum ContextMode {
        Explicit "explicit" | "selective" | "manual",
        Auto "auto",
    }
}

words! {
    /// The part of a phase that is taken.
    pub enum Include {
        Images "images",
        Output "output",
        Messages "messages",
        State "state",
    }
}

words! {
    /// The choice of images.
    pub enum ImagesFilter {
        All "all",
        Last "last",
        LastN "last_n",
    }
}

words! {
    /// The choice of messages.
    pub enum MessagesFilter {
        All "all",
        AssistantOnly "assistant_only",
        LastTurn "last_turn",
    }
}

words! {
    /// The role of injected messages.
    pub enum AsRole {
        User "user",
        System "system",
    }
}

words! {
    /// The part of a phase that later ones see.
    pub enum ContextRetention {
        Full "full",
        OutputOnly "output_only",
    }
}

/// The phases that a source means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourcePhase {
    Named(String),
    /// The phase that ended last.
    Previous,
    /// The phase that ran first.
    First,
    /// Every phase that ran, in their order.
    All,
}

record! {
    /// One source of a context; a name alone takes the images and the output of the phase.
    pub struct Source short {
        /// The phase, or `previous`, `first` or `all`.
        phase | "cell" | "name": SourcePhase,
        /// The parts that are taken.
        include: Vec<Include> = vec![Include::Images, Include::Output],
        /// The choice of images.
        images_filter: ImagesFilter = ImagesFilter::All,
        /// The number of images, with `last_n`.
        images_count: u32 = 1,
        /// The choice of messages.
        messages_filter | "filter": MessagesFilter = MessagesFilter::All,
        /// The role of the messages.
        as_role: AsRole = AsRole::User,
        /// The condition under which the source is seen.
        condition | "if": Option<Template> = None,
    }
}

record! {
    /// The sources of a phase's context, in the order in which they are seen; a list alone is `from`.
    pub struct Context short {
        /// Whether the sources are named or selected.
        mode: ContextMode = ContextMode::Explicit,
        /// The sources.
        from: Vec<Source> = Vec::new(),
        /// The parts that are taken of sources that are only named.
        include: Option<Includes> = None,
        /// Phases that `all` leaves out.
        exclude: Vec<String> = Vec::new(),
        /// Whether the cascade's input is seen.
        include_input: bool = true,
        /// The anchors in mode `auto`, over the cascade's setting.
        anchors: Option<Anchors> = None,
        /// The selection in mode `auto`, over the cascade's setting.
        selection: Option<Selection> = None,
    }
}

record! {
    /// The turns after which kinds of content are no longer seen; nothing means never.
    pub struct ContextTtl {
        /// Turns after which results of tools are no longer seen.
        tool_results | "tool_result" | "tools": Option<u32> = None,
        /// Turns after which images are no longer seen.
        images | "image": Option<u32> = None,
        /// Turns after which text of the model is no longer seen.
        assistant: Option<u32> = None,
        /// Turns after which text of the user is no longer seen.
        user: Option<u32> = None,
        /// Turns after which system text is no longer seen.
        system: Option<u32> = None,
    }
}

impl Decode for SourcePhase {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        Some(match String::decode(node, decoder)?.as_str() {
            "previous" | "prev" => Self::Previous,
            "first" => Self::First,
            "all" | "*" => Self::All,
            name => Self::Named(name.to_owned()),
        })
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": ["string", "number", "boolean"]})
    }
}

impl Source {
    /// Returns the source that `phase` alone means.
    pub fn of(phase: SourcePhase) -> Self {
        Self {
            phase,
            include: vec![Include::Images, Include::Output],
            images_filter: ImagesFilter::All,
            images_count: 1,
            messages_filter: MessagesFilter::All,
            as_role: AsRole::User,
            condition: None,
        }
    }
}

/// The parts of sources that are only named; an unknown part is skipped with a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Includes(pub Vec<Include>);

impl Decode for Includes {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        let words: Vec<String> = Vec::decode(node, decoder)?;
        let known = [Include::Images, Include::Output, Include::Messages, Include::State];
        let mut taken = Vec::new();
        for word in words {
            if let Some(include) = known.into_iter().find(|include| include.as_str() == word) {
                taken.push(include);
            } else {
                let said = format!("`{word}` is nothing that can be taken of a phase");
                decoder.warn(node, Kind::Shape, said);
            }
        }
        Some(Self(taken))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        Vec::<String>::schema(definitions)
    }
}

impl Decode for Source {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        match &node.kind {
            NodeKind::Map(_) => Self::decode_map(node, decoder),
            _ => SourcePhase::decode(node, decoder).map(Self::of),
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [SourcePhase::schema(definitions), Self::schema_map(definitions)]})
    }
}

impl Decode for Context {
    fn decode(node: &Node, decoder: &mut Decoder) -> Option<Self> {
        if matches!(node.kind, NodeKind::Map(_)) {
            let mut context = Self::decode_map(node, decoder)?;
            if let Some(include) = &context.include {
                let plain = |source: &Source| *source == Source::of(source.phase.clone());
                for source in context.from.iter_mut().filter(|source| plain(source)) {
                    source.include.clone_from(&include.0);
                }
            }
            return Some(context);
        }
        let from = Vec::decode(node, decoder)?;
        Some(Self {
            mode: ContextMode::Explicit,
            from,
            include: None,
            exclude: Vec::new(),
            include_input: true,
            anchors: None,
            selection: None,
        })
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [Self::schema_map(definitions), Vec::<Source>::schema(definitions)]})
    }
}
