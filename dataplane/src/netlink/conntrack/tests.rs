use std::net::SocketAddr;

use super::{Family, Flow, Tuple, delete, dump, entry};
use crate::netlink::attributes::Writer;
use crate::netlink::message::{self, Head, Messages};

fn tuple(source: &str, destination: &str) -> Tuple {
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    Tuple { source: address(source), destination: address(destination), protocol: 17 }
}

fn read(body: impl FnOnce(&mut Writer<'_>)) -> Option<Flow> {
    let mut bytes = Vec::new();
    let head = Head { kind: super::NEW, flags: 0, sequence: 1, family: 2, resource: 0 };
    message::write(&mut bytes, head, body);
    Flow::read(Messages(&bytes).next().unwrap().unwrap()).unwrap()
}

#[test]
fn a_flow_is_read_in_both_families() {
    for (client, service, endpoint) in [
        ("192.0.2.1:4000", "10.96.0.1:53", "10.1.0.2:5353"),
        ("[2001:db8::1]:4000", "[fd96::1]:53", "[fd01::2]:5353"),
    ] {
        let (original, reply) = (tuple(client, service), tuple(endpoint, client));
        let flow = read(|out| {
            out.nest(entry::ORIGINAL, |out| original.write(out));
            out.nest(entry::REPLY, |out| reply.write(out));
            out.be32(entry::ID, 77);
        });
        assert_eq!(flow, Some(Flow { original, reply, id: 77, zone: None }));
    }
}

#[test]
fn a_flow_without_ports_is_left_out() {
    let flow = read(|out| {
        for kind in [entry::ORIGINAL, entry::REPLY] {
            out.nest(kind, |out| {
                out.nest(super::tuple::ADDRESSES, |out| {
                    out.be32(super::address::SOURCE_V4, 1);
                    out.be32(super::address::DESTINATION_V4, 2);
                });
                out.nest(super::tuple::PROTOCOL, |out| out.byte(super::protocol::NUMBER, 1));
            });
        }
        out.be32(entry::ID, 1);
    });
    assert_eq!(flow, None);
}

#[test]
fn a_deletion_names_the_connection_by_its_number_and_zone() {
    let original = tuple("192.0.2.1:4000", "10.96.0.1:53");
    let flow = Flow { original, reply: original, id: 0x0102_0304, zone: Some(9) };
    let mut bytes = Vec::new();
    delete(&mut bytes, 5, &flow);
    let message = Messages(&bytes).next().unwrap().unwrap();
    let attributes = message.attributes().unwrap();
    assert_eq!(attributes.require(entry::ID).unwrap().be32(), Ok(0x0102_0304));
    assert_eq!(attributes.require(entry::ZONE).unwrap().be16(), Ok(9));
    assert_eq!(message.sequence, 5);
}

#[test]
fn a_dump_asks_for_one_protocol() {
    let mut bytes = Vec::new();
    dump(&mut bytes, 1, Family::V6, 17);
    let message = Messages(&bytes).next().unwrap().unwrap();
    assert_eq!(message.family(), Ok(10));
    assert!(message.attributes().unwrap().find(entry::FILTER).unwrap().is_some());
}
