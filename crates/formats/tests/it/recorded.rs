//! Real sessions, where a folder of them is at hand: they are read, written and read again.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use plimsoll_core::{Block, Role, Tokenizer, Transcript};
use plimsoll_formats::{Compaction, ReadOptions, SessionNote, read, write};

use crate::writing::{contents, decided, whole};

fn folder() -> Option<PathBuf> {
    let given = option_env!("PLIMSOLL_TEST_DATA").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/sessions");
    given.or(Some(beside)).filter(|folder| folder.is_dir())
}

/// The figures of one format.
#[derive(Debug, Default)]
struct Counts {
    files: usize,
    conversations: usize,
    messages: usize,
    notes: BTreeMap<&'static str, usize>,
}

/// Writes a line that the test harness does not capture.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Reads every conversation of every file, and prints for each format how many there are and what was skipped.
#[test]
fn all_recorded_sessions_of_every_format_are_read() {
    let Some(folder) = folder() else {
        return tell("SKIPPED: no folder of recorded sessions (PLIMSOLL_TEST_DATA)");
    };
    let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
    let opencode = folder.join("../opencode");
    let folders = folder.read_dir().unwrap().flatten().map(|entry| entry.path());
    for folder in folders.chain([opencode]).filter(|path| path.is_dir()) {
        let expected = folder.file_name().unwrap().to_string_lossy().into_owned();
        for path in folder.read_dir().unwrap().flatten().map(|entry| entry.path()) {
            let bytes = std::fs::read(&path).unwrap();
            let main = read(&bytes, &ReadOptions::default());
            let main = main.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(main.format.as_str(), expected, "{}", path.display());
            let count = counts.entry(main.format.as_str()).or_default();
            count.files += 1;
            let parts = (1..main.parts.len()).map(|part| {
                let options = ReadOptions { part, ..ReadOptions::default() };
                let found = read(&bytes, &options);
                found.unwrap_or_else(|error| panic!("{}#{part}: {error}", path.display()))
            });
            for session in parts.chain([main.clone()]) {
                count.conversations += 1;
                count.messages += session.messages.len();
                for (kind, notes) in SessionNote::count(&session.notes) {
                    *count.notes.entry(kind).or_default() += notes;
                }
            }
        }
    }
    assert!(counts.len() >= 8, "{counts:?}");
    for (format, count) in counts {
        tell(&format!("{format}: {count:?}"));
        // A file whose records are skipped is not read.
        let skipped = count.notes.get("skipped records").copied().unwrap_or(0);
        assert!(skipped * 100 <= count.messages, "{format}: {skipped} records skipped");
    }
}

#[test]
fn recorded_sessions_are_sound_and_written_back() {
    let Some(folder) = folder() else {
        return tell("SKIPPED: no folder of recorded sessions (PLIMSOLL_TEST_DATA)");
    };
    let folders = folder.read_dir().unwrap().flatten().map(|entry| entry.path());
    let files = folders.filter(|path| path.is_dir()).flat_map(|path| path.read_dir().unwrap());
    for path in files.flatten().map(|entry| entry.path()) {
        let bytes = std::fs::read(&path).unwrap();
        let Ok(session) = read(&bytes, &ReadOptions::default()) else {
            panic!("{} is not read", path.display())
        };
        let mut transcript = Transcript::new(Tokenizer::Estimate);
        for message in &session.messages {
            transcript.push(message.clone());
        }
        for exchange in transcript.exchanges() {
            let after = exchange.call + 1..=exchange.call + exchange.results.len();
            assert_eq!(exchange.results, after.collect::<Vec<_>>(), "{}", path.display());
            let at_end = exchange.call + exchange.results.len() + 1 == session.messages.len();
            assert!(exchange.open.is_empty() || at_end, "{}", path.display());
        }
        if session.format.is_writable() {
            for compaction in [Compaction::PassOver, Compaction::Honour] {
                write_back(&path, &bytes, ReadOptions { compaction, ..ReadOptions::default() });
            }
        }
    }
}

fn write_back(path: &Path, bytes: &[u8], options: ReadOptions) {
    let session = read(bytes, &options).unwrap();
    assert_eq!(write(&session, bytes, &whole(&session)).unwrap(), bytes);
    for decisions in [&[0, 1, 2][..], &[1][..], &[2, 2, 0, 1, 0][..]] {
        let context = decided(&session, decisions);
        let written = write(&session, bytes, &context).unwrap();
        let again = read(&written, &session.options).unwrap();
        let mut found = contents(&again.messages);
        let expected = context.iter().map(|written| &written.message).cloned();
        let mut expected = contents(&expected.collect::<Vec<_>>());
        // Calls at the very end may be open: nothing shows any more that they stay unanswered.
        let is_made = |message: &(Role, Vec<Block>)| matches!(&message.1[..], [Block::ToolResult(result)] if &*result.text == "[no result was recorded]");
        while found.len() < expected.len() && expected.last().is_some_and(is_made) {
            expected.pop();
        }
        if found.len() > expected.len() && found[0].0 == Role::User {
            found.remove(0);
        }
        let differ = found.iter().zip(&expected).position(|(a, b)| a != b);
        assert!(
            found == expected,
            "{} {decisions:?}: {} for {}, first at {differ:?}",
            path.display(),
            found.len(),
            expected.len()
        );
    }
}
