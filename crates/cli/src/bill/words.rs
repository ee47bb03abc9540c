//! What the rows and settings of a bill are called, and what is said beside its figures.

use plimsoll_core::bill::{Estimate, Row, Saving};

use super::gather::Bill;
use crate::error::CommandError;
use crate::output::thousands;

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

/// What an estimate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// It does not touch these sessions.
    Nothing,
    WorthIt,
    /// Its range holds zero.
    WithinError,
    NotWorthIt,
}

impl Verdict {
    /// Judges an estimate; `billed` is what everything cost.
    pub(super) fn of(estimate: Estimate, billed: f64) -> Self {
        // A thousandth of the bill is below what any of these figures can tell.
        let least = billed * 0.001;
        if estimate.high.abs().max(estimate.low.abs()) < least {
            Self::Nothing
        } else if estimate.low > 0.0 {
            Self::WorthIt
        } else if estimate.high < 0.0 {
            Self::NotWorthIt
        } else {
            Self::WithinError
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing to gain",
            Self::WorthIt => "",
            Self::WithinError => "within its error of zero",
            Self::NotWorthIt => "not worth it",
        }
    }
}

/// Returns dollars with the digits that a bill of `total` needs.
pub(super) fn dollars(amount: f64, total: f64) -> String {
    let digits = if total >= 10.0 { 2 } else { 4 };
    let sign = if amount < 0.0 && format!("{:.digits$}", -amount) != format!("{:.digits$}", 0.0) {
        "−"
    } else {
        ""
    };
    let text = format!("{:.digits$}", amount.abs());
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), thousands);
    format!("{sign}${whole}.{rest}")
}

/// Returns a number of tokens, short: `45.2 M`.
pub(super) fn tokens(number: f64) -> String {
    match number {
        ..10_000.0 => thousands(number.max(0.0).round() as u64),
        ..1_000_000.0 => format!("{:.0} k", number / 1e3),
        ..1e9 => format!("{:.1} M", number / 1e6),
        _ => format!("{:.2} G", number / 1e9),
    }
}

pub(super) fn counted(number: u64, noun: &str) -> String {
    format!("{} {}", thousands(number), plimsoll_core::text::plural(number as usize, noun))
}

/// Returns one line for each thing that the figures do not tell by themselves.
pub(super) fn warnings(bill: &Bill) -> Vec<String> {
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
pub(super) fn nothing(bill: &Bill, places: &[String]) -> CommandError {
    let files = &bill.files;
    let why = if files.without_usage > 0 {
        format!("{} without any reported usage", counted(files.without_usage as u64, "session"))
    } else if files.earlier > 0 {
        format!("{} before that date, none since", counted(files.earlier, "request"))
    } else if places.is_empty() {
        "no recorded session".to_owned()
    } else {
        format!("no session in {}", places.join(", "))
    };
    CommandError::finding(anyhow::anyhow!("nothing to bill: {why}"))
        .hint("give recorded sessions or folders of them, `plimsoll bill FOLDER`")
}
