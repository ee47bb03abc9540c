//! Clients against a scripted upstream on loopback, with a clock and a chance that tests decide.

mod bodies;
mod built_in;
mod documented;
mod embeddings;
mod faults;
mod json;
mod likelihoods;
mod offline;
#[cfg(feature = "onnx")]
mod onnx;
mod registry;
mod replies;
mod spending;
mod start;
mod streams;
mod tool_search;
