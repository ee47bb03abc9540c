//! The writer: one thread, one connection, commits in groups.
//!
//! A sync costs milliseconds and a row microseconds, so requests that arrive while a commit runs wait for the next one and
//! share it. If one of them is refused, all are done again, each in a savepoint, so that it takes no other with it; not at
//! once, for a savepoint makes the text index write what it has gathered, where a group needs that once.

use std::fmt;
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_engine::StoreError;
use rusqlite::Connection;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use super::checkpoint::{self, Checkpoints};
use super::connection;
use super::failure::SqliteFailure;
use super::log_file::LogState;
use super::place::StoreFile;
use super::word_index;

/// Requests of one commit; chosen: others wait for the next one.
const LARGEST_GROUP: usize = 1024;
/// Requests after which the words of their messages are added to the text index (chosen: few enough to be read by a search).
const INDEX_EVERY: usize = 32;
/// The same while more words are missing than one group takes, as after a long request (chosen: a group has more than so many add).
const INDEX_BEHIND: usize = 4;
/// Requests that may wait; beyond it callers are held back.
const QUEUE: usize = 4096;

/// The handle of the writer thread; dropping it ends the thread after what is queued.
pub(super) struct Writer {
    sender: Option<mpsc::Sender<Box<dyn WriteRequest>>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

/// A change with the caller who waits for it.
trait WriteRequest: Send {
    /// Makes the change, within a transaction; its result replaces that of an earlier attempt.
    fn act(&mut self, connection: &Connection) -> Result<(), SqliteFailure>;
    /// Answers the caller, who may have gone.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

struct PendingWrite<T, F> {
    act: F,
    value: Option<T>,
    caller: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> WriteRequest for PendingWrite<T, F>
where
    T: Send,
    F: Fn(&Connection) -> Result<T, SqliteFailure> + Send,
{
    fn act(&mut self, connection: &Connection) -> Result<(), SqliteFailure> {
        self.value = Some((self.act)(connection)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let value = self.value;
        let answer = outcome.and_then(|()| value.ok_or_else(ended));
        // A caller that no longer waits is no reason to stop.
        let _gone = self.caller.send(answer);
    }
}

fn ended() -> StoreError {
    StoreError::Unavailable { why: "the store is closed".to_owned(), retry_after: None }
}

impl Writer {
    /// Starts the thread, which owns `connection` and opens another of `file` after a failure.
    pub(super) fn start(file: StoreFile, mut connection: Connection) -> Result<Self, StoreError> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let checkpoints = Checkpoints::start(file.clone())?;
        checkpoints.follow(&mut connection)?;
        file.log.remember(&file.path);
        let thread = std::thread::Builder::new()
            .name("plimsoll-store".to_owned())
            .spawn(move || {
                let mut database = Database { file, connection: Some(connection), checkpoints };
                run(&mut database, receiver);
                // Another file is not left beside the log of this one, and a log without a name is copied.
                let _nobody_hears = database.ready();
                database.checkpoints.end(database.connection.as_mut());
            })
            .map_err(|error| StoreError::Other(Box::new(error)))?;
        Ok(Self { sender: Some(sender), thread: Some(thread) })
    }

    /// Runs `act` on the writer thread and returns its result after the commit.
    pub(super) async fn write<T, F>(&self, act: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Result<T, SqliteFailure> + Send + 'static,
    {
        let (caller, answer) = oneshot::channel();
        let change = Box::new(PendingWrite { act, value: None, caller });
        let sender = self.sender.as_ref().ok_or_else(ended)?;
        sender.send(change).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // The thread's panic was reported by its hook; there is nobody left to tell.
            let _panicked = thread.join();
        }
    }
}

/// Where a group stopped.
enum Stopped {
    /// No request was tried: another process holds the file, or it cannot be opened. It would be the same for each.
    BeforeAny(SqliteFailure),
    Within(SqliteFailure),
}

fn repeated(error: &StoreError) -> StoreError {
    match error {
        StoreError::Unavailable { why, retry_after } => {
            StoreError::Unavailable { why: why.clone(), retry_after: *retry_after }
        }
        StoreError::Corrupt { what } => StoreError::Corrupt { what: what.clone() },
        other => StoreError::Unavailable { why: other.to_string(), retry_after: None },
    }
}

struct Database {
    file: StoreFile,
    connection: Option<Connection>,
    checkpoints: Checkpoints,
}

fn run(database: &mut Database, mut receiver: mpsc::Receiver<Box<dyn WriteRequest>>) {
    // A process before this one may have ended without adding words.
    let (mut since, mut is_behind) = (0, database.index());
    loop {
        let first = match receiver.try_recv() {
            Ok(first) => first,
            Err(TryRecvError::Empty) if is_behind => {
                is_behind = database.index();
                continue;
            }
            Err(_) => match receiver.blocking_recv() {
                Some(first) => first,
                None => break,
            },
        };
        // On one processor, those who would wait for the next commit ask now and share this one.
        std::thread::yield_now();
        let mut group = vec![first];
        while group.len() < LARGEST_GROUP
            && let Ok(next) = receiver.try_recv()
        {
            group.push(next);
        }
        since += group.len();
        database.commit(group);
        let most = if is_behind { INDEX_BEHIND } else { INDEX_EVERY };
        if since >= most {
            (since, is_behind) = (0, database.index());
        }
    }
    // Nobody waits any more.
    is_behind |= since > 0;
    while is_behind {
        is_behind = database.index();
    }
}

impl Database {
    /// Commits a group and answers each. If the whole group fails, each is tried alone: one that is too large for the disk
    /// must not fail those that are not.
    fn commit(&mut self, mut group: Vec<Box<dyn WriteRequest>>) {
        match self.attempt(&mut group) {
            Ok(outcomes) => {
                for (request, outcome) in group.into_iter().zip(outcomes) {
                    request.answer(outcome.map_err(StoreError::from));
                }
            }
            Err(Stopped::BeforeAny(failure)) => {
                self.close();
                let error = StoreError::from(failure);
                for request in group {
                    request.answer(Err(repeated(&error)));
                }
            }
            Err(Stopped::Within(failure)) => {
                // After a failed write or sync nothing that this connection remembers of the file can be relied on.
                self.connection = None;
                match group.pop() {
                    Some(only) if group.is_empty() => only.answer(Err(failure.into())),
                    last => {
                        for request in group.into_iter().chain(last) {
                            self.commit(vec![request]);
                        }
                    }
                }
            }
        }
    }

