//! The HTTP interface: a statement, its bound parameters, and rows as JSON.

use std::fmt::{self, Write as _};
use std::time::Duration;

use plimsoll_engine::{StoreError, digest};
use reqwest::header::CONTENT_TYPE;
use reqwest::{StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The port of ClickHouse's HTTP interface.
const PORT: u16 = 8123;
/// How long a connection may take to come about (chosen: a server in reach answers in milliseconds).
const CONNECT: Duration = Duration::from_secs(5);
/// How long a whole request may take (chosen: above any search measured, below a caller's patience).
const REQUEST: Duration = Duration::from_mins(1);
/// Settings of every request; they override the server's own profile.
const SETTINGS: &[(&str, &str)] = &[
    // An error comes as a status, never behind half of the rows.
    ("wait_end_of_query", "1"),
    ("output_format_json_quote_64bit_integers", "0"),
    ("output_format_json_validate_utf8", "0"),
    // A column may be read under its own name in another form, and is still the column behind `WHERE` and `ORDER BY`.
    ("prefer_column_name_to_alias", "1"),
    // A batch is one block, and so one part, which readers see whole or not at all.
    ("async_insert", "0"),
    ("input_format_parallel_parsing", "0"),
    ("max_insert_block_size", "1000000000"),
    ("max_partitions_per_insert_block", "0"),
];
/// Errors of the server that pass, and before which nothing of an insert was kept.
const TEMPORARY: &[u32] = &[
    159, // TIMEOUT_EXCEEDED
    202, // TOO_MANY_SIMULTANEOUS_QUERIES
    210, // NETWORK_ERROR
    241, // MEMORY_LIMIT_EXCEEDED
    242, // TABLE_IS_READ_ONLY
    243, // NOT_ENOUGH_SPACE
    252, // TOO_MANY_PARTS
    439, // CANNOT_SCHEDULE_TASK
    745, // SERVER_OVERLOADED
];

/// The values of a statement's `{name:Type}`. The server parses them as values, so they never become part of its text.
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn text(self, name: &str, text: &str) -> Self {
        let mut value = String::with_capacity(text.len());
        for character in text.chars() {
            escape(&mut value, character);
        }
        self.with(name, value)
    }

    pub(super) fn number(self, name: &str, number: impl fmt::Display + Copy) -> Self {
        self.with(name, number.to_string())
    }

    /// Binds a limit; the server's numbers end at 64 bits with a sign.
    pub(super) fn limit(self, limit: usize) -> Self {
        self.number("limit", limit.min(u32::MAX as usize))
    }

    pub(super) fn numbers(
        self,
        name: &str,
        numbers: impl IntoIterator<Item = impl fmt::Display>,
    ) -> Self {
        self.with(
            name,
            list(numbers, |value, number| {
                // Writing to a string cannot fail.
                let _ = write!(value, "{number}");
            }),
        )
    }

    pub(super) fn texts(
        self,
        name: &str,
        texts: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Self {
        self.with(name, list(texts, |value, text| quote(value, text.as_ref())))
    }

    pub(super) fn pairs<'a>(
        self,
        name: &str,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        self.with(
            name,
            list(pairs, |value, (first, second)| {
                value.push('(');
                quote(value, first);
                value.push(',');
                quote(value, second);
                value.push(')');
            }),
        )
    }

    fn with(mut self, name: &str, value: String) -> Self {
        self.0.push((["param_", name].concat(), value));
        self
    }
}

fn list<T>(items: impl IntoIterator<Item = T>, mut each: impl FnMut(&mut String, T)) -> String {
    let mut value = String::from("[");
    for item in items {
        if value.len() > 1 {
            value.push(',');
        }
        each(&mut value, item);
    }
    value.push(']');
    value
}

fn quote(value: &mut String, text: &str) {
    value.push('\'');
    for character in text.chars() {
        escape(value, character);
    }
    value.push('\'');
}

/// The server reads the value of a parameter as a field of TSV, the texts of a list as quoted ones: both know these.
fn escape(value: &mut String, character: char) {
    match character {
        '\\' => value.push_str("\\\\"),
        '\'' => value.push_str("\\'"),
        '\n' => value.push_str("\\n"),
        '\r' => value.push_str("\\r"),
        '\t' => value.push_str("\\t"),
        '\0' => value.push_str("\\0"),
        other => value.push(other),
    }
}

/// The content of a request.
enum StatementBody<'a> {
    /// A statement with its parameters, as a form: servers in between take long bodies, and no long addresses.
    Form(&'a str, &'a Parameters),
    /// Rows for a statement, which then stands in the address.
    Rows(&'static str, String),
}

#[derive(Clone, Copy, PartialEq)]
enum Effect {
    Reads,
    Writes,
}

