//! Clients against a scripted upstream on loopback, with a clock and a chance that tests decide.

mod bodies;
mod embeddings;
mod faults;
mod json;
mod offline;
mod registry;
mod replies;
mod spending;
mod start;
mod streams;
