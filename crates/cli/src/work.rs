//! `plimsoll work`: runs the workers until no job is due, or until it is stopped.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::safety::Safety;
use plimsoll_engine::cards::CardSettings;
use plimsoll_engine::observe::catch_up;
use plimsoll_engine::work::{MemoryRules, Worked, Workers, queue_embedding};
use plimsoll_engine::{
    ChatModel, Clock, Embedder, HistoryStore, Job, JobState, KnowledgeStore, MemoryConfig,
    SessionId, StoreError, TenantId,
};
use serde::Serialize;

use crate::arguments::WorkArguments;
use crate::config::{self, Config};
use crate::error::CommandError;
use crate::figures::thousands;
use crate::models;
use crate::output;
use crate::progress::Progress;
use crate::store::Store;
use crate::system::outside;

/// How long the workers rest when nothing is due (`context-strategy.md` 5.3).
const REST: Duration = Duration::from_secs(5);
/// The most parked jobs that are listed.
const PARKED: usize = 20;

pub(crate) fn run(arguments: &WorkArguments) -> Result<(), CommandError> {
    let config = config::for_sending(arguments.config.as_deref())?;
    let store = Store::open_existing(&arguments.store, arguments.config.as_deref())?;
    let staff = Staff::hire(&config)?;
    loop {
        let report = staff.work(&store, None)?;
        if arguments.once || report.worked.taken > 0 {
            print(&report, arguments.json)?;
        }
        if arguments.once {
            let parked = report.parked.len();
            return if parked == 0 {
                Ok(())
            } else {
                Err(CommandError::finding(anyhow::anyhow!(
                    "{parked} {} parked",
                    if parked == 1 { "job is" } else { "jobs are" }
                )))
            };
        }
        store.both(async |_, _, _| {
            staff.clock.sleep(REST).await;
            Ok(())
        })?;
    }
}

/// The models, rules and clock that the workers use.
pub(crate) struct Staff {
    settings: CardSettings,
    safety: Safety,
    memory: MemoryConfig,
    model: Option<Arc<dyn ChatModel>>,
    embedder: Option<Arc<dyn Embedder>>,
    clock: Arc<dyn Clock>,
    owner: String,
}

impl Staff {
    /// Opens the models that the settings name; a missing one gives a warning and is left out.
    pub(crate) fn hire(config: &Config) -> Result<Self, CommandError> {
        let models = models::open(&config.models)?;
        Ok(Self {
            settings: config.cards.clone(),
            safety: config.safety,
            memory: config.memory.clone(),
            model: models::chat(
                &models,
                &config.cards.summarizer_model,
                "summaries are beginnings of texts",
            ),
            embedder: models::embedder(&models),
            clock: outside().clock,
            owner: format!("plimsoll:{}", std::process::id()),
        })
    }

    /// Makes the cards that are missing and works until nothing is due.
    pub(crate) fn work(
        &self,
        store: &Store,
        session: Option<&SessionId>,
    ) -> Result<WorkReport, CommandError> {
        let mut progress = Progress::new("working", 0);
        store.both(async |history, knowledge, tenant| {
            self.catch_up(history, knowledge, tenant, session).await?;
            let workers = Workers {
                history,
                knowledge,
                model: self.model.as_deref(),
                embedder: self.embedder.as_deref(),
                clock: &*self.clock,
                settings: &self.settings,
                safety: &self.safety,
                memory: Some(MemoryRules {
                    lifecycles: &self.memory.lifecycles,
                    confidence: &self.memory.confidence,
                    extraction: &self.memory.extraction,
                }),
                owner: &self.owner,
            };
            let worked = workers.work(tenant, |worked| progress.at(worked.taken)).await?;
            let parked = knowledge.jobs(tenant, Some(JobState::Parked), PARKED).await?;
            Ok(WorkReport { worked, parked: parked.into_iter().map(Parked::from).collect() })
        })
    }

    async fn catch_up(
        &self,
        history: &dyn HistoryStore,
        knowledge: &dyn KnowledgeStore,
        tenant: &TenantId,
        session: Option<&SessionId>,
    ) -> Result<(), StoreError> {
        let now = self.clock.now();
        catch_up(history, knowledge, tenant, session, &self.settings, now).await?;
        if let Some(embedder) = self.embedder.as_deref() {
            let settings = &self.settings;
            queue_embedding(history, knowledge, tenant, embedder, settings, now).await?;
        }
        Ok(())
    }
}

/// The finished work, and jobs that failed for good.
#[derive(Debug, Serialize)]
pub(crate) struct WorkReport {
    #[serde(flatten)]
    worked: Worked,
    parked: Vec<Parked>,
}

#[derive(Debug, Serialize)]
struct Parked {
    id: i64,
    kind: String,
    session: Option<SessionId>,
    attempts: u32,
    error: String,
}

impl From<Job> for Parked {
    fn from(job: Job) -> Self {
        Self {
            id: job.id.0,
            kind: job.job.kind,
            session: job.job.session,
            attempts: job.attempt_count,
            error: job.error_message.unwrap_or_default(),
        }
    }
}

fn print(report: &WorkReport, json: bool) -> Result<(), CommandError> {
    if json {
        let mut line = serde_json::to_string(report).map_err(CommandError::failure)?;
        line.push('\n');
        return output::data(&line);
    }
    let Worked { taken, done, summarised, truncated, embedded, failed, tokens } = report.worked;
    let mut out = format!("{} jobs done", thousands(done));
    let _ = write!(
        out,
        ": {} summaries by a model, {} without one, {} vectors, {} tokens",
        thousands(summarised),
        thousands(truncated),
        thousands(embedded),
        thousands(tokens)
    );
    if taken > done {
        let _ = write!(out, "; {} attempts failed", thousands(failed));
    }
    out.push('\n');
    for parked in &report.parked {
        let _ = writeln!(
            out,
            "parked: job {} ({}) after {} attempts: {}",
            parked.id,
            parked.kind,
            parked.attempts,
            output::line(&parked.error, 100)
        );
    }
    output::page(&out)
}
