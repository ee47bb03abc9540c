//! Forgetting: all rows of a session leave both tables.

use plimsoll_engine::{Forgotten, SessionId, StoreError, TenantId};
use serde::Deserialize;

use super::cards;
use super::client::{Client, Parameters};

const COUNTS: &str = concat!(
    "SELECT (
        SELECT uniqExact(number) FROM unified_logs
        WHERE tenant = {tenant:String} AND session_id = {session:String}
            AND node_type = 'message'
    ) AS messages, (SELECT count() FROM ",
    cards::visible_cards!("content_hash"),
    ") AS cards FORMAT JSONEachRow"
);

/// A mutation and no lightweight `DELETE`, which only marks rows: the parts are written anew without them. The servers' old
/// parts leave the disk after `old_parts_lifetime`, 8 minutes by default.
const CARDS: &str = "
ALTER TABLE context_cards DELETE WHERE tenant = {tenant:String} AND session_id = {session:String}
SETTINGS mutations_sync = 2";

const LOG: &str = "
ALTER TABLE unified_logs DELETE WHERE tenant = {tenant:String} AND session_id = {session:String}
SETTINGS mutations_sync = 2";

#[derive(Deserialize)]
struct ForgottenCounts {
    messages: u64,
    cards: u64,
}

/// Removes the rows of a session; nobody else may append to it meanwhile.
pub(super) async fn forget_session(
    client: &Client,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<Forgotten, StoreError> {
    let parameters =
        Parameters::new().text("tenant", tenant.as_str()).text("session", session.as_str());
    let counts: Vec<ForgottenCounts> = client.select(COUNTS, &parameters).await?;
    // Cards first: the log holds the messages that a forgetting which was interrupted begins with.
    client.execute(CARDS, &parameters).await?;
    client.execute(LOG, &parameters).await?;
    let ForgottenCounts { messages, cards } =
        counts.into_iter().next().unwrap_or(ForgottenCounts { messages: 0, cards: 0 });
    Ok(Forgotten { messages, cards, ..Forgotten::default() })
}
