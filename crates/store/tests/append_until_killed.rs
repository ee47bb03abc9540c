//! Appends messages to the store named by the first argument, and prints each once it is acknowledged: session, position
//! and hash. It never ends by itself, unless a second argument says how many messages to append and a third how long each
//! is: then one session appends, and an append that fails is printed (`failed`, position, how many messages are kept, error)
//! and tried again.

use std::io::Write as _;
use std::sync::Arc;

use plimsoll_core::{ContentHash, Message, MillisSinceEpoch, Role};
use plimsoll_engine::{HistoryBatch, HistoryStore, MessageRecord, SessionId, StoreError, TenantId};
use plimsoll_store::SqliteStore;

/// Sessions that append at once, so that commits are shared.
const SESSIONS: usize = 4;

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next().expect("the path of a store");
    let mut number = || arguments.next()?.to_str()?.parse::<u32>().ok();
    let (count, length) = (number(), number().unwrap_or(0));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let store = Arc::new(SqliteStore::open(path.as_ref()).await.expect("the store opens"));
        if let Some(count) = count {
            return append_some(&store, count, length).await;
        }
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|number| tokio::task::spawn_local(append(store.clone(), format!("s{number}"))))
            .collect();
        for session in sessions {
            session.await.expect("it never ends");
        }
    });
}

async fn append(store: Arc<SqliteStore>, name: String) {
    let session = SessionId::new(&name).expect("a valid id");
    for position in kept(&store, &session).await.. {
        append_one(&store, &session, position, 0).await.expect("appended");
    }
}

async fn append_some(store: &SqliteStore, count: u32, length: u32) {
    let session = SessionId::new("s0").expect("a valid id");
    for position in kept(store, &session).await..count {
        while let Err(error) = append_one(store, &session, position, length).await {
            let kept = kept(store, &session).await;
            print(&format!("failed {position} {kept} {error:?}\n"));
        }
    }
}

async fn kept(store: &SqliteStore, session: &SessionId) -> u32 {
    let kept = store.messages(&TenantId::default(), session, 0, usize::MAX).await;
    u32::try_from(kept.expect("what was kept").len()).expect("few messages")
}

async fn append_one(
    store: &SqliteStore,
    session: &SessionId,
    position: u32,
    length: u32,
) -> Result<(), StoreError> {
    let name = session.as_str();
    let padding = ".".repeat(usize::try_from(length).expect("a length"));
    let message = Message::text(Role::User, format!("message {position} of {name}{padding}"));
    let hash = ContentHash::of(&message);
    let record = MessageRecord {
        session: session.clone(),
        position,
        hash,
        message,
        tokens: 5,
        turn: 0,
        recorded_at: MillisSinceEpoch(i64::from(position)),
    };
    let batch = HistoryBatch { messages: vec![record], ..HistoryBatch::default() };
    store.append(&TenantId::default(), batch).await?;
    print(&format!("{name} {position} {}\n", hash.full()));
    Ok(())
}

fn print(line: &str) {
    let mut out = std::io::stdout().lock();
    // One write for a line: half a line is no acknowledgement.
    out.write_all(line.as_bytes()).expect("a pipe");
    out.flush().expect("a pipe");
}
