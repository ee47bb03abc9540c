//! Appends messages to the store named by the first argument, and prints each once it is acknowledged: session, position
//! and hash. It never ends by itself.

use std::io::Write as _;
use std::sync::Arc;

use plimsoll_core::{ContentHash, Message, MillisSinceEpoch, Role};
use plimsoll_engine::{HistoryBatch, HistoryStore, MessageRecord, SessionId, TenantId};
use plimsoll_store::SqliteStore;

/// Sessions that append at once, so that commits are shared.
const SESSIONS: usize = 4;

fn main() {
    let path = std::env::args_os().nth(1).expect("the path of a store");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let store = Arc::new(SqliteStore::open(path.as_ref()).await.expect("the store opens"));
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|number| tokio::task::spawn_local(append(store.clone(), format!("s{number}"))))
            .collect();
        for session in sessions {
            session.await.expect("it never ends");
        }
    });
}

async fn append(store: Arc<SqliteStore>, name: String) {
    let tenant = TenantId::default();
    let session = SessionId::new(&name).expect("a valid id");
    let kept = store.messages(&tenant, &session, 0, usize::MAX).await.expect("what was kept");
    let first = u32::try_from(kept.len()).expect("few messages");
    for position in first.. {
        let message = Message::text(Role::User, format!("message {position} of {name}"));
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
        store.append(&tenant, batch).await.expect("appended");
        let mut out = std::io::stdout().lock();
        // One write for a line: half a line is no acknowledgement.
        out.write_all(format!("{name} {position} {}\n", hash.full()).as_bytes()).expect("a pipe");
        out.flush().expect("a pipe");
    }
}
