//! The Python package's native part: values go over the border as JSON text, so that no rule about messages lives here.
//!
//! `python/plimsoll` turns Python's objects into that text and back. Every call that works longer than it takes to copy its
//! arguments lets other threads of Python run meanwhile.

mod session;
mod store;

use std::fmt::Display;

use pyo3::prelude::*;

pyo3::create_exception!(
    plimsoll,
    PlimsollError,
    pyo3::exceptions::PyException,
    "A call that failed, with the reason on one line."
);

/// Makes the exception of a failed call.
fn failed(reason: impl Display) -> PyErr {
    PlimsollError::new_err(format!("{reason}"))
}

#[pymodule(name = "_native", gil_used = false)]
mod native {
    use std::ffi::OsString;

    use pyo3::prelude::*;

    #[pymodule_export]
    use super::PlimsollError;
    #[pymodule_export]
    use super::session::NativeSession;
    #[pymodule_export]
    use super::store::NativeStore;

    /// Runs a command of the command line and returns its exit code.
    #[pyfunction]
    fn run(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
        py.detach(|| plimsoll_cli::run(arguments))
    }

    /// Runs a command and returns its exit code, its standard output and the lines of its standard error.
    #[pyfunction]
    fn run_captured(py: Python<'_>, arguments: Vec<OsString>) -> (u8, Vec<u8>, Vec<String>) {
        let captured = py.detach(|| plimsoll_cli::run_captured(arguments));
        (captured.code, captured.data, captured.messages)
    }
}
