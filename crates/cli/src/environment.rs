//! `plimsoll env`: prints a client's settings for the gateway, ready for a shell.

use std::fmt::Write as _;

use crate::arguments::EnvArguments;
use crate::config;
use crate::error::CommandError;
use crate::output;

pub(crate) fn run(arguments: &EnvArguments) -> Result<(), CommandError> {
    let config = config::read(arguments.config.as_deref())?.gateway;
    let base = format!("http://{}", arguments.listen.unwrap_or(config.listen));
    let client = arguments.client;
    let mut out = String::new();
    for (name, value) in client.variables(&base) {
        let _ = writeln!(out, "export {name}='{value}'");
    }
    if let [flag, value] = &client.arguments(&base)[..] {
        let _ = writeln!(out, "# or: {} {flag} '{value}'", client.program());
    }
    if let Some((file, text)) = client.file(&base) {
        let _ = writeln!(out, "# {file}\n{text}");
    }
    output::data(&out)
}
