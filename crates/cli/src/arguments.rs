//! The command line as clap sees it: the commands, and groups of arguments that several have.

mod ab;
mod assemble;
mod bill;
mod cache;
mod cards;
mod config;
mod doctor;
mod env;
mod explain;
mod graph;
mod import;
mod inspect;
mod learn;
mod log;
mod mcp;
mod memory;
mod models;
mod pin;
mod pressure;
mod recall;
mod refs;
mod replay;
mod run;
mod run_agent;
mod search;
mod serve;
mod store;
mod tenant;
mod tools;
mod trim;
mod trust;
mod ui;
mod validate;
mod work;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use ab::AbArguments;
pub(crate) use assemble::AssembleArguments;
pub(crate) use bill::BillArguments;
pub(crate) use cache::{CacheArguments, CacheCommand, CheckArguments};
pub(crate) use cards::CardsArguments;
pub(crate) use config::{ConfigArguments, ConfigCommand};
pub(crate) use doctor::DoctorArguments;
pub(crate) use env::EnvArguments;
pub(crate) use explain::ExplainArguments;
pub(crate) use graph::{GraphArguments, GraphFormat};
pub(crate) use import::ImportArguments;
pub(crate) use inspect::InspectArguments;
pub(crate) use learn::LearnArguments;
pub(crate) use log::LogArguments;
pub(crate) use mcp::McpArguments;
pub(crate) use memory::{
    AddArguments, EditArguments, ExportArguments, ExtractArguments, ForgetArguments,
    ImportMemoryArguments, ListArguments, MemoryArguments, MemoryCommand, PlainArguments,
    ReviewArguments, SaidArguments, ScopeArguments, SearchMemoryArguments, ShowArguments,
    SupersedeArguments, UsedArguments,
};
pub(crate) use models::{ModelsArguments, ModelsCommand, PricesArguments};
pub(crate) use pin::PinArguments;
pub(crate) use pressure::{PressureArguments, PressureFormat};
pub(crate) use recall::RecallArguments;
pub(crate) use refs::{RefArguments, RefCommand, RefGetArguments};
pub(crate) use replay::{PriceOverrides, ReplayArguments};
pub(crate) use run::RunArguments;
pub(crate) use run_agent::RunAgentArguments;
pub(crate) use search::SearchArguments;
pub(crate) use serve::ServeArguments;
pub(crate) use store::{StoreCommand, StoreCommandArguments};
pub(crate) use tenant::{TenantArguments, TenantCommand};
pub(crate) use tools::{ToolsArguments, ToolsCommand};
pub(crate) use trim::TrimArguments;
pub(crate) use trust::TrustArguments;
pub(crate) use ui::UiArguments;
pub(crate) use validate::ValidateArguments;
pub(crate) use work::WorkArguments;

/// Context engine for LLM agents: bounds, prices and explains what a model sees
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, about, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the cost of recorded sessions by cause, and which settings would have saved money; without a file, of all sessions on this machine
    Bill(BillArguments),
    /// Show the content and the tokens of a recorded session; without a file, list the sessions on this machine
    Inspect(InspectArguments),
    /// Show how full a session makes its context window
    Pressure(PressureArguments),
    /// Write a smaller session in its own format
    Trim(TrimArguments),
    /// Replay a recorded session under a policy: the context, the cost and the missing content of each turn
    Replay(ReplayArguments),
    /// Ask a model for the next step with the full and with the bounded context, and compare them
    Ab(AbArguments),
    /// Learn from recorded sessions how often results are needed again, and write settings that save work on other sessions
    Learn(LearnArguments),
    /// Read the unified log of a store: messages and context decisions
    Log(LogArguments),
    /// Print the content behind a ref, list refs, or remove expired ones
    Ref(RefArguments),
    /// Check a store's file, or copy it while others use it
    Store(StoreCommandArguments),
    /// List the sessions of a store, newest first
    Sessions(SessionsArguments),
    /// List, export and erase the tenants of a store
    Tenant(TenantArguments),
    /// Put messages into a store: dialogue lines, or recorded sessions of any known format
    Import(ImportArguments),
    /// Find the messages of a store that answer a question, within a budget and without a model
    Recall(RecallArguments),
    /// Search the messages of a store
    Search(SearchArguments),
    /// Explain one turn: every message's treatment, reason, size and ref
    Explain(ExplainArguments),
    /// Keep a message of a stored session whole, in every later request
    Pin(PinArguments),
    /// Let a message of a stored session, or a call with its results, go first
    Drop(PinArguments),
    /// Show which model providers are configured and reachable, and the prices of models
    Models(ModelsArguments),
    /// Check cascades and print one line for each problem
    Validate(ValidateArguments),
    /// Draw a cascade: its phases, their order, and the context of each
    Graph(GraphArguments),
    /// Run a cascade: its phases in order, each with a context selected for it
    Run(RunArguments),
    /// List context cards, which summarise the messages of a store, and show the selection for a task
    Cards(CardsArguments),
    /// Run the waiting jobs of a store: summaries and vectors of context cards
    Work(WorkArguments),
    /// Write, search, confirm, supersede and forget memory records
    Memory(MemoryArguments),
    /// Assemble the context for a turn within a budget: rules, memory and messages
    Assemble(AssembleArguments),
    /// List, show and evict cached answers, and check the guard that serves them
    Cache(CacheArguments),
    /// List, add and show tool schemas, and print the directory that replaces them in a request
    Tools(ToolsArguments),
    /// Serve the gateway: a proxy in front of the OpenAI, Anthropic and Gemini APIs that bounds what a model sees
    Serve(ServeArguments),
    /// Serve the dashboard over a store or over recorded sessions, and the REST interface that it uses
    Ui(UiArguments),
    /// Serve the store to clients of MCP: recall, memory, refs and receipts as eight tools
    Mcp(McpArguments),
    /// Print the settings that point a client at the gateway
    Env(EnvArguments),
    /// Run a client behind the gateway and print the savings: `plimsoll run-agent -- claude`
    RunAgent(RunAgentArguments),
    /// Show the settings in force and where they come from, and check the files that hold them
    Config(ConfigArguments),
    /// Allow the `plimsoll.toml` of a folder to name upstreams, keys, commands and stores
    Trust(TrustArguments),
    /// Check whether a gateway would work here: settings, store, port, upstreams, clients
    Doctor(DoctorArguments),
    /// Print completions for a shell
    Completions { shell: clap_complete::Shell },
    /// Write a manual page for each command into a folder
    #[command(hide = true)]
    Man { folder: PathBuf },
}

