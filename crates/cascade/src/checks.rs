//! Checks beyond shape: what is well formed and still cannot run, or not as it was meant.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use plimsoll_core::nearest;

use crate::decode::{Decoder, is_near};
use crate::definition::{Cascade, Context, Count, OnError, Phase, Source, SourcePhase, Target};
use crate::node::{Node, NodeKind};
use crate::problem::{Kind, Place, Problem, Severity};

/// The most turns, attempts and soundings (chosen: beyond these a run is a mistake or a bill).
const MOST_TURNS: u32 = 1_000;
const MOST_ATTEMPTS: u32 = 100;
const MOST_SOUNDINGS: u32 = 100;

/// Names that mean phases by their order.
const KEYWORDS: [&str; 4] = ["previous", "prev", "first", "all"];
/// Words that stand where a phase may, in routings.
const NOWHERE: [&str; 8] = ["next", "self", "end", "END", "__end__", "done", "stop", "fail"];

/// Checks a whole cascade against its document.
pub(crate) fn check(cascade: &Cascade, document: &Node, decoder: &mut Decoder) {
    let (key, phases) = match document.get("phases") {
        Some(node) => ("phases", node),
        None => match document.get("cells") {
            Some(node) => ("cells", node),
            None => return,
        },
    };
    let one = std::slice::from_ref(phases);
    let nodes = match &phases.kind {
        NodeKind::List(nodes) => nodes.as_slice(),
        _ => one,
    };
    if cascade.phases.is_empty() {
        decoder.under(key, |decoder| {
            decoder.error(phases, Kind::Shape, "a cascade has at least one phase");
        });
    }
    let flow = Flow::of(cascade);
    duplicates(cascade, key, nodes, decoder);
    for (index, (phase, node)) in cascade.phases.iter().zip(nodes).enumerate() {
        decoder.under(key, |decoder| {
            decoder.at(index, |decoder| {
                Check { cascade, flow: &flow, index, phase, node, decoder }.phase();
            });
        });
    }
    soundings(cascade.soundings.as_ref(), document, decoder);
    cycles(cascade, document, &flow, key, nodes, decoder);
    inputs(cascade, decoder);
}

/// The order of phases: those that can come after each one.
struct Flow {
    after: Vec<BTreeSet<usize>>,
    /// Only what handoffs, routings and errors say.
    said: Vec<BTreeSet<usize>>,
}

impl Flow {
    fn of(cascade: &Cascade) -> Self {
        let names: BTreeMap<&str, usize> = cascade
            .phases
            .iter()
            .enumerate()
            .map(|(index, phase)| (phase.name.as_str(), index))
            .collect();
        let mut flow = Self { after: Vec::new(), said: Vec::new() };
        for (index, phase) in cascade.phases.iter().enumerate() {
            let mut said: BTreeSet<usize> = targets(phase)
                .filter_map(|target| names.get(target.name.as_str()).copied())
                .collect();
            if targets(phase).any(|target| target.name == "self") {
                said.insert(index);
            }
            let mut after = said.clone();
            if phase.handoffs.is_empty() && index + 1 < cascade.phases.len() {
                after.insert(index + 1);
            }
            flow.after.push(after);
            flow.said.push(said);
        }
        flow
    }

    /// Returns whether `to` can run some time after `from`.
    fn leads(&self, from: usize, to: usize) -> bool {
        let mut seen = BTreeSet::new();
        let mut open: VecDeque<usize> = self.after[from].iter().copied().collect();
        while let Some(phase) = open.pop_front() {
            if phase == to {
                return true;
            }
            if seen.insert(phase) {
                open.extend(&self.after[phase]);
            }
        }
        false
    }
}

/// Returns every phase that `phase` names as one that may come next.
fn targets(phase: &Phase) -> impl Iterator<Item = &Target> {
    let error = match &phase.on_error {
        Some(OnError::Phase(target)) => Some(target),
        _ => None,
    };
    let handoffs = phase.handoffs.iter().map(|handoff| &handoff.target);
    handoffs.chain(phase.routing.iter().map(|(_, target)| target)).chain(error)
}

fn duplicates(cascade: &Cascade, key: &str, nodes: &[Node], decoder: &mut Decoder) {
    let mut seen: BTreeMap<String, Place> = BTreeMap::new();
    for (index, (phase, node)) in cascade.phases.iter().zip(nodes).enumerate() {
        let place = node.get("name").map_or(node.place, |name| name.place);
        // Folders are the same in either case on some systems.
        let name = phase.name.as_str().to_lowercase();
        if let Some(first) = seen.get(&name) {
            let said = format!("a phase named `{}` stands at {first} already", phase.name);
            decoder.under(key, |decoder| {
                decoder.at(index, |decoder| decoder.error_at(place, Kind::Name, said));
            });
        } else {
            seen.insert(name, place);
        }
    }
}

