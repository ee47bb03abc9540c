//! The binary, run as a user runs it; one module a command.

mod arrows;
mod assembled;
mod bad_input;
mod bill;
mod cache;
mod cards;
mod cascades;
mod clickhouse;
mod environment;
mod explain;
mod gateway;
mod inspect;
mod memory;
mod models;
mod modules;
mod pressure;
mod prices;
mod readme;
mod recall;
mod replay;
mod runs;
mod sessions;
mod settings;
mod store;
mod tools;
mod trim;
