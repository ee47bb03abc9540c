//! Tests of the store on SQLite.

mod conformance;
mod damage;
mod file;
mod full_disk;
mod isolation;
mod kill;
mod seeded;