struct Check<'a> {
    cascade: &'a Cascade,
    flow: &'a Flow,
    index: usize,
    phase: &'a Phase,
    node: &'a Node,
    decoder: &'a mut Decoder,
}

impl Check<'_> {
    fn phase(mut self) {
        if KEYWORDS.contains(&self.phase.name.as_str()) {
            let said = format!(
                "`{}` names phases by their order; as a source it does not mean this one",
                self.phase.name
            );
            self.decoder.warn(self.node, Kind::Name, said);
        }
        self.work();
        self.targets();
        self.sources();
        self.bounds();
        soundings(self.phase.soundings.as_ref(), self.node, self.decoder);
    }

    /// A phase does something, and one thing.
    fn work(&mut self) {
        let phase = self.phase;
        let elsewhere = ["for_each_row", "browser", "rag"];
        let unsupported =
            elsewhere.iter().find(|key| self.node.get(key).is_some_and(|node| !node.is_off()));
        match (&phase.instructions, &phase.tool) {
            (None, None) if !phase.sub_cascades.is_empty() || phase.asks() => {}
            // The decoder reported the refused value already.
            (None, None)
                if self.node.get("instructions").or_else(|| self.node.get("tool")).is_some() => {}
            (None, None) => match unsupported {
                Some(key) => {
                    let said = format!(
                        "the phase has only `{key}`, which is not supported: it does nothing"
                    );
                    self.decoder.warn(self.node, Kind::Unsupported, said);
                }
                None => {
                    self.decoder.error(
                        self.node,
                        Kind::Shape,
                        "a phase has `instructions` for a model, or a `tool`",
                    );
                }
            },
            (Some(_), Some(_)) => {
                let said =
                    "the phase has `instructions` and a `tool`: the tool is called, and no model";
                self.decoder.warn(self.node, Kind::Style, said);
            }
            _ => {}
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.cascade.phases.iter().map(|phase| phase.name.as_str())
    }

    fn near(&self, name: &str) -> Option<String> {
        let near = nearest(name, self.names()).filter(|near| is_near(name, near))?;
        Some(format!("did you mean `{near}`?"))
    }

    fn targets(&mut self) {
        for (key, target) in self
            .phase
            .handoffs
            .iter()
            .map(|handoff| ("handoffs", &handoff.target))
            .chain(self.phase.routing.iter().map(|(_, target)| ("routing", target)))
            .collect::<Vec<_>>()
        {
            self.target(key, target);
        }
        if let Some(OnError::Phase(target)) = &self.phase.on_error {
            self.target("on_error", target);
        }
    }

    fn target(&mut self, key: &str, target: &Target) {
        let name = target.name.as_str();
        let is_template = name.contains("{{");
        if is_template || NOWHERE.contains(&name) || self.names().any(|known| known == name) {
            return;
        }
        let hint = self.near(name);
        let said = format!("there is no phase `{name}`");
        self.decoder.under(key, |decoder| {
            decoder.tell(Severity::Error, target.place, Kind::Flow, said, hint);
        });
    }

    fn sources(&mut self) {
        let context: Option<&Context> = self.phase.context.as_ref();
        if let Some(context) = context {
            let node = self.node.get("context");
            let from = node.and_then(|node| node.get("from")).or(node);
            self.list("context.from", &context.from, from);
            for name in &context.exclude {
                if !self.names().any(|known| known == name) {
                    let hint = self.near(name);
                    let said = format!("`exclude` names no phase: `{name}`");
                    let place = node.map_or(self.node.place, |node| node.place);
                    self.decoder.tell(Severity::Warning, place, Kind::Flow, said, hint);
                }
            }
            if !self.phase.inject_from.is_empty() {
                let said = "`inject_from` adds to the flowing context, which `context` replaces; its sources belong into `context.from`";
                let place = self.node.get("inject_from").map_or(self.node.place, |node| node.place);
                self.decoder.warn_at(place, Kind::Flow, said);
            }
        }
        let node = self.node.get("inject_from");
        self.list("inject_from", &self.phase.inject_from, node);
    }

    fn list(&mut self, key: &str, sources: &[Source], node: Option<&Node>) {
        let places: Vec<Place> = match node.map(|node| &node.kind) {
            Some(NodeKind::List(items)) => items.iter().map(|item| item.place).collect(),
            _ => node.iter().map(|node| node.place).collect(),
        };
        for (index, source) in sources.iter().enumerate() {
            let SourcePhase::Named(name) = &source.phase else { continue };
            let place = places.get(index).copied().unwrap_or(self.node.place);
            let (severity, said, hint) = match self.names().position(|known| known == name) {
                _ if name.contains("{{") => continue,
                None => (Severity::Error, format!("there is no phase `{name}`"), self.near(name)),
                Some(found) if found == self.index && self.flow.leads(found, found) => (
                    Severity::Warning,
                    "the phase sees what it did at its last visit".to_owned(),
                    None,
                ),
                Some(found) if found == self.index => {
                    (Severity::Error, "a phase cannot see itself".to_owned(), None)
                }
                Some(found) if found > self.index && !self.flow.leads(found, self.index) => (
                    Severity::Error,
                    format!("`{name}` can only run later than `{}`", self.phase.name),
                    Some("a phase sees phases that have run".to_owned()),
                ),
                Some(_) => continue,
            };
            self.decoder.under(key, |decoder| {
                decoder.at(index, |decoder| decoder.tell(severity, place, Kind::Flow, said, hint));
            });
        }
    }

    fn bounds(&mut self) {
        let rules = &self.phase.rules;
        let node = self.node.get("rules");
        self.decoder.under("rules", |decoder| {
            within("max_turns", rules.max_turns.as_ref(), MOST_TURNS, node, decoder);
            within("max_attempts", rules.max_attempts.as_ref(), MOST_ATTEMPTS, node, decoder);
        });
        if rules.loop_until.is_some() && rules.max_attempts.is_none() {
            let place = node.map_or(self.node.place, |node| node.place);
            let said = format!(
                "the loop has no `max_attempts`: it ends after {}",
                crate::definition::Rules::MAX_ATTEMPTS
            );
            self.decoder.under("rules", |decoder| decoder.warn_at(place, Kind::Bounds, said));
        }
    }
}

