//! Arguments of `plimsoll memory`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use plimsoll_core::memory::{MemoryKind, MemoryState, Outcome};

use super::StoreArguments;

#[derive(Debug, Args)]
pub(crate) struct MemoryArguments {
    #[command(subcommand)]
    pub(crate) command: MemoryCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// Write a record: a decision, a fact, a procedure, an episode, a censor
    Add(AddArguments),
    /// List records, newest first
    List(ListArguments),
    /// Show the whole record, now or at an earlier time
    Show(ShowArguments),
    /// Search records of all kinds by meaning and by words
    Search(SearchMemoryArguments),
    /// Extract decisions, tasks, entities, metrics, links and facts from messages, without a model
    Extract(ExtractArguments),
    /// Confirm a fact
    Confirm(OneArguments),
    /// Mark a fact as core
    Mark(OneArguments),
    /// Correct what a record says; its earlier states stay
    Edit(EditArguments),
    /// Mark a record as wrong: it is no longer shown, nor extracted again
    Disprove(OneArguments),
    /// Record that a procedure was used, or that a censor triggered
    Used(UsedArguments),
    /// Take a record out of use
    Retire(OneArguments),
    /// Go through new records one by one: keep, edit or drop each
    Review(ReviewArguments),
    /// Replace an old record by a new one
    Supersede(SupersedeArguments),
    /// Record the outcome of a decision
    Outcome(OutcomeArguments),
    /// Age the records: old episodes are summarized and archived
    Age(PlainArguments),
    /// Remove records by id, or all of a user, session, workspace or agent, or from a source; they are not extracted again
    Forget(ForgetArguments),
    /// Write all records as lines of JSON
    Export(ExportArguments),
    /// Read records: lines that `export` wrote, or new ones such as `{"kind": "fact", "text": "…"}`
    Import(ImportMemoryArguments),
    /// Show statistics of memory: relevance, use of the budget, confirmations, growth
    Stats(PlainArguments),
}

/// The scope of a record.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ScopeArguments {
    #[arg(long, value_name = "ID")]
    pub(crate) workspace: Option<String>,
    #[arg(long, value_name = "ID")]
    pub(crate) user: Option<String>,
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct PlainArguments {
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Settings instead of `plimsoll.toml`
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The content of a record.
#[derive(Debug, Clone, Args)]
pub(crate) struct SaidArguments {
    /// decision, fact, entity, task, metric, link, procedure, episode or censor
    #[arg(value_parser = kind)]
    pub(crate) kind: MemoryKind,
    /// The decision, fact or event in one sentence; the reason of a censor, the purpose of a procedure
    #[arg(default_value = "")]
    pub(crate) text: String,
    /// The name of a procedure, or the pattern of a censor
    #[arg(long, default_value = "", hide_default_value = true)]
    pub(crate) name: String,
    /// A reason of a decision or a step of a procedure; once for each
    #[arg(long = "point", value_name = "TEXT")]
    pub(crate) points: Vec<String>,
    /// A few lines instead of the generated summary
    #[arg(long, value_name = "TEXT")]
    pub(crate) summary: Option<String>,
    /// The full text; only `memory show` prints it
    #[arg(long, value_name = "TEXT")]
    pub(crate) full: Option<String>,
    /// The id; by default it follows from the content
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// The origin: only the operator's records may act as instructions
    #[arg(long, default_value = "operator")]
    pub(crate) origin: String,
    /// The confidence, 0 to 1
    #[arg(long, value_name = "SHARE")]
    pub(crate) confidence: Option<f32>,
    /// The ref of the source text
    #[arg(long, value_name = "REF")]
    pub(crate) source: Option<String>,
    /// A tag; once for each
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// The time of the event: `2026-01-31` or `2026-01-31T14:05:00Z`
    #[arg(long, value_name = "DATE")]
    pub(crate) at: Option<String>,
    /// The time at which it expires
    #[arg(long, value_name = "DATE")]
    pub(crate) expires: Option<String>,
    /// The censor blocks instead of warning
    #[arg(long)]
    pub(crate) block: bool,
    /// The outcome of a decision: success, partial or failure
    #[arg(long, value_parser = outcome)]
    pub(crate) outcome: Option<Outcome>,
    #[command(flatten)]
    pub(crate) scope: ScopeArguments,
}

#[derive(Debug, Args)]
pub(crate) struct AddArguments {
    #[command(flatten)]
    pub(crate) said: SaidArguments,
    #[command(flatten)]
    pub(crate) plain: PlainArguments,
}

#[derive(Debug, Args)]
pub(crate) struct SupersedeArguments {
    /// The id of the record that is superseded
    pub(crate) old: String,
    #[command(flatten)]
    pub(crate) said: SaidArguments,
    #[command(flatten)]
    pub(crate) plain: PlainArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Only records of this kind; once for each
    #[arg(long = "kind", value_parser = kind)]
    pub(crate) kinds: Vec<MemoryKind>,
    /// Only records with this tag; once for each
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Only records in this state
    #[arg(long, value_parser = state)]
    pub(crate) state: Option<MemoryState>,
    /// Also superseded, inactive, archived and retired ones
    #[arg(long)]
    pub(crate) all: bool,
    /// The most records
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) scope: ScopeArguments,
    #[command(flatten)]
    pub(crate) plain: PlainArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    pub(crate) id: String,
    /// As it was at this time: `2026-01-31` or `2026-01-31T14:05:00Z`
    #[arg(long, value_name = "DATE")]
    pub(crate) as_of: Option<String>,
    #[command(flatten)]
    pub(crate) plain: PlainArguments,
}

