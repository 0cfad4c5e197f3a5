//! `getsockopt` with a buffer that the kernel reads and writes.

#![allow(unsafe_code, reason = "no safe wrapper passes a request in the buffer; see ADR 22")]

use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, c_void, socklen_t};
use nix::errno::Errno;

/// Calls `getsockopt`. The buffer has the request before, and the answer after. Returns the length
/// of the answer.
pub(crate) fn get_option(
    socket: &impl AsFd,
    level: c_int,
    option: c_int,
    buffer: &mut [u8],
) -> Result<usize, Errno> {
    let mut length = socklen_t::try_from(buffer.len()).map_err(|_| Errno::EINVAL)?;
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: `buffer` is valid for reads and writes of `length` bytes, and the kernel writes at
    // most that many. `length` outlives the call. The descriptor is open, because `socket` is
    // borrowed. Every bit pattern is a valid `u8`.
    let result = unsafe {
        libc::getsockopt(descriptor, level, option, buffer.as_mut_ptr().cast::<c_void>(), &raw mut length)
    };
    Errno::result(result)?;
    Ok(usize::try_from(length).unwrap_or_default().min(buffer.len()))
}