    fn attempt(
        &mut self,
        group: &mut [Box<dyn WriteRequest>],
    ) -> Result<Vec<Result<(), SqliteFailure>>, Stopped> {
        let connection = self.begin().map_err(Stopped::BeforeAny)?;
        let Some(failure) = group.iter_mut().find_map(|request| request.act(connection).err())
        else {
            commit(connection)?;
            return Ok(group.iter().map(|_| Ok(())).collect());
        };
        if failure.is_fatal() || connection.is_autocommit() {
            return Err(Stopped::Within(failure));
        }
        roll_back(connection)?;
        if group.len() == 1 { Ok(vec![Err(failure)]) } else { self.attempt_apart(group) }
    }

    /// Tries a group in which one is refused, so that it takes no other with it.
    fn attempt_apart(
        &mut self,
        group: &mut [Box<dyn WriteRequest>],
    ) -> Result<Vec<Result<(), SqliteFailure>>, Stopped> {
        let connection = self.begin().map_err(Stopped::BeforeAny)?;
        let mut outcomes = Vec::with_capacity(group.len());
        for request in group.iter_mut() {
            match in_savepoint(connection, request.as_mut()) {
                Err(failure) if failure.is_fatal() || connection.is_autocommit() => {
                    return Err(Stopped::Within(failure));
                }
                outcome => outcomes.push(outcome),
            }
        }
        commit(connection)?;
        Ok(outcomes)
    }

