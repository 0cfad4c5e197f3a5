//! Fields, values and elements as text.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::nft::{Data, Element, Family, Field, Value, Verdict};

/// The fields of a key.
pub(super) fn fields(family: Family, fields: &[Field]) -> String {
    fields.iter().map(|each| field(family, *each)).collect::<Vec<_>>().join(" . ")
}

fn field(family: Family, field: Field) -> String {
    let ip = family.keyword();
    match field {
        Field::Saddr => format!("{ip} saddr"),
        Field::Daddr => format!("{ip} daddr"),
        Field::L4Proto => "meta l4proto".to_owned(),
        Field::Dport => "th dport".to_owned(),
        Field::Priority => "meta priority".to_owned(),
        Field::Random(modulus) => format!("numgen random mod {modulus}"),
        Field::OriginalDaddr => format!("ct original {ip} daddr"),
        Field::OriginalDport => "ct original proto-dst".to_owned(),
    }
}

pub(super) fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Jump(chain) => format!("jump {chain}"),
        Verdict::Goto(chain) => format!("goto {chain}"),
        Verdict::Accept => "accept".to_owned(),
        Verdict::Drop => "drop".to_owned(),
    }
}

/// One element: its key, or range of keys, and its data.
pub(super) fn element(element: &Element) -> String {
    let key: Vec<String> = match &element.last {
        None => element.key.iter().map(value).collect(),
        Some(last) => element.key.iter().zip(last).map(|(first, last)| range(first, last)).collect(),
    };
    let key = key.join(" . ");
    match &element.data {
        Data::None => key,
        Data::Values(values) => {
            format!("{key} : {}", values.iter().map(value).collect::<Vec<_>>().join(" . "))
        }
        Data::Verdict(to) => format!("{key} : {}", verdict(to)),
    }
}

fn value(value: &Value) -> String {
    match value {
        Value::Address(address) => address.to_string(),
        Value::Protocol(protocol) => protocol.keyword().to_owned(),
        Value::Port(port) => port.to_string(),
        Value::Handle(handle) => handle.to_string(),
        Value::Index(index) => index.to_string(),
    }
}

fn range(first: &Value, last: &Value) -> String {
    match (first, last) {
        (Value::Address(first), Value::Address(last)) if first != last => match prefix_of(*first, *last) {
            Some(range) => prefix(range),
            None => format!("{first}-{last}"),
        },
        _ if first == last => value(first),
        _ => format!("{}-{}", value(first), value(last)),
    }
}

/// The prefix that is exactly this range, if there is one.
fn prefix_of(first: IpAddr, last: IpAddr) -> Option<IpNet> {
    (0..=Family::of(first).address_bits())
        .filter_map(|bits| IpNet::new(first, bits).ok())
        .find(|range| range.network() == first && range.broadcast() == last)
}

/// A range as `nft` writes it: a single address without its length.
pub(super) fn prefix(range: IpNet) -> String {
    if range.prefix_len() == range.max_prefix_len() { range.addr().to_string() } else { range.to_string() }
}
