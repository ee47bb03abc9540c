//! The server of MCP over both transports and all versions of the protocol, on a store in memory.

mod client;
mod http;
mod stream;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::memory::frame::Frames;
use plimsoll_core::recall::RecallSettings;
use plimsoll_core::safety::Handling;
use plimsoll_engine::assemble::FrameBook;
use plimsoll_engine::memories::Memories;
use plimsoll_engine::{HistoryBatch, HistoryStore, MemoryConfig, Recall, TenantId};
use plimsoll_mcp::{ContextServer, ServerParts};
use plimsoll_testkit::{ManualClock, MemoryStore, sample};

/// The text of the message that tests look for.
const NEEDLE: &str = "the port of the ledger service is 7443";

/// Makes a server over a store with one session of 40 messages and two receipts, and the session of another tenant.
async fn server() -> ContextServer {
    let store = Arc::new(MemoryStore::new());
    let tenant = TenantId::default();
    let mut messages: Vec<_> = (0..40)
        .map(|at| {
            sample::message("alpha", at, &format!("step {at} {}", "of a long walk ".repeat(20)))
        })
        .collect();
    messages[7] = sample::message("alpha", 7, NEEDLE);
    let receipts =
        vec![sample::receipt("alpha", 0, "settle"), sample::receipt("alpha", 1, "settle")];
    let batch = HistoryBatch { messages, receipts, ..HistoryBatch::default() };
    store.append(&tenant, batch).await.expect("the store takes the session");
    let foreign = vec![sample::message("omega", 0, "the port of nobody here")];
    let batch = HistoryBatch { messages: foreign, ..HistoryBatch::default() };
    store.append(&sample::tenant("other"), batch).await.expect("the store takes the session");
    let memory = MemoryConfig::default();
    let frames = FrameBook::new(Frames::built_in(), None).await.expect("frames need no model");
    ContextServer::new(ServerParts {
        history: store.clone(),
        knowledge: store,
        tenant,
        clock: Arc::new(ManualClock::new(MillisSinceEpoch(5_000), Duration::from_mins(1))),
        embedder: None,
        recall: Recall::new(RecallSettings::default(), None),
        memories: Memories::new(memory.search.clone()),
        memory,
        frames,
        handling: Handling::default(),
    })
}
