//! Requests that are assembled at every turn of recorded sessions, where there are any beside the checkout.

use std::path::{Path, PathBuf};

use plimsoll_core::memory::frame::Frames;
use plimsoll_core::memory::lifecycle::LifecycleSettings;
use plimsoll_core::request::ToolIntent;
use plimsoll_core::safety::{Action, Handling};
use plimsoll_core::{Role, Tokenizer, Transcript};
use plimsoll_engine::assemble::{AssembleSettings, Assembler, AssemblyTurn, FrameBook};
use plimsoll_engine::memories::{Memories, MemorySearch};
use plimsoll_engine::remember::{Remember, SourceConfidence};
use plimsoll_engine::{
    HistoryBatch, HistoryStore as _, Scope, SessionId, TenantId, message_records,
};
use plimsoll_formats::ReadOptions;
use plimsoll_models::BuiltInEmbedder;
use plimsoll_store::SqliteStore;

const TOKENIZER: Tokenizer = Tokenizer::O200k { factor: 1.0 };

fn sessions() -> Vec<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/sessions");
    let mut found = Vec::new();
    let mut folders = vec![beside];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// Sessions of fewer requests say little of long ones.
const LEAST_TURNS: usize = 20;
/// Turns that are assembled, spread over all sessions.
const MOST_TURNS: usize = 240;

#[test]
fn requests_stay_within_their_budget_and_their_header_stays_alike() {
    let mut transcripts: Vec<(PathBuf, Transcript)> = Vec::new();
    for path in sessions() {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let Ok(session) = plimsoll_formats::read(&bytes, &ReadOptions::default()) else { continue };
        let mut transcript = Transcript::new(TOKENIZER);
        for message in session.messages {
            transcript.push(message);
        }
        if transcript.requests().count() >= LEAST_TURNS {
            transcripts.push((path, transcript));
        }
    }
    if transcripts.is_empty() {
        eprintln!("skipped: there are no recorded sessions beside the checkout");
        return;
    }
    let each = MOST_TURNS.div_ceil(transcripts.len());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut used: Vec<u64> = Vec::new();
    let (mut sent, mut full) = (0_u64, 0_u64);
    for (at, (path, transcript)) in transcripts.iter().enumerate() {
        runtime.block_on(async {
            for (tokens, whole) in assembled(at, path, transcript, each).await {
                used.push(tokens);
                sent += tokens;
                full += whole;
            }
        });
    }
    used.sort_unstable();
    let p90 = used[used.len() * 9 / 10];
    let saved = 1.0 - sent as f64 / full as f64;
    println!(
        "{} turns of {} sessions: p50 {}, p90 {p90} tokens, {:.1} % less than the whole history",
        used.len(),
        transcripts.len(),
        used[used.len() / 2],
        saved * 100.0
    );
    assert!(used.len() >= 200 && p90 <= 3000 && saved >= 0.7, "{p90} {saved}");
}

/// Returns for `each` turns of a session the tokens that were assembled and those of the whole history.
async fn assembled(
    at: usize,
    path: &Path,
    transcript: &Transcript,
    each: usize,
) -> Vec<(u64, u64)> {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("kept.db")).await.expect("a store");
    let tenant = TenantId::default();
    let session = SessionId::new(&format!("s{at}")).expect("an id");
    let first = transcript.entries().iter().find_map(|entry| entry.message.time);
    let mut records = message_records(&session, transcript, first.unwrap_or_default());
    let settings = AssembleSettings::default();
    let frames = FrameBook::new(Frames::built_in(), Some(&BuiltInEmbedder)).await.expect("frames");
    let (lifecycles, confidence) = (LifecycleSettings::default(), SourceConfidence::default());
    let remember = Remember {
        knowledge: &store,
        embedder: Some(&BuiltInEmbedder),
        tenant: &tenant,
        lifecycles: &lifecycles,
        confidence: &confidence,
        handling: Handling { personal: Action::Ignore, secrets: Action::Redact },
    };
    let assembler = Assembler {
        history: &store,
        knowledge: &store,
        embedder: Some(&BuiltInEmbedder),
        tenant: &tenant,
        frames: &frames,
        settings: &settings,
        tokenizer: TOKENIZER,
        identity: "A coding agent.",
        rules: "Answer briefly, and say what you did.",
        profile: "project of the session",
        recall: None,
    };
    let tools = ["bash", "edit", "read", "write"]
        .map(|name| ToolIntent { name: name.into(), intent: "does what its name says".into() });
    let scope = Scope { session: Some(session.clone()), ..Scope::default() };
    let memories = Memories::new(MemorySearch::default());
    let requests: Vec<usize> = transcript.requests().filter(|position| *position > 0).collect();
    let step = (requests.len() / each).max(1);
    let (mut done, mut header, mut sums) = (0, None, Vec::new());
    for position in requests.into_iter().step_by(step) {
        let messages: Vec<_> = records.drain(..position - done).collect();
        done = position;
        let now = messages.last().map_or(plimsoll_core::MillisSinceEpoch(0), |one| one.recorded_at);
        remember
            .extract(&messages, &scope, &plimsoll_core::memory::extract::Extraction::default(), now)
            .await
            .expect("read");
        let batch = HistoryBatch { messages, ..HistoryBatch::default() };
        store.append(&tenant, batch).await.expect("appended");
        let turn = AssemblyTurn {
            scope: &scope,
            text: "",
            frame: None,
            tags: &[],
            budget: None,
            focus: None,
            about_to_act: false,
            force_refresh: false,
            previous: None,
            now,
        };
        let request = assembler.request(&memories, &turn, &tools).await;
        let request =
            request.unwrap_or_else(|error| panic!("{} at {position}: {error}", path.display()));
        let own = header.get_or_insert_with(|| request.request.header.clone());
        assert_eq!(*own, request.request.header, "{} at {position}", path.display());
        assert!(request.request.working_set.iter().all(|message| message.role != Role::System));
        sums.push((request.request.budget.used, request.full_tokens));
    }
    sums
}