#[derive(Debug, Args)]
pub(crate) struct SearchMemoryArguments {
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// Only records with this tag; once for each
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// The most records
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) scope: ScopeArguments,
    #[command(flatten)]
    pub(crate) plain: PlainArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ExtractArguments {
    /// The messages to read and the scope of the facts; without a session, all sessions
    #[command(flatten)]
    pub(crate) scope: ScopeArguments,
    /// Also let the model of `[cards]` look for facts, by jobs within its quotas; `plimsoll work` does them
    #[arg(long)]
    pub(crate) queue_model: bool,
    #[command(flatten)]
    pub(crate) plain: PlainArguments,
}

#[derive(Debug, Args)]
pub(crate) struct OneArguments {
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) plain: PlainArguments,
}

#[derive(Debug, Args)]
pub(crate) struct UsedArguments {
    pub(crate) id: String,
    /// It did not help, or the censor triggered wrongly
    #[arg(long)]
    pub(crate) wrong: bool,
    #[command(flatten)]
    pub(crate) plain: PlainArguments,
}

#[derive(Debug, Args)]
pub(crate) struct OutcomeArguments {
    pub(crate) id: String,
    /// success, partial or failure
    #[arg(value_parser = outcome)]
    pub(crate) outcome: Outcome,
    /// The result, in a sentence
    #[arg(default_value = "")]
    pub(crate) result: String,
    #[command(flatten)]
    pub(crate) plain: PlainArguments,
}

#[derive(Debug, Args)]
pub(crate) struct EditArguments {
    pub(crate) id: String,
    /// The new text
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// The new name of a procedure, or the pattern of a censor
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// A reason of a decision or a step of a procedure, instead of all before; once for each
    #[arg(long = "point", value_name = "TEXT")]
    pub(crate) points: Vec<String>,
    /// A tag, instead of all before; once for each
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    #[command(flatten)]
    pub(crate) plain: PlainArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ReviewArguments {
    /// The most records
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) scope: ScopeArguments,
    #[command(flatten)]
    pub(crate) plain: PlainArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ForgetArguments {
    /// The ids of records
    #[arg(value_name = "ID", conflicts_with_all = ["workspace", "user", "session", "agent", "source"])]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) scope: ScopeArguments,
    /// The ref of a source: every record from it is removed
    #[arg(long, value_name = "REF", conflicts_with_all = ["workspace", "user", "session", "agent"])]
    pub(crate) source: Option<String>,
    #[command(flatten)]
    pub(crate) plain: PlainArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    #[command(flatten)]
    pub(crate) scope: ScopeArguments,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// The output file; by default standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportMemoryArguments {
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) plain: PlainArguments,
}

fn kind(name: &str) -> Result<MemoryKind, String> {
    known(name, MemoryKind::ALL, MemoryKind::as_str)
}

fn state(name: &str) -> Result<MemoryState, String> {
    known(name, MemoryState::ALL, MemoryState::as_str)
}

fn outcome(name: &str) -> Result<Outcome, String> {
    known(name, Outcome::ALL, Outcome::as_str)
}

/// Reads one of a few names, and tells the nearest of another.
fn known<T: Copy>(name: &str, all: &[T], called: impl Fn(T) -> &'static str) -> Result<T, String> {
    if let Some(found) = all.iter().find(|one| called(**one) == name) {
        return Ok(*found);
    }
    let names = all.iter().map(|one| called(*one));
    match plimsoll_core::nearest(name, names.clone()) {
        Some(nearest) => Err(format!("the nearest is `{nearest}`")),
        None => Err(format!("one of {}", names.collect::<Vec<_>>().join(", "))),
    }
}
