//! Assembling: the system prompt made of memory, in the sections and the order of `memory-context.md`, step 6.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::MillisSinceEpoch;
use crate::memory::MemoryKind;
use crate::memory::calibration::{CalibrationSettings, ConfidenceCalibration};
use crate::memory::frame::Frame;
use crate::memory::layers::{ComplexitySettings, Layer, LayerBudget, complexity};
use crate::memory::quote;
use crate::memory::refresh::RefreshSettings;
use crate::memory::score::{Candidate, LeftOut, Scoring, rank};
use crate::memory::select::{Item, Level, Written, fill, tokens};
use crate::text::{Limit, head};
use crate::tokens::Tokenizer;

/// Settings of a memory context.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemorySettings {
    /// The ceiling in tokens; without one, that of the frame.
    pub budget: Option<u64>,
    pub scoring: Scoring,
    pub complexity: ComplexitySettings,
    pub calibration: CalibrationSettings,
    pub refresh: RefreshSettings,
}

/// All that a memory context is made of.
#[derive(Debug, Clone, Copy)]
pub struct MemoryInput<'a> {
    /// Who the agent is, in the operator's words.
    pub identity: &'a str,
    pub frame: &'a Frame,
    /// The current task and open threads, and who said so.
    pub working: (&'a str, &'a str),
    /// What the user asks; only its size is looked at.
    pub question: &'a str,
    /// What the search found, of all kinds at once. Censors are not searched for: all of them that hold belong here.
    pub candidates: &'a [Candidate],
    pub calibration: Option<&'a ConfidenceCalibration>,
    /// What the model saw before: what stays keeps its place and its text.
    pub previous: Option<&'a MemoryContext>,
    pub now: MillisSinceEpoch,
    pub tokenizer: Tokenizer,
}

/// A part of a context under one heading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Section {
    pub layer: Layer,
    /// Empty for procedures, which bring their own.
    pub heading: String,
    pub items: Vec<Item>,
}

/// Something that did not go as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryWarning {
    /// A layer that is always there is larger than its room; it was cut.
    Cut(Layer),
    /// A constraint found no room.
    CensorLeftOut,
    /// What must stay is larger than the room that was asked for.
    OverRoom,
}

/// A system prompt made of memory, with what stands in it and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryContext {
    /// The name of the frame that it was made for.
    pub frame: String,
    pub sections: Vec<Section>,
    /// Tokens of [`Self::text`].
    pub used: u64,
    /// The ceiling; `used` is never above it.
    pub limit: u64,
    /// Ids of records that are not in it, and why.
    pub left_out: Vec<(String, LeftOut)>,
    pub warnings: Vec<MemoryWarning>,
}

/// Makes the system prompt of `input`.
///
/// Shape: the same input gives the same bytes, and the order of the candidates does not matter.
/// What only others than the operator said is quoted with its origin (`DESIGN` 2, law 9).
pub fn assemble(input: &MemoryInput<'_>, settings: &MemorySettings) -> MemoryContext {
    let mut budget = input.frame.budget.clone();
    budget.total = settings.budget.unwrap_or(budget.total);
    let budget =
        budget.adjusted(complexity(input.question, &settings.complexity), &settings.complexity);
    let allocated = budget.allocated();
    let mut warnings = Vec::new();
    let mut left_out = Vec::new();
    let fixed = fixed_sections(input, settings, &allocated, &mut warnings, &mut left_out);
    let candidates = flexible(input, settings, budget.total, &mut left_out);
    let wanted = |layer: Layer| match candidates.get(&layer) {
        Some(written) if !written.is_empty() => written
            .iter()
            .fold(heading_tokens(layer, input.tokenizer), |sum, one| sum + one.wanted()),
        _ => fixed.iter().filter(|section| section.layer == layer).fold(0, |sum, section| {
            section
                .items
                .iter()
                .fold(sum + heading_of(section, input.tokenizer), |sum, item| sum + item.tokens)
        }),
    };
    let given = budget.flowed(wanted, &input.frame.priorities);

    let mut sections = fixed;
    for (layer, written) in &candidates {
        let room = given.of(*layer).saturating_sub(heading_tokens(*layer, input.tokenizer));
        let shown = |id: &str| input.previous?.item(id).map(|item| item.level);
        let mut items = fill(written, room, shown, &mut left_out);
        // What stood there stands where it stood: a stable sort, with what is new behind in the order of its score.
        items.sort_by_key(|item| input.previous.map_or(0, |previous| previous.place(&item.id)));
        push_items(&mut sections, *layer, items);
    }
    sections.sort_by_key(|section| section.layer);
    let mut left_out: Vec<(String, LeftOut)> =
        left_out.into_iter().map(|(id, why)| (id.to_owned(), why)).collect();
    left_out.sort();
    let mut context = MemoryContext {
        frame: input.frame.name.clone(),
        sections,
        used: 0,
        limit: budget.total,
        left_out,
        warnings,
    };
    context.enforce(input.tokenizer);
    context
}

