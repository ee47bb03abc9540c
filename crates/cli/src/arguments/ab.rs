//! Arguments of `plimsoll ab`.

use std::path::PathBuf;

use clap::Args;
use plimsoll_core::ab::BAR;

use super::PolicyArguments;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[command(
    after_help = "The messages of the sessions go to the model, secrets redacted as `[safety] summariser` says. Nothing is asked twice:\n`--resume` takes the answers that `--out` has."
)]
pub(crate) struct AbArguments {
    /// Recorded sessions, or folders of them; the content decides the format
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The model that is asked: `provider/model`, as `[models]` names it
    #[arg(long, value_name = "NAME")]
    pub(crate) model: String,
    /// The most turns that are asked; each session gives one before any gives a second
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) turns: usize,
    /// Choose other turns
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// The most US dollars that all answers in `--out` may have cost, those of earlier runs included
    #[arg(long, value_name = "X")]
    pub(crate) most_dollars: Option<f64>,
    /// The file that keeps each answer as it comes, one JSON object a line
    #[arg(long, value_name = "FILE", required_unless_present = "estimate")]
    pub(crate) out: Option<PathBuf>,
    /// Take the answers that the file has, and ask the rest
    #[arg(long, requires = "out")]
    pub(crate) resume: bool,
    /// Print the cost and ask nothing
    #[arg(long)]
    pub(crate) estimate: bool,
    #[command(flatten)]
    pub(crate) settings: PolicyArguments,
    /// The policy of the bounded context, named as for `replay`
    #[arg(long, value_name = "POLICY", default_value = "plimsoll")]
    pub(crate) policy: String,
    /// Choose only turns whose full context has at most so many tokens, for a model with a small window
    #[arg(long, value_name = "TOKENS", default_value_t = u64::MAX, hide_default_value = true)]
    pub(crate) most_tokens: u64,
    /// The most tokens of an answer
    #[arg(long, value_name = "TOKENS", default_value_t = 1024)]
    pub(crate) answer_tokens: u32,
    /// The temperature of the answers; without it the provider's own
    #[arg(long, value_name = "T")]
    pub(crate) temperature: Option<f32>,
    /// Ask the full context twice, to show how much the model differs from itself
    #[arg(long)]
    pub(crate) again: bool,
    /// Write calls and results as text, for a model that calls no tools
    #[arg(long)]
    pub(crate) plain: bool,
    /// The similarity above which two steps count as alike
    #[arg(long, value_name = "SHARE", default_value_t = BAR)]
    pub(crate) bar: f64,
    /// The worst turns that are shown side by side
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) worst: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
