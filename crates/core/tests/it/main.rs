//! Properties of `plimsoll-core`, through its public interface only.

mod batches;
mod laws;
mod memory;
mod names;
mod recall;
mod scorer;
mod settings;
mod tokens;
mod transcripts;
mod window;
