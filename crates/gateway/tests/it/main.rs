//! The gateway over real HTTP on loopback, against scripted upstreams.

mod again;
mod agent;
mod answers;
mod bound;
mod budget;
mod faults;
mod forward;
mod gate;
mod harness;
mod keep_warm;
mod lazy_tools;
mod limits;
mod lookups;
mod marks;
mod memory;
mod observations;
mod observe;
mod pins;
mod redaction;
mod routes;
mod sessions;
mod settings;
mod store_faults;
mod strangers;
mod talk;
mod traces;
