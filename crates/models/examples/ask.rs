//! Asks a model three things: an answer in pieces, an answer in JSON, and one that is cancelled.
//!
//! `cargo run -p plimsoll-models --example ask -- llamacpp/NAME [SETTINGS]`, with a server at its usual address; `scripted/FILE`
//! needs none. `SETTINGS` is what stands in `plimsoll.toml` below `[models]`, as TOML.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_core::cost::Pricing;
use plimsoll_core::{Message, MillisSinceEpoch, Role};
use plimsoll_engine::{ChatEvent, ChatModel, ChatRequest, Clock, ModelError, Response};
use plimsoll_models::{Chance, Models, ModelsConfig, Outside};

#[derive(Debug)]
struct RealClock;

#[async_trait::async_trait]
impl Clock for RealClock {
    #[expect(clippy::disallowed_methods, reason = "this is the program, so it reads the clock")]
    fn now(&self) -> MillisSinceEpoch {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        MillisSinceEpoch(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

#[derive(Debug)]
struct NoChance;

impl Chance for NoChance {
    fn draw(&self) -> f64 {
        0.5
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ModelError> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "llamacpp/model".to_owned());
    let clock = Arc::new(RealClock);
    let outside = Outside { clock: clock.clone(), chance: Arc::new(NoChance) };
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the program, so it reads the environment"
    )]
    let lookup = |name: &str| std::env::var(name).ok();
    let settings = std::env::args().nth(2).unwrap_or_default();
    let config: ModelsConfig = toml::from_str(&settings)
        .map_err(|error| ModelError::Invalid(format!("the settings: {}", error.message())))?;
    let models = Models::new(config, Pricing::shipped(), outside, &lookup)?;
    let model = models.chat(&name)?;
    let start = clock.now();
    let since = || clock.now().0 - start.0;

    pieces(&*model, &since).await?;
    json(&*model, &since).await?;
    cancelled(&*model, &since).await?;
    println!("spent: ${:.6}", models.spent_dollars());
    Ok(())
}

fn ask(text: &str, max_tokens: u32) -> ChatRequest {
    let messages = vec![Message::text(Role::User, text)];
    ChatRequest { max_tokens, temperature: Some(0.0), ..ChatRequest::new(messages) }
}

async fn pieces(model: &dyn ChatModel, since: &dyn Fn() -> i64) -> Result<(), ModelError> {
    let mut stream = model.stream(&ask("Name the capital of France.", 60)).await?;
    let mut number = 0;
    while let Some(piece) = stream.next().await {
        match piece? {
            ChatEvent::Text(text) => {
                number += 1;
                if number == 1 {
                    println!("first piece after {} ms", since());
                }
                print!("{text}");
                let _ = std::io::stdout().flush();
            }
            ChatEvent::Done(reply) => println!(
                "\n{number} pieces, {} tokens in, {} out, {:?}, {} ms",
                reply.usage.input,
                reply.usage.output,
                reply.stop_reason,
                since()
            ),
            _ => {}
        }
    }
    Ok(())
}

async fn json(model: &dyn ChatModel, since: &dyn Fn() -> i64) -> Result<(), ModelError> {
    let text = "Messages:\n[a1b2] We chose PostgreSQL for the store.\n[c3d4] Lunch was good.\n\
                Which ids matter to the question: which database do we use?";
    let schema = r#"{"type":"object","properties":{"ids":{"type":"array","items":{"type":"string","enum":["a1b2","c3d4"]},"maxItems":2}},"required":["ids"],"additionalProperties":false}"#;
    let mut request = ask(text, 80);
    request.response = Response::Json { schema: schema.into() };
    match model.complete(&request).await {
        Ok(reply) => println!("JSON after {} ms: {}", since(), reply.text()),
        Err(ModelError::Unusable(problem)) => {
            println!("no JSON, so something else decides: {problem}");
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

async fn cancelled(model: &dyn ChatModel, since: &dyn Fn() -> i64) -> Result<(), ModelError> {
    let mut stream = model.stream(&ask("Count from one to a thousand in words.", 2000)).await?;
    for _ in 0..5 {
        stream.next().await.transpose()?;
    }
    drop(stream);
    println!("cancelled after five pieces, {} ms", since());
    Ok(())
}
