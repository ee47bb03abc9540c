//! Writes a generated session file of BYTES bytes, the one that the benchmarks read: `generate_session BYTES [SEED]`.

use std::io::Write as _;

#[path = "../benches/generated.rs"]
mod generated;

fn main() -> std::io::Result<()> {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let bytes = numbers.next().unwrap_or(1_000_000);
    let seed = numbers.next().unwrap_or(1);
    std::io::stdout().write_all(&generated::session(seed, bytes as usize))
}
