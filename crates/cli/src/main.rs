//! `plimsoll`: the command line as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll_cli::run(std::env::args_os()).into()
}
