//! Arguments of `plimsoll trim`.

use std::path::PathBuf;

use clap::Args;

use super::{PolicyArguments, SessionArguments, WindowArguments};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[command(
    after_help = "Exit codes: 0 written, 1 trimming is not due (nothing is written) or writing failed, 2 wrong arguments or input.\nSo `plimsoll trim S --out T && S=T` uses the trimmed session only where there is one."
)]
pub(crate) struct TrimArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
    /// Read the whole session, as if the agent had never compacted its context
    #[arg(long)]
    pub(crate) no_compaction: bool,
    #[command(flatten)]
    pub(crate) window: WindowArguments,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "OUT")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the file of `--out` where it exists
    #[arg(long, requires = "out")]
    pub(crate) overwrite: bool,
    /// Trim even if it is not due
    #[arg(long, conflicts_with = "policy")]
    pub(crate) force: bool,
    /// Write the context of the next request under `plimsoll`, `window`, `clear-tool-uses[:TRIGGER,KEEP]`, `newest[:BUDGET]` or `full` instead of trimming by context.json
    #[arg(long, value_name = "POLICY", conflicts_with_all = ["window", "context_config"])]
    pub(crate) policy: Option<String>,
    #[command(flatten)]
    pub(crate) settings: PolicyArguments,
    /// Print the report as JSON on standard output
    #[arg(long, requires = "out")]
    pub(crate) json: bool,
}
