//! Fields of packets, as types of sets and as loads into registers.

use super::expression::{Base, Expression, Register};
use super::nf_tables::{conntrack, meta};
use crate::nft::{Family, Field, Value};

/// A kind of value, by the numbers that `nft` gives to types. The kernel only stores them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Address,
    Protocol,
    Port,
    Handle,
    Index,
}

/// Byte orders, in the user data of sets.
pub(super) const HOST_ORDER: u32 = 1;
pub(super) const NETWORK_ORDER: u32 = 2;

impl Kind {
    pub(super) fn of(field: Field) -> Self {
        match field {
            Field::Saddr | Field::Daddr | Field::OriginalDaddr => Self::Address,
            Field::L4Proto => Self::Protocol,
            Field::Dport | Field::OriginalDport => Self::Port,
            Field::Priority => Self::Handle,
            Field::Random(_) => Self::Index,
        }
    }

    pub(super) fn of_value(value: &Value) -> Self {
        match value {
            Value::Address(_) => Self::Address,
            Value::Protocol(_) => Self::Protocol,
            Value::Port(_) => Self::Port,
            Value::Handle(_) => Self::Handle,
            Value::Index(_) => Self::Index,
        }
    }

    /// The number of bytes, without padding.
    pub(super) fn length(self, family: Family) -> usize {
        match self {
            Self::Address => usize::from(family.address_bits()) / 8,
            Self::Protocol => 1,
            Self::Port => 2,
            Self::Handle | Self::Index => 4,
        }
    }

    /// The number of the type in `nft`.
    pub(super) fn number(self, family: Family) -> u32 {
        match (self, family) {
            (Self::Address, Family::Ip) => 7,
            (Self::Address, Family::Ip6) => 8,
            (Self::Protocol, _) => 12,
            (Self::Port, _) => 13,
            (Self::Handle, _) => 23,
            (Self::Index, _) => 4,
        }
    }

    pub(super) fn byte_order(self) -> u32 {
        match self {
            Self::Address | Self::Port => NETWORK_ORDER,
            Self::Protocol | Self::Handle | Self::Index => HOST_ORDER,
        }
    }
}

/// The number of bits that each type takes in the number of a concatenated type.
const TYPE_BITS: u32 = 6;

/// The number of a type, or of a concatenation of types.
pub(super) fn type_number(fields: &[Field], family: Family) -> u32 {
    fields.iter().fold(0, |number, field| (number << TYPE_BITS) | Kind::of(*field).number(family))
}

/// The length of a key or of data. A concatenation pads every field.
pub(super) fn length(fields: &[Field], family: Family) -> usize {
    match fields {
        [only] => Kind::of(*only).length(family),
        several => several.iter().map(|field| padded(*field, family)).sum(),
    }
}

fn padded(field: Field, family: Family) -> usize {
    Kind::of(field).length(family).next_multiple_of(4)
}

/// Loads fields one after another, each at the start of a register. Returns the next free register.
pub(super) fn load_all(
    fields: &[Field],
    family: Family,
    mut to: Register,
    out: &mut Vec<Expression>,
) -> Register {
    for field in fields {
        out.push(load(*field, family, to));
        to = to.after(padded(*field, family));
    }
    to
}

pub(super) fn load(field: Field, family: Family, to: Register) -> Expression {
    let address = |v4, v6| match family {
        Family::Ip => (v4, 4),
        Family::Ip6 => (v6, 16),
    };
    let network = |v4, v6| {
        let (offset, length) = address(v4, v6);
        Expression::Payload { base: Base::Network, offset, length, to }
    };
    let original = |key| Expression::Conntrack { key, direction: Some(ORIGINAL), to };
    match field {
        Field::Saddr => network(12, 8),
        Field::Daddr => network(16, 24),
        Field::L4Proto => Expression::Meta { key: meta::L4PROTO, to },
        Field::Dport => Expression::Payload { base: Base::Transport, offset: 2, length: 2, to },
        Field::Priority => Expression::Meta { key: meta::PRIORITY, to },
        Field::Random(modulus) => Expression::Random { modulus, to },
        Field::OriginalDaddr => original(address(conntrack::DESTINATION_IPV4, conntrack::DESTINATION_IPV6).0),
        Field::OriginalDport => original(conntrack::PROTO_DESTINATION),
    }
}

