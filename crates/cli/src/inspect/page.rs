//! The page of `inspect` in a terminal of 80 columns.

use std::fmt::Write as _;

use plimsoll_core::{Calibration, PressureLevel};

use super::glance::Glance;
use crate::clock;
use crate::figures::{bar, counted, dollars, mark, percent, thousands, tokens as short};
use crate::load::Loaded;
use crate::output::{self, BAD, BOLD, DIM, GOOD, RESET, WARN};

/// Columns of the page.
const WIDTH: usize = 80;
/// Columns of the labels on its left.
const LABEL: usize = 13;
/// Cells of a share's bar.
const CELLS: usize = 14;
/// Lines of the lists of messages and tools.
const LISTED: usize = 8;

pub(super) fn page(glance: &Glance, loaded: &Loaded, verbose: bool) -> String {
    let mut out = String::new();
    head(&mut out, glance);
    content(&mut out, glance);
    tokens(&mut out, glance);
    shares(&mut out, glance);
    largest(&mut out, glance, loaded);
    tools(&mut out, glance);
    conversations(&mut out, glance);
    notes(&mut out, glance, loaded, verbose);
    out
}

/// Lists the other conversations of the file, and what reads them.
fn conversations(out: &mut String, glance: &Glance) {
    if glance.conversations.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{BOLD}conversations in the file{RESET}");
    for one in glance.conversations.iter().take(LISTED) {
        let file = one.file.rsplit(['/', '\\']).next().unwrap_or(&one.file);
        let name = one.name.as_deref().or(one.task.as_deref()).unwrap_or_default();
        let _ = writeln!(
            out,
            "{}  {DIM}{}, {}{RESET}  {}",
            output::line(file, 40),
            one.kind,
            counted(one.messages as u64, "message"),
            output::line(name, 60)
        );
    }
    if let Some(more) = glance.conversations.len().checked_sub(LISTED + 1) {
        let _ = writeln!(out, "{DIM}and {} more; `--json` lists them{RESET}", more + 1);
    }
}

fn row(out: &mut String, label: &str, value: &str) {
    let _ = writeln!(out, "{DIM}{label:LABEL$}{RESET}{value}");
}

fn head(out: &mut String, glance: &Glance) {
    let name = glance.file.rsplit(['/', '\\']).next().unwrap_or(&glance.file);
    let _ = writeln!(
        out,
        "{BOLD}{}{RESET}  {DIM}{} session{RESET}\n",
        output::line(name, WIDTH - 24),
        glance.format
    );
    let text = |out: &mut String, label, value: &Option<String>| {
        if let Some(value) = value {
            row(out, label, &output::line(value, WIDTH - LABEL));
        }
    };
    text(out, "id", &glance.id);
    text(out, "model", &glance.model);
    text(out, "folder", &glance.working_directory);
    if let Some(started) = glance.started {
        let mut value = clock::date(started);
        if let Some(duration) = glance.duration_ms.filter(|millis| *millis >= 1000) {
            let _ = write!(value, ", over {}", clock::span(duration));
        }
        row(out, "started", &value);
    }
}

fn content(out: &mut String, glance: &Glance) {
    let messages = &glance.messages;
    let total = messages.system + messages.user + messages.assistant + messages.tool;
    let roles = joined([
        (messages.system, "system"),
        (messages.user, "user"),
        (messages.assistant, "assistant"),
        (messages.tool, "tool"),
    ]);
    row(out, "messages", &format!("{}  {DIM}{roles}{RESET}", count(total)));
    let mut turns = count(glance.turns as usize);
    if glance.exchanges > 0 {
        let _ = write!(
            turns,
            "  {DIM}{} with tools, {}{RESET}",
            plural(glance.exchanges, "exchange"),
            plural(glance.tool_calls, "call")
        );
    }
    if glance.tool_errors > 0 {
        let _ = write!(turns, "{DIM},{RESET} {BAD}{}{RESET}", plural(glance.tool_errors, "error"));
    }
    row(out, "turns", &turns);
    let also = joined([
        (glance.images, if glance.images == 1 { "image" } else { "images" }),
        (
            glance.thinking_blocks,
            if glance.thinking_blocks == 1 { "thinking block" } else { "thinking blocks" },
        ),
        (glance.statistics.opaque_blocks as usize, "opaque"),
    ]);
    if !also.is_empty() {
        row(out, "also", &also);
    }
    if let [first, ..] = glance.compactions.as_slice() {
        let places: Vec<String> =
            glance.compactions.iter().map(|seen| count(seen.before_message)).collect();
        let mut value = format!(
            "{} by the agent, before message {}",
            glance.compactions.len(),
            output::line(&places.join(", "), 24)
        );
        if let Some(tokens) = first.tokens_before {
            let _ = write!(value, " {DIM}(first at {} tokens){RESET}", thousands(tokens));
        }
        row(out, "compactions", &value);
    }
}