fn within(key: &str, count: Option<&Count>, most: u32, node: Option<&Node>, decoder: &mut Decoder) {
    let Some(number) = count.and_then(Count::fixed) else { return };
    if (1..=most).contains(&number) {
        return;
    }
    let place =
        node.and_then(|node| node.get(key)).or(node).map_or(Place::START, |node| node.place);
    decoder.under(key, |decoder| {
        decoder.error_at(place, Kind::Bounds, format!("expected 1 to {most}, found {number}"));
    });
}

fn soundings(
    soundings: Option<&crate::definition::Soundings>,
    owner: &Node,
    decoder: &mut Decoder,
) {
    let Some(soundings) = soundings else { return };
    for key in ["soundings", "candidates", "takes"] {
        let Some(node) = owner.get(key) else { continue };
        decoder.under(key, |decoder| {
            within("factor", Some(&soundings.factor), MOST_SOUNDINGS, Some(node), decoder);
            within(
                "max_parallel",
                Some(&Count::Fixed(soundings.max_parallel)),
                MOST_SOUNDINGS,
                Some(node),
                decoder,
            );
        });
    }
}

/// Warns of handoffs that come back and are bounded by nothing but the cascade's `max_visits`.
fn cycles(
    cascade: &Cascade,
    document: &Node,
    flow: &Flow,
    key: &str,
    nodes: &[Node],
    decoder: &mut Decoder,
) {
    let has_bound = document.get("max_visits").is_some();
    for (index, said) in flow.said.iter().enumerate() {
        let Some(back) =
            said.iter().find(|to| **to <= index && (**to == index || flow.leads(**to, index)))
        else {
            continue;
        };
        if has_bound {
            continue;
        }
        let place = nodes.get(index).map_or(Place::START, |node| {
            node.get("handoffs").or_else(|| node.get("routing")).unwrap_or(node).place
        });
        let said = format!(
            "`{}` can hand back to `{}` again and again: each phase runs at most {} times",
            cascade.phases[index].name, cascade.phases[*back].name, cascade.max_visits,
        );
        let hint = Some("`max_visits` of the cascade sets another bound".to_owned());
        decoder.under(key, |decoder| {
            decoder.at(index, |decoder| {
                decoder.tell(Severity::Warning, place, Kind::Flow, said, hint);
            });
        });
    }
}

/// Warns of `input.NAME` that a cascade's inputs do not list.
fn inputs(cascade: &Cascade, decoder: &mut Decoder) {
    let used = decoder.take_inputs();
    let Some(schema) = cascade.inputs_schema.as_ref().filter(|schema| schema.is_closed) else {
        return;
    };
    let names = || schema.inputs.iter().map(|input| input.name.as_str());
    if schema.inputs.is_empty() {
        return;
    }
    let mut told = BTreeSet::new();
    for used in used {
        if names().any(|name| name == used.name) || !told.insert(used.name.clone()) {
            continue;
        }
        let hint = nearest(&used.name, names())
            .filter(|near| is_near(&used.name, near))
            .map(|near| format!("did you mean `input.{near}`?"));
        decoder.push(Problem {
            severity: Severity::Warning,
            kind: Kind::Template,
            place: used.place,
            path: used.path,
            message: format!("`inputs_schema` does not list `{}`", used.name),
            hint,
        });
    }
}
