//! The work of sessions under laws of forgetting, by replays on all processors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use plimsoll_core::Message;
use plimsoll_core::policy::{Need, Policy};
use plimsoll_core::replay::replay_stretches;

use crate::config::Config;
use crate::error::CommandError;
use crate::load::Loaded;

/// The sessions, the policy, and the work under the default law.
#[derive(Debug)]
pub(crate) struct Bench<'a> {
    sessions: &'a [Loaded],
    policy: Policy,
    default: Vec<f64>,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(
        sessions: &'a [Loaded],
        config: &Config,
        default: &Need,
    ) -> Result<Self, CommandError> {
        let policy = config.policy("plimsoll")?;
        let mut bench = Self { sessions, policy, default: Vec::new() };
        let all: Vec<usize> = (0..sessions.len()).collect();
        bench.default = bench.work(default, &all);
        Ok(bench)
    }

    pub(crate) fn default_work(&self, session: usize) -> f64 {
        self.default[session]
    }

    /// Returns the work of each of `sessions` under `need`.
    pub(crate) fn work(&self, need: &Need, sessions: &[usize]) -> Vec<f64> {
        let policy = with(&self.policy, need);
        let next = AtomicUsize::new(0);
        let works = Mutex::new(vec![0.0; sessions.len()]);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..processors.min(sessions.len()) {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(session) = sessions.get(at) else { break };
                        let work = work(&self.sessions[*session], &policy);
                        works.lock().unwrap_or_else(PoisonError::into_inner)[at] = work;
                    }
                });
            }
        });
        works.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

fn with(policy: &Policy, need: &Need) -> Policy {
    let mut policy = policy.clone();
    if let Policy::Bounded(bounds) = &mut policy {
        bounds.settle.need = need.clone();
    }
    policy
}

fn work(loaded: &Loaded, policy: &Policy) -> f64 {
    let terms = |message: &Message| loaded.terms_of(message);
    let shared = loaded.counted.overhead.shared;
    replay_stretches(loaded.counted.stretches(), policy, shared, terms, |_| {}).score.work
}
