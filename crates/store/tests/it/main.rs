//! Tests of the stores.

mod conformance;
mod damage;
mod file;
mod full_disk;
mod isolation;
mod kill;
#[cfg(feature = "postgres")]
mod postgres;
mod seeded;
