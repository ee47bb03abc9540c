//! Kills the gateway while it works, again and again, and looks whether everything that was acknowledged is in the store.

use std::collections::{HashMap, HashSet};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use plimsoll_core::{Block, Message, Role};
use plimsoll_wire::{Events, ProviderAnswer, Watch, Wire};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep};

use crate::LoadError;
use crate::chance::SeededRandom;
use crate::client::{LoadClient, LoadRequest};
use crate::conversation::{AnswerDelivery, LoadConversation, SHAPES, plain_answer, result_marker};
use crate::figures::Latencies;
use crate::forms::WIRES;

#[derive(Debug, Clone, Args)]
pub(crate) struct KillArguments {
    /// The address at which the gateway will listen.
    #[arg(long)]
    via: String,
    #[arg(long, default_value_t = 100)]
    kills: usize,
    /// Clients that ask as fast as they are answered.
    #[arg(long, default_value_t = 8)]
    together: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value_t = 20)]
    words: usize,
    /// A command, split at spaces, that prints all that the store has as JSON lines.
    #[arg(long)]
    export: String,
    /// The command that starts the gateway.
    #[arg(last = true, required = true)]
    gateway: Vec<String>,
}

/// The longest that a gateway lives behind its first acknowledgement. Chosen: some tens of requests.
const LIFE: u64 = 250;

/// A line of the export.
#[derive(Debug, Deserialize)]
struct ExportLine {
    kind: String,
    record: Value,
}

/// A message in the store.
#[derive(Debug, Deserialize)]
struct StoredMessage {
    session: String,
    message: Message,
}

/// The work that the gateway acknowledged to a client.
#[derive(Debug, Default)]
struct Acknowledged {
    /// Words that must be in the store, each in one message only.
    markers: Vec<String>,
    /// Answers as their client read them, each with its word.
    answers: Vec<(String, Message)>,
    /// Answers that were not what the provider sent.
    changed: Vec<String>,
    /// Requests that were cut and asked again.
    repeated: usize,
}

pub(crate) async fn run(arguments: &KillArguments) -> Result<(String, Value), LoadError> {
    let mut chance = SeededRandom::new(arguments.seed);
    let acknowledged = Arc::new(AtomicU64::new(0));
    let (stop, stopped) = watch::channel(false);
    let mut workers = JoinSet::new();
    for number in 0..arguments.together {
        let worker = worker(arguments.clone(), number, acknowledged.clone(), stopped.clone());
        workers.spawn(worker);
    }
    let mut starts = Vec::new();
    let mut lives = Vec::new();
    for _ in 0..arguments.kills {
        let before = acknowledged.load(Ordering::Relaxed);
        let (mut gateway, took) = start(arguments).await?;
        starts.push(took);
        // A kill before anything was acknowledged shows nothing.
        while acknowledged.load(Ordering::Relaxed) == before {
            if let Some(status) = gateway.try_wait()? {
                return Err(format!("the gateway ended by itself: {status}").into());
            }
            sleep(Duration::from_millis(1)).await;
        }
        sleep(Duration::from_millis(chance.below(LIFE))).await;
        gateway.kill().await?;
        lives.push(acknowledged.load(Ordering::Relaxed) - before);
    }
    stop.send_replace(true);
    let told = workers.join_all().await;
    let kept = messages(&export(&arguments.export).await?)?;
    let altered: Vec<_> = told.iter().flat_map(|told| altered(&kept, &told.answers)).collect();
    let changed: Vec<&String> = told.iter().flat_map(|told| &told.changed).collect();
    let answers: usize = told.iter().map(|told| told.answers.len()).sum();
    let kept = markers_kept(&kept);
    let markers: Vec<&String> = told.iter().flat_map(|told| &told.markers).collect();
    let lost: Vec<_> =
        markers.iter().filter(|marker| !kept.contains_key(marker.as_str())).collect();
    let is_repeated = |marker: &&&String| kept.get(marker.as_str()).is_some_and(|most| *most > 1);
    let twice: Vec<_> = markers.iter().filter(is_repeated).collect();
    let starts = Latencies::new(starts.into_iter());
    let repeated: usize = told.iter().map(|told| told.repeated).sum();
    let total = acknowledged.load(Ordering::Relaxed);
    let fewest = lives.iter().min().copied().unwrap_or(0);
    let text = format!(
        "{} kills, {total} answers acknowledged ({fewest} at least and {:.0} on average in a life), {repeated} cut and asked \
         again; {} messages looked for, {} lost, {} twice in a session; {answers} answers compared, {} reached the client otherwise \
         and {} are stored otherwise; ready again within {:.0} ms (p50) and {:.0} ms (most)\n",
        arguments.kills,
        total as f64 / arguments.kills.max(1) as f64,
        markers.len(),
        lost.len(),
        twice.len(),
        changed.len(),
        altered.len(),
        starts.percentile(0.5),
        starts.percentile(1.0),
    );
    let figures = json!({
        "kills": arguments.kills,
        "acknowledged": total,
        "fewest_in_a_life": fewest,
        "repeated": repeated,
        "messages": markers.len(),
        "lost": lost,
        "twice": twice,
        "compared": answers,
        "changed": changed,
        "altered": altered,
        "start": starts.json(),
    });
    if lost.is_empty() && twice.is_empty() && changed.is_empty() && altered.is_empty() {
        Ok((text, figures))
    } else {
        Err(format!("{text}{figures:#}").into())
    }
}

/// Reads the messages of an export.
fn messages(export: &str) -> Result<Vec<StoredMessage>, LoadError> {
    let mut messages = Vec::new();
    for line in export.lines() {
        let line: ExportLine = serde_json::from_str(line)?;
        if line.kind == "message" {
            messages.push(serde_json::from_value(line.record)?);
        }
    }
    Ok(messages)
}

