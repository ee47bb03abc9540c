//! Assembling: the system prompt made of memory, in the sections and the order of `memory-context.md`, step 6.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::MillisSinceEpoch;
use crate::choose::{Candidate, Form, Forms, Level, Reason, Room, pack};
use crate::memory::MemoryKind;
use crate::memory::calibration::{CalibrationSettings, ConfidenceCalibration};
use crate::memory::frame::Frame;
use crate::memory::layers::{ComplexitySettings, Layer, complexity};
use crate::memory::lifecycle::Severity;
use crate::memory::quote;
use crate::memory::refresh::RefreshSettings;
use crate::memory::score::{MemoryCandidate, Scoring, rank};
use crate::memory::select::{Item, RecordForms, fill, tokens};
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
    /// The agent's identity, in the operator's words.
    pub identity: &'a str,
    pub frame: &'a Frame,
    /// The current task and open threads, and who said so.
    pub working: (&'a str, &'a str),
    /// The user's question; only its size matters.
    pub question: &'a str,
    /// The results of the search, of all kinds, and every censor that is in force.
    pub candidates: &'a [MemoryCandidate],
    pub calibration: Option<&'a ConfidenceCalibration>,
    /// The context that the model saw before: records that stay keep their place and their text.
    pub previous: Option<&'a MemoryContext>,
    pub now: MillisSinceEpoch,
    pub tokenizer: Tokenizer,
}

/// A part of a context under one heading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemorySection {
    pub layer: Layer,
    /// Empty for procedures, which bring their own.
    pub heading: String,
    pub items: Vec<Item>,
}

/// The parts that must stand exceed the ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "identity, blocking constraints, frame and focus need {needed} tokens, and memory may have {limit}"
)]
pub struct MemoryTooLarge {
    pub needed: u64,
    pub limit: u64,
}

/// Something that did not go as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryWarning {
    /// A layer lost items to the ceiling.
    Cut(Layer),
    /// A constraint that only warns found no room.
    CensorLeftOut,
    /// The fixed parts are larger than the room.
    OverRoom,
}

/// A system prompt made of memory, with its records and the reasons for them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryContext {
    /// The name of the frame that it was made for.
    pub frame: String,
    pub sections: Vec<MemorySection>,
    /// Tokens of [`Self::text`].
    pub used: u64,
    /// The ceiling; `used` is never above it.
    pub limit: u64,
    /// Ids of records that are not in it, and why.
    pub left_out: Vec<(String, Reason)>,
    pub warnings: Vec<MemoryWarning>,
}

