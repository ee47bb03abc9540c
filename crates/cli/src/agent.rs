//! `plimsoll run-agent`: runs a client behind a gateway and prints the savings.

mod forward;
mod signals;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use plimsoll_gateway::{Gateway, serve};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use self::forward::Forwarding;
use self::signals::Signals;
use crate::arguments::{RunAgentArguments, StorePlaceArguments};
use crate::client::{Client, usual_variables};
use crate::config::{self, Config, environment};
use crate::error::CommandError;
use crate::figures::{dollars, mark, thousands};
use crate::output;
use crate::probe;
use crate::serve::{LOG, log, open, runtime};

pub(crate) fn run(arguments: &RunAgentArguments) -> Result<u8, CommandError> {
    config::for_sending(arguments.settings.config.as_deref())?;
    let config = config::config(&arguments.settings)?;
    let Some((program, rest)) = arguments.command.split_first() else {
        return Err(CommandError::usage(anyhow::anyhow!("no program is named")));
    };
    let upstream = || forward::upstream(arguments.upstream.as_deref(), program);
    let forward = arguments.forward.then(upstream).transpose()?;
    let running = Some(config.gateway.listen).filter(|address| probe::is_gateway(*address));
    // A running gateway serves others too, and its clients may not read each other's traffic to the host.
    let own = match running {
        Some(_) if forward.is_none() => None,
        _ => Some(Own::start(config, &arguments.store)?),
    };
    let address = own.as_ref().map(|own| own.address).or(running);
    let Some(address) = address else {
        return Err(CommandError::failure(anyhow::anyhow!("no gateway runs")));
    };
    let forwarding = match (&own, forward) {
        (Some(own), Some(upstream)) => {
            Some(own.runtime.block_on(Forwarding::start(&own.gateway, upstream))?)
        }
        _ => None,
    };
    let before = Figures::read(address);
    let (mut command, told) = match &forwarding {
        Some(forwarding) => forwarding.command(program, rest),
        None => at_base(program, rest, &format!("http://{address}")),
    };
    if let Some(told) = told {
        output::note(&told);
    }
    let failed = |error| {
        let error = anyhow::Error::new(error).context(format!("cannot run {program}"));
        CommandError::failure(error)
    };
    // Before there is a client: a signal that comes while it starts is passed on too.
    let signals = own.as_ref().and_then(|own| {
        let _inside = own.runtime.enter();
        Some((own, Signals::take().ok()?))
    });
    let mut child = command.spawn().map_err(failed)?;
    let signals = signals.map(|(own, signals)| own.runtime.spawn(signals.pass_on(child.id())));
    let status = child.wait().map_err(failed)?;
    if let Some(signals) = signals {
        signals.abort();
    }
    if let (Some(before), Some(after)) = (before, Figures::read(address)) {
        // A gateway that was already running has logged them.
        for warning in own.iter().flat_map(|own| own.gateway.unlisted()) {
            output::warning(&warning);
        }
        output::note(&after.since(&before).told());
    }
    if let (Some(own), Some(forwarding)) = (&own, forwarding) {
        own.runtime.block_on(forwarding.end());
    }
    if let Some(own) = own {
        own.end();
    }
    Ok(code(status))
}

/// A gateway that runs as long as the client.
struct Own {
    runtime: Runtime,
    gateway: Arc<Gateway>,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

impl Own {
    fn start(mut config: Config, store: &StorePlaceArguments) -> Result<Self, CommandError> {
        // Log lines would interrupt the client's own screen.
        if environment(LOG).is_some() {
            log(&config.gateway)?;
        }
        // Take any free port: another program may hold the usual one.
        config.gateway.listen.set_port(0);
        let runtime = runtime()?;
        let (gateway, listener) = runtime.block_on(open(config, store))?;
        let address = listener.local_addr().map_err(CommandError::failure)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let gateway = Arc::new(gateway);
        let served = gateway.clone();
        let server = runtime.spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            let _ = serve(listener, served, stopped).await;
        });
        Ok(Self { runtime, gateway, address, stop, server })
    }

    /// Stops the gateway after the responses in progress.
    fn end(self) {
        let _ = self.stop.send(());
        let _ = self.runtime.block_on(self.server);
    }
}

/// Makes the command of a client that is pointed at a gateway, and a note where its environment is not enough.
fn at_base(program: &str, rest: &[String], base: &str) -> (Command, Option<String>) {
    let client = Client::of(program);
    let mut command = Command::new(program);
    command.args(client.map(|client| client.arguments(base)).unwrap_or_default()).args(rest);
    command.envs(client.map_or_else(|| usual_variables(base), |client| client.variables(base)));
    let told = client.and_then(|client| client.file(base)).map(|(file, text)| {
        format!("{program} reads no address from the environment; {file} needs {text}")
    });
    (command, told)
}

