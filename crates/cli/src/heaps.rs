//! Limits the heaps of the system's allocator. The one module with `unsafe`: the C functions have no safe form.

/// Makes the allocator share one heap between every two processors.
///
/// glibc gives each of up to eight threads a processor a heap of its own, and what one thread frees of another's stays there: under
/// three times the load that it could bear, the gateway took 483 MiB with them and 229 MiB with one heap (measured on one processor).
/// Does nothing where `MALLOC_ARENA_MAX` is set. Call it before other threads start.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "mallopt sets a number, and is called before there are other threads"
)]
pub(crate) fn share() {
    if std::env::var_os("MALLOC_ARENA_MAX").is_some() {
        return;
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let heaps = libc::c_int::try_from(processors / 2).unwrap_or(libc::c_int::MAX).max(1);
    // SAFETY: mallopt takes two integers and keeps no reference; a refusal leaves everything as it was.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, heaps) };
}

/// Does nothing with other allocators.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn share() {}

/// Gives memory that was freed within the heaps back to the system.
///
/// The tables of the vocabulary are built from 200,000 small texts, whose freed memory lies below what lives on: 9 of the 48 MiB of a
/// gateway without requests (measured).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "malloc_trim takes a number, and may be called at any time")]
pub(crate) fn trim() {
    // SAFETY: malloc_trim locks each heap, and changes none of the memory that is in use.
    unsafe { libc::malloc_trim(0) };
}

/// Does nothing with other allocators.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn trim() {}