fn words(text: &str) -> HashSet<&str> {
    text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-')).collect()
}

/// Returns each word of the messages with how often one session has it at most.
///
/// A branch of a session has the messages before it too, under a name of its own.
fn markers_kept(kept: &[StoredMessage]) -> HashMap<String, usize> {
    let mut sessions: HashMap<&str, HashMap<String, usize>> = HashMap::new();
    for stored in kept {
        let shown = stored.message.shown();
        let session = sessions.entry(&stored.session).or_default();
        for word in words(&shown) {
            *session.entry(word.to_owned()).or_default() += 1;
        }
    }
    let mut most: HashMap<String, usize> = HashMap::new();
    for (word, count) in sessions.into_values().flatten() {
        let known = most.entry(word).or_default();
        *known = count.max(*known);
    }
    most
}

/// Returns the words of answers that the store has otherwise than the client read them, in any session.
fn altered(kept: &[StoredMessage], answers: &[(String, Message)]) -> Vec<String> {
    let mut stored: HashMap<String, Vec<&Message>> = HashMap::new();
    for message in kept.iter().map(|stored| &stored.message) {
        if message.role == Role::Assistant {
            let shown = message.shown();
            let word = shown.split_whitespace().next().unwrap_or_default().to_owned();
            stored.entry(word).or_default().push(message);
        }
    }
    let is_altered = |(word, read): &&(String, Message)| {
        // Time, usage and the provider's id are no part of what was said.
        let differs = |kept: &&&Message| (kept.role, &kept.blocks) != (read.role, &read.blocks);
        stored.get(word).is_some_and(|all| all.iter().find(differs).is_some())
    };
    answers.iter().filter(is_altered).map(|(word, _)| word.clone()).collect()
}

/// Reads an answer as its client does.
fn read(wire: Wire, delivery: AnswerDelivery, body: &[u8]) -> Option<Message> {
    let message = if delivery == AnswerDelivery::Whole {
        ProviderAnswer::of_body(wire, body).message
    } else {
        let (mut events, mut watch) = (Events::default(), Watch::new(wire));
        events.push(body);
        events.end();
        while let Some(event) = events.next_event() {
            watch.see(&event);
        }
        watch.answer().message.clone()
    };
    message.map(|message| (*message).clone())
}

fn text_of(message: &Message) -> String {
    let texts = message.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(&**text),
        _ => None,
    });
    texts.collect()
}

/// Starts the gateway and waits until it accepts connections.
async fn start(arguments: &KillArguments) -> Result<(Child, Duration), LoadError> {
    let begin = Instant::now();
    let (program, options) = arguments.gateway.split_first().ok_or("no command")?;
    let mut command = Command::new(program);
    let mut gateway = command.args(options).stdout(Stdio::null()).kill_on_drop(true).spawn()?;
    let authority = arguments.via.trim_start_matches("http://").trim_end_matches('/');
    while TcpStream::connect(authority).await.is_err() {
        if let Some(status) = gateway.try_wait()? {
            return Err(format!("the gateway ended by itself: {status}").into());
        }
        if begin.elapsed() > Duration::from_secs(30) {
            return Err("the gateway is not ready after 30 s".into());
        }
        sleep(Duration::from_millis(1)).await;
    }
    Ok((gateway, begin.elapsed()))
}

/// One client: it asks, and asks again what was cut, until it is told to stop.
async fn worker(
    arguments: KillArguments,
    number: u64,
    acknowledged: Arc<AtomicU64>,
    stopped: watch::Receiver<bool>,
) -> Acknowledged {
    let KillArguments { via, words, seed, .. } = arguments;
    let client = LoadClient::new(&via);
    let mut told = Acknowledged::default();
    let mut chance = SeededRandom::new(seed * 1000 + number);
    // Numbers that no other client uses.
    let mut request = number * 1_000_000_000 + 1;
    'sessions: for session in 0.. {
        let name = format!("kill-{seed}-{number}-{session}");
        let wire = WIRES[chance.below(WIRES.len() as u64) as usize];
        let mut conversation = LoadConversation::on(wire, name, SHAPES[0], seed + request);
        let mut asked_by = conversation.session.clone();
        for turn in 0..20 {
            let delivery =
                if turn % 2 == 0 { AnswerDelivery::Streamed } else { AnswerDelivery::Whole };
            let answer = loop {
                if *stopped.borrow() {
                    break 'sessions;
                }
                let body = conversation.request(delivery);
                let session = &conversation.session;
                let asked = LoadRequest { session, wire, request, body, delivery };
                let (outcome, answer) = client.ask_for(asked).await;
                if outcome.is_good() {
                    break answer;
                }
                told.repeated += usize::from(outcome.status != 0);
                sleep(Duration::from_millis(2)).await;
            };
            let word = format!("answer-{request}");
            let answer = read(wire, delivery, &answer);
            let said = plain_answer(request, words);
            if answer.as_ref().is_none_or(|answer| text_of(answer) != said) {
                told.changed.push(format!("{word} on {wire}"));
            }
            told.answers.extend(answer.map(|answer| (word, answer)));
            acknowledged.fetch_add(1, Ordering::Relaxed);
            // The markers of the question and of the answer. The result that is made now goes out with the next request.
            told.markers.push(std::mem::take(&mut asked_by));
            told.markers.push(format!("answer-{request}"));
            conversation.hear(request, words);
            asked_by = result_marker(&conversation.session, request);
            request += 1;
        }
    }
    told
}

async fn export(command: &str) -> Result<String, LoadError> {
    let mut words = command.split_whitespace();
    let program = words.next().ok_or("--export names no command")?;
    let output = Command::new(program).args(words).output().await?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