/// A server, a database in it, and who asks.
pub(super) struct Client {
    http: reqwest::Client,
    address: Url,
    database: String,
    user: String,
    password: String,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("address", &self.address.as_str())
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Reads `clickhouse://[user[:password]@]host[:port][/database]`, or the same with `http` or `https`.
    pub(super) fn new(url: &str) -> Result<Self, StoreError> {
        let invalid = |why: &str| StoreError::Invalid {
            field: "address of ClickHouse",
            why: format!(
                "{why}; it has the form clickhouse://[user[:password]@]host[:port][/database]"
            ),
        };
        let given = Url::parse(url).map_err(|error| invalid(&error.to_string()))?;
        let (scheme, usual_port) = match given.scheme() {
            "clickhouse" => ("http", Some(PORT)),
            scheme @ ("http" | "https") => (scheme, None),
            _ => return Err(invalid("its scheme is not `clickhouse`, `http` or `https`")),
        };
        let Some(host) = given.host_str().filter(|host| !host.is_empty()) else {
            return Err(invalid("it names no host"));
        };
        if given.query().is_some() || given.fragment().is_some() {
            return Err(invalid("it takes no options behind `?` or `#`"));
        }
        let part = |text: &str| {
            percent_decode(text).ok_or_else(|| invalid("its percent signs do not encode UTF-8"))
        };
        let user = part(given.username())?;
        let password = part(given.password().unwrap_or(""))?;
        let database = part(given.path().trim_matches('/'))?;
        let mut address = Url::parse(&[scheme, "://", host].concat())
            .map_err(|error| invalid(&error.to_string()))?;
        // This succeeds on any URL with a host.
        let _ = address.set_port(given.port().or(usual_port));
        // Another client may have installed one already; any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .no_proxy()
            .connect_timeout(CONNECT)
            .timeout(REQUEST)
            .build()
            .map_err(|error| StoreError::Other(error.into()))?;
        let database = if database.is_empty() { "default".to_owned() } else { database };
        Ok(Self { http, address, database, user, password })
    }

    pub(super) async fn create_database(&self) -> Result<(), StoreError> {
        let parameters = Parameters::new().text("name", &self.database);
        let statement = "CREATE DATABASE IF NOT EXISTS {name:Identifier}";
        self.send(None, StatementBody::Form(statement, &parameters), Effect::Writes).await?;
        Ok(())
    }

    /// Runs a statement that returns nothing.
    pub(super) async fn execute(
        &self,
        statement: &str,
        parameters: &Parameters,
    ) -> Result<(), StoreError> {
        let body = StatementBody::Form(statement, parameters);
        self.send(Some(&self.database), body, Effect::Writes).await?;
        Ok(())
    }

    /// Runs a query that ends in `FORMAT JSONEachRow`.
    pub(super) async fn select<T: DeserializeOwned>(
        &self,
        query: &str,
        parameters: &Parameters,
    ) -> Result<Vec<T>, StoreError> {
        let body = StatementBody::Form(query, parameters);
        let rows = self.send(Some(&self.database), body, Effect::Reads).await?;
        rows.split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| {
                serde_json::from_slice(line).map_err(|error| StoreError::Other(error.into()))
            })
            .collect()
    }

    /// Inserts rows by a statement that ends in `FORMAT JSONEachRow`.
    pub(super) async fn insert<T: Serialize>(
        &self,
        statement: &'static str,
        rows: &[T],
    ) -> Result<(), StoreError> {
        let mut lines = String::new();
        for row in rows {
            lines.push_str(
                &serde_json::to_string(row).map_err(|error| StoreError::Other(error.into()))?,
            );
            lines.push('\n');
        }
        self.send(Some(&self.database), StatementBody::Rows(statement, lines), Effect::Writes)
            .await?;
        Ok(())
    }

    async fn send(
        &self,
        database: Option<&str>,
        body: StatementBody<'_>,
        effect: Effect,
    ) -> Result<Vec<u8>, StoreError> {
        let mut url = self.address.clone();
        url.query_pairs_mut()
            .extend_pairs(database.map(|name| ("database", name)))
            .extend_pairs(SETTINGS);
        let mut request = match body {
            StatementBody::Form(statement, parameters) => {
                let (kind, form) = form(statement, parameters);
                self.http.post(url).header(CONTENT_TYPE, kind).body(form)
            }
            StatementBody::Rows(statement, rows) => {
                url.query_pairs_mut().append_pair("query", statement);
                self.http.post(url).body(rows)
            }
        };
        if !self.user.is_empty() {
            request = request
                .header("X-ClickHouse-User", &self.user)
                .header("X-ClickHouse-Key", &self.password);
        }
        let response = request.send().await.map_err(|error| self.lost(error, effect))?;
        let status = response.status();
        let code = response
            .headers()
            .get("X-ClickHouse-Exception-Code")
            .and_then(|value| value.to_str().ok()?.parse().ok());
        let answer = response.bytes().await.map_err(|error| self.lost(error, effect))?;
        if status.is_success() && code.is_none() {
            return Ok(answer.into());
        }
        Err(refused(status, code, &String::from_utf8_lossy(&answer), effect))
    }

    /// Maps a request without an answer.
    fn lost(&self, error: reqwest::Error, effect: Effect) -> StoreError {
        if effect == Effect::Writes && !error.is_connect() && !error.is_builder() {
            return StoreError::Other(Box::new(LostAnswer(error.without_url())));
        }
        let mut cause: &dyn std::error::Error = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let why = if error.is_timeout() { "timed out".to_owned() } else { cause.to_string() };
        let place = self.address.authority();
        StoreError::Unavailable {
            why: format!("ClickHouse at {place} does not answer: {why}"),
            retry_after: None,
        }
    }
}

