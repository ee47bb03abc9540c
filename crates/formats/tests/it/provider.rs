//! Provider requests, answers and replies.

mod bodies;
mod checks;
mod replies;
mod requests;
