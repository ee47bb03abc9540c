//! Branches of live conversations in a SQLite file: what they take, and that they are rebuilt as they were.

use std::path::Path;
use std::sync::Arc;

use plimsoll_core::cost::Pricing;
use plimsoll_core::policy::Policy;
use plimsoll_core::terms::Surroundings;
use plimsoll_core::{Block, Message, MillisSinceEpoch, Role, ToolCall, ToolResult};
use plimsoll_engine::live::{Bounded, Conversation, RequestPins, SessionRequest};
use plimsoll_engine::{HistoryBatch, HistoryStore as _, MessageRecord, SessionId};
use plimsoll_store::SqliteStore;
use plimsoll_testkit::sample::{session, tenant};

type Messages = Vec<Arc<Message>>;

fn ask(
    conversation: &mut Conversation,
    messages: &[Arc<Message>],
    now: MillisSinceEpoch,
) -> (usize, Bounded) {
    let asked = SessionRequest {
        messages,
        model: Some("claude-sonnet-4-5"),
        policy: &Policy::plimsoll(),
        strategy: "plimsoll",
        tools: 7,
        around: &Surroundings::default(),
        added: None,
        observed: false,
        pins: RequestPins::default(),
        now,
    };
    conversation.ask(&asked, &Pricing::shipped()).expect("a branch")
}

/// A client whose conversation is kept in a store.
struct Chat {
    store: SqliteStore,
    conversation: Conversation,
    messages: Messages,
    now: MillisSinceEpoch,
}

impl Chat {
    fn say(&mut self, role: Role, block: Block) {
        self.messages.push(Arc::new(Message::new(role, vec![block])));
    }

    fn question(&mut self, text: &str) {
        self.say(Role::User, Block::Text(text.into()));
    }

    async fn answer(&mut self, block: Block) -> SessionId {
        self.now.0 += 10_000;
        let (branch, bounded) = ask(&mut self.conversation, &self.messages, self.now);
        let mut answer = Message::new(Role::Assistant, vec![block]);
        answer.time = Some(self.now);
        self.messages.push(Arc::new(answer.clone()));
        let answer = Some(answer);
        let (branch, batch) = self
            .conversation
            .answered(branch, &bounded, answer, &bounded.note, self.now)
            .expect("a place for the answer");
        let appended = self.store.append(&tenant("a"), batch.clone()).await.expect("appended");
        self.conversation.keep(branch, &batch, Some(appended));
        self.conversation.branch(branch).expect("a branch").id().clone()
    }

    /// Asks once more, and checks that a conversation from the store has the same messages and decides the same.
    async fn check(&mut self) {
        self.question("And on.");
        let (a, now) = (tenant("a"), MillisSinceEpoch(self.now.0 + 10_000));
        let mut stored =
            Conversation::load(&self.store, &a, session("s")).await.expect("a conversation");
        let mut copy = self.conversation.copy_for(&self.messages);
        let (branch, from_store) = ask(&mut stored, &self.messages, now);
        let (live_branch, live) = ask(&mut copy, &self.messages, now);
        assert_eq!(branch, live_branch);
        assert_eq!(format!("{from_store:?}"), format!("{live:?}"));
        self.messages.pop();
        let id = self.conversation.branch(branch).expect("a branch").id();
        let kept = self.store.messages(&a, id, 0, 1_000).await.expect("messages");
        let kept: Vec<_> = kept.iter().map(|record| &record.message.blocks).collect();
        let said: Vec<_> = self.messages.iter().map(|message| &message.blocks).collect();
        assert_eq!(kept, said);
    }
}

fn rows(path: &Path) -> u32 {
    let database = rusqlite::Connection::open(path).expect("a database");
    database.query_row("SELECT count(*) FROM unified_logs", [], |row| row.get(0)).expect("rows")
}

#[tokio::test]
async fn an_edit_of_a_long_chat_adds_what_is_new_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut chat = Chat {
        store: SqliteStore::open(&path).await.expect("a store"),
        conversation: Conversation::new(session("s")),
        messages: Messages::new(),
        now: MillisSinceEpoch(1_000_000),
    };
    chat.say(Role::System, Block::Text("Read.".into()));
    chat.question("What is in the files?");
    for number in 0..99 {
        let id: Arc<str> = format!("call-{number}").into();
        let arguments = format!("{{\"path\":\"{number}.txt\"}}").into();
        let call = ToolCall { id: id.clone(), name: "read".into(), arguments };
        chat.answer(Block::ToolCall(call)).await;
        let text = format!("line of {number}\n").repeat(60).into();
        let result = ToolResult { call_id: id, text, images: Vec::new(), is_error: false };
        chat.say(Role::Tool, Block::ToolResult(result));
    }
    let whole = chat.messages.clone();
    assert_eq!(whole.len(), 200);
    let before = rows(&path);
    for edit in (0..50).step_by(2) {
        // Each goes back further: of a conversation with more branches than are looked at, the oldest are not known.
        chat.messages = whole[..198 - edit].to_vec();
        for (number, turn) in [(edit, 0), (edit, 1), (edit + 1, 2)] {
            if turn == 2 {
                // An edit of what was said after an edit.
                chat.messages.truncate(chat.messages.len() - 2);
            }
            chat.question(&format!("What else in turn {turn}?"));
            let id = chat.answer(Block::Text("Nothing.".into())).await;
            assert_eq!(id, session(&format!("s.{}", number + 2)));
        }
        chat.check().await;
    }
    // Each turn has a question, an answer and a receipt; copies of the past were 200 rows and more for each edit.
    assert_eq!(rows(&path) - before, 75 * 3);
    assert!(chat.store.check().await.expect("checked").is_empty());
}

#[tokio::test]
async fn turns_that_two_gateways_numbered_apart_are_rebuilt_as_far_as_they_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("store.db")).await.expect("a store");
    let conversation = Conversation::new(session("s"));
    let now = MillisSinceEpoch(1_000_000);
    let mut chat = Chat { store, conversation, messages: Messages::new(), now };
    for turn in 0..4 {
        chat.question(&format!("And {turn}?"));
        chat.answer(Block::Text("Nothing.".into())).await;
    }
    let a = tenant("a");
    let of_t = |record| MessageRecord { session: session("t"), ..record };
    let messages = chat.store.messages(&a, &session("s"), 0, 100).await.expect("messages");
    let messages = messages.into_iter().map(of_t).collect();
    let receipts = chat.store.receipts(&a, &session("s")).await.expect("receipts");
    let apart = receipts.into_iter().map(|mut receipt| {
        (receipt.session, receipt.turn) = (session("t"), [0, 2, 1, 3][receipt.turn as usize]);
        receipt
    });
    let batch = HistoryBatch { messages, receipts: apart.collect(), ..HistoryBatch::default() };
    chat.store.append(&a, batch).await.expect("appended");
    let mut stored = Conversation::load(&chat.store, &a, session("t")).await.expect("loaded");
    chat.question("And on?");
    let (_, bounded) = ask(&mut stored, &chat.messages, now);
    assert_eq!(bounded.receipt.full_messages, 9);
}
