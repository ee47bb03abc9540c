//! Providers: where a model is, what it speaks, and which key opens it.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_engine::ModelError;

use crate::config::{CallTimeouts, JsonBy, ModelApi, ModelsConfig, Price, ProviderConfig};
use crate::secret::SecretValue;

/// A provider with everything decided.
#[derive(Debug, Clone)]
pub struct Provider {
    pub name: String,
    pub api: ModelApi,
    pub base_url: String,
    /// The environment variable of the key; `None` where none is needed.
    pub key_env: Option<String>,
    /// Whether the configuration names it.
    pub is_configured: bool,
    pub(crate) key: Option<SecretValue>,
    pub(crate) key_header: Option<String>,
    pub(crate) headers: BTreeMap<String, SecretValue>,
    pub(crate) json: JsonBy,
    pub(crate) max_tokens_field: String,
    pub(crate) price: Option<Price>,
    pub(crate) timeouts: CallTimeouts,
}

struct KnownProvider {
    name: &'static str,
    api: ModelApi,
    base_url: &'static str,
    key_env: Option<&'static str>,
    max_tokens_field: &'static str,
    is_free: bool,
}

/// Addresses and variables as the providers document them; servers on this machine at their usual ports.
const KNOWN: [KnownProvider; 6] = [
    KnownProvider {
        name: "openai",
        api: ModelApi::Chat,
        base_url: "https://api.openai.com/v1",
        key_env: Some("OPENAI_API_KEY"),
        // Its reasoning models refuse the old name.
        max_tokens_field: "max_completion_tokens",
        is_free: false,
    },
    KnownProvider {
        name: OPENROUTER,
        api: ModelApi::Chat,
        base_url: "https://openrouter.ai/api/v1",
        key_env: Some("OPENROUTER_API_KEY"),
        max_tokens_field: "max_tokens",
        is_free: false,
    },
    KnownProvider {
        name: "anthropic",
        api: ModelApi::Anthropic,
        base_url: "https://api.anthropic.com/v1",
        key_env: Some("ANTHROPIC_API_KEY"),
        max_tokens_field: "max_tokens",
        is_free: false,
    },
    local("ollama", "http://127.0.0.1:11434/v1"),
    local("llamacpp", "http://127.0.0.1:8080/v1"),
    local("vllm", "http://127.0.0.1:8000/v1"),
];

pub(crate) const OPENROUTER: &str = "openrouter";

const fn local(name: &'static str, base_url: &'static str) -> KnownProvider {
    KnownProvider {
        name,
        api: ModelApi::Chat,
        base_url,
        key_env: None,
        max_tokens_field: "max_tokens",
        is_free: true,
    }
}

/// Returns the known providers and those of the configuration, by name; `lookup` reads a variable of the environment.
///
/// Errors: [`ModelError::Invalid`] for a provider without API or address, and for an address that is none.
pub(crate) fn providers(
    config: &ModelsConfig,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, Arc<Provider>>, ModelError> {
    let none = ProviderConfig::default();
    let names = KNOWN.iter().map(|known| known.name);
    let mut found = BTreeMap::new();
    for name in names.chain(config.providers.keys().map(String::as_str)) {
        if found.contains_key(name) {
            continue;
        }
        let known = KNOWN.iter().find(|known| known.name == name);
        let own = config.providers.get(name);
        let mut provider = decide(name, known, own.unwrap_or(&none), config.timeouts, lookup)?;
        provider.is_configured = own.is_some();
        found.insert(name.to_owned(), Arc::new(provider));
    }
    Ok(found)
}

fn decide(
    name: &str,
    known: Option<&KnownProvider>,
    own: &ProviderConfig,
    timeouts: CallTimeouts,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Provider, ModelError> {
    let needs = |what: &str| {
        ModelError::Invalid(format!("the provider `{name}` is configured without `{what}`"))
    };
    if name.is_empty() || name.contains('/') {
        return Err(ModelError::Invalid(format!("`{name}` can't be the name of a provider")));
    }
    let api = own.api.or(known.map(|known| known.api)).ok_or_else(|| needs("api"))?;
    let base_url = own.base_url.as_deref().or(known.map(|known| known.base_url));
    let base_url = base_url.ok_or_else(|| needs("base_url"))?.trim_end_matches('/');
    let url = reqwest::Url::parse(base_url).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.password().is_none()
            && url.query().is_none()
    });
    if url.is_none() {
        return Err(ModelError::Invalid(format!(
            "the `base_url` of the provider `{name}` is no address of http or https without query and password"
        )));
    }
    let key_env = own.key_env.clone().or(known.and_then(|known| known.key_env).map(str::to_owned));
    let key = key_env.as_deref().and_then(lookup).filter(|key| !key.trim().is_empty());
    let is_moved = own.base_url.is_some();
    let free = known.filter(|known| known.is_free && !is_moved);
    Ok(Provider {
        name: name.to_owned(),
        api,
        base_url: base_url.to_owned(),
        key_env,
        is_configured: false,
        key: key.as_deref().map(SecretValue::new),
        key_header: own.key_header.clone(),
        headers: own.headers.clone(),
        json: own.json.unwrap_or(match api {
            ModelApi::Chat | ModelApi::Responses => JsonBy::Schema,
            // Only its newer models take a schema.
            ModelApi::Anthropic => JsonBy::Prompt,
        }),
        max_tokens_field: own.max_tokens_field.clone().unwrap_or_else(|| {
            known.map_or("max_tokens", |known| known.max_tokens_field).to_owned()
        }),
        price: own.price.or(free.map(|_| Price { input: 0.0, output: 0.0 })),
        timeouts: own.timeouts.unwrap_or(timeouts),
    })
}

