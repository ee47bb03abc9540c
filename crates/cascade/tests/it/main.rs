//! Cascades as files have them: what is read, what is refused and how it is said.

mod shared;