fn tokens(out: &mut String, glance: &Glance) {
    out.push('\n');
    row(
        out,
        "tokens",
        &format!(
            "{BOLD}{}{RESET}  {DIM}counted by {}{RESET}",
            thousands(glance.tokens),
            glance.tokenizer
        ),
    );
    if let Some(Calibration { samples, overhead, .. }) = glance.calibration {
        let mut value = format!("{DIM}calibrated on {}", plural(samples as usize, "report"));
        if overhead > 0 {
            let _ = write!(
                value,
                "; prompt and tools, not in the file: {}",
                thousands(overhead.into())
            );
        }
        row(out, "", &(value + RESET));
    }
    let pressure = &glance.pressure;
    let colour = match pressure.level {
        PressureLevel::Hidden | PressureLevel::Normal => GOOD,
        PressureLevel::Compressing => WARN,
        PressureLevel::NearlyFull => BAD,
    };
    row(
        out,
        "window",
        &format!(
            "{colour}{}{RESET} {}% of {}",
            pressure.bar,
            pressure.percent,
            thousands(pressure.total_tokens)
        ),
    );
    if let Some(usage) = &glance.usage {
        row(
            out,
            "reported",
            &format!(
                "{} in over {}, {}% of it cached, {} out",
                short(usage.prompt_tokens as f64),
                plural(usage.requests, "request"),
                rounded(usage.cached_tokens, usage.prompt_tokens),
                short(usage.output_tokens as f64)
            ),
        );
        row(
            out,
            "",
            &format!(
                "{DIM}largest prompt {}; {}{} at the prices of {}{RESET}",
                thousands(usage.largest_prompt),
                mark(glance.estimate),
                dollars(usage.dollars, 2),
                output::line(&glance.prices, 40)
            ),
        );
    }
}

/// Draws tokens by role and by kind side by side.
fn shares(out: &mut String, glance: &Glance) {
    let (role, kind) = (&glance.statistics.by_role, &glance.statistics.by_type);
    let roles = [
        ("system", role.system),
        ("user", role.user),
        ("assistant", role.assistant),
        ("tool", role.tool),
    ];
    let kinds = [
        ("text", kind.text),
        ("tool calls", kind.tool_call),
        ("tool results", kind.tool_result),
        ("thinking", kind.thinking),
        ("images", kind.image),
    ];
    let total = glance.statistics.total.max(1);
    let shown = |list: &[(&'static str, u64)]| -> Vec<(&'static str, u64)> {
        list.iter().copied().filter(|(_, tokens)| *tokens > 0).collect()
    };
    let (roles, kinds) = (shown(&roles), shown(&kinds));
    let _ = writeln!(out, "\n{BOLD}{:40}by kind{RESET}", "by role");
    for line in 0..roles.len().max(kinds.len()) {
        let left = roles.get(line).map_or_else(String::new, |one| share(*one, 10, total));
        let right = kinds.get(line).map_or_else(String::new, |one| share(*one, 12, total));
        // Bars are padded by hand: the width of a format counts colours too.
        let blank = if roles.get(line).is_some() { 0 } else { 40 };
        let _ = writeln!(out, "{}", format!("{left}{:blank$}{right}", "").trim_end());
    }
}

fn share((name, tokens): (&str, u64), width: usize, total: u64) -> String {
    let (bar, drawn) = bar(tokens as f64, total as f64, CELLS);
    // 1 + width + 10 + 5 + 1 + 12 columns.
    format!(
        "{name:width$}{:>9}{:>4}% {bar}{:pad$}",
        thousands(tokens),
        rounded(tokens, total),
        "",
        pad = (40 - 15 - width).saturating_sub(drawn)
    )
}

fn largest(out: &mut String, glance: &Glance, loaded: &Loaded) {
    let _ =
        writeln!(out, "\n{BOLD}{:>5}  {:9} {:>8}  largest messages{RESET}", "#", "role", "tokens");
    for one in glance.statistics.largest_messages.iter().take(LISTED) {
        let _ = writeln!(
            out,
            "{:>5}  {:9} {:>8}  {DIM}{}{RESET}",
            one.position,
            one.role.as_str(),
            thousands(one.tokens),
            loaded.label(&loaded.counted.transcript, one.position, WIDTH - 27)
        );
    }
}

fn tools(out: &mut String, glance: &Glance) {
    let tools = &glance.statistics.tools;
    if tools.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n{BOLD}{:26} {:>7} {:>11} {:>13} {:>7}{RESET}",
        "tool", "calls", "arguments", "results", "share"
    );
    for tool in tools.iter().take(LISTED) {
        let _ = writeln!(
            out,
            "{:26} {:>7} {:>11} {:>13} {:>6}%",
            output::line(tool.name.as_deref().unwrap_or("(call not recorded)"), 26),
            tool.calls,
            thousands(tool.call_tokens),
            thousands(tool.result_tokens),
            rounded(tool.call_tokens + tool.result_tokens, glance.statistics.total)
        );
    }
    if tools.len() > LISTED {
        let _ = writeln!(out, "{DIM}and {} more; `--json` has all{RESET}", tools.len() - LISTED);
    }
}

fn notes(out: &mut String, glance: &Glance, loaded: &Loaded, verbose: bool) {
    let notes = &loaded.session.notes;
    let [first, ..] = notes.as_slice() else { return };
    let _ = writeln!(out, "\n{BOLD}notes{RESET}");
    if verbose {
        for note in notes {
            let _ = writeln!(out, "{WARN}!{RESET} {}", output::plain(&note.to_string()));
        }
        return;
    }
    for (kind, count) in &glance.notes {
        let _ = writeln!(out, "{WARN}!{RESET} {count} {kind}");
    }
    let _ = writeln!(
        out,
        "{DIM}  first: {}{RESET}\n{DIM}  `--verbose` lists them{RESET}",
        output::line(&first.to_string(), WIDTH - 9)
    );
}

fn joined<const N: usize>(parts: [(usize, &str); N]) -> String {
    let told: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, name)| format!("{} {name}", count(*number)))
        .collect();
    told.join(", ")
}

fn count(number: usize) -> String {
    thousands(number as u64)
}

fn plural(number: usize, noun: &str) -> String {
    counted(number as u64, noun)
}

fn rounded(part: u64, whole: u64) -> u64 {
    percent(part as f64, whole as f64).round() as u64
}
