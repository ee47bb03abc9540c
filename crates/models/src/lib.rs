//! Chat models and embedders: clients over HTTP, the built-in embedder, scripted models.

mod built_in;

pub use built_in::BuiltInEmbedder;
