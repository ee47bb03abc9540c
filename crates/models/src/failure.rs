//! Failures that providers tell of, as errors of a model.

use std::time::Duration;

use plimsoll_engine::ModelError;
use plimsoll_wire::{Failure, FailureKind};

use crate::provider::Provider;

/// Makes the error of a failure that came with a status of success.
///
/// It is not tried again by itself: the answer had begun.
pub(crate) fn inside(failure: &Failure, provider: &Provider) -> ModelError {
    let message = format!("{}: {}", provider.name, provider.clean(&failure.message));
    error(failure.kind_inside(), message, None)
}

/// Makes the error of a failure of this kind.
pub(crate) fn error(
    kind: FailureKind,
    message: String,
    retry_after: Option<Duration>,
) -> ModelError {
    match kind {
        FailureKind::Later => ModelError::Unavailable { message, retry_after },
        FailureKind::Denied => ModelError::Denied(message),
        FailureKind::Invalid => ModelError::Invalid(message),
    }
}