/// The direction of the packets of the client.
const ORIGINAL: u8 = 0;

/// The user data by which `nft` prints the type of a set as `typeof`.
pub(super) mod type_of {
    use super::{Family, Field, conntrack, meta};

    /// The numbers that `nft` gives to kinds of expressions.
    mod expression {
        pub(super) const VERDICT: u32 = 1;
        pub(super) const PAYLOAD: u32 = 7;
        pub(super) const META: u32 = 9;
        pub(super) const CONNTRACK: u32 = 12;
        pub(super) const CONCATENATION: u32 = 13;
        pub(super) const NUMGEN: u32 = 23;
    }

    /// The numbers that `nft` gives to headers.
    mod header {
        pub(super) const TRANSPORT: u32 = 11;
        pub(super) const IPV4: u32 = 12;
        pub(super) const IPV6: u32 = 13;
    }

    const KIND: u8 = 0;
    const DATA: u8 = 1;

    /// `nft`'s own encoding in user data: a type, a length and a value, each of one byte, unpadded.
    pub(in crate::netlink) fn entry(out: &mut Vec<u8>, kind: u8, value: &[u8]) {
        out.push(kind);
        out.push(u8::try_from(value.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(&value[..value.len().min(u8::MAX.into())]);
    }

    pub(in crate::netlink) fn number(out: &mut Vec<u8>, kind: u8, value: u32) {
        entry(out, kind, &value.to_ne_bytes());
    }

    pub(in crate::netlink) fn verdict() -> Vec<u8> {
        described(expression::VERDICT, &[])
    }

    pub(in crate::netlink) fn fields(fields: &[Field], family: Family) -> Vec<u8> {
        if let [only] = fields {
            return field(*only, family);
        }
        let mut parts = Vec::new();
        for (place, each) in (0_u8..).zip(fields) {
            entry(&mut parts, place, &field(*each, family));
        }
        described(expression::CONCATENATION, &parts)
    }

    fn field(field: Field, family: Family) -> Vec<u8> {
        let address = |v4, v6| match family {
            Family::Ip => described(expression::PAYLOAD, &numbers(&[header::IPV4, v4])),
            Family::Ip6 => described(expression::PAYLOAD, &numbers(&[header::IPV6, v6])),
        };
        let original = |key| described(expression::CONNTRACK, &numbers(&[key, super::ORIGINAL.into()]));
        match field {
            Field::Saddr => address(11, 8),
            Field::Daddr => address(12, 9),
            Field::L4Proto => described(expression::META, &numbers(&[meta::L4PROTO])),
            Field::Dport => described(expression::PAYLOAD, &numbers(&[header::TRANSPORT, 2])),
            Field::Priority => described(expression::META, &numbers(&[meta::PRIORITY])),
            Field::Random(modulus) => described(expression::NUMGEN, &numbers(&[1, modulus, 0])),
            Field::OriginalDaddr => match family {
                Family::Ip => original(conntrack::DESTINATION_IPV4),
                Family::Ip6 => original(conntrack::DESTINATION_IPV6),
            },
            Field::OriginalDport => original(conntrack::PROTO_DESTINATION),
        }
    }

    fn described(kind: u32, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        number(&mut out, KIND, kind);
        entry(&mut out, DATA, data);
        out
    }

    fn numbers(values: &[u32]) -> Vec<u8> {
        let mut out = Vec::new();
        for (place, value) in (0_u8..).zip(values) {
            number(&mut out, place, *value);
        }
        out
    }
}
