//! Traces in a build without the feature `otlp`: there are none, and who asks for them is told.

use std::sync::Arc;

use http::HeaderMap;
use plimsoll_wire::{Answer, AnswerUsage, Wire};

use crate::config::GatewayConfig;
use crate::gateway::{ConfigError, Gateway};
use crate::report::Report;

#[derive(Debug)]
pub(crate) struct Traces;

#[derive(Debug, Default)]
pub(crate) struct Trace(());

impl Traces {
    pub(crate) fn new(
        config: &GatewayConfig,
        _: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        if config.otlp_endpoint.is_some() { Err(ConfigError::NoTraces) } else { Ok(Self) }
    }

    pub(crate) fn begin(_: &Arc<Gateway>, _: Wire, _: &HeaderMap) -> Trace {
        Trace(())
    }

    #[expect(clippy::unused_async, reason = "it stands for one that sends")]
    pub(crate) async fn run(&self, _: &Gateway) {}

    #[expect(clippy::unused_self, reason = "it stands for one that sends")]
    pub(crate) fn close(&self) {}
}

#[expect(clippy::unused_self, reason = "it stands for one that takes note")]
impl Trace {
    pub(crate) fn decided(&mut self, _: &'static str, _: Option<&str>, _: Option<&Report>) {}

    pub(crate) fn answered(&mut self, _: u16) {}

    pub(crate) fn said(&mut self, _: &Answer, _: Option<AnswerUsage>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_traces_is_told_that_there_are_none() {
        let otlp_endpoint = Some("http://127.0.0.1:4318".to_owned());
        let asked = GatewayConfig { otlp_endpoint, ..GatewayConfig::default() };
        assert!(matches!(Traces::new(&asked, &|_| None), Err(ConfigError::NoTraces)));
        assert!(Traces::new(&GatewayConfig::default(), &|_| None).is_ok());
    }
}
