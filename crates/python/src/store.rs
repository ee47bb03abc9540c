//! A store, asked by the paths of the REST interface.

use std::path::PathBuf;

use bytes::Bytes;
use http::Request;
use http::header::CONTENT_TYPE;
use plimsoll_cli::OpenStore;
use pyo3::prelude::*;

use crate::failed;

/// An open store.
#[pyclass(frozen, name = "NativeStore", module = "plimsoll._native")]
#[derive(Debug)]
pub(crate) struct NativeStore {
    store: OpenStore,
}

#[pymethods]
impl NativeStore {
    /// Opens the store at a path or an address, else the one of the settings.
    #[new]
    #[pyo3(signature = (place=None, tenant=None, config=None))]
    fn new(
        py: Python<'_>,
        place: Option<&str>,
        tenant: Option<&str>,
        config: Option<PathBuf>,
    ) -> PyResult<Self> {
        let opened = py.detach(move || OpenStore::open(place, tenant, config.as_deref()));
        opened.map(|store| Self { store }).map_err(failed)
    }

    /// Answers a request of the REST interface with its status and its JSON.
    #[pyo3(signature = (method, path, body=String::new()))]
    fn ask(
        &self,
        py: Python<'_>,
        method: &str,
        path: &str,
        body: String,
    ) -> PyResult<(u16, String)> {
        let request = Request::builder().method(method).uri(path);
        let request = request.header(CONTENT_TYPE, "application/json").body(Bytes::from(body));
        let request = request.map_err(failed)?;
        let response = py.detach(|| self.store.answer(request));
        let status = response.status().as_u16();
        let text = String::from_utf8(response.into_body().to_vec()).map_err(failed)?;
        Ok((status, text))
    }
}