impl Provider {
    /// Tells whether its key is in the environment, or none is needed.
    pub fn has_access(&self) -> bool {
        self.key.is_some() || self.key_env.is_none()
    }

    /// Returns an error that says which variable is missing, if one is.
    pub(crate) fn need_key(&self) -> Result<(), ModelError> {
        match &self.key_env {
            Some(variable) if self.key.is_none() => Err(ModelError::Denied(format!(
                "the environment has no `{variable}`, the key of `{}`",
                self.name
            ))),
            _ => Ok(()),
        }
    }

    /// Returns `text` without any key or secret header in it, on one line and cut.
    pub(crate) fn clean(&self, text: &str) -> String {
        let secrets = self.key.iter().chain(self.headers.values());
        let text = secrets.fold(text.to_owned(), |text, secret| secret.blot(&text));
        // Enough for what a provider explains; a page of HTML helps nobody.
        plimsoll_core::text::line(&text, 400)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(
        toml: &str,
        variables: &[(&str, &str)],
    ) -> Result<BTreeMap<String, Arc<Provider>>, ModelError> {
        let config: ModelsConfig = toml::from_str(toml).expect("sound");
        let lookup = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        providers(&config, &lookup)
    }

    #[test]
    fn known_providers_need_no_configuration() {
        let found =
            with("", &[("OPENAI_API_KEY", "sk-open"), ("ANTHROPIC_API_KEY", " ")]).expect("sound");
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["anthropic", "llamacpp", "ollama", "openai", "openrouter", "vllm"]);
        assert!(found["openai"].has_access() && found["ollama"].has_access());
        assert!(!found["anthropic"].has_access(), "an empty key is none");
        let error = found["anthropic"].need_key().expect_err("no key").to_string();
        assert!(error.contains("ANTHROPIC_API_KEY"), "{error}");
        assert!(!format!("{found:?}").contains("sk-open"));
    }

    #[test]
    fn the_configuration_goes_over_what_is_known() {
        let found = with(
            "[providers.openai]\napi = 'responses'\n[providers.own]\napi = 'chat'\nbase_url = 'http://h/v1/'\n\
             headers = { x = 'hidden' }\nkey_env = 'OWN'\n[providers.vllm]\nbase_url = 'http://far/v1'",
            &[],
        )
        .expect("sound");
        assert_eq!(found["openai"].api, ModelApi::Responses);
        assert_eq!(found["openai"].base_url, "https://api.openai.com/v1");
        assert_eq!(found["own"].base_url, "http://h/v1");
        assert!(found["own"].is_configured && !found["ollama"].is_configured);
        assert!(found["ollama"].price.is_some());
        assert!(found["vllm"].price.is_none(), "a server elsewhere may cost something");
        assert!(!format!("{found:?}").contains("hidden"));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        for (toml, word) in [
            ("[providers.own]\nbase_url = 'http://h'", "api"),
            ("[providers.own]\napi = 'chat'", "base_url"),
            ("[providers.own]\napi = 'chat'\nbase_url = 'ftp://h'", "base_url"),
            ("[providers.own]\napi = 'chat'\nbase_url = 'http://h?key=secret'", "base_url"),
            ("[providers.'a/b']\napi = 'chat'\nbase_url = 'http://h'", "a/b"),
        ] {
            let error = with(toml, &[]).expect_err(toml).to_string();
            assert!(error.contains(word) && !error.contains("secret"), "{error}");
        }
    }
}
