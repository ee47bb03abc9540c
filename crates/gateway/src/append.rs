//! Appending a turn to the history, with the cards and jobs that come with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::observe::MessageObserver;
use plimsoll_engine::{Appended, HistoryBatch, MessageRecord, StoreError, TenantId};

use crate::causes::causes;
use crate::gateway::Gateway;
use crate::ports::Observation;

/// Appends a batch, with cards where they are wanted; their jobs are queued behind the answer.
pub(crate) async fn append(
    gateway: &Arc<Gateway>,
    tenant: &TenantId,
    mut batch: HistoryBatch,
    repeated: &BTreeSet<u32>,
    now: MillisSinceEpoch,
) -> Result<Appended, StoreError> {
    let new = match observer(gateway, tenant) {
        Some(observer) => {
            let is_known = |record: &MessageRecord| repeated.contains(&record.position);
            observer.add_cards(&mut batch, is_known, now).await?
        }
        None => Vec::new(),
    };
    let appended = gateway.history.append(tenant, batch).await?;
    if !new.is_empty() {
        let (gateway, tenant) = (gateway.clone(), tenant.clone());
        let behind = gateway.behind.subscribe();
        tokio::spawn(async move {
            let _behind = behind;
            let Some(observer) = observer(&gateway, &tenant) else { return };
            if let Err(error) = observer.queue(&new, now).await {
                tracing::error!(error = %causes(&error), "jobs of cards could not be queued");
            }
        });
    }
    Ok(appended)
}

fn observer<'a>(gateway: &'a Gateway, tenant: &'a TenantId) -> Option<MessageObserver<'a>> {
    let Observation { knowledge, cards } = gateway.observation.as_ref()?;
    let (history, knowledge) = (&*gateway.history, &**knowledge);
    Some(MessageObserver { history, knowledge, tenant, settings: cards })
}
