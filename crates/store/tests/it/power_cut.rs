//! No acknowledged message is lost when the power is cut.
//!
//! A kill leaves the system's cache alone, so it says nothing of this. Here a process that appends is traced; what it wrote
//! and synced is played again up to a chosen moment, and of the writes since the last sync of their file each is kept, lost
//! or torn at a sector. Where strace is missing, or may not trace, nothing is tested.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

use plimsoll_store::SqliteStore;

use crate::kill::{Acks, acknowledge, check};
use crate::seeded::Seeded;

/// Moments that are tried; chosen.
const CUTS: usize = 150;
const APPENDED: usize = 150;
/// Messages of this length fill the log up to a checkpoint before the last of [`APPENDED`].
const LENGTH: usize = 30_000;
/// The size of a write that a disk does whole; the smallest in use.
const SECTOR: usize = 512;

#[tokio::test]
async fn what_was_acknowledged_survives_every_power_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    drop(SqliteStore::open(&path).await.expect("a store"));
    let mut disk = Disk::default();
    for name in ["store.db", "store.db-wal"] {
        if let Ok(bytes) = std::fs::read(folder.path().join(name)) {
            disk.files.insert(name.to_owned(), File { synced: Some(bytes), since: Vec::new() });
        }
    }
    let Some(events) = traced(folder.path(), &path) else {
        println!("skipped: strace is missing or may not trace");
        return;
    };
    let mut random = Seeded(0xC07);
    let mut cuts: Vec<usize> = (0..CUTS).map(|_| random.below(events.len())).collect();
    cuts.sort_unstable();
    let mut acks = Acks::new();
    let (mut unsynced, mut of_checkpoints) = (0, 0);
    let mut next = cuts.into_iter().peekable();
    for (number, event) in events.into_iter().enumerate() {
        while next.next_if_eq(&number).is_some() {
            unsynced += usize::from(disk.files.values().any(|file| !file.since.is_empty()));
            let after = tempfile::tempdir().expect("a folder");
            disk.cut(&mut random, after.path());
            let path = after.path().join("store.db");
            check(&path, &acks).await;
            let database = rusqlite::Connection::open(&path).expect("a database");
            let sound: String = database
                .query_row("PRAGMA integrity_check", [], |row| row.get(0))
                .expect("the check runs");
            assert_eq!(sound, "ok", "cut before event {number}");
        }
        match event {
            Event::Printed(line) => acknowledge(&mut acks, &line),
            Event::Changed(name, change) => {
                of_checkpoints += usize::from(name == "store.db");
                disk.files.entry(name).or_default().since.push(change);
            }
            Event::Synced(name) => disk.files.entry(name).or_default().sync(),
        }
    }
    assert_eq!(acks.len(), APPENDED);
    assert!(unsynced >= CUTS / 2, "{unsynced} cuts met writes that were not synced");
    assert!(of_checkpoints > 0, "the log was never copied to the database");
}

enum Event {
    Printed(String),
    Changed(String, Change),
    Synced(String),
}

#[derive(Clone)]
enum Change {
    Written { at: usize, bytes: Vec<u8> },
    Cut { to: usize },
    Removed,
}

#[derive(Default)]
struct File {
    /// The contents that survive any power cut; `None` before there is a file.
    synced: Option<Vec<u8>>,
    since: Vec<Change>,
}

#[derive(Default)]
struct Disk {
    files: HashMap<String, File>,
}

impl File {
    fn sync(&mut self) {
        for change in std::mem::take(&mut self.since) {
            change.apply(&mut self.synced);
        }
    }

    /// Returns what a power cut now may leave.
    fn left(&self, random: &mut Seeded) -> Option<Vec<u8>> {
        let mut content = self.synced.clone();
        for change in &self.since {
            match (random.below(4), change) {
                (0, _) => {}
                (1, Change::Written { at, bytes }) => {
                    let sectors = bytes.chunks(SECTOR).enumerate();
                    for (number, sector) in sectors.filter(|_| random.below(2) == 0) {
                        let at = at + number * SECTOR;
                        Change::Written { at, bytes: sector.to_vec() }.apply(&mut content);
                    }
                }
                _ => change.clone().apply(&mut content),
            }
        }
        content
    }
}

