//! `plimsoll completions` and `plimsoll man`: files for shells and for `man`, made from the arguments.

use std::path::Path;

use clap::CommandFactory as _;

use crate::arguments::Arguments;
use crate::error::CommandError;
use crate::output;

/// Prints the completions for a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<(), CommandError> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "plimsoll", &mut text);
    output::bytes(&text)
}

/// Writes a manual page for the program and one for each command into a folder.
pub(crate) fn manual(folder: &Path) -> Result<(), CommandError> {
    let cannot = |error: std::io::Error| {
        let error = anyhow::Error::new(error);
        CommandError::failure(error.context(format!("cannot write to {}", folder.display())))
    };
    std::fs::create_dir_all(folder).map_err(cannot)?;
    clap_mangen::generate_to(Arguments::command(), folder).map_err(cannot)
}