/// A session, and how it is read, counted and priced.
#[derive(Debug, Clone, Args)]
pub(crate) struct SessionArguments {
    /// The recorded session, `-` for standard input; the content decides the format
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) reading: ReadingArguments,
}

/// How a session is read, counted and priced.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ReadingArguments {
    /// Count tokens by `o200k`, `cl100k`, `claude`, `estimate`, `chars:N` or `o200k:FACTOR` instead of by the session's model
    #[arg(long, value_name = "TOKENIZER")]
    pub(crate) tokens: Option<String>,
    /// Prices and cache rules over the user's `pricing.toml` and the shipped one
    #[arg(long, value_name = "FILE")]
    pub(crate) pricing: Option<PathBuf>,
    /// Price as this model instead of the recorded one
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// List each skipped or repaired record
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Keep the session's messages and receipts in this store, so that its refs resolve later
    #[arg(long, value_name = "PATH|URL")]
    pub(crate) store: Option<String>,
    /// Keep them in this ClickHouse, beside the store: `clickhouse://[user[:password]@]host[:port][/database]`
    #[arg(long, value_name = "URL")]
    pub(crate) history: Option<String>,
}

/// Which store is meant, and whose records in it.
#[derive(Debug, Clone, Args)]
pub(crate) struct StoreArguments {
    #[command(flatten)]
    pub(crate) place: StorePlaceArguments,
    /// The tenant whose records are meant, where a gateway keeps several; by default those without a tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SessionsArguments {
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// The most sessions that are shown
    #[arg(long, default_value_t = 50, value_name = "NUMBER")]
    pub(crate) limit: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which store is meant.
#[derive(Debug, Clone, Args)]
pub(crate) struct StorePlaceArguments {
    /// The store, instead of `PLIMSOLL_STORE`, `[store]` of plimsoll.toml or the file in the user's data folder
    #[arg(long, value_name = "PATH|URL")]
    pub(crate) store: Option<String>,
    /// The ClickHouse that keeps the history, instead of `PLIMSOLL_HISTORY` or `[store]`: `clickhouse://[user[:password]@]host[:port][/database]`
    #[arg(long, value_name = "URL")]
    pub(crate) history: Option<String>,
}

/// Which settings decide the context.
#[derive(Debug, Clone, Args)]
pub(crate) struct PolicyArguments {
    /// Settings instead of `plimsoll.toml` here and in the user's configuration folder
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The ceiling in tokens, instead of the configuration's
    #[arg(long, value_name = "TOKENS")]
    pub(crate) budget: Option<u64>,
}

/// The context window and its shares.
#[derive(Debug, Clone, Args)]
pub(crate) struct WindowArguments {
    /// The context window in tokens, instead of that of `context.json` or the session
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// Shares and thresholds instead of `context.json` here
    #[arg(long, value_name = "FILE")]
    pub(crate) context_config: Option<PathBuf>,
}
