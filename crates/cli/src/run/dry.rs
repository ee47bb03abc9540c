//! A dry run: the context of each phase, without a model.

use std::fmt::Write as _;

use plimsoll_cascade::Cascade;
use plimsoll_cascade::run::dry_run;
use plimsoll_core::Tokenizer;
use serde_json::{Map, Value};

use crate::error::CommandError;
use crate::output::{self, BOLD, DIM, RESET};

pub(super) fn run(cascade: &Cascade, input: Map<String, Value>) -> Result<(), CommandError> {
    let phases = dry_run(cascade, input).map_err(CommandError::usage)?;
    let tokenizer = Tokenizer::O200k { factor: 1.0 };
    let mut out = String::new();
    for phase in phases {
        let tokens: u32 =
            phase.messages.iter().map(|message| tokenizer.count_message(message)).sum();
        let _ = writeln!(
            out,
            "{BOLD}{}{RESET} {DIM}{} messages, {tokens} tokens{RESET}",
            phase.name,
            phase.messages.len()
        );
        for note in &phase.notes {
            let _ = writeln!(out, "  {DIM}{note}{RESET}");
        }
        for message in &phase.messages {
            let shown = message.shown();
            let _ = writeln!(out, "  {DIM}{}{RESET}", message.role.as_str());
            for line in shown.lines() {
                let _ = writeln!(out, "    {line}");
            }
        }
        out.push('\n');
    }
    output::page(&out)
}