/// Makes a form of a statement and its parameters, and its content type.
fn form(statement: &str, parameters: &Parameters) -> (String, String) {
    // Named by what it encloses, the boundary cannot stand in it.
    let boundary = parameters
        .0
        .iter()
        .fold(digest(statement.as_bytes()), |sum, (_, value)| digest((sum + value).as_bytes()));
    let mut form = String::new();
    let all = parameters.0.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in std::iter::once(("query", statement)).chain(all) {
        for part in ["--", &boundary, "\r\nContent-Disposition: form-data; name=\"", name] {
            form.push_str(part);
        }
        for part in ["\"\r\n\r\n", value, "\r\n"] {
            form.push_str(part);
        }
    }
    for part in ["--", &boundary, "--\r\n"] {
        form.push_str(part);
    }
    (["multipart/form-data; boundary=", &boundary].concat(), form)
}

/// Maps an answer that is an error.
fn refused(status: StatusCode, code: Option<u32>, text: &str, effect: Effect) -> StoreError {
    let line = plimsoll_core::text::line(text.lines().next().unwrap_or(""), 300);
    let passes = match code {
        Some(code) => TEMPORARY.contains(&code),
        // A gateway before the server: of what it could not wait for, the server may have kept an insert.
        None if effect == Effect::Writes => matches!(status.as_u16(), 429 | 503),
        None => matches!(status.as_u16(), 429 | 502..=504),
    };
    if passes {
        return StoreError::Unavailable { why: line, retry_after: None };
    }
    StoreError::Other(Box::new(ServerError { status: status.as_u16(), code, line }))
}

/// Returns the server's code of an error.
pub(super) fn code(error: &StoreError) -> Option<u32> {
    match error {
        StoreError::Other(error) => error.downcast_ref::<ServerError>()?.code,
        _ => None,
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the answer to an insert was lost; what it holds may be kept")]
struct LostAnswer(#[source] reqwest::Error);

#[derive(Debug, thiserror::Error)]
#[error("ClickHouse answered {status}: {line}{}", hint(*code))]
struct ServerError {
    status: u16,
    code: Option<u32>,
    line: String,
}

/// Returns what to do about an error that is the address's fault.
fn hint(code: Option<u32>) -> &'static str {
    match code {
        // Authentication failed, a wrong password, an unknown user.
        Some(516 | 193 | 192) => "; check user and password in the address",
        Some(_) => "",
        None => "; check that the address names ClickHouse's HTTP port, 8123 by default",
    }
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_carry_user_and_database_and_print_no_password() {
        let client = Client::new("http://me:s%40crit@localhost:8123/logs").expect("a URL");
        assert_eq!((client.user.as_str(), client.password.as_str()), ("me", "s@crit"));
        assert_eq!(
            (client.database.as_str(), client.address.as_str()),
            ("logs", "http://localhost:8123/")
        );
        assert!(!format!("{client:?}").contains("crit"));
        assert_eq!(Client::new("http://localhost").expect("a URL").database, "default");
        for (url, address) in [
            ("clickhouse://me@localhost/logs", "http://localhost:8123/"),
            ("clickhouse://localhost:80", "http://localhost/"),
            ("clickhouse://[::1]:9/a", "http://[::1]:9/"),
            ("https://me:s@h", "https://h/"),
        ] {
            assert_eq!(Client::new(url).expect("a URL").address.as_str(), address);
        }
        for bad in [
            "",
            "localhost:8123",
            "ftp://localhost/a",
            "http://h/?a=b",
            "http://a%ff@h/",
            "clickhouse://",
            "clickhouse:///logs",
        ] {
            assert!(Client::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn values_are_escaped() {
        let bound =
            Parameters::new().text("a", "'\\\n\0").texts("b", ["x'", ""]).numbers("c", [1, 2]);
        let values: Vec<&str> = bound.0.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["\\'\\\\\\n\\0", "['x\\'','']", "[1,2]"]);
    }

    #[test]
    fn an_insert_whose_answer_is_lost_is_not_called_unavailable() {
        let gone = |effect| refused(StatusCode::GATEWAY_TIMEOUT, None, "", effect).is_temporary();
        assert!(gone(Effect::Reads) && !gone(Effect::Writes));
        assert!(refused(StatusCode::OK, Some(252), "", Effect::Writes).is_temporary());
        assert!(!refused(StatusCode::NOT_FOUND, Some(60), "", Effect::Reads).is_temporary());
    }
}
