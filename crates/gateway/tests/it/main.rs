//! The gateway over real HTTP on loopback, against scripted upstreams.

mod answers;
mod forward;
mod gate;
mod harness;
mod lazy_tools;
mod limits;
mod lookups;
mod routes;
mod sessions;
mod talk;
