//! Asks a running gateway by one small request, and tests whether hosts can be reached.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use crate::config::environment;

/// The longest wait for a gateway or an upstream (chosen).
const PATIENCE: Duration = Duration::from_secs(2);

/// `PLIMSOLL_KEY`: the key that a gateway with keys asks for.
pub(crate) const KEY: &str = "PLIMSOLL_KEY";

/// Returns the body of a response with status 200, or nothing.
pub(crate) fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let key = environment(KEY).map_or_else(String::new, |key| format!("x-plimsoll-key: {key}\r\n"));
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n{key}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200").then(|| body.to_owned())
}

/// Returns whether a gateway answers at an address.
pub(crate) fn is_gateway(address: SocketAddr) -> bool {
    get(address, "/healthz").is_some_and(|body| body.trim() == "alive")
}

/// Tries to reach the host of a URL.
///
/// Errors: the reason, in words.
pub(crate) fn reach(url: &str) -> Result<(), String> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
    let host = rest.split('/').next().unwrap_or(rest);
    let port = if scheme == "http" { 80 } else { 443 };
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let named = if has_port { host.to_owned() } else { format!("{host}:{port}") };
    let addresses = named.to_socket_addrs().map_err(|error| error.to_string())?;
    let mut why = "the name has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(_) => return Ok(()),
            Err(error) => why = error.to_string(),
        }
    }
    Err(why)
}
