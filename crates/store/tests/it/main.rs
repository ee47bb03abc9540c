//! Tests of the store on SQLite.

mod conformance;
