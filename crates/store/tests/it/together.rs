//! Processes that change one memory together lose no change, and nothing that was forgotten comes back.

use std::process::{Command, Stdio};

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::memory::lifecycle::LifecycleSettings;
use plimsoll_core::memory::{MemoryKind, MemoryState};
use plimsoll_core::safety::Handling;
use plimsoll_engine::remember::{Details, NewMemory, Remember, SourceConfidence};
use plimsoll_engine::{KnowledgeStore, MemoryId, MemoryVersion, TenantId};
use plimsoll_store::StoreAddress;

const PROCESSES: usize = 8;
const CHANGES: usize = 1_000;

#[tokio::test]
async fn eight_processes_lose_no_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    check(path.to_str().expect("text")).await;
}

/// Lets processes change the store at `address`, and checks what they left.
pub(crate) async fn check(address: &str) {
    let knowledge = plimsoll_store::open(&StoreAddress::new(address)).await.expect("a store").1;
    let tenant = TenantId::default();
    prepare(&*knowledge, &tenant).await;
    let children: Vec<_> = (0..PROCESSES)
        .map(|process| {
            Command::new(env!("CARGO_BIN_EXE_change-memory"))
                .args([address, &process.to_string(), &CHANGES.to_string()])
                .stdout(Stdio::piped())
                .spawn()
                .expect("the process starts")
        })
        .collect();
    let mut expected = [0_u32; 5];
    for child in children {
        let output = child.wait_with_output().expect("ended");
        assert!(output.status.success(), "a process failed");
        let line = String::from_utf8(output.stdout).expect("text");
        for (sum, count) in expected.iter_mut().zip(line.split_whitespace()) {
            *sum += count.parse::<u32>().expect("a count");
        }
    }
    let mut found = [0_u32; 5];
    let records = knowledge.memory_changes(&tenant, MemoryVersion::default()).await;
    for record in records.expect("records").records {
        let confirmations = Details::of(&record).confirmations;
        match record.micro.as_str() {
            "what everybody says" => found[4] = confirmations,
            "wrong" => assert_eq!(record.state, MemoryState::Inactive),
            text if text.starts_with("counter") => {
                let at: usize = text["counter ".len()..].parse().expect("a number");
                found[at] = confirmations;
            }
            other => panic!("{other} came back"),
        }
    }
    assert_eq!(found, expected, "confirmations that are stored, and that succeeded");
    assert!(expected.iter().sum::<u32>() > 4_000, "{expected:?}");
}

async fn prepare(knowledge: &dyn KnowledgeStore, tenant: &TenantId) {
    let (lifecycles, confidence) = (LifecycleSettings::default(), SourceConfidence::default());
    let remember = Remember {
        knowledge,
        embedder: None,
        tenant,
        lifecycles: &lifecycles,
        confidence: &confidence,
        handling: Handling::default(),
    };
    let mut new: Vec<String> = (0..4).map(|number| format!("counter {number}")).collect();
    new.extend((0..24).map(|number| format!("doomed {number}")));
    new.push("wrong".into());
    let new = new.into_iter().map(|text| NewMemory {
        id: Some(MemoryId(text.clone())),
        ..NewMemory::new(MemoryKind::Fact, text)
    });
    let now = MillisSinceEpoch(1_600_000_000_000);
    remember.add_all(new.collect(), now).await.expect("remembered");
    // Forgotten from the beginning: whatever is taken from it later stays out.
    remember.forget_source("ref:page:gone", now).await.expect("forgotten");
}
