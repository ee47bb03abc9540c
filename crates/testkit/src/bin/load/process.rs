//! Memory and time of another process, as the kernel counts them.

use std::time::Duration;

/// Returns the memory that is resident now, in bytes.
pub(crate) fn resident(process: u32) -> Option<u64> {
    status(process, "VmRSS:")
}

/// Returns the most memory that was resident since the process began, in bytes.
pub(crate) fn peak(process: u32) -> Option<u64> {
    status(process, "VmHWM:")
}

/// Returns the processor time that was used.
pub(crate) fn processor(process: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the name, which may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    // The kernel's unit for programs is 10 ms on all that this runs on.
    Some(Duration::from_millis((ticks()? + ticks()?) * 10))
}

fn status(process: u32, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}