impl Change {
    fn apply(self, content: &mut Option<Vec<u8>>) {
        match self {
            Self::Written { at, bytes } => {
                let content = content.get_or_insert_default();
                content.resize(content.len().max(at + bytes.len()), 0);
                content[at..at + bytes.len()].copy_from_slice(&bytes);
            }
            Self::Cut { to } => content.get_or_insert_default().resize(to, 0),
            Self::Removed => *content = None,
        }
    }
}

impl Disk {
    fn cut(&self, random: &mut Seeded, folder: &Path) {
        let mut names: Vec<&String> = self.files.keys().collect();
        names.sort();
        for name in names {
            if let Some(content) = self.files[name].left(random) {
                std::fs::write(folder.join(name), content).expect("written");
            }
        }
    }
}

/// Returns what an appending process did to its files and what it printed, in order; `None` if it could not be traced.
fn traced(folder: &Path, path: &Path) -> Option<Vec<Event>> {
    let trace = folder.join("trace");
    let output = Command::new("strace")
        .args(["-f", "-y", "-xx", "-s", "1000000", "-e"])
        .arg("trace=write,pwrite64,pwritev,ftruncate,fallocate,fsync,fdatasync,unlink,rename")
        .arg("-o")
        .arg(&trace)
        .arg(env!("CARGO_BIN_EXE_append-until-killed"))
        .args([path.as_os_str(), APPENDED.to_string().as_ref(), LENGTH.to_string().as_ref()])
        .stderr(Stdio::inherit())
        .output()
        .ok()?;
    let traced = std::fs::read_to_string(&trace).unwrap_or_default();
    if !traced.contains("sync(") && !output.status.success() {
        return None;
    }
    assert!(output.status.success(), "{output:?}");
    let mut syncing: HashMap<&str, String> = HashMap::new();
    let mut events = Vec::new();
    for line in traced.lines() {
        let (thread, call) = line.split_once(' ').expect("a thread and its call");
        let call = call.trim_start();
        if call.contains(" resumed>") {
            // A sync has happened when it returns; a write may have when it begins.
            events.extend(syncing.remove(thread).map(Event::Synced));
            continue;
        }
        let Some((name, arguments)) = call.split_once('(') else { continue };
        let ends = call.ends_with("<unfinished ...>");
        let Some(file) = file(arguments) else { continue };
        let number = |place: usize| {
            let parts: Vec<&str> = arguments.split([',', ')']).collect();
            // Another thread's call may stand between the beginning of a call and its end.
            let number = parts[place].split_whitespace().next();
            number.and_then(|number| number.parse::<usize>().ok()).expect("a number")
        };
        events.extend(match name {
            "write" if file.starts_with("pipe:") => {
                let printed = String::from_utf8(quoted(arguments)).expect("text");
                Some(Event::Printed(printed.trim_end().to_owned()))
            }
            _ if !file.starts_with("store.db") || file.ends_with("-shm") => None,
            "pwrite64" => {
                let bytes = quoted(arguments);
                assert_eq!(bytes.len(), number(2), "the whole write is in the trace");
                Some(Event::Changed(file, Change::Written { at: number(3), bytes }))
            }
            "ftruncate" => Some(Event::Changed(file, Change::Cut { to: number(1) })),
            "unlink" => Some(Event::Changed(file, Change::Removed)),
            "fsync" | "fdatasync" if ends => {
                syncing.insert(thread, file);
                None
            }
            "fsync" | "fdatasync" => Some(Event::Synced(file)),
            other => panic!("{other} of {file} is not played again"),
        });
    }
    Some(events)
}

/// Returns the last part of the name of the file that a call is about: its descriptor's, else its path's.
fn file(arguments: &str) -> Option<String> {
    // A call that another thread's stands in ends without a bracket.
    let first = arguments.split([',', ')', ' ']).next()?;
    let name = match first.split_once('<') {
        Some((_, name)) => unescaped(name.split('>').next()?),
        None => quoted(first),
    };
    Some(String::from_utf8_lossy(&name).rsplit('/').next()?.to_owned())
}

fn quoted(arguments: &str) -> Vec<u8> {
    unescaped(arguments.split('"').nth(1).unwrap_or_default())
}

fn unescaped(text: &str) -> Vec<u8> {
    let digit = |digit: u8| (digit as char).to_digit(16).expect("a hex digit") as u8;
    if !text.starts_with("\\x") {
        return text.as_bytes().to_vec();
    }
    text.as_bytes().chunks_exact(4).map(|code| digit(code[2]) * 16 + digit(code[3])).collect()
}
