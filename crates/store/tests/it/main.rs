//! The stores against their ports, and what only one of them promises.

mod answers;
mod branches;
#[cfg(feature = "clickhouse")]
mod clickhouse;
mod conformance;
mod damage;
mod erasure;
mod failed_sync;
mod file;
mod full_disk;
mod isolation;
mod join;
mod kill;
#[cfg(unix)]
mod lost_log;
#[cfg(feature = "postgres")]
mod postgres;
mod power_cut;
mod repair;
mod seeded;
mod together;
mod words;
