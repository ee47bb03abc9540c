//! `plimsoll pin` and `plimsoll drop`: says for a message of a stored session that it stays whole, or may go first.

use plimsoll_core::pins::{Wish, WishKind};
use plimsoll_engine::{HistoryStore, SessionId, StoreError, TenantId, wishes};
use serde::Serialize;

use crate::arguments::PinArguments;
use crate::clock;
use crate::error::CommandError;
use crate::output;
use crate::store::Store;

/// A kept wish.
#[derive(Debug, Serialize)]
struct Kept {
    session: SessionId,
    wish: WishKind,
    #[serde(rename = "ref")]
    reference: String,
}

pub(crate) fn run(arguments: &PinArguments, kind: WishKind) -> Result<(), CommandError> {
    let kind = if arguments.undo { WishKind::Undo } else { kind };
    let wish = Wish::of_user(kind, &arguments.reference).ok_or_else(|| {
        CommandError::usage(anyhow::anyhow!("`{}` is no ref", arguments.reference))
            .hint("give ref:message: and 16 hex digits, or at least 8 of them")
    })?;
    let store = Store::open_existing(&arguments.store, arguments.config.as_deref())?;
    let session = store.session_named(&arguments.session)?;
    let (session, reference) = store.history(async |history, tenant| {
        let message = history.message_by_hash(tenant, &wish.prefix).await?;
        let conversation = conversation(history, tenant, session).await?;
        let wish = Wish { prefix: message.hash.full(), ..wish };
        wishes::wish(history, tenant, &conversation, wish, clock::now()).await?;
        Ok((conversation, plimsoll_core::Ref::message(message.hash).to_string()))
    })?;
    if arguments.json {
        return output::json(&Kept { session, wish: kind, reference });
    }
    let what = match kind {
        WishKind::Pin => "stays whole",
        WishKind::Drop => "may go first",
        WishKind::Undo => "is neither pinned nor dropped",
    };
    output::data(&format!("{reference} {what} from the next request of {session} on\n"))
}

/// Returns the conversation of a session: branches of a conversation have its name with a number behind it.
async fn conversation(
    history: &dyn HistoryStore,
    tenant: &TenantId,
    session: SessionId,
) -> Result<SessionId, StoreError> {
    if history.session(tenant, &session).await?.is_none() {
        return Err(StoreError::NotFound { what: format!("the session {session}") });
    }
    let branch = session.as_str().rsplit_once('.');
    let numbered = branch.filter(|(_, number)| number.parse::<u32>().is_ok_and(|one| one > 1));
    if let Some(name) = numbered.and_then(|(name, _)| SessionId::new(name).ok())
        && history.session(tenant, &name).await?.is_some()
    {
        return Ok(name);
    }
    Ok(session)
}
