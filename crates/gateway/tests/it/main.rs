//! The gateway over real HTTP on loopback, against scripted upstreams.

mod forward;
mod harness;
mod limits;
mod routes;
