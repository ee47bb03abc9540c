//! Properties of `plimsoll-core`, through its public interface only.

mod window;
