//! Names of the rows and settings of a bill, and its warnings.

use plimsoll_core::bill::{BillTotals, RecordedBill, Row, Saving, SavingVerdict};

use crate::error::CommandError;
use crate::figures::{self, counted, thousands};

/// Returns what a row is called.
pub(super) fn row(row: Row) -> &'static str {
    match row {
        Row::SystemFirst => "system prompt and tools, first sent",
        Row::SystemRead => "system prompt and tools, read again",
        Row::HistoryRead => "recorded history, read again",
        Row::UnseenRead => "thinking and other unseen, read again",
        Row::New => "new content",
        Row::AgainPause => "sent again: pause outlived the cache",
        Row::AgainModel => "sent again: other model",
        Row::AgainTools => "sent again: tools or system changed",
        Row::AgainCompaction => "sent again: compaction",
        Row::AgainRewind => "sent again: history changed",
        Row::AgainOurs => "sent again: changed by Plimsoll",
        Row::AgainStep => "sent again: end of the last request",
        Row::AgainUnknown => "sent again: cache missed, no reason",
        Row::Thinking => "output: thinking",
        Row::Output => "output",
        Row::Cliff => "price jump of large prompts",
    }
}

/// Returns what a setting is called.
pub(super) fn saving(saving: Saving) -> &'static str {
    match saving {
        Saving::LazyTools => "lazy tools",
        Saving::SaidOnce => "repeated lines sent once",
        Saving::PruneWhenCold => "pruning when the cache is cold",
        Saving::LongerLife => "cache of 1 hour, not 5 minutes",
        Saving::ShorterLife => "cache of 5 minutes, not 1 hour",
        Saving::BelowCliff => "staying below the price jump",
    }
}

/// Returns the words for a verdict; none for a setting that is worth it.
pub(super) fn verdict(verdict: SavingVerdict) -> &'static str {
    match verdict {
        SavingVerdict::Nothing => "nothing to gain",
        SavingVerdict::WorthIt => "",
        SavingVerdict::WithinError => "within its error of zero",
        SavingVerdict::NotWorthIt => "not worth it",
    }
}

/// Writes dollars with the digits that a bill of `total` needs.
pub(super) fn dollars(amount: f64, total: f64) -> String {
    figures::dollars(amount, if total >= 10.0 { 2 } else { 4 })
}

/// Returns whether an amount would be printed as nothing beside a bill of `total`.
pub(super) fn is_nothing(amount: f64, total: f64) -> bool {
    dollars(amount, total) == dollars(0.0, total)
}

/// Marks figures that are partly priced as another model.
pub(super) fn mark(account: &BillTotals) -> &'static str {
    figures::mark(account.estimated > 0)
}

/// Returns one line for each thing that the figures do not tell by themselves.
pub(super) fn warnings(bill: &RecordedBill<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let files = &bill.files;
    if files.unreadable > 0 {
        let first = files.first_unreadable.as_deref().unwrap_or_default();
        warnings.push(format!(
            "{} no recorded session (first: {first})",
            if files.unreadable == 1 {
                "1 file is".to_owned()
            } else {
                format!("{} files are", thousands(files.unreadable as u64))
            }
        ));
    }
    if !bill.unlisted.is_empty() {
        const TOLD: usize = 5;
        let mut list: Vec<String> = bill
            .unlisted
            .iter()
            .take(TOLD)
            .map(|(name, like)| format!("{name} as {like}"))
            .collect();
        if bill.unlisted.len() > TOLD {
            list.push(format!("and {} more", bill.unlisted.len() - TOLD));
        }
        warnings.push(format!(
            "no prices for these models, so their figures are estimates: {}; `--pricing FILE` takes yours",
            list.join(", ")
        ));
    }
    warnings
}

/// Returns what is said where nothing was found to bill.
pub(super) fn nothing(bill: &RecordedBill<'_>, searched: Option<&str>) -> CommandError {
    let files = &bill.files;
    let why = if files.without_usage > 0 {
        format!("{} without any reported usage", counted(files.without_usage as u64, "session"))
    } else if files.earlier > 0 {
        format!("{} before that date, none since", counted(files.earlier, "request"))
    } else {
        searched
            .map_or("no recorded session".to_owned(), |places| format!("no session in {places}"))
    };
    CommandError::finding(anyhow::anyhow!("nothing to bill: {why}"))
        .hint("give recorded sessions or folders of them, `plimsoll bill FOLDER`")
}
