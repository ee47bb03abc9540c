//! The store on a real PostgreSQL: run where `PLIMSOLL_TEST_POSTGRES` has the URL of a server, in a database for each test.

mod conformance;
mod database;
mod faults;
mod isolation;
mod join;
mod literal;
mod migrations;
