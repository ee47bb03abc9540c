//! Chat models and embedders: clients over HTTP, the built-in embedder, scripted models.
