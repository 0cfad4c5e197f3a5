//! Numbers and names at places of a structure of the kernel. A structure that is too short has
//! none.

use std::net::IpAddr;

/// A structure in the memory layout of the kernel.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    fn array<const N: usize>(self, place: usize) -> Option<[u8; N]> {
        self.0.get(place..).and_then(|rest| rest.first_chunk()).copied()
    }

    pub(super) fn u8(self, place: usize) -> Option<u8> {
        self.0.get(place).copied()
    }

    pub(super) fn u16(self, place: usize) -> Option<u16> {
        self.array(place).map(u16::from_ne_bytes)
    }

    pub(super) fn be16(self, place: usize) -> Option<u16> {
        self.array(place).map(u16::from_be_bytes)
    }

    pub(super) fn u32(self, place: usize) -> Option<u32> {
        self.array(place).map(u32::from_ne_bytes)
    }

    pub(super) fn ipv4(self, place: usize) -> Option<IpAddr> {
        self.array::<4>(place).map(IpAddr::from)
    }

    pub(super) fn ipv6(self, place: usize) -> Option<IpAddr> {
        self.array::<16>(place).map(IpAddr::from)
    }

    pub(super) fn slice(self, place: usize, length: usize) -> Option<&'a [u8]> {
        self.0.get(place..place.checked_add(length)?)
    }

    /// A name that a zero byte ends.
    pub(super) fn name(self, place: usize, length: usize) -> Option<String> {
        self.slice(place, length).map(name)
    }
}

/// The bytes before the first zero byte, as text.
pub(super) fn name(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// A number in network byte order, of at most 16 bytes.
pub(super) fn big_endian(bytes: &[u8]) -> Option<u128> {
    (bytes.len() <= 16).then(|| bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}

/// A number in the byte order of the machine.
pub(super) fn host_order(bytes: &[u8]) -> Option<u128> {
    if cfg!(target_endian = "big") {
        return big_endian(bytes);
    }
    (bytes.len() <= 16).then(|| bytes.iter().rev().fold(0, |number, byte| number << 8 | u128::from(*byte)))
}
