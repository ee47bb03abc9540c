//! Texts: the one place that cuts them, marks omissions, recognises error lines and splits words.

mod cut;
mod error_lines;
mod left_out;
mod parts;
mod words;

pub use cut::{
    Limit, head, head_at_word, line, one_line, push_shortened, shortened, tail, tail_at_word,
};
pub use error_lines::{error_lines, is_error_line, mentions_error, with_error_lines};
pub(crate) use left_out::is_cut_by_tool;
pub use left_out::{EARLIER_LEFT_OUT, left_out, plural};
pub use parts::parts;
pub(crate) use words::each_word;
pub use words::words;
