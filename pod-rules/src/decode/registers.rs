//! The values that expressions of a rule pass on: fields of the packet and constants.

use std::collections::BTreeMap;

use super::bytes::{big_endian, host_order};
use crate::rules::{Field, MarkOf, Match, Side};

/// What a register has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// A field, or its first bytes.
    Field(Loaded),
    /// The name of an interface.
    InterfaceName(Side),
    /// The number of an interface.
    InterfaceNumber(Side),
    /// A constant.
    Constant(Vec<u8>),
    /// Something else.
    Unknown(String),
}

/// A field in a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Loaded {
    pub(super) field: Field,
    /// The bits of the field that are not loaded, at its end.
    pub(super) shift: u32,
    /// `field & mask`; `None` if it is unchanged.
    pub(super) mask: Option<u128>,
    /// Flipped afterwards.
    pub(super) xor: u128,
    /// The register has it in network byte order.
    pub(super) big_endian: bool,
}

impl Loaded {
    pub(super) fn new(field: Field) -> Self {
        Self { field, shift: 0, mask: None, xor: 0, big_endian: !is_host_order(field) }
    }

    /// A constant that is compared with the register, as a number.
    pub(super) fn number(self, bytes: &[u8]) -> Option<u128> {
        if self.big_endian { big_endian(bytes) } else { host_order(bytes) }
    }

    /// The test whether the register is in one of the ranges.
    pub(super) fn test(
        self,
        length: usize,
        ranges: impl IntoIterator<Item = (u128, u128)>,
        negated: bool,
    ) -> Match {
        let bits = u32::try_from(length * 8).unwrap_or(128).min(128);
        let loaded = u128::MAX.checked_shr(128 - bits).unwrap_or_default() << self.shift;
        // A range ends with the last number that begins like its end.
        let rest = (1 << self.shift) - 1;
        let ranges = ranges.into_iter().map(|(first, last)| {
            let last = last << self.shift;
            (first << self.shift, if first << self.shift == last { last } else { last | rest })
        });
        // Only a constant part is compared, so what is loaded need not be the whole field.
        let mask = self.mask.map_or(loaded, |mask| mask << self.shift) & self.field.all();
        Match::Number { field: self.field, mask, ranges: ranges.collect(), negated }
    }

    /// Whether a constant of so many bytes is no longer than what is loaded. A longer one is
    /// compared with the following registers, too.
    pub(super) fn covers(self, length: usize) -> bool {
        let width = u128::BITS - self.field.all().leading_zeros();
        u32::try_from(length * 8).is_ok_and(|bits| bits + self.shift <= width)
    }

    pub(super) fn mark(self) -> Option<MarkOf> {
        match self.field {
            Field::Mark => Some(MarkOf::Packet),
            Field::ConnectionMark => Some(MarkOf::Connection),
            _ => None,
        }
    }
}

/// netfilter has these in the byte order of the machine.
fn is_host_order(field: Field) -> bool {
    match field {
        Field::Mark
        | Field::ConnectionMark
        | Field::ConnectionState
        | Field::User
        | Field::Group
        | Field::NetCls
        | Field::Cgroup
        | Field::SourceType
        | Field::DestinationType => true,
        Field::Source4
        | Field::Destination4
        | Field::Source6
        | Field::Destination6
        | Field::Family
        | Field::Protocol
        | Field::SourcePort
        | Field::DestinationPort
        | Field::TcpFlags
        | Field::Direction
        | Field::TransparentSocket => false,
    }
}

/// The registers of a rule, by their first 32-bit word.
#[derive(Default)]
pub(super) struct Registers(BTreeMap<u32, Value>);

impl Registers {
    /// The kernel has two names for a register that starts a 128-bit one.
    fn word(number: u32) -> u32 {
        match number {
            1..=4 => (number - 1) * 4,
            other => other.saturating_sub(8),
        }
    }

    pub(super) fn set(&mut self, number: u32, value: Value) {
        self.0.insert(Self::word(number), value);
    }

    pub(super) fn get(&self, number: u32) -> Value {
        self.0.get(&Self::word(number)).cloned().unwrap_or_else(|| Value::Unknown("register".to_owned()))
    }

    pub(super) fn constant(&self, number: Option<u32>) -> Option<Vec<u8>> {
        match self.get(number?) {
            Value::Constant(bytes) => Some(bytes),
            _ => None,
        }
    }
}