impl MemoryContext {
    /// Returns the prompt as the model reads it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut quoted = false;
        for section in &self.sections {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&section.heading);
            let mut between = if section.heading.is_empty() { "" } else { "\n" };
            let quotes = section.items.iter().any(|item| item.quoted);
            if quotes && !quoted {
                quoted = true;
                text.push_str(between);
                text.push_str(quote::QUOTED);
                between = "\n";
            }
            for item in &section.items {
                text.push_str(between);
                text.push_str(&item.text);
                between = "\n";
            }
        }
        text
    }

    /// Returns the record called `id` as it stands here.
    pub fn item(&self, id: &str) -> Option<&Item> {
        self.items().find(|item| item.id == id && !id.is_empty())
    }

    /// Returns everything that stands here, in order.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.sections.iter().flat_map(|section| &section.items)
    }

    /// Returns where a record stands; behind all for one that does not.
    fn place(&self, id: &str) -> usize {
        self.items().position(|item| item.id == id).unwrap_or(usize::MAX)
    }
}

/// Returns the sections that are there whatever is asked, each within its room.
fn fixed_sections<'a>(
    input: &MemoryInput<'a>,
    settings: &MemorySettings,
    budget: &LayerBudget,
    warnings: &mut Vec<MemoryWarning>,
    left_out: &mut Vec<(&'a str, LeftOut)>,
) -> Vec<Section> {
    let tokenizer = input.tokenizer;
    let mut sections = Vec::new();
    let mut lines = |layer: Layer, heading: String, lines: Vec<(String, bool)>| {
        if lines.is_empty() {
            return;
        }
        let room = budget.of(layer).saturating_sub(u64::from(tokenizer.count(&heading)) + BETWEEN);
        let (items, whole) = within(lines, room, tokenizer);
        if !whole {
            warnings.push(MemoryWarning::Cut(layer));
        }
        if !items.is_empty() {
            sections.push(Section { layer, heading, items });
        }
    };

    let plain = |text: &str| text.trim().lines().map(|line| (line.to_owned(), false)).collect();
    lines(Layer::Identity, "## Identity".into(), plain(input.identity));

    let frame = input.frame;
    let mut approach: Vec<(String, bool)> = plain(&frame.description);
    if !frame.questions.is_empty() {
        approach.push(("Consider:".into(), false));
        approach.extend(frame.questions.iter().map(|q| (format!("- {}", quote::line(q)), false)));
    }
    if approach.is_empty() {
        approach.push((title(&frame.name), false));
    }
    lines(Layer::Frame, format!("## Current Approach: {}", title(&frame.name)), approach);

    let (working, origin) = input.working;
    if !working.trim().is_empty() {
        let quoted = !quote::is_operator(origin);
        let text = if quoted { vec![(quote::said(working, origin), true)] } else { plain(working) };
        lines(Layer::Working, "## Current Focus".into(), text);
    }
    if let Some(calibration) = input.calibration {
        let advice = calibration.advice(&settings.calibration);
        lines(Layer::Calibration, "## Note".into(), vec![(advice, false)]);
    }

    let room = budget.censors.saturating_sub(heading_tokens(Layer::Censors, tokenizer));
    let items = censors(input, room, left_out);
    if left_out.iter().any(|(_, why)| *why == LeftOut::NoRoom) {
        warnings.push(MemoryWarning::CensorLeftOut);
    }
    push_items(&mut sections, Layer::Censors, items);
    sections
}

