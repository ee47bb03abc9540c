//! `plimsoll explain`: every message of one turn, and why it is sent as it is.

use std::fmt::Write as _;

use plimsoll_core::Ref;
use plimsoll_core::bound::{Receipt, State, bound};
use plimsoll_core::plan::{Context, sent_tokens};
use serde::Serialize;

use crate::arguments::ExplainArguments;
use crate::config::config;
use crate::error::CommandError;
use crate::load::{Loaded, load};
use crate::output::{self, BOLD, DIM, RESET, thousands};

pub(crate) fn run(arguments: &ExplainArguments) -> Result<(), CommandError> {
    let policy = config(&arguments.settings)?.policy(&arguments.policy)?;
    let loaded = load(&arguments.session)?;
    crate::store::record(
        arguments.session.store.as_deref(),
        arguments.settings.config.as_deref(),
        &loaded,
    )?;
    let mut state = State::default();
    let mut found: Option<(Context, Receipt)> = None;
    for position in loaded.transcript.requests() {
        let one = bound(&loaded.transcript, position, &policy, &loaded.terms, &mut state);
        let turn = one.1.turn;
        found = Some(one);
        if arguments.turn == Some(turn) {
            break;
        }
    }
    let Some((_, receipt)) =
        found.filter(|(_, receipt)| arguments.turn.is_none_or(|turn| turn == receipt.turn))
    else {
        let turns = loaded.transcript.requests().count();
        return Err(CommandError::usage(anyhow::anyhow!(
            "the session has {turns} turns, turn {} is not among them",
            arguments.turn.unwrap_or(0)
        ))
        .hint("turns are counted from 0"));
    };
    if let Some(wanted) = &arguments.show {
        return show(&loaded, &state, wanted);
    }
    let rows = rows(&loaded, &state);
    if arguments.json {
        #[derive(Serialize)]
        struct Document<'a> {
            /// The model whose prices decide, and whether it is another one than the session's.
            prices: &'a str,
            estimate: bool,
            receipt: &'a Receipt,
            messages: &'a [Row],
        }
        let document = Document {
            prices: &loaded.family,
            estimate: loaded.estimate,
            receipt: &receipt,
            messages: &rows,
        };
        let mut text = serde_json::to_string_pretty(&document).map_err(CommandError::failure)?;
        text.push('\n');
        return output::data(&text);
    }
    output::data(&table(&receipt, &rows))
}

/// One message of the turn.
#[derive(Debug, Serialize)]
struct Row {
    message: usize,
    role: &'static str,
    treatment: &'static str,
    reason: String,
    since_turn: u32,
    tokens_before: u32,
    tokens_after: u32,
    #[serde(rename = "ref")]
    original: String,
    begins: String,
}

fn rows(loaded: &Loaded, state: &State) -> Vec<Row> {
    let entries = loaded.transcript.entries();
    let row = |(position, decision): (usize, &plimsoll_core::plan::Decision)| {
        let entry = &entries[position];
        let begins = output::line(&entry.message.shown(), 49);
        Row {
            message: position,
            role: entry.message.role.as_str(),
            treatment: decision.treatment.as_str(),
            reason: decision.reason.to_string(),
            since_turn: decision.since - 1,
            tokens_before: entry.tokens,
            tokens_after: sent_tokens(decision),
            original: Ref::message(entry.hash).to_string(),
            begins,
        }
    };
    state.plan().decisions().iter().enumerate().map(row).collect()
}

fn table(receipt: &Receipt, rows: &[Row]) -> String {
    let mut out = format!(
        "turn {}: {} of {} tokens sent, {} read from the cache, {} written{}\n\n",
        receipt.turn,
        thousands(receipt.tokens),
        thousands(receipt.full_tokens),
        thousands(receipt.charge.cached as u64),
        thousands(receipt.charge.written as u64),
        if receipt.charge.broken { "; the prefix broke" } else { "" },
    );
    let _ = writeln!(
        out,
        "{BOLD}{:>4} {:9} {:8} {:>7} {:>7}  begins, ref, reason{RESET}",
        "#", "role", "treated", "before", "after"
    );
    for row in rows {
        let _ = writeln!(
            out,
            "{:>4} {:9} {:8} {:>7} {:>7}  {:.39}\n{:5}{DIM}{}  {}{RESET}",
            row.message,
            row.role,
            row.treatment,
            thousands(u64::from(row.tokens_before)),
            thousands(u64::from(row.tokens_after)),
            row.begins,
            "",
            row.original,
            if row.treatment == "keep" {
                row.reason.clone()
            } else {
                format!("{} (turn {})", row.reason, row.since_turn)
            },
        );
    }
    out
}

fn show(loaded: &Loaded, state: &State, wanted: &str) -> Result<(), CommandError> {
    let decisions = state.plan().decisions();
    if let Some(decision) = wanted.parse().ok().and_then(|at: usize| decisions.get(at)) {
        return output::data(&(decision.form.message.shown() + "\n"));
    }
    let found = Ref::prefix(wanted).and_then(|prefix| loaded.transcript.find(&prefix));
    match found {
        Some(position) => {
            output::data(&(loaded.transcript.entries()[position].message.shown() + "\n"))
        }
        None => Err(CommandError::usage(anyhow::anyhow!("nothing here is known as `{wanted}`"))
            .hint("give a message's number, or a ref that this session printed")),
    }
}