/// Makes the system prompt of `input`.
///
/// Shape: the same input gives the same bytes, and the order of the candidates does not matter. Identity, blocking constraints,
/// frame and focus stand whole; then constraints that warn and the calibration note; then records by relevance. Room that a
/// layer does not use flows to the others. Text by anyone but the operator is quoted with its origin (`DESIGN` 2, law 9).
/// Errors: [`MemoryTooLarge`] if the parts that must stand exceed the ceiling.
pub fn assemble(
    input: &MemoryInput<'_>,
    settings: &MemorySettings,
) -> Result<MemoryContext, MemoryTooLarge> {
    let mut budget = input.frame.budget.clone();
    budget.total = settings.budget.unwrap_or(budget.total);
    let budget =
        budget.adjusted(complexity(input.question, &settings.complexity), &settings.complexity);
    let mut warnings = Vec::new();
    let mut left_out = Vec::new();
    let fixed = fixed_sections(input, settings, budget.total, &mut warnings, &mut left_out)?;
    let candidates = flexible(input, settings, budget.total, &mut left_out);
    let of_fixed = |layer: Layer| {
        let own = fixed.iter().filter(|section| section.layer == layer);
        own.fold(0, |sum, section| sum + section_tokens(section, input.tokenizer))
    };
    let wanted = |layer: Layer| match candidates.get(&layer) {
        Some(written) if !written.is_empty() => written
            .iter()
            .fold(heading_tokens(layer, input.tokenizer), |sum, one| sum + one.source.wanted()),
        _ => of_fixed(layer),
    };
    let given = budget.with_at_least(of_fixed).flowed(wanted, &input.frame.priorities);

    let mut sections = fixed;
    for (layer, records) in candidates {
        let room = given.of(layer).saturating_sub(heading_tokens(layer, input.tokenizer));
        let mut items = fill(records, room, &mut left_out);
        // Records that stood there keep their places; new ones follow by score. The sort is stable.
        items.sort_by_key(|item| input.previous.map_or(0, |previous| previous.place(&item.id)));
        push_items(&mut sections, layer, items);
    }
    sections.sort_by_key(|section| section.layer);
    let mut left_out: Vec<(String, Reason)> =
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
    context.enforce(input.tokenizer)?;
    Ok(context)
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

/// Returns the sections that are there whatever is asked: those that must stand, then what else fits of them.
fn fixed_sections<'a>(
    input: &MemoryInput<'a>,
    settings: &MemorySettings,
    limit: u64,
    warnings: &mut Vec<MemoryWarning>,
    left_out: &mut Vec<(&'a str, Reason)>,
) -> Result<Vec<MemorySection>, MemoryTooLarge> {
    let tokenizer = input.tokenizer;
    let mut sections = Vec::new();
    let mut lines = |layer: Layer, heading: String, lines: Vec<(String, bool)>| {
        let item = |(text, quoted): (String, bool)| Item {
            tokens: tokens(&text, tokenizer),
            ..Item::line(text, quoted)
        };
        let items: Vec<Item> = lines.into_iter().map(item).collect();
        if !items.is_empty() {
            sections.push(MemorySection { layer, heading, items });
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
        let text =
            if quoted { vec![(quote::quoted_line(working, origin), true)] } else { plain(working) };
        lines(Layer::Working, "## Current Focus".into(), text);
    }
    let needed = sections.iter().fold(0, |sum, section| sum + section_tokens(section, tokenizer));
    let heading = heading_tokens(Layer::Censors, tokenizer);
    let room = limit.saturating_sub(needed);
    let items = censors(input, room.saturating_sub(heading), left_out)
        .map_err(|blocks| MemoryTooLarge { needed: needed + heading + blocks, limit })?;
    if left_out.iter().any(|(_, why)| *why == Reason::OverBudget) {
        warnings.push(MemoryWarning::CensorLeftOut);
    }
    push_items(&mut sections, Layer::Censors, items);
    let needed = sections.iter().fold(0, |sum, section| sum + section_tokens(section, tokenizer));
    if needed > limit && sections.iter().all(|section| section.items.iter().all(|i| i.required)) {
        return Err(MemoryTooLarge { needed, limit });
    }
    if let Some(calibration) = input.calibration {
        let advice = calibration.advice(&settings.calibration);
        let note = Item { required: false, ..Item::line(advice, false) };
        let note = Item { tokens: tokens(&note.text, tokenizer), ..note };
        let note = MemorySection {
            layer: Layer::Calibration,
            heading: "## Note".into(),
            items: vec![note],
        };
        if needed + section_tokens(&note, tokenizer) <= limit {
            sections.push(note);
        }
    }
    Ok(sections)
}

/// Returns the constraints that hold, blocks first, then by id.
///
/// All blocks stand; a reason is left off before a constraint is. Errors: the tokens that the blocks need, if they exceed `room`.
fn censors<'a>(
    input: &MemoryInput<'a>,
    room: u64,
    left_out: &mut Vec<(&'a str, Reason)>,
) -> Result<Vec<Item>, u64> {
    let mut censors: Vec<&MemoryCandidate> =
        input.candidates.iter().filter(|candidate| candidate.kind == MemoryKind::Censor).collect();
    censors.sort_by(|a, b| {
        let text =
            |one: &'a MemoryCandidate| (&one.id, &one.name, &one.micro, &one.origin, one.state);
        b.severity.cmp(&a.severity).then_with(|| text(a).cmp(&text(b)))
    });
    let mut ids = BTreeSet::new();
    let mut current = Vec::new();
    for censor in censors {
        if !censor.state.is_current() {
            left_out.push((&censor.id, Reason::NotInUse));
        } else if !ids.insert(&*censor.id) {
            left_out.push((&censor.id, Reason::Twice));
        } else {
            current.push(censor);
        }
    }
    let tokenizer = input.tokenizer;
    let forms = |most: Level| {
        let forms = move |censor| CensorForms { censor, tokenizer, most };
        pack(current.iter().map(move |censor| Candidate::in_order(forms(censor))), &Room::new(room))
    };
    let blocks = |left_out: &[(Candidate<CensorForms<'a>>, Reason)]| {
        left_out.iter().any(|(one, _)| one.source.censor.severity == Severity::Block)
    };
    let mut choice = forms(Level::Summary);
    if blocks(&choice.left_out) {
        choice = forms(Level::Micro);
    }
    if blocks(&choice.left_out) {
        let all = current.iter().filter(|censor| censor.severity == Severity::Block);
        let shortest = all.filter_map(|censor| {
            CensorForms { censor, tokenizer, most: Level::Micro }.form(u64::MAX)
        });
        return Err(shortest.fold(0, |sum, form| sum + form.tokens));
    }
    let ids = |(one, why): &(Candidate<CensorForms<'a>>, Reason)| (&*one.source.censor.id, *why);
    left_out.extend(choice.left_out.iter().map(ids));
    let picks = choice.picks.into_iter();
    let item = |pick: crate::choose::Pick<CensorForms<'a>, String>| {
        let censor = pick.candidate.source.censor;
        let required = censor.severity == Severity::Block;
        Item { required, ..Item::of(censor, pick.form, 1.0) }
    };
    Ok(picks.map(item).collect())
}

/// A constraint with its forms: with its reason, and without.
#[derive(Debug)]
struct CensorForms<'a> {
    censor: &'a MemoryCandidate,
    tokenizer: Tokenizer,
    /// The fullest level that may stand.
    most: Level,
}

impl Forms for CensorForms<'_> {
    type Value = String;

    fn form(&self, room: u64) -> Option<Form<String>> {
        let severity = match self.censor.severity {
            Severity::Warn => "WARN",
            Severity::Block => "BLOCK",
        };
        let form = |level, text: &str| {
            let value = format!("- {severity}: {}", quote::quoted_line(text, &self.censor.origin));
            Form { level, tokens: tokens(&value, self.tokenizer), value }
        };
        let (pattern, reason) = (self.censor.name.trim(), self.censor.micro.trim());
        let forms = match (pattern, reason) {
            ("", one) | (one, "") => vec![form(Level::Micro, one)],
            _ => vec![
                form(Level::Summary, &format!("{pattern} — {reason}")),
                form(Level::Micro, pattern),
            ],
        };
        let shortest = forms.len() - 1;
        let mut allowed = forms
            .into_iter()
            .enumerate()
            .filter(|(at, form)| form.level <= self.most || *at == shortest);
        allowed.find(|(_, form)| form.tokens <= room).map(|(_, form)| form)
    }
}

/// Ranks and writes the records of each layer that is filled by relevance.
fn flexible<'a>(
    input: &MemoryInput<'a>,
    settings: &MemorySettings,
    total: u64,
    left_out: &mut Vec<(&'a str, Reason)>,
) -> BTreeMap<Layer, Vec<Candidate<RecordForms<'a>>>> {
    let mut layers = BTreeMap::new();
    for layer in Layer::FLEXIBLE {
        let own = input.candidates.iter().filter(|candidate| Layer::of(candidate.kind) == layer);
        let (ranked, out) = rank(own, &input.frame.priorities, input.now, &settings.scoring);
        left_out.extend(out);
        let mut records = Vec::new();
        let mut sum = 0;
        for one in &ranked {
            // Counting tokens takes the time, and nothing enters behind a full budget.
            if sum > total {
                left_out.push((&one.candidate.id, Reason::OverBudget));
                continue;
            }
            let shown = input.previous.and_then(|previous| previous.item(&one.candidate.id));
            let most = shown.map_or(Level::Summary, |item| item.level);
            let source = RecordForms::new(one.candidate, input.tokenizer, most);
            sum += source.wanted();
            records.push(Candidate { score: Some(one.score), ..Candidate::in_order(source) });
        }
        layers.insert(layer, records);
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

/// Returns the tokens of a section with its heading and the sentence on quoted lines.
fn section_tokens(section: &MemorySection, tokenizer: Tokenizer) -> u64 {
    let heading = tokens(&section.heading, tokenizer) + BETWEEN;
    let quotes = section.items.iter().any(|item| item.quoted);
    let heading = heading + if quotes { tokens(quote::QUOTED, tokenizer) } else { 0 };
    section.items.iter().fold(heading, |sum, item| sum + item.tokens)
}

/// Adds `items` as a section of `layer`, procedures as a section each.
fn push_items(sections: &mut Vec<MemorySection>, layer: Layer, items: Vec<Item>) {
    if layer == Layer::Procedures {
        sections.extend(items.into_iter().map(|item| MemorySection {
            layer,
            heading: String::new(),
            items: vec![item],
        }));
    } else if !items.is_empty() {
        sections.push(MemorySection { layer, heading: heading(layer).to_owned(), items });
    }
}

/// Returns a frame's name as a title: `deep_analysis` as `Deep analysis`.
fn title(name: &str) -> String {
    let name = quote::line(name).replace('_', " ");
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests;