    /// Adds words of messages to the text index; returns whether more are missing.
    ///
    /// Nobody hears of a failure: a later attempt adds the words, and a search also reads the messages that miss them. The
    /// connection closes then, since it may have a transaction open, or commit without a sync.
    fn index(&mut self) -> bool {
        self.try_to_index().unwrap_or_else(|_| {
            self.close();
            false
        })
    }

    /// Closes the connection, unless it may be the last that has a log open which has lost its name.
    fn close(&mut self) {
        let is_lost = self.file.log.state(&self.file.path) != LogState::Ours;
        if !(is_lost && self.connection.as_ref().is_some_and(Connection::is_autocommit)) {
            self.connection = None;
        }
    }

    /// Makes sure that what is committed now stays.
    fn ready(&mut self) -> Result<(), SqliteFailure> {
        self.file.check_file()?;
        match self.file.log.state(&self.file.path) {
            LogState::Ours => Ok(()),
            state => self.leave_log(state),
        }
    }

    /// Copies a log that has lost its name and closes all connections to it, so that the next one begins another.
    ///
    /// Without a connection there is nothing to copy: the one that was closed last has removed the log itself.
    fn leave_log(&mut self, state: LogState) -> Result<(), SqliteFailure> {
        let mut others = self.file.others.alone();
        match self.connection.as_ref().or(others.any()) {
            // The process that put it there may have newer changes in it.
            Some(_) if state == LogState::Another => return Ok(self.file.check_log(state)?),
            Some(connection) => {
                checkpoint::copy_all(connection)?;
                others.close();
                self.connection = None;
                self.file.log.end_copied(&self.file.path);
            }
            None => self.file.log.end(&self.file.path),
        }
        Ok(())
    }

    fn try_to_index(&mut self) -> Result<bool, SqliteFailure> {
        self.ready()?;
        let Some(connection) = &self.connection else { return Ok(false) };
        if !word_index::is_behind(connection)? {
            return Ok(false);
        }
        // Another process may write first.
        connection.busy_timeout(Duration::ZERO)?;
        // Words that the power takes are added again, and the next turn's sync is also theirs.
        connection.execute_batch("PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE")?;
        let is_behind = word_index::add_group(connection)?;
        connection.execute_batch("COMMIT; PRAGMA synchronous = FULL")?;
        connection.busy_timeout(connection::BUSY_TIMEOUT)?;
        Ok(is_behind)
    }

    fn begin(&mut self) -> Result<&Connection, SqliteFailure> {
        self.ready()?;
        let begin = "BEGIN IMMEDIATE";
        let connection = match &mut self.connection {
            Some(connection) => {
                connection.execute_batch(begin)?;
                connection
            }
            empty => {
                let mut connection = connection::open(&self.file.path)?;
                connection::restrict(&mut connection)?;
                self.checkpoints.follow(&mut connection)?;
                connection.execute_batch(begin)?;
                // Only now is the log open.
                self.file.log.remember(&self.file.path);
                empty.insert(connection)
            }
        };
        Ok(connection)
    }
}

fn commit(connection: &Connection) -> Result<(), Stopped> {
    connection.execute_batch("COMMIT").map_err(|error| Stopped::Within(error.into()))
}

fn roll_back(connection: &Connection) -> Result<(), Stopped> {
    connection.execute_batch("ROLLBACK").map_err(|error| Stopped::Within(error.into()))
}

fn in_savepoint(
    connection: &Connection,
    request: &mut dyn WriteRequest,
) -> Result<(), SqliteFailure> {
    connection.prepare_cached("SAVEPOINT request")?.execute([])?;
    let outcome = request.act(connection);
    if let Err(failure) = &outcome {
        if failure.is_fatal() {
            return outcome;
        }
        connection.prepare_cached("ROLLBACK TO request")?.execute([])?;
    }
    connection.prepare_cached("RELEASE request")?.execute([])?;
    outcome
}
