//! A cascade as a picture: phases, where they lead, and what they see.

mod svg;

use std::fmt::Write as _;

use crate::definition::{Cascade, ContextMode, OnError, Phase, Source, SourcePhase};

pub use svg::svg;

/// Phases and what is between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    pub title: String,
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<Edge>,
}

/// A phase, or a cascade inside one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphNode {
    pub name: String,
    /// Its work and its context, a line each.
    pub lines: Vec<String>,
    pub kind: NodeKind,
}

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// A model's turns.
    Model,
    /// The call of one tool.
    Tool,
    /// A cascade inside a phase.
    SubCascade,
}

/// From one node to another, by their places in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    pub kind: EdgeKind,
    pub label: Option<String>,
}

/// The kind of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeKind {
    /// The next phase in the file.
    Next,
    /// A handoff, a route of a tool's result, or where an error leads.
    Handoff,
    /// The second phase sees the first.
    Context,
    /// The second phase sees the first before the flowing context.
    Inject,
    /// The phase runs the cascade.
    Runs,
}

impl Graph {
    /// Reads the picture of a cascade off it.
    pub fn of(cascade: &Cascade) -> Self {
        let mut graph =
            Self { title: cascade.cascade_id.to_string(), nodes: Vec::new(), edges: Vec::new() };
        for phase in &cascade.phases {
            graph.nodes.push(node(phase));
        }
        for (index, phase) in cascade.phases.iter().enumerate() {
            graph.flow(cascade, index, phase);
            let from = phase.context.iter().flat_map(|context| &context.from);
            graph.sources(cascade, index, from, EdgeKind::Context);
            graph.sources(cascade, index, &phase.inject_from, EdgeKind::Inject);
            for inner in &phase.sub_cascades {
                let flows = match (inner.context_in, inner.context_out) {
                    (true, true) => "state in and out",
                    (true, false) => "state in",
                    (false, true) => "state out",
                    (false, false) => "no state",
                };
                let name =
                    inner.reference.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
                let lines = vec![flows.to_owned()];
                graph.nodes.push(GraphNode { name, lines, kind: NodeKind::SubCascade });
                let to = graph.nodes.len() - 1;
                graph.edges.push(Edge { from: index, to, kind: EdgeKind::Runs, label: None });
            }
        }
        graph
    }

    fn flow(&mut self, cascade: &Cascade, from: usize, phase: &Phase) {
        let place = |name: &str| match name {
            "self" => Some(from),
            "next" => Some(from + 1).filter(|next| *next < cascade.phases.len()),
            _ => cascade.phases.iter().position(|phase| phase.name.as_str() == name),
        };
        let mut said: Vec<(usize, Option<String>)> = Vec::new();
        for (label, target) in &phase.routing {
            if let Some(to) = place(&target.name) {
                said.push((to, Some(label.clone())));
            }
        }
        if let Some(OnError::Phase(target)) = &phase.on_error
            && let Some(to) = place(&target.name)
        {
            said.push((to, Some("error".to_owned())));
        }
        for handoff in &phase.handoffs {
            if let Some(to) = place(&handoff.target.name)
                && !said.iter().any(|(known, _)| *known == to)
            {
                said.push((to, None));
            }
        }
        for (to, label) in said {
            self.edges.push(Edge { from, to, kind: EdgeKind::Handoff, label });
        }
        if phase.handoffs.is_empty() && phase.routing.is_empty() && from + 1 < cascade.phases.len()
        {
            self.edges.push(Edge { from, to: from + 1, kind: EdgeKind::Next, label: None });
        }
    }

