//! The REST interface under `/api/v1`, and the dashboard under `/ui/`: both over the use cases of the engine.
//!
//! The crate answers requests whose caller is known; who may ask, and from where, is decided in front of it.
//!
//! **Invariant:** each operation stands in `openapi.json`, from which the routes are read.
//! **Invariant:** the dashboard asks nothing but this interface.

mod api;
mod asked;
mod cascades;
mod contexts;
mod finding;
mod memory;
mod openapi;
mod paging;
mod parts;
mod problem;
mod query;
mod runs;
mod sessions;
mod site;
mod sources;
mod timeline;
mod turns;
mod view;

pub use api::StoreApi;
pub use openapi::document;
pub use parts::{ApiCascades, ApiParts, ApiPolicies, CascadeRequest};
