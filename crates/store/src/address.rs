//! Addresses of stores, which may hold a password.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// The address of a store: a path or a URL. `Display`, `Debug` and `Serialize` write `[redacted]` for a password in it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct StoreAddress(String);

impl StoreAddress {
    /// Takes an address as it is written.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns whether it is the empty text.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the address itself, for the client that connects to it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((scheme, rest)) = self.0.split_once("://") else { return f.write_str(&self.0) };
        write!(f, "{scheme}://")?;
        // The last `@`: a password that should have been encoded may hold others.
        let (user, rest) = match rest.rsplit_once('@') {
            Some((credentials, rest)) => (Some(credentials), rest),
            None => (None, rest),
        };
        match user.map(|credentials| credentials.split_once(':')) {
            Some(Some((user, _))) => write!(f, "{user}:[redacted]@")?,
            Some(None) => write!(f, "{}@", user.unwrap_or_default())?,
            None => {}
        }
        // Options of libpq such as `password` and `sslpassword`.
        match rest.split_once('?') {
            Some((place, options)) if options.contains("password") => {
                write!(f, "{place}?[redacted]")
            }
            _ => f.write_str(rest),
        }
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for StoreAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Where history and knowledge are kept; `--store`, `--history`, `PLIMSOLL_STORE` and `PLIMSOLL_HISTORY` replace it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// The store: a path or a `postgres://` address; without one it is the file `plimsoll.db` in the user's data folder.
    pub address: Option<StoreAddress>,
    /// The ClickHouse that keeps the history (messages, context cards and receipts), `clickhouse://[user[:password]@]host[:port][/database]`; without one, or with an empty text, the store keeps it.
    pub history: Option<StoreAddress>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (address, shown) in [
            ("kept.db", "kept.db"),
            ("C:\\a@b:c.db", "C:\\a@b:c.db"),
            ("postgres://ann:s3cret@h:5432/d", "postgres://ann:[redacted]@h:5432/d"),
            ("clickhouse://ann:a/b@c:d@h/d", "clickhouse://ann:[redacted]@h/d"),
            ("clickhouse://ann@h/d", "clickhouse://ann@h/d"),
            ("clickhouse://h:8123", "clickhouse://h:8123"),
            ("postgres://h/d?user=a&password=s3cret", "postgres://h/d?[redacted]"),
        ] {
            let address = StoreAddress::new(address);
            assert_eq!(address.to_string(), shown);
            assert_eq!(format!("{address:?}"), shown);
            assert_eq!(serde_json::to_value(&address).expect("JSON"), shown);
        }
    }
}
