//! Changes the memory of a store, as one of several processes that do so; prints how often it confirmed each record.
//!
//! Arguments: a file or an address, the number of this process, and the number of its changes.

#![expect(clippy::print_stdout, reason = "it reports to the test")]

use plimsoll_core::MillisSinceEpoch;
use plimsoll_core::memory::lifecycle::{Event, LifecycleSettings};
use plimsoll_core::safety::Handling;
use plimsoll_engine::remember::{MemoryError, Novelty, Remember, SourceConfidence};
use plimsoll_engine::{KnowledgeStore, MemoryId, MemoryKind, StoreError, TenantId};
use plimsoll_store::StoreAddress;

/// Records that all processes confirm.
const COUNTERS: usize = 4;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().expect("an argument");
    let address = next();
    let process: usize = next().parse().expect("a number");
    let changes: usize = next().parse().expect("a number");
    let knowledge = plimsoll_store::open(&StoreAddress::new(address)).await.expect("a store").1;
    run(&*knowledge, process, changes).await;
}

async fn run(knowledge: &dyn KnowledgeStore, process: usize, changes: usize) {
    let (tenant, lifecycles, confidence) =
        (TenantId::default(), LifecycleSettings::default(), SourceConfidence::default());
    let remember = Remember {
        knowledge,
        embedder: None,
        tenant: &tenant,
        lifecycles: &lifecycles,
        confidence: &confidence,
        handling: Handling::default(),
    };
    let mut confirmed = [0_u32; COUNTERS];
    let mut said = 0_u32;
    for at in 0..changes {
        let now = MillisSinceEpoch(1_700_000_000_000 + i64::try_from(at).unwrap_or_default());
        let one = (at + process) % COUNTERS;
        match at % 8 {
            // Every process hears the same text from sources of its own.
            0 => {
                let source = format!("ref:message:{process:08x}{at:08x}");
                let heard = heard("what everybody says", Some(source));
                let (_, novelty) = remember.add(heard, now).await.expect("remembered");
                said += u32::from(novelty == Novelty::Confirmed);
            }
            1 => {
                let gone =
                    heard(&format!("forgotten {}", at / 8 % 24), Some("ref:page:gone".into()));
                remember.add(gone, now).await.expect("remembered or forgotten");
            }
            2 if process == 0 => {
                let id = MemoryId(format!("doomed {}", at / 8 % 24));
                remember.forget(&[id]).await.expect("forgotten");
            }
            2 => {
                let id = MemoryId(format!("doomed {}", at / 8 % 24));
                let changed = remember.change(&id, &Event::Confirmed, now).await;
                let is_gone =
                    matches!(changed, Err(MemoryError::Store(StoreError::NotFound { .. })));
                assert!(changed.is_ok() || is_gone, "{changed:?}");
            }
            3 => {
                let wrong = MemoryId("wrong".into());
                // It is refused once it is disproved.
                let event = if at > 100 { Event::Disproved } else { Event::Confirmed };
                let _ = remember.change(&wrong, &event, now).await;
            }
            _ => {
                let id = MemoryId(format!("counter {one}"));
                remember.change(&id, &Event::Confirmed, now).await.expect("confirmed");
                confirmed[one] += 1;
            }
        }
    }
    let confirmed: Vec<String> = confirmed.iter().map(u32::to_string).collect();
    println!("{} {said}", confirmed.join(" "));
}

fn heard(text: &str, source_ref: Option<String>) -> plimsoll_engine::remember::NewMemory {
    plimsoll_engine::remember::NewMemory {
        origin: "user".into(),
        source_ref,
        ..plimsoll_engine::remember::NewMemory::new(MemoryKind::Fact, text)
    }
}
