//! Values of keys and data as bytes, and back.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::attributes::aligned;
use super::field::Kind;
use crate::nft::{Family, Field, Handle, Protocol, Value};

/// Appends values. A concatenation pads each of them.
pub(super) fn write(values: &[Value], out: &mut Vec<u8>) {
    let concatenated = values.len() > 1;
    for value in values {
        match value {
            Value::Address(IpAddr::V4(address)) => out.extend_from_slice(&address.octets()),
            Value::Address(IpAddr::V6(address)) => out.extend_from_slice(&address.octets()),
            Value::Protocol(protocol) => out.push(protocol.number()),
            Value::Port(port) => out.extend_from_slice(&port.to_be_bytes()),
            Value::Handle(handle) => out.extend_from_slice(&handle.0.to_ne_bytes()),
            Value::Index(index) => out.extend_from_slice(&index.to_ne_bytes()),
        }
        if concatenated {
            // Attributes start at a multiple of four bytes, so padding the message pads the value.
            out.resize(aligned(out.len()), 0);
        }
    }
}

/// Reads values. `None` if the bytes have another length, or a protocol that Services cannot have.
pub(super) fn read(bytes: &[u8], fields: &[Field], family: Family) -> Option<Vec<Value>> {
    read_kinds(bytes, fields.iter().map(|field| Kind::of(*field)), family)
}

/// Reads values of these kinds.
pub(super) fn read_kinds(
    mut bytes: &[u8],
    kinds: impl ExactSizeIterator<Item = Kind>,
    family: Family,
) -> Option<Vec<Value>> {
    let concatenated = kinds.len() > 1;
    let mut values = Vec::with_capacity(kinds.len());
    for kind in kinds {
        let length = kind.length(family);
        let (value, _) = bytes.split_at_checked(length)?;
        values.push(read_one(value, kind)?);
        bytes = bytes.get(if concatenated { aligned(length) } else { length }..)?;
    }
    bytes.is_empty().then_some(values)
}

fn read_one(bytes: &[u8], kind: Kind) -> Option<Value> {
    Some(match kind {
        Kind::Address => Value::Address(match *bytes {
            [a, b, c, d] => Ipv4Addr::new(a, b, c, d).into(),
            _ => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into(),
        }),
        Kind::Protocol => Value::Protocol(Protocol::from_number(*bytes.first()?)?),
        Kind::Port => Value::Port(u16::from_be_bytes(bytes.try_into().ok()?)),
        Kind::Handle => Value::Handle(Handle(u32::from_ne_bytes(bytes.try_into().ok()?))),
        Kind::Index => Value::Index(u32::from_ne_bytes(bytes.try_into().ok()?)),
    })
}

/// The next value of the same field; `None` after the last one.
pub(super) fn successor(value: Value) -> Option<Value> {
    Some(match value {
        Value::Address(IpAddr::V4(address)) => {
            Value::Address(Ipv4Addr::from_bits(address.to_bits().checked_add(1)?).into())
        }
        Value::Address(IpAddr::V6(address)) => {
            Value::Address(Ipv6Addr::from_bits(address.to_bits().checked_add(1)?).into())
        }
        Value::Port(port) => Value::Port(port.checked_add(1)?),
        // Ranges need network order.
        Value::Protocol(_) | Value::Handle(_) | Value::Index(_) => return None,
    })
}

/// The value before; `None` before the first one.
pub(super) fn predecessor(value: Value) -> Option<Value> {
    Some(match value {
        Value::Address(IpAddr::V4(address)) => {
            Value::Address(Ipv4Addr::from_bits(address.to_bits().checked_sub(1)?).into())
        }
        Value::Address(IpAddr::V6(address)) => {
            Value::Address(Ipv6Addr::from_bits(address.to_bits().checked_sub(1)?).into())
        }
        Value::Port(port) => Value::Port(port.checked_sub(1)?),
        // Ranges need network order.
        Value::Protocol(_) | Value::Handle(_) | Value::Index(_) => return None,
    })
}

/// The last value of a field that ranges can have.
pub(super) fn last(field: Field, family: Family) -> Option<Value> {
    match (Kind::of(field), family) {
        (Kind::Address, Family::Ip) => Some(Value::Address(Ipv4Addr::BROADCAST.into())),
        (Kind::Address, Family::Ip6) => Some(Value::Address(Ipv6Addr::from_bits(u128::MAX).into())),
        (Kind::Port, _) => Some(Value::Port(u16::MAX)),
        (Kind::Protocol | Kind::Handle | Kind::Index, _) => None,
    }
}

/// Values as a person reads them.
pub(super) fn describe(values: &[Value]) -> String {
    let one = |value: &Value| match value {
        Value::Address(address) => address.to_string(),
        Value::Protocol(protocol) => protocol.keyword().to_owned(),
        Value::Port(port) => port.to_string(),
        Value::Handle(handle) => handle.to_string(),
        Value::Index(index) => index.to_string(),
    };
    values.iter().map(one).collect::<Vec<_>>().join(" . ")
}
