//! The specification's join of messages and cards.

use super::database::Database;
use crate::join::{fill, join};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_and_cards_are_joined_by_session_and_hash() {
    let Some(database) = Database::new().await else { return };
    let wanted = fill(&*database.store().await).await;
    let rows = database.client().await.query(join!(), &[]).await.expect("rows");
    let rows: Vec<[String; 3]> = rows
        .iter()
        .map(|row| [row.get(0), row.get(1), row.get::<_, Option<String>>(2).unwrap_or_default()])
        .collect();
    assert_eq!(rows, wanted);
}
