//! store

#[cfg(feature = "clickhouse")]
mod clickhouse;

#[cfg(feature = "clickhouse")]
pub use clickhouse::{ClickHouseConfig, ClickHouseStore};
