//! Arguments of `plimsoll replay`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use plimsoll_core::bill::Division;
use plimsoll_core::cost::Prices;

use super::bill::divisions;
use super::{PolicyArguments, ReadingArguments};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[command(
    after_help = "Several sessions, and those in folders, are summed up for each policy; `--each` tells of each too.\nWhere a session reports its usage, what was billed is the first row, and savings are against it."
)]
pub(crate) struct ReplayArguments {
    /// Recorded sessions, folders of them, or `-` for standard input; the content decides the format
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: ReadingArguments,
    #[command(flatten)]
    pub(crate) settings: PolicyArguments,
    /// `full`, `window`, `plimsoll`, `clear-tool-uses[:TRIGGER,KEEP]` or `newest[:BUDGET]`; give it again to compare
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Vec<String>,
    /// Replay as if the agent had never compacted its context: every later turn has every message
    #[arg(long)]
    pub(crate) no_compaction: bool,
    /// The cache's prices instead of the model's: of a read and a write, input = 1, and a life in seconds
    #[arg(long, value_name = "read=R,write=W,life=S")]
    pub(crate) prices: Option<PriceOverrides>,
    /// Never change a message that was sent once
    #[arg(long)]
    pub(crate) append_only: bool,
    /// Print a table for each session too
    #[arg(long)]
    pub(crate) each: bool,
    /// Add the sessions up by this too, in one table
    #[arg(long, value_name = "WHAT", value_parser = divisions())]
    pub(crate) by: Option<Division>,
    /// Compare the model of the cache with the provider's reported usage, instead of replaying
    #[arg(long, conflicts_with_all = ["policy", "contexts", "html", "picture", "by", "missed", "prices", "append_only", "store"])]
    pub(crate) verify_bill: bool,
    /// Write each turn's context as JSON Lines
    #[arg(long, value_name = "OUT.jsonl")]
    pub(crate) contexts: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a self-contained page with the picture
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Draw the policies side by side as an SVG picture
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,
    /// List needed content that was hidden, with its message
    #[arg(long)]
    pub(crate) missed: bool,
    /// Draw a bar for every turn instead of at most 40
    #[arg(long)]
    pub(crate) all_turns: bool,
}

/// Prices of `--prices`, which replace those of the model.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct PriceOverrides {
    read: Option<f64>,
    write: Option<f64>,
    life: Option<u32>,
}

/// The dearest read or write that is taken, as a multiple of plain input (chosen: far above any).
const MOST: f64 = 1000.0;

impl FromStr for PriceOverrides {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut overrides = Self::default();
        for part in text.split(',') {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let price = || {
                let price = value.parse().ok().filter(|price| (0.0..=MOST).contains(price));
                price.ok_or_else(|| format!("`{value}` of `{key}` is no number from 0 to {MOST}"))
            };
            match key.trim() {
                "read" => overrides.read = Some(price()?),
                "write" => overrides.write = Some(price()?),
                "life" => {
                    let life = value.parse().map_err(|_| {
                        format!("`{value}` of `life` is no whole number of seconds")
                    })?;
                    overrides.life = Some(life);
                }
                other => return Err(format!("`{other}` is none of read, write and life")),
            }
        }
        Ok(overrides)
    }
}

impl PriceOverrides {
    /// Returns `prices` with what is given here, for both lives.
    pub(crate) fn over(self, mut prices: Prices) -> Prices {
        prices.cache_read = self.read.unwrap_or(prices.cache_read);
        prices.cache_write = self.write.unwrap_or(prices.cache_write);
        prices.cache_seconds = self.life.unwrap_or(prices.cache_seconds);
        if let Some(longer) = &mut prices.longer {
            longer.price = self.write.unwrap_or(longer.price);
            longer.seconds = self.life.unwrap_or(longer.seconds);
        }
        prices
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::cost::{Life, WriteTier};

    use super::*;

    #[test]
    fn prices_are_read_and_laid_over_both_lives() {
        let overrides: PriceOverrides = "read=.05,write=2,life=3600".parse().expect("sound");
        let longer = Some(WriteTier { seconds: 86_400, price: 3.0 });
        let prices = overrides.over(Prices { longer, ..Prices::PLAIN });
        assert_eq!(
            (prices.cache_read, prices.cache_write, prices.cache_seconds),
            (0.05, 2.0, 3600)
        );
        assert_eq!((prices.write(Life::Long), prices.seconds(Life::Long)), (2.0, 3600));
        let only: PriceOverrides = "life=60".parse().expect("sound");
        let prices = only.over(Prices::PLAIN);
        assert_eq!((prices.cache_read, prices.cache_seconds), (Prices::PLAIN.cache_read, 60));
    }

    #[test]
    fn what_is_no_price_is_told() {
        for bad in [
            "",
            "read",
            "read=",
            "read=x",
            "read=-1",
            "read=nan",
            "write=1e9",
            "life=1.5",
            "life=-1",
            "lief=3",
            "read=.1,,",
        ] {
            let told = bad.parse::<PriceOverrides>().expect_err(bad);
            assert!(!told.contains('\n'), "{told}");
        }
    }
}
