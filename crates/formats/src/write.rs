//! Writing back: a changed context in the format that it was read from.

use std::sync::Arc;

use plimsoll_core::Message;

use crate::error::WriteError;
use crate::session::Session;

/// One message of the context to write.
#[derive(Debug, Clone)]
pub struct Written {
    /// Its index in [`Session::messages`]; `None` for a new one, such as a summary.
    pub position: Option<usize>,
    pub message: Arc<Message>,
}

/// Writes `context` in the session's own format.
pub fn write(
    session: &Session,
    _original: &[u8],
    _context: &[Written],
) -> Result<Vec<u8>, WriteError> {
    Err(WriteError::Unsupported { format: session.format })
}
