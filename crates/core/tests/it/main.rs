//! Properties of `plimsoll-core`, through its public interface only.

mod laws;
mod transcripts;
mod window;
