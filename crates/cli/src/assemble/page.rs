//! The page of an assembly: the context, then the reasons.

use std::fmt::Write as _;

use plimsoll_core::Message;
use plimsoll_core::choose::Level;
use plimsoll_core::memory::assemble::MemoryWarning;
use plimsoll_core::memory::layers::Layer;
use plimsoll_engine::assemble::{AssembledMemory, Refreshed};

use super::Assembled;
use crate::figures::thousands;
use crate::output::{self, DIM, RESET};

/// Records left out that are listed by name.
const LISTED: usize = 20;

pub(super) fn page(assembled: &Assembled, explain: bool) -> String {
    let mut out = String::new();
    let text = assembled.memory().context.text();
    match assembled {
        Assembled::Memory(_) => plain(&mut out, &text),
        Assembled::Request(context) => {
            let request = &context.request;
            let memory = request.memory.iter();
            for message in request.header.iter().chain(memory).chain(&request.working_set) {
                say(&mut out, message);
            }
        }
    }
    if explain {
        explained(&mut out, assembled);
    }
    out
}

fn say(out: &mut String, message: &Message) {
    let text = message.shown();
    if text.trim().is_empty() {
        return;
    }
    let _ = writeln!(out, "{DIM}{}{RESET}", message.role.as_str());
    plain(out, &text);
    out.push('\n');
}

fn plain(out: &mut String, text: &str) {
    for line in text.lines() {
        out.push_str(&output::plain(line));
        out.push('\n');
    }
}

fn explained(out: &mut String, assembled: &Assembled) {
    let memory = assembled.memory();
    let context = &memory.context;
    let certain = match (memory.is_frame_certain, memory.triggers) {
        (false, _) => "nothing spoke for another".to_owned(),
        (true, 0) => "asked for, or alike its examples".to_owned(),
        (true, one) => format!("{one} of its triggers matched"),
    };
    let _ = writeln!(out, "{DIM}frame {}: {certain}; {}", context.frame, refreshed(memory));
    let share = 100 * context.used / context.limit.max(1);
    let _ = writeln!(
        out,
        "{} of {} tokens ({share} %), {} records found, relevance {:.2}",
        thousands(context.used),
        thousands(context.limit),
        memory.found,
        memory.relevance
    );
    for section in &context.sections {
        for item in section.items.iter().filter(|item| !item.id.is_empty()) {
            let level = match item.level {
                Level::Micro => "micro",
                Level::Summary => "summary",
                Level::Full => "full",
            };
            let _ = writeln!(
                out,
                "  {:10} {:.2} {level:7} {:4} tokens  {}",
                called(section.layer),
                item.score,
                item.tokens,
                output::line(&item.id, 40)
            );
        }
    }
    for (id, why) in context.left_out.iter().take(LISTED) {
        let _ = writeln!(out, "  not included: {}: {}", output::line(id, 40), why);
    }
    if context.left_out.len() > LISTED {
        let _ = writeln!(out, "  and {} more", context.left_out.len() - LISTED);
    }
    if let Assembled::Request(request) = assembled {
        let budget = &request.request.budget;
        let _ = writeln!(
            out,
            "request: {} of {} tokens; the whole session has {}",
            thousands(budget.used),
            thousands(budget.limit),
            thousands(request.full_tokens)
        );
        if !request.request.lazy_tools.is_empty() {
            let _ = writeln!(out, "tools to be loaded: {}", request.request.lazy_tools.join(", "));
        }
        let _ = writeln!(out, "cache key {}", &request.request.cache_key);
    }
    let _ = write!(out, "{RESET}");
}

fn refreshed(memory: &AssembledMemory) -> String {
    use plimsoll_core::memory::refresh::RefreshReason as Reason;
    match memory.refreshed {
        Refreshed::Built => "built".to_owned(),
        Refreshed::Kept => "as it was".to_owned(),
        Refreshed::Forced => "made anew, as asked".to_owned(),
        Refreshed::Evicted => "made smaller".to_owned(),
        Refreshed::Rebuilt(Reason::FrameSwitched) => "made anew: the frame changed".to_owned(),
        Refreshed::Rebuilt(Reason::UnknownTopic) => "made anew: an unknown topic".to_owned(),
        Refreshed::Rebuilt(Reason::DecisionPoint) => "made anew before a decision".to_owned(),
    }
}

fn called(layer: Layer) -> &'static str {
    match layer {
        Layer::Identity => "identity",
        Layer::Censors => "censor",
        Layer::Frame => "frame",
        Layer::Working => "working",
        Layer::Decisions => "decision",
        Layer::Facts => "fact",
        Layer::Procedures => "procedure",
        Layer::Episodes => "episode",
        Layer::Calibration => "note",
    }
}

pub(super) fn told(warning: MemoryWarning) -> String {
    match warning {
        MemoryWarning::Cut(layer) => format!("the {} layer was cut to its room", called(layer)),
        MemoryWarning::CensorLeftOut => "a constraint that only warns found no room".to_owned(),
        MemoryWarning::OverRoom => "what must stay is larger than the room".to_owned(),
    }
}
