//! What the kernel reports about a table, as it is, without the numbers that it hands out.

use isp_dataplane::netlink::Query;
use isp_dataplane::nft::Table;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};

/// Message types.
const CHAIN: u16 = 0xa03;
const RULE: u16 = 0xa06;
const SET: u16 = 0xa09;
const DONE: u16 = 3;

/// Types and values.
type Attributes = Vec<(u16, Vec<u8>)>;
/// The message type and the attributes.
type Object = (u16, Attributes);

/// Every chain, rule and set: type, and attributes with their values.
pub(crate) fn report(table: &Table) -> Vec<Object> {
    let (family, name) = (table.family, &table.name);
    let mut all = Vec::new();
    for query in [Query::Chains(family), Query::Rules(family, name), Query::Sets(family, name)] {
        all.extend(dump(&query.write(1)));
    }
    all.sort_by_key(|(kind, attributes): &Object| {
        // Rules keep their order.
        (*kind, if *kind == RULE { Vec::new() } else { attributes[..2].to_vec() })
    });
    all
}

fn dump(request: &[u8]) -> Vec<Object> {
    let mut socket = Socket::new(NETLINK_NETFILTER).unwrap();
    socket.bind_auto().unwrap();
    socket.connect(&SocketAddr::new(0, 0)).unwrap();
    socket.send(request, 0).unwrap();
    let mut found = Vec::new();
    loop {
        let (bytes, _) = socket.recv_from_full().unwrap();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let length = u32::from_ne_bytes(rest[..4].try_into().unwrap()) as usize;
            let kind = u16::from_ne_bytes(rest[4..6].try_into().unwrap());
            match kind {
                DONE => return found,
                _ => found.push((kind, attributes(kind, &rest[20..length]))),
            }
            rest = &rest[length.next_multiple_of(4).min(rest.len())..];
        }
    }
}

fn attributes(message: u16, mut bytes: &[u8]) -> Attributes {
    let mut found = Vec::new();
    while bytes.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes(bytes[..2].try_into().unwrap()));
        let kind = u16::from_ne_bytes(bytes[2..4].try_into().unwrap()) & 0x3fff;
        let is_number_of_kernel = match message {
            CHAIN => kind == 2,
            // The handle, and that of the rule before.
            RULE => kind == 3 || kind == 6,
            SET => kind == 16,
            _ => false,
        };
        if !is_number_of_kernel {
            found.push((kind, without_idle_swap(&bytes[4..length])));
        }
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    found
}

/// `nft` swaps the bytes of the protocol, which has one, before a lookup in a set with ranges.
fn without_idle_swap(value: &[u8]) -> Vec<u8> {
    let swap = value.windows(16).position(|window| window == b"\x40\0\x01\0\x0e\0\x01\0byteorde");
    match swap {
        Some(start) => [&value[..start], &value[start + 0x40..]].concat(),
        None => value.to_vec(),
    }
}
