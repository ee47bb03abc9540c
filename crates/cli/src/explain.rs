//! `plimsoll explain`: lists every message of one turn with its treatment and reason.

use std::fmt::Write as _;

use plimsoll_core::context::{Receipt, State, bound};
use plimsoll_core::pins::{PinRecord, Wish, WishKind};
use plimsoll_core::plan::{Context, sent_tokens};
use plimsoll_core::{KeptLines, Ref, Transcript};
use serde::Serialize;

use crate::arguments::ExplainArguments;
use crate::config::config;
use crate::error::CommandError;
use crate::figures::thousands;
use crate::load::{compaction, load};
use crate::output::{self, BOLD, DIM, RESET};

pub(crate) fn run(arguments: &ExplainArguments) -> Result<(), CommandError> {
    let policy = config(&arguments.settings)?.policy(&arguments.policy)?;
    let reading = &arguments.session.reading;
    let loaded = load(&arguments.session.file, reading, compaction(arguments.no_compaction))?;
    crate::store::record(
        reading,
        arguments.settings.config.as_deref(),
        &arguments.session.file,
        &loaded,
    )?;
    let wishes = wishes(arguments)?;
    let mut state = State::default();
    let mut found: Option<(Context, Receipt)> = None;
    // Turns are counted over all stretches, as `replay` counts them; a plan counts those of its own.
    let (mut turns, mut turns_before) = (0, 0);
    'session: for stretch in loaded.counted.stretches() {
        let transcript = stretch.transcript;
        let mut positions = transcript.requests().filter(|at| *at >= stretch.known).peekable();
        if positions.peek().is_some() {
            (state, turns_before) = (State::default(), turns);
            state.wish(wishes.iter().cloned());
        }
        for position in positions {
            let terms = loaded.terms_of(&transcript.entries()[position].message);
            let (context, mut receipt) = bound(transcript, position, &policy, &terms, &mut state);
            receipt.turn = turns;
            found = Some((context, receipt));
            if arguments.turn == Some(turns) {
                break 'session;
            }
            turns += 1;
        }
    }
    let Some((_, receipt)) =
        found.filter(|(_, receipt)| arguments.turn.is_none_or(|turn| turn == receipt.turn))
    else {
        return Err(CommandError::usage(anyhow::anyhow!(
            "the session has {turns} turns, turn {} is not among them",
            arguments.turn.unwrap_or(0)
        ))
        .hint("turns are counted from 0"));
    };
    if let Some(wanted) = &arguments.show {
        return show(loaded.counted.transcript_of(receipt.turn), &state, wanted);
    }
    let transcript = loaded.counted.transcript_of(receipt.turn);
    let rows = rows(transcript, &state, turns_before);
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
    output::page(&table(&receipt, &rows))
}

/// Reads the wishes of the arguments.
fn wishes(arguments: &ExplainArguments) -> Result<Vec<Wish>, CommandError> {
    let pins = arguments.pin.iter().map(|one| (WishKind::Pin, one));
    let drops = arguments.drop.iter().map(|one| (WishKind::Drop, one));
    let read = |(kind, reference): (WishKind, &String)| {
        Wish::of_user(kind, reference).ok_or_else(|| {
            CommandError::usage(anyhow::anyhow!("`{reference}` is no ref"))
                .hint("give ref:message: and 16 hex digits, or at least 8 of them")
        })
    };
    pins.chain(drops).map(read).collect()
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
    /// The lines of a shortened message that are sent, by reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<KeptLines>,
    #[serde(rename = "ref")]
    original: String,
    begins: String,
}

fn rows(transcript: &Transcript, state: &State, turns_before: u32) -> Vec<Row> {
    let entries = transcript.entries();
    let row = |(position, decision): (usize, &plimsoll_core::plan::Decision)| {
        let entry = &entries[position];
        let begins = output::line(&entry.message.shown(), 49);
        Row {
            message: position,
            role: entry.message.role.as_str(),
            treatment: decision.treatment.as_str(),
            reason: decision.reason.to_string(),
            since_turn: turns_before + decision.since.saturating_sub(1),
            tokens_before: entry.tokens,
            tokens_after: sent_tokens(decision),
            kept: KeptLines::of(transcript, position, &decision.form.message),
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
    let refs = |records: &[PinRecord]| {
        let refs: Vec<String> = records.iter().map(|one| one.original.to_string()).collect();
        refs.join(", ")
    };
    let pins = &receipt.pins;
    for (what, refs) in [
        ("pinned", refs(&pins.pinned)),
        ("dropped", refs(&pins.dropped)),
        ("shown again", pins.again.join(", ")),
        ("a large change", receipt.preview().map_or_else(String::new, |one| one.to_string())),
    ] {
        if !refs.is_empty() {
            let _ = writeln!(out, "{what}: {refs}");
        }
    }
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
        if let Some(kept) = &row.kept {
            let _ = writeln!(out, "{:5}{DIM}kept {kept}{RESET}", "");
        }
    }
    out
}

fn show(transcript: &Transcript, state: &State, wanted: &str) -> Result<(), CommandError> {
    let decisions = state.plan().decisions();
    if let Some(decision) = wanted.parse().ok().and_then(|at: usize| decisions.get(at)) {
        return output::data(&(decision.form.message.shown() + "\n"));
    }
    let found = Ref::prefix(wanted).and_then(|prefix| transcript.find(&prefix));
    match found {
        Some(position) => output::data(&(transcript.entries()[position].message.shown() + "\n")),
        None => Err(CommandError::usage(anyhow::anyhow!("nothing here is known as `{wanted}`"))
            .hint("give a message's number, or a ref that this session printed")),
    }
}