    fn sources<'a>(
        &mut self,
        cascade: &Cascade,
        to: usize,
        sources: impl IntoIterator<Item = &'a Source>,
        kind: EdgeKind,
    ) {
        for source in sources {
            let SourcePhase::Named(name) = &source.phase else { continue };
            let Some(from) = cascade.phases.iter().position(|phase| phase.name.as_str() == name)
            else {
                continue;
            };
            let words: Vec<&str> = source.include.iter().map(|include| include.as_str()).collect();
            let label = (words != ["images", "output"]).then(|| words.join(", "));
            let known = self
                .edges
                .iter_mut()
                .find(|edge| edge.from == from && edge.to == to && edge.kind == kind);
            match known {
                Some(edge) => {
                    // Together, what is taken by default is said too.
                    let default = || "images, output".to_owned();
                    let before = edge.label.take().unwrap_or_else(default);
                    edge.label = Some(format!("{before}, {}", label.unwrap_or_else(default)));
                }
                None => self.edges.push(Edge { from, to, kind, label }),
            }
        }
    }

    /// Writes the picture as a Mermaid flowchart.
    pub fn mermaid(&self) -> String {
        let mut text = format!("---\ntitle: {}\n---\nflowchart TD\n", quoted(&self.title));
        for (index, node) in self.nodes.iter().enumerate() {
            let mut label = escaped(&node.name);
            for line in &node.lines {
                label.push_str("<br/>");
                label.push_str(&escaped(line));
            }
            let (open, close) = match node.kind {
                NodeKind::Model => ("[", "]"),
                NodeKind::Tool => ("[/", "/]"),
                NodeKind::SubCascade => ("[[", "]]"),
            };
            let _ = writeln!(text, "  n{index}{open}\"{label}\"{close}");
        }
        for edge in &self.edges {
            let arrow = match edge.kind {
                EdgeKind::Next | EdgeKind::Handoff => "-->",
                EdgeKind::Context | EdgeKind::Inject => "-.->",
                EdgeKind::Runs => "---",
            };
            let label = match (edge.kind, &edge.label) {
                (EdgeKind::Context, Some(label)) => format!("sees {label}"),
                (EdgeKind::Context, None) => "sees".to_owned(),
                (EdgeKind::Inject, Some(label)) => format!("injects {label}"),
                (EdgeKind::Inject, None) => "injects".to_owned(),
                (_, Some(label)) => label.clone(),
                (_, None) => String::new(),
            };
            let label = if label.is_empty() { label } else { format!("|\"{}\"|", escaped(&label)) };
            let _ = writeln!(text, "  n{} {arrow}{label} n{}", edge.from, edge.to);
        }
        text
    }
}

/// Says what a phase does and sees.
fn node(phase: &Phase) -> GraphNode {
    let mut does = Vec::new();
    match (&phase.tool, &phase.tackle) {
        (Some(tool), _) => does.push(short(tool)),
        (None, crate::definition::Tackle::Manifest) => does.push("tools by manifest".to_owned()),
        (None, crate::definition::Tackle::Names(names)) if names.len() > 1 => {
            does.push(format!("{} tools", names.len()));
        }
        (None, crate::definition::Tackle::Names(names)) => {
            does.extend(names.first().map(|name| short(name)));
        }
    }
    if let Some(soundings) = &phase.soundings {
        let factor =
            soundings.factor.fixed().map_or_else(|| "n".to_owned(), |factor| factor.to_string());
        does.push(format!("{factor} soundings"));
    }
    if phase.rules.loop_until.is_some() {
        let most = phase.rules.max_attempts.as_ref().and_then(crate::definition::Count::fixed);
        does.push(most.map_or_else(|| "loop".to_owned(), |most| format!("loop of {most}")));
    }
    let mut sees = Vec::new();
    match &phase.context {
        Some(context) if context.mode == ContextMode::Auto => sees.push("chosen".to_owned()),
        Some(context) if context.from.is_empty() => sees.push("nothing before".to_owned()),
        Some(context) => {
            for source in &context.from {
                sees.push(match &source.phase {
                    SourcePhase::Named(_) => continue,
                    SourcePhase::Previous => "previous".to_owned(),
                    SourcePhase::First => "first".to_owned(),
                    SourcePhase::All => "all".to_owned(),
                });
            }
        }
        None => {}
    }
    let mut lines = Vec::new();
    if !does.is_empty() {
        lines.push(does.join(" · "));
    }
    if !sees.is_empty() {
        lines.push(format!("sees {}", sees.join(", ")));
    }
    let kind = if phase.is_tool_call() { NodeKind::Tool } else { NodeKind::Model };
    GraphNode { name: phase.name.to_string(), lines, kind }
}

fn short(text: &str) -> String {
    plimsoll_core::text::shortened(text, 32).into_owned()
}

/// Writes a text as a scalar of YAML that holds nothing but it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Writes a text so that Mermaid takes none of it for its own.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '#' | '<' | '>' | '&' | '`' | '[' | ']' | '{' | '}' | '|' => {
                let _ = write!(out, "#{};", u32::from(c));
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
