//! The command line's policies, prices and store for a program that embeds it.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use plimsoll_api::StoreApi;
use plimsoll_core::cost::Pricing;
use plimsoll_core::policy::Policy;
use plimsoll_engine::{HistoryStore, KnowledgeStore, TenantId};
use tokio::runtime::Runtime;

use crate::arguments::{StoreArguments, StorePlaceArguments};
use crate::config::{self, Config};
use crate::error::CommandError;
use crate::pages;
use crate::pricing::pricing;
use crate::serve::runtime;
use crate::store::{Addresses, tenant};

/// The policies and prices that bound a session: those of the settings in force.
#[derive(Debug)]
pub struct BoundRules {
    config: Config,
    pricing: Pricing,
}

impl BoundRules {
    /// Reads the settings that `plimsoll serve` would use, or those of a file.
    ///
    /// Errors: one line that names the file and what is wrong with it.
    pub fn read(settings: Option<&std::path::Path>) -> Result<Self, String> {
        let read = || {
            let mut config = config::read(settings)?;
            config.budget = config::environment_budget()?.unwrap_or(config.budget);
            Ok(Self { config, pricing: pricing(None)? })
        };
        read().map_err(|error: CommandError| error.to_string())
    }

    /// Returns the policy of a name, `name[:numbers]`, with another budget where one is given.
    pub fn policy(&self, name: &str, budget: Option<u64>) -> Result<Policy, String> {
        self.config.policy(name).map_err(|error| error.to_string())?;
        let bounding = self.config.policy_within(name, budget);
        bounding.ok_or_else(|| format!("the policy `{name}` does not bound requests"))
    }

    /// Returns the prices in force.
    pub fn pricing(&self) -> &Pricing {
        &self.pricing
    }

    /// Returns the time now, as the command line reads it.
    pub fn now() -> plimsoll_core::MillisSinceEpoch {
        crate::clock::now()
    }
}

/// An open store with the REST interface over it, asked without a server.
#[derive(Debug)]
pub struct OpenStore {
    api: StoreApi,
    tenant: TenantId,
    /// Dropped last: the store's tasks run on it.
    runtime: Runtime,
}

impl OpenStore {
    /// Opens the store at a path or an address, else that of the settings; makes the file where there is none.
    ///
    /// Errors: one line, without secrets of the address.
    pub fn open(
        place: Option<&str>,
        tenant_name: Option<&str>,
        settings: Option<&std::path::Path>,
    ) -> Result<Self, String> {
        let place = StorePlaceArguments { store: place.map(str::to_owned), history: None };
        let arguments = StoreArguments { place, tenant: tenant_name.map(str::to_owned) };
        let open = || {
            let config = config::read(settings)?;
            let tenant = tenant(&arguments)?;
            let addresses = Addresses::new(&arguments.place, &config.store)?;
            let runtime = runtime()?;
            let api = runtime.block_on(async {
                let (history, knowledge): (Arc<dyn HistoryStore>, Arc<dyn KnowledgeStore>) =
                    addresses.open().await?;
                pages::api(&config, history, knowledge, false).await
            })?;
            Ok(Self { api, tenant, runtime })
        };
        open().map_err(|error: CommandError| crate::output::without_secrets(&error.to_string()))
    }

    /// Answers a request of the REST interface, such as `POST /api/v1/recall`.
    pub fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        self.runtime.block_on(self.api.answer(&self.tenant, request))
    }
}
