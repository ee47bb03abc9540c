//! The history port.

use async_trait::async_trait;
use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{
    Appended, Bills, ContextCard, Efficiency, Forgotten, Gathering, HistoryBatch, HistoryStore,
    Hit, LogQuery, LogRow, MessageRecord, Rebuilt, ReceiptRecord, SearchQuery, SessionId,
    SessionSummary, StoreError, TenantId,
};

use tokio_postgres::Row;

use super::messages::message_columns;
use super::text::{self, count, limit, session, unescape_opt};
use super::{PostgresStore, branches, cards, forget, log, messages, row, rows, search};

/// Messages that are hashed at once when all are verified (chosen).
const CHUNK: i64 = 500;

/// The query of `auto-context.md`, Metrics, and the bills, gathered by a column.
macro_rules! efficiency_by {
    ($column:literal) => {
        concat!(
            "SELECT ",
            $column,
            ", count(*), avg(full_history_size::float8), avg(context_size::float8), \
             avg(tokens_saved::float8), sum(tokens_saved)::bigint, count(billed), \
             coalesce(sum(billed), 0), coalesce(sum(billed_without), 0), \
             count(*) FILTER (WHERE billed_estimate) \
             FROM unified_logs WHERE tenant = $1 AND node_type = 'context_selection' GROUP BY ",
            $column
        )
    };
}

#[async_trait]
impl HistoryStore for PostgresStore {
    async fn append(&self, tenant: &TenantId, batch: HistoryBatch) -> Result<Appended, StoreError> {
        messages::append(self, tenant, batch).await
    }

    async fn messages(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<MessageRecord>, StoreError> {
        messages::of_session(&self.client().await?, tenant, session, from, limit).await
    }

    async fn message_by_hash(
        &self,
        tenant: &TenantId,
        prefix: &str,
    ) -> Result<MessageRecord, StoreError> {
        messages::by_hash(&self.client().await?, tenant, prefix).await
    }

    async fn sessions(
        &self,
        tenant: &TenantId,
        most: usize,
    ) -> Result<Vec<SessionSummary>, StoreError> {
        let client = self.client().await?;
        let sql = "SELECT session_id, messages, tokens, first_at, last_at FROM sessions \
                   WHERE tenant = $1 ORDER BY last_at DESC, session_id LIMIT $2";
        let found = rows(&client, sql, &[&tenant.as_str(), &limit(most)]).await?;
        found.iter().map(read_summary).collect()
    }

    async fn session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Option<SessionSummary>, StoreError> {
        let client = self.client().await?;
        let sql = "SELECT session_id, messages, tokens, first_at, last_at FROM sessions \
                   WHERE tenant = $1 AND session_id = $2";
        let found = row(&client, sql, &[&tenant.as_str(), &session.as_str()]).await?;
        found.as_ref().map(read_summary).transpose()
    }

    async fn receipts(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Vec<ReceiptRecord>, StoreError> {
        branches::receipts(&self.client().await?, tenant, session, None).await
    }

    async fn receipts_of(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        strategy: &str,
    ) -> Result<Vec<ReceiptRecord>, StoreError> {
        let key = Some(text::key(strategy));
        branches::receipts(&self.client().await?, tenant, session, key).await
    }

    async fn cards(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Vec<ContextCard>, StoreError> {
        cards::of_session(&self.client().await?, tenant, session).await
    }

    async fn search(
        &self,
        tenant: &TenantId,
        session: Option<&SessionId>,
        query: &SearchQuery,
    ) -> Result<Vec<Hit<MessageRecord>>, StoreError> {
        query.check()?;
        let mut client = self.client().await?;
        search::messages(&mut client, tenant, session, query).await
    }

    async fn log(&self, tenant: &TenantId, query: &LogQuery) -> Result<Vec<LogRow>, StoreError> {
        log::newest(&self.client().await?, tenant, query).await
    }

    async fn efficiency(
        &self,
        tenant: &TenantId,
        by: Gathering,
    ) -> Result<Vec<Efficiency>, StoreError> {
        let client = self.client().await?;
        let sql = match by {
            Gathering::Cascade => efficiency_by!("cascade_id"),
            Gathering::Session => efficiency_by!("session_id"),
        };
        let found = rows(&client, sql, &[&tenant.as_str()]).await?;
        let mut gathered = Vec::with_capacity(found.len());
        for row in &found {
            let (cascade_id, session) = match by {
                Gathering::Cascade => (unescape_opt(row.get(0)), None),
                Gathering::Session => (None, Some(session(row.get(0))?)),
            };
            gathered.push(Efficiency {
                cascade_id,
                session,
                selections: row.get::<_, i64>(1).unsigned_abs(),
                avg_full_size: row.get(2),
                avg_context_size: row.get(3),
                avg_tokens_saved: row.get(4),
                tokens_saved: row.get(5),
                bills: Bills {
                    requests_billed: row.get::<_, i64>(6).unsigned_abs(),
                    dollars_billed: row.get(7),
                    dollars_without: row.get(8),
                    bills_estimated: row.get::<_, i64>(9).unsigned_abs(),
                },
            });
        }
        gathered.sort_by(|a, b| (&a.cascade_id, &a.session).cmp(&(&b.cascade_id, &b.session)));
        Ok(gathered)
    }

    async fn forget_session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Forgotten, StoreError> {
        forget::forget_session(&mut self.client().await?, tenant, session).await
    }

    async fn verify(&self, tenant: &TenantId) -> Result<Rebuilt, StoreError> {
        let client = self.client().await?;
        let sql = concat!(
            "SELECT ",
            message_columns!(),
            " FROM unified_logs WHERE tenant = $1 AND node_type = 'message' \
              AND (session_id, node_type, number) > ($2, 'message', $3) \
              ORDER BY session_id, node_type, number LIMIT $4"
        );
        let mut rebuilt = Rebuilt::default();
        let (mut after, mut number) = (String::new(), -1_i64);
        loop {
            let found = rows(&client, sql, &[&tenant.as_str(), &after, &number, &CHUNK]).await?;
            for row in &found {
                rebuilt.messages += 1;
                rebuilt.mismatches += u64::from(messages::read(row).is_err());
            }
            let Some(last) = found.last() else { return Ok(rebuilt) };
            (after, number) = (last.get("session_id"), last.get("number"));
        }
    }
}

fn read_summary(row: &Row) -> Result<SessionSummary, StoreError> {
    Ok(SessionSummary {
        session: session(row.get(0))?,
        messages: count(row.get(1)),
        tokens: row.get::<_, i64>(2).unsigned_abs(),
        first_at: MillisSinceEpoch(row.get(3)),
        last_at: MillisSinceEpoch(row.get(4)),
    })
}
