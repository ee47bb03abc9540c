//! Arguments of `plimsoll run`.

use std::path::PathBuf;

use clap::Args;

use super::StoreArguments;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 it ran to its end, 1 a phase failed or a model gave no answer, 2 wrong arguments, input or cascade.\nA run that stopped goes on with `--resume SESSION`: what its models and tools answered is not asked again."
)]
pub(crate) struct RunArguments {
    /// The cascade, in YAML or JSON
    pub(crate) cascade: PathBuf,
    /// The input: a JSON object, or `@FILE` that holds one
    #[arg(long, short, value_name = "JSON")]
    pub(crate) input: Option<String>,
    /// The model of all calls, whatever the cascade names, `provider/model`; `scripted:FILE` answers everything from a file
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The model of one phase, over all others
    #[arg(long, value_name = "PHASE=MODEL")]
    pub(crate) model_for: Vec<String>,
    /// Another model instead of one that the cascade names
    #[arg(long, value_name = "OLD=NEW")]
    pub(crate) model_map: Vec<String>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// The session's id; by default made of the cascade's and the time
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Resume a session where its record ends
    #[arg(long, value_name = "SESSION", conflicts_with = "session")]
    pub(crate) resume: Option<String>,
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The folder for `images/SESSION/PHASE/`, instead of the current one
    #[arg(long, value_name = "FOLDER")]
    pub(crate) images: Option<PathBuf>,
    /// Allow a tool that comes with Plimsoll for this run: `shell`, `python`, `read_file`, `write_file`, `http_get`, `sql`
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    pub(crate) allow_tool: Vec<String>,
    /// Answer for missing tools and validators, instead of refusing the cascade
    #[arg(long)]
    pub(crate) stub_tools: bool,
    /// The answer to the question of a phase, instead of asking at the terminal
    #[arg(long, value_name = "PHASE=ANSWER")]
    pub(crate) answer: Vec<String>,
    /// Show the context of each phase without calling a model
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print each event as a line of JSON, and the account as the last
    #[arg(long)]
    pub(crate) json: bool,
}
