//! The gateway over real HTTP on loopback, against scripted upstreams.

mod faults;
mod forward;
mod gate;
mod harness;
mod limits;
mod lookups;
mod routes;
mod sessions;
mod settings;
mod talk;
#[cfg(feature = "otlp")]
mod traces;
