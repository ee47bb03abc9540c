//! The command line: reads arguments and configuration, runs one command, prints. The binary and the Python package call [`run()`].

mod ab;
mod agent;
mod arguments;
mod assemble;
mod bill;
mod cache;
mod cards;
mod cascade;
mod client;
mod clock;
mod config;
mod context_config;
mod doctor;
mod embedded;
mod environment;
mod error;
mod explain;
mod figures;
mod graph;
mod heaps;
mod html;
mod import;
mod inspect;
mod learn;
mod library;
mod load;
mod log;
mod mcp;
mod memory;
mod models;
mod needs;
mod output;
mod packaging;
mod pages;
mod pin;
mod pressure;
mod pricing;
mod probe;
mod progress;
mod recall;
mod refs;
mod replay;
mod run;
mod search;
mod serve;
mod sessions;
mod settings;
mod store;
mod stored_sessions;
mod system;
mod tenant;
mod tools;
mod trim;
mod trust;
mod ui;
mod upkeep;
mod validate;
mod work;
mod write_file;

use std::ffi::OsString;

use clap::Parser as _;
use plimsoll_core::pins::WishKind;

use arguments::{Arguments, Command};
use error::CommandError;

pub use embedded::{BoundRules, OpenStore};
pub use output::Captured;

/// Runs the command that `arguments` name, the program's name first, and returns its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return output::usage(&error),
    };
    let done = match arguments.command {
        // The exit code is that of the client.
        Command::RunAgent(agent) => agent::run(&agent),
        command => execute(command).map(|()| 0),
    };
    done.unwrap_or_else(|error| output::failure(&error))
}

/// Runs a command like [`run()`], and returns its output instead of printing it.
pub fn run_captured(arguments: impl IntoIterator<Item = OsString>) -> Captured {
    output::captured(|| run(arguments))
}

fn execute(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Bill(bill) => bill::run(&bill),
        Command::Inspect(inspect) => inspect::run(&inspect),
        Command::Pressure(pressure) => pressure::run(&pressure),
        Command::Trim(trim) => trim::run(&trim),
        Command::Replay(replay) => replay::run(&replay),
        Command::Ab(ab) => ab::run(&ab),
        Command::Learn(learn) => learn::run(&learn),
        Command::Log(log) => log::run(&log),
        Command::Ref(refs) => refs::run(&refs),
        Command::Import(import) => import::run(&import),
        Command::Recall(recall) => recall::run(&recall),
        Command::Search(search) => search::run(&search),
        Command::Explain(explain) => explain::run(&explain),
        Command::Pin(arguments) => pin::run(&arguments, WishKind::Pin),
        Command::Drop(arguments) => pin::run(&arguments, WishKind::Drop),
        Command::Models(models) => models::run(&models),
        Command::Run(arguments) => run::run(&arguments),
        Command::Validate(validate) => validate::run(&validate),
        Command::Graph(graph) => graph::run(&graph),
        Command::Cards(cards) => cards::run(&cards),
        Command::Work(work) => work::run(&work),
        Command::Memory(memory) => memory::run(&memory),
        Command::Assemble(assemble) => assemble::run(&assemble),
        Command::Cache(cache) => cache::run(&cache),
        Command::Tools(tools) => tools::run(&tools),
        Command::Serve(serve) => serve::run(&serve),
        Command::Ui(ui) => ui::run(&ui),
        Command::Mcp(mcp) => mcp::run(&mcp),
        Command::Env(env) => environment::run(&env),
        Command::RunAgent(agent) => agent::run(&agent).map(drop),
        Command::Config(config) => settings::run(&config),
        Command::Store(store) => upkeep::run(&store),
        Command::Sessions(sessions) => stored_sessions::run(&sessions),
        Command::Tenant(tenant) => tenant::run(&tenant),
        Command::Trust(trust) => trust::run(&trust),
        Command::Doctor(doctor) => doctor::run(&doctor),
        Command::Completions { shell } => packaging::completions(shell),
        Command::Man { folder } => packaging::manual(&folder),
    }
}
