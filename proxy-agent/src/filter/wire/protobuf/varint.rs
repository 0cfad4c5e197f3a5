//! Reads protobuf's variable-length numbers, one byte at a time.

use super::WireError;

/// A partly read number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Varint {
    value: u64,
    bits: u32,
}

/// The result of one more byte.
pub(super) enum VarintStep {
    More(Varint),
    Done(u64),
}

impl Varint {
    /// No byte read yet.
    pub(super) const START: Self = Self { value: 0, bits: 0 };

    pub(super) fn add(self, byte: u8) -> Result<VarintStep, WireError> {
        if self.bits > 63 {
            return Err(WireError::Varint);
        }
        let value = self.value | (u64::from(byte & 0x7f) << self.bits);
        Ok(if byte < 0x80 {
            VarintStep::Done(value)
        } else {
            VarintStep::More(Self { value, bits: self.bits + 7 })
        })
    }
}
