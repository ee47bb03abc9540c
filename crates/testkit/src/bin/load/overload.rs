//! More load than the gateway can serve: it should answer at its capacity and refuse the rest at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant};

use crate::client::{LoadClient, LoadRequest, RequestOutcome};
use crate::conversation::{AnswerDelivery, LoadConversation, SHAPES};
use crate::figures::Latencies;
use crate::sessions::SessionQueue;
use crate::{LoadError, arrivals, process};

#[derive(Debug, Args)]
pub(crate) struct OverloadArguments {
    /// The gateway's address.
    #[arg(long)]
    via: String,
    /// The gateway's process.
    #[arg(long)]
    process: Option<u32>,
    /// How many times its capacity is offered.
    #[arg(long, default_value_t = 3.0)]
    times: f64,
    #[arg(long, default_value_t = 15.0)]
    seconds: f64,
    /// Requests at a time while the capacity is measured.
    #[arg(long, default_value_t = 16)]
    together: usize,
    #[arg(long, default_value_t = 20)]
    words: usize,
    /// Sessions for each of the three sizes; as many requests can be under way.
    #[arg(long, num_args = 3, default_values_t = [1200, 600, 120])]
    sessions: Vec<usize>,
}

pub(crate) async fn run(arguments: &OverloadArguments) -> Result<(String, Value), LoadError> {
    let client = LoadClient::new(&arguments.via);
    let count = Arc::new(AtomicU64::new(1));
    let sessions = sessions(arguments);
    // The first request of a session brings its whole past; its cost is neither capacity nor overload.
    let number = arguments.sessions.iter().sum::<usize>();
    for _ in 0..number {
        turn(&client, &sessions, &count, arguments.words, Instant::now()).await;
    }
    let capacity = capacity(&client, &sessions, arguments, &count).await;
    let before = arguments.process.and_then(process::peak);
    let offered = capacity * arguments.times;
    let begin = Instant::now();
    let mut arrivals = arrivals::arrivals(offered, arguments.seconds);
    let mut requests = JoinSet::new();
    while let Some(intended) = arrivals.recv().await {
        let (client, sessions, count) = (client.clone(), sessions.clone(), count.clone());
        let words = arguments.words;
        requests.spawn(async move { turn(&client, &sessions, &count, words, intended).await });
    }
    let outcomes: Vec<RequestOutcome> = requests.join_all().await.into_iter().flatten().collect();
    let took = begin.elapsed().as_secs_f64();
    let good = outcomes.iter().filter(|outcome| outcome.is_good()).count();
    let is_refusal = |outcome: &&RequestOutcome| matches!(outcome.status, 429 | 503);
    let refused = Latencies::new(outcomes.iter().filter(is_refusal).map(|outcome| outcome.total));
    let refusals = outcomes.iter().filter(is_refusal).count();
    let others = outcomes.len() - good - refusals;
    let goodput = good as f64 / took / capacity;
    let peak = arguments.process.and_then(process::peak);
    let mebibytes = |bytes: Option<u64>| bytes.map_or(0, |bytes| bytes >> 20);
    let text = format!(
        "capacity {capacity:.0} /s, offered {offered:.0} /s for {:.0} s: {:.0} % of the capacity answered, {refusals} refused \
         within {:.1} ms (p50) and {:.1} ms (p99), {others} failed otherwise; memory {} MiB at most, {} MiB before\n",
        arguments.seconds,
        goodput * 100.0,
        refused.percentile(0.5),
        refused.percentile(0.99),
        mebibytes(peak),
        mebibytes(before),
    );
    let figures = json!({
        "capacity": capacity,
        "offered": offered,
        "good": good,
        "goodput": goodput,
        "refusals": refusals,
        "refusal": refused.json(),
        "failed": others,
        "peak_bytes": peak,
        "peak_bytes_before": before,
    });
    Ok((text, figures))
}

/// Conversations of all three sizes, mixed.
fn sessions(arguments: &OverloadArguments) -> SessionQueue {
    let mut all = Vec::new();
    for (at, (shape, &number)) in SHAPES.into_iter().zip(&arguments.sessions).enumerate() {
        for session in 0..number {
            // In equal distances over the whole line.
            let place = (session * 1_000_000 / number.max(1)) + at;
            let seed = (at * 1_000_000 + session) as u64;
            all.push((place, LoadConversation::begin(format!("over-{at}-{session}"), shape, seed)));
        }
    }
    all.sort_by_key(|(place, _)| *place);
    SessionQueue::new(all.into_iter().map(|(_, conversation)| conversation))
}

/// Measures how many requests a second are answered when a few clients ask as fast as they are answered.
async fn capacity(
    client: &LoadClient,
    sessions: &SessionQueue,
    arguments: &OverloadArguments,
    count: &Arc<AtomicU64>,
) -> f64 {
    let begin = Instant::now();
    let end = begin + Duration::from_secs_f64(arguments.seconds);
    let mut workers = JoinSet::new();
    for _ in 0..arguments.together {
        let (client, sessions, count) = (client.clone(), sessions.clone(), count.clone());
        let words = arguments.words;
        workers.spawn(async move {
            let mut good = 0_usize;
            while Instant::now() < end {
                let outcome = turn(&client, &sessions, &count, words, Instant::now()).await;
                good += usize::from(outcome.is_some_and(|outcome| outcome.is_good()));
            }
            good
        });
    }
    let good: usize = workers.join_all().await.into_iter().sum();
    (good as f64 / begin.elapsed().as_secs_f64()).max(1.0)
}

/// The next request of the session that has waited longest; every other one is streamed.
async fn turn(
    client: &LoadClient,
    sessions: &SessionQueue,
    count: &AtomicU64,
    words: usize,
    intended: Instant,
) -> Option<RequestOutcome> {
    let (mut conversation, permit) = sessions.take().await?;
    let request = count.fetch_add(1, Ordering::Relaxed);
    let delivery =
        if request.is_multiple_of(2) { AnswerDelivery::Streamed } else { AnswerDelivery::Whole };
    let body = conversation.request(delivery);
    let session = &conversation.session;
    let outcome = client
        .ask(LoadRequest { session, wire: conversation.wire, request, body, delivery }, intended)
        .await;
    if outcome.is_good() {
        conversation.hear(request, words);
    }
    sessions.give_back(conversation, permit);
    Some(outcome)
}
