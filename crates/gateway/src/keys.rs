//! The gateway's own keys: each names a tenant, and is compared by its digest in constant time.

use std::collections::HashMap;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use plimsoll_engine::{InvalidId, TenantId};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

use crate::config::GatewayConfig;

/// The header that carries a key of the gateway and goes no further.
pub(crate) const KEY: HeaderName = HeaderName::from_static("x-plimsoll-key");
/// The headers in which clients send the keys of providers.
pub(crate) const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
pub(crate) const GOOGLE_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");

/// The keys that are known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys(Vec<([u8; 32], KeyHolder)>);

/// The caller that a key names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyHolder {
    pub(crate) tenant: TenantId,
    /// Whether it may see what concerns all tenants.
    pub(crate) is_operator: bool,
}

/// Why a configured key is invalid.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("the key `{name}` has no SHA-256 of 64 hex digits")]
    Digest { name: String },
    #[error("the keys `{first}` and `{name}` have the same SHA-256")]
    Twice { first: String, name: String },
    #[error("the key `{name}` names no tenant")]
    Tenant { name: String, source: InvalidId },
}

impl Keys {
    pub(crate) fn new(config: &GatewayConfig) -> Result<Self, KeyError> {
        let mut keys = Vec::new();
        let mut names: HashMap<[u8; 32], &str> = HashMap::new();
        for (name, key) in &config.keys {
            let digest = plimsoll_core::ContentHash::from_full(&key.sha256);
            let digest = digest.ok_or_else(|| KeyError::Digest { name: name.clone() })?.0;
            // Only one of the two tenants would ever be found.
            if let Some(first) = names.insert(digest, name) {
                return Err(KeyError::Twice { first: first.to_owned(), name: name.clone() });
            }
            let tenant = TenantId::new(key.tenant.as_deref().unwrap_or(name));
            let tenant =
                tenant.map_err(|source| KeyError::Tenant { name: name.clone(), source })?;
            keys.push((digest, KeyHolder { tenant, is_operator: key.operator }));
        }
        Ok(Self(keys))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the caller of a request, or `None` where it shows no key that is known.
    ///
    /// `own_places` says that the upstream's key is ours, so that the client's places for keys carry the gateway's.
    pub(crate) fn caller(&self, headers: &HeaderMap, own_places: bool) -> Option<KeyHolder> {
        if self.is_empty() {
            return Some(KeyHolder { tenant: TenantId::default(), is_operator: true });
        }
        let shown = shown(headers, &KEY).or_else(|| {
            let places = [&API_KEY, &GOOGLE_KEY];
            let bearer = || shown(headers, &AUTHORIZATION)?.strip_prefix("Bearer ");
            let found = places.into_iter().find_map(|name| shown(headers, name)).or_else(bearer);
            found.filter(|_| own_places)
        })?;
        self.find(shown)
    }

    fn find(&self, key: &str) -> Option<KeyHolder> {
        let digest: [u8; 32] = Sha256::digest(key.trim().as_bytes()).into();
        // Every known key is compared, so that the time says nothing about which one is near.
        let mut place = u32::MAX;
        for (number, (known, _)) in self.0.iter().enumerate() {
            let equal: Choice = known.ct_eq(&digest);
            place.conditional_assign(&(number as u32), equal);
        }
        self.0.get(place as usize).map(|(_, caller)| caller.clone())
    }
}

fn shown<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::KeyConfig;

    fn keys() -> Keys {
        let sha256 = plimsoll_engine::digest(b"opens");
        let key = KeyConfig { sha256, tenant: Some("ann".into()), operator: false };
        let config =
            GatewayConfig { keys: [("first".into(), key)].into(), ..GatewayConfig::default() };
        Keys::new(&config).expect("a sound key")
    }

    #[test]
    fn a_key_opens_its_tenant_and_no_other_does() {
        let keys = keys();
        let with = |name: HeaderName, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().expect("a value"));
            headers
        };
        let tenant = |headers: &HeaderMap, own| {
            keys.caller(headers, own).map(|caller| caller.tenant.as_str().to_owned())
        };
        assert_eq!(tenant(&with(KEY, "opens"), false).as_deref(), Some("ann"));
        assert_eq!(tenant(&with(KEY, "opens not"), false), None);
        assert_eq!(tenant(&HeaderMap::new(), true), None);
        let bearer = with(AUTHORIZATION, "Bearer opens");
        assert_eq!(tenant(&bearer, true).as_deref(), Some("ann"));
        assert_eq!(tenant(&bearer, false), None, "there the client's own key for the upstream is");
        assert_eq!(tenant(&with(API_KEY, "opens"), true).as_deref(), Some("ann"));
    }

    #[test]
    fn bad_digests_are_refused() {
        let key = KeyConfig { sha256: "abc".into(), tenant: None, operator: false };
        let config =
            GatewayConfig { keys: [("first".into(), key)].into(), ..GatewayConfig::default() };
        assert!(matches!(Keys::new(&config), Err(KeyError::Digest { .. })));
    }

    #[test]
    fn two_keys_with_one_digest_are_refused() {
        let sha256 = plimsoll_engine::digest(b"opens");
        let key = |tenant: &str| KeyConfig {
            sha256: sha256.clone(),
            tenant: Some(tenant.into()),
            operator: false,
        };
        let keys = [("first".into(), key("ann")), ("second".into(), key("bob"))].into();
        let config = GatewayConfig { keys, ..GatewayConfig::default() };
        assert!(matches!(Keys::new(&config), Err(KeyError::Twice { .. })));
    }
}
