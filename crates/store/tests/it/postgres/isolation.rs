//! The results of one tenant never depend on another.

use proptest::prelude::*;

use super::database::{Database, server};
use crate::isolation::{Operation, act, everything};

async fn seen(operations: &[Operation], with_other: bool) -> Vec<String> {
    let Some(database) = Database::new().await else { return Vec::new() };
    let store = database.store().await;
    let mut seen = Vec::new();
    for &(mine, which, x, y) in operations {
        if mine {
            seen.push(act(&*store, "a", which, x, y).await);
        } else if with_other {
            act(&*store, "b", which, x, y).await;
        }
    }
    seen.push(everything(&*store, "a").await);
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(8) })]

    #[test]
    fn one_tenant_sees_the_same_with_and_without_another(
        operations in prop::collection::vec((any::<bool>(), 0..16_u8, 0..50_u8, 0..20_u8), 60..120),
    ) {
        if server().is_none() {
            return Ok(());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let (alone, beside) = runtime.expect("a runtime").block_on(async {
            (seen(&operations, false).await, seen(&operations, true).await)
        });
        prop_assert_eq!(alone, beside);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_processes_lose_no_change() {
    let Some(database) = super::database::Database::new().await else { return };
    crate::together::check(&database.url()).await;
}
