//! `plimsoll-upstream`: the scripted provider as a program, for clients and load tools.

use std::error::Error;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use plimsoll_testkit::provider::{
    AnswerMode, Binding, Keep, Pace, PlanAction, Rules, ScriptedPlan, ScriptedProvider,
    ScriptedProviderConfig, strict,
};

/// A scripted provider on loopback, until it is interrupted.
///
/// It speaks Anthropic Messages, Chat Completions, Responses and Gemini, and plays a plan of tool turns.
#[derive(Debug, Parser)]
#[command(name = "plimsoll-upstream")]
struct UpstreamArguments {
    /// Where to listen; port 0 takes a free one. The address is printed.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The plan: mending, short, nine, mixed or again.
    #[arg(long, default_value = "mending", value_parser = ScriptedPlan::NAMES)]
    plan: String,
    /// How many tool turns of the plan to play, all by default.
    #[arg(long)]
    turns: Option<usize>,
    /// The folder in which the client works.
    #[arg(long, default_value = ".")]
    workspace: PathBuf,
    /// Expand a ref after every so many turns, alone and beside another call in turn.
    #[arg(long)]
    expand_every: Option<usize>,
    /// Add a turn that uses a tool, `NAME={ARGUMENTS}`; NAME is the end of its name.
    #[arg(long = "use", value_parser = used)]
    uses: Vec<PlanAction>,
    /// Keep every request and answer in this folder, which must exist.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Answer with so many words and without reading, for load.
    #[arg(long, conflicts_with = "forward")]
    plain: Option<usize>,
    /// Hand everything on to this address, `http://HOST:PORT`.
    #[arg(long)]
    forward: Option<String>,
    /// Charge models that have no listed price as this one.
    #[arg(long)]
    price_as: Option<String>,
    /// Accept thinking that does not fit what stands before it.
    #[arg(long)]
    unbound: bool,
    /// Accept what a provider would refuse.
    #[arg(long)]
    lenient: bool,
    /// Milliseconds between two events of a stream; without it they follow at once.
    #[arg(long)]
    pace: Option<u64>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = UpstreamArguments::parse();
    let answers = match (arguments.plain, arguments.forward) {
        (Some(words), _) => AnswerMode::Plain { words },
        (_, Some(to)) => AnswerMode::Forwarded { to },
        _ => {
            let workspace = arguments.workspace.canonicalize()?;
            let workspace = workspace.to_string_lossy();
            let mut plan = ScriptedPlan::named(&arguments.plan, workspace).ok_or("no such plan")?;
            plan.turns.truncate(arguments.turns.unwrap_or(usize::MAX));
            if let Some(every) = arguments.expand_every {
                plan = expanding(plan, every.max(1));
            }
            plan = plan.using(arguments.uses);
            let check = (!arguments.lenient).then(strict);
            let binding = if arguments.unbound { Binding::Never } else { Binding::ByModel };
            let rules = Rules { price_as: arguments.price_as, binding };
            AnswerMode::Planned { plan, check, rules }
        }
    };
    let keep = arguments.keep.map_or(Keep::Nothing, Keep::Folder);
    let pace = match arguments.pace {
        Some(millis) => Pace::Apart(Duration::from_millis(millis)),
        None if arguments.plain.is_some() => Pace::Together,
        None => Pace::Apart(Duration::ZERO),
    };
    let config = ScriptedProviderConfig { answers, keep, pace };
    let provider = ScriptedProvider::listen(arguments.listen, config).await?;
    let mut output = std::io::stdout();
    writeln!(output, "{}", provider.address())?;
    output.flush()?;
    tokio::signal::ctrl_c().await?;
    Ok(())
}

fn used(text: &str) -> Result<PlanAction, String> {
    let (tool, arguments) = text.split_once('=').ok_or("it is not NAME={ARGUMENTS}")?;
    let arguments = serde_json::from_str(arguments).map_err(|error| error.to_string())?;
    Ok(PlanAction::Use { tool: tool.to_owned(), arguments })
}

/// Adds expansions: after one group of turns alone, after the next beside its last call.
fn expanding(plan: ScriptedPlan, every: usize) -> ScriptedPlan {
    let mut turns = Vec::new();
    for (group, some) in plan.turns.chunks(every).enumerate() {
        turns.extend(some.iter().cloned());
        match turns.last_mut() {
            Some(last) if group % 2 == 1 => last.insert(0, PlanAction::Expand),
            _ => turns.push(vec![PlanAction::Expand]),
        }
    }
    ScriptedPlan { turns, ..plan }
}