/// Returns the constraints that hold, blocks first, then by id; a reason is left off before a constraint is.
fn censors<'a>(
    input: &MemoryInput<'a>,
    room: u64,
    left_out: &mut Vec<(&'a str, LeftOut)>,
) -> Vec<Item> {
    let mut censors: Vec<&Candidate> =
        input.candidates.iter().filter(|candidate| candidate.kind == MemoryKind::Censor).collect();
    censors.sort_by(|a, b| {
        let text = |one: &'a Candidate| (&one.id, &one.name, &one.micro, &one.origin, one.state);
        b.severity.cmp(&a.severity).then_with(|| text(a).cmp(&text(b)))
    });
    let mut items: Vec<Item> = Vec::new();
    let mut room = room;
    for censor in censors {
        if !censor.state.is_current() {
            left_out.push((&censor.id, LeftOut::NotInUse));
            continue;
        }
        if items.iter().any(|item| item.id == censor.id) {
            left_out.push((&censor.id, LeftOut::Twice));
            continue;
        }
        let severity = match censor.severity {
            crate::memory::lifecycle::Severity::Warn => "WARN",
            crate::memory::lifecycle::Severity::Block => "BLOCK",
        };
        let form = |text: &str| {
            let text = format!("- {severity}: {}", quote::said(text, &censor.origin));
            let tokens = tokens(&text, input.tokenizer);
            (text, tokens)
        };
        let (pattern, reason) = (censor.name.trim(), censor.micro.trim());
        let forms = match (pattern, reason) {
            ("", one) | (one, "") => vec![(Level::Micro, form(one))],
            _ => vec![
                (Level::Summary, form(&format!("{pattern} — {reason}"))),
                (Level::Micro, form(pattern)),
            ],
        };
        let Some((level, (text, tokens))) =
            forms.into_iter().find(|(_, (_, tokens))| *tokens <= room)
        else {
            left_out.push((&censor.id, LeftOut::NoRoom));
            continue;
        };
        room -= tokens;
        items.push(Item {
            id: censor.id.clone(),
            level,
            text,
            tokens,
            score: 1.0,
            quoted: !quote::is_operator(&censor.origin),
        });
    }
    items
}

/// Ranks and writes the records of each layer that is filled by relevance.
fn flexible<'a>(
    input: &MemoryInput<'a>,
    settings: &MemorySettings,
    total: u64,
    left_out: &mut Vec<(&'a str, LeftOut)>,
) -> BTreeMap<Layer, Vec<Written<'a>>> {
    let mut layers = BTreeMap::new();
    for layer in Layer::FLEXIBLE {
        let own = input.candidates.iter().filter(|candidate| Layer::of(candidate.kind) == layer);
        let (ranked, out) = rank(own, &input.frame.priorities, input.now, &settings.scoring);
        left_out.extend(out);
        let mut written = Vec::new();
        let mut sum = 0;
        for one in &ranked {
            // Counting tokens is what takes time, and behind a full budget nothing will stand.
            if sum > total {
                left_out.push((&one.candidate.id, LeftOut::NoRoom));
                continue;
            }
            let one = Written::new(one, input.tokenizer);
            sum += one.wanted();
            written.push(one);
        }
        layers.insert(layer, written);
    }
    layers
}

/// Tokens of the empty line between two sections, at most.
const BETWEEN: u64 = 2;

fn heading(layer: Layer) -> &'static str {
    match layer {
        Layer::Censors => "## Active Constraints",
        Layer::Decisions => "## Relevant Past Decisions",
        Layer::Facts => "## Known Information",
        Layer::Episodes => "## Past Experience",
        _ => "",
    }
}

/// Returns the tokens that a layer needs beside its items, the sentence on quoted lines included.
fn heading_tokens(layer: Layer, tokenizer: Tokenizer) -> u64 {
    tokens(heading(layer), tokenizer) + tokens(quote::QUOTED, tokenizer) + BETWEEN
}

fn heading_of(section: &Section, tokenizer: Tokenizer) -> u64 {
    tokens(&section.heading, tokenizer) + tokens(quote::QUOTED, tokenizer) + BETWEEN
}

/// Adds `items` as a section of `layer`, procedures as a section each.
fn push_items(sections: &mut Vec<Section>, layer: Layer, items: Vec<Item>) {
    if layer == Layer::Procedures {
        sections.extend(items.into_iter().map(|item| Section {
            layer,
            heading: String::new(),
            items: vec![item],
        }));
    } else if !items.is_empty() {
        sections.push(Section { layer, heading: heading(layer).to_owned(), items });
    }
}

/// Returns the lines that fit `room`, and whether that is all; of a first line that does not fit, its beginning.
fn within(lines: Vec<(String, bool)>, room: u64, tokenizer: Tokenizer) -> (Vec<Item>, bool) {
    let mut items = Vec::new();
    let mut room = room;
    for (text, quoted) in lines {
        let cost = tokens(&text, tokenizer);
        let fits = cost <= room;
        let (text, cost) = if fits {
            (text, cost)
        } else {
            let most = room.saturating_sub(tokens("", tokenizer));
            let head =
                if items.is_empty() { head(&text, Limit::Tokens(tokenizer, most)) } else { "" };
            (head.trim_end().to_owned(), room)
        };
        room -= cost;
        if fits || !text.is_empty() {
            items.push(Item {
                id: String::new(),
                level: Level::Summary,
                text,
                tokens: cost,
                score: 1.0,
                quoted,
            });
        }
        if !fits {
            return (items, false);
        }
    }
    (items, true)
}

/// Returns a frame's name as a title: `deep_analysis` as `Deep analysis`.
fn title(name: &str) -> String {
    let name = quote::line(name).replace('_', " ");
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests;