/// Returns the exit code of the child process; a signal gives 128 plus its number.
fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(signal) = status.signal() {
            return u8::try_from(128 + signal).unwrap_or(1);
        }
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Counters of a gateway.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Figures {
    turns: u64,
    full: u64,
    sent: u64,
    /// Millionths of a US dollar.
    billed: u64,
    without: u64,
    /// Of the bill, for models whose price is not known.
    billed_estimate: u64,
}

impl Figures {
    fn read(address: SocketAddr) -> Option<Self> {
        Some(Self::parse(&probe::get(address, "/metrics")?))
    }

    fn parse(text: &str) -> Self {
        let values: BTreeMap<&str, u64> = text
            .lines()
            .filter_map(|line| line.rsplit_once(' '))
            .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
            .collect();
        let value = |name: &str| values.get(name).copied().unwrap_or(0);
        let outcome = |word: &str| value(&format!("plimsoll_outcomes_total{{outcome=\"{word}\"}}"));
        let dollars =
            |word: &str| value(&format!("plimsoll_microdollars_total{{kind=\"{word}\"}}"));
        let tokens = |word: &str| value(&format!("plimsoll_tokens_total{{kind=\"{word}\"}}"));
        Self {
            turns: outcome("bounded") + outcome("untouched") + outcome("observed"),
            full: tokens("full"),
            sent: tokens("sent"),
            billed: dollars("billed"),
            without: dollars("without"),
            billed_estimate: dollars("billed_estimate"),
        }
    }

    fn since(self, before: &Self) -> Self {
        Self {
            turns: self.turns.saturating_sub(before.turns),
            full: self.full.saturating_sub(before.full),
            sent: self.sent.saturating_sub(before.sent),
            billed: self.billed.saturating_sub(before.billed),
            without: self.without.saturating_sub(before.without),
            billed_estimate: self.billed_estimate.saturating_sub(before.billed_estimate),
        }
    }

    fn told(self) -> String {
        if self.turns == 0 {
            return "plimsoll: no turn went through the gateway; a client that does not read the variables needs its own settings (`plimsoll env`)".to_owned();
        }
        let share = |now: u64, before: u64| match before {
            0 => 0,
            _ => (100.0 * (before as f64 - now as f64) / before as f64).round() as i64,
        };
        let mut told = format!(
            "plimsoll: {} turns; {} of {} input tokens sent ({} % fewer)",
            thousands(self.turns),
            thousands(self.sent),
            thousands(self.full),
            share(self.sent, self.full),
        );
        let dollars = |millionths: u64| dollars(millionths as f64 / 1e6, 4);
        if self.without > 0 {
            let saved = share(self.billed, self.without);
            let is_estimate = self.billed_estimate > 0;
            let mark = mark(is_estimate);
            let (word, percent) = if saved < 0 { ("dearer", -saved) } else { ("cheaper", saved) };
            let _ = write!(
                told,
                "; input billed {mark}{}, about {} without ({percent} % {word})",
                dollars(self.billed),
                dollars(self.without),
            );
            if is_estimate {
                let _ = write!(
                    told,
                    "; {mark}: {} of it is for models without a known price",
                    dollars(self.billed_estimate),
                );
            }
        } else {
            told.push_str("; the provider reported no usage, so nothing is known of the bill");
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_at_the_price_of_another_model_is_marked_as_an_estimate() {
        let figures = |estimate: u64| Figures {
            turns: 1,
            billed: 9000,
            without: 10_000,
            billed_estimate: estimate,
            ..Figures::default()
        };
        let told = figures(4000).told();
        let end = "; input billed ~$0.0090, about $0.0100 without (10 % cheaper); ~: $0.0040 of it is for models without a known price";
        assert!(told.ends_with(end), "{told}");
        assert!(!figures(0).told().contains('~'));
    }

    #[test]
    fn a_client_that_goes_around_the_gateway_is_told_of() {
        assert!(Figures::default().told().contains("no turn went through"));
    }

    #[test]
    fn savings_are_read_from_the_figures() {
        let figures = |billed: u64| {
            let text = format!(
                "plimsoll_outcomes_total{{outcome=\"bounded\"}} 3\nplimsoll_tokens_total{{kind=\"full\"}} 2000\n\
                 plimsoll_tokens_total{{kind=\"sent\"}} 500\nplimsoll_microdollars_total{{kind=\"billed\"}} {billed}\n\
                 plimsoll_microdollars_total{{kind=\"without\"}} 10000\n"
            );
            Figures::parse(&text).since(&Figures::default()).told()
        };
        assert_eq!(
            figures(9000),
            "plimsoll: 3 turns; 500 of 2,000 input tokens sent (75 % fewer); input billed $0.0090, about $0.0100 without (10 % cheaper)"
        );
        assert!(
            figures(11_000).ends_with("input billed $0.0110, about $0.0100 without (10 % dearer)")
        );
    }
}
