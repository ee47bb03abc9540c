//! Many open streams at once: do all come to their end, and what does one cost?

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::client::{LoadClient, LoadRequest, RequestOutcome};
use crate::conversation::{AnswerDelivery, LoadConversation, SHAPES};
use crate::figures::Latencies;
use crate::{LoadError, process};

#[derive(Debug, Args)]
pub(crate) struct StreamsArguments {
    /// The gateway's address; the upstream behind it must pace its events so that all streams are open together.
    #[arg(long)]
    via: String,
    /// The gateway's process.
    #[arg(long)]
    process: Option<u32>,
    #[arg(long, default_value_t = 5000)]
    streams: u64,
    /// Streams begun in a second.
    #[arg(long, default_value_t = 500.0)]
    rate: f64,
}

pub(crate) async fn run(arguments: &StreamsArguments) -> Result<(String, Value), LoadError> {
    let client = LoadClient::new(&arguments.via);
    let idle = arguments.process.and_then(process::resident);
    let begin = Instant::now();
    let mut streams = JoinSet::new();
    for number in 0..arguments.streams {
        let intended = begin + Duration::from_secs_f64(number as f64 / arguments.rate);
        let client = client.clone();
        streams.spawn(async move {
            tokio::time::sleep_until(intended).await;
            let conversation =
                LoadConversation::begin(format!("stream-{number}"), SHAPES[0], number);
            let body = conversation.request(AnswerDelivery::Streamed);
            let delivery = AnswerDelivery::Streamed;
            let session = &conversation.session;
            client
                .ask(
                    LoadRequest {
                        session,
                        wire: conversation.wire,
                        request: number,
                        body,
                        delivery,
                    },
                    intended,
                )
                .await
        });
    }
    let outcomes: Vec<RequestOutcome> = streams.join_all().await;
    let peak = arguments.process.and_then(process::peak);
    let good: Vec<&RequestOutcome> = outcomes.iter().filter(|outcome| outcome.is_good()).collect();
    let events = good.iter().map(|outcome| outcome.events);
    let (fewest, most) = (events.clone().min().unwrap_or(0), events.max().unwrap_or(0));
    let first = Latencies::new(good.iter().map(|outcome| outcome.first));
    let each =
        idle.zip(peak).map(|(idle, peak)| peak.saturating_sub(idle) / arguments.streams.max(1));
    let text = format!(
        "{} of {} streams came to their end, {fewest} to {most} pieces each; first byte p50 {:.1} ms, p99 {:.1} ms; \
         {} a stream\n",
        good.len(),
        outcomes.len(),
        first.percentile(0.5),
        first.percentile(0.99),
        each.map_or_else(
            || "memory not measured for".to_owned(),
            |bytes| format!("{} KiB", bytes >> 10)
        ),
    );
    let figures = json!({
        "streams": outcomes.len(),
        "ended": good.len(),
        "first_byte": first.json(),
        "idle_bytes": idle,
        "peak_bytes": peak,
        "bytes_a_stream": each,
    });
    Ok((text, figures))
}
