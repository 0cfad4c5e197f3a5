//! Messages of rtnetlink as values.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use isp_dataplane::netlink::{Attribute, Attributes, Malformed, Message, Messages};

use super::{Route, RouteKind, Routing, RoutingRule};

const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
const NEW_RULE: u16 = 32;

const INET: u8 = 2;
const INET6: u8 = 10;
/// `RTN_UNICAST` and `RTN_LOCAL`.
const UNICAST: u8 = 1;
const LOCAL: u8 = 2;
/// `FR_ACT_TO_TBL`, and the flag of an inverted rule.
const TO_TABLE: u8 = 1;
const INVERTED: u32 = 2;

impl Routing {
    /// Reads the messages of a dump.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut routing = Self::default();
        for message in Messages(bytes) {
            let message = message?;
            match message.kind {
                NEW_LINK => routing.link(message)?,
                NEW_ADDRESS => routing.addresses.extend(address(message)?),
                NEW_ROUTE => routing.route_message(message)?,
                NEW_RULE => routing.rule(message)?,
                _ => {}
            }
        }
        routing.rules.sort_by_key(|rule| rule.preference);
        Ok(routing)
    }

    fn link(&mut self, message: Message<'_>) -> Result<(), Malformed> {
        const NAME: u16 = 3;
        let (header, attributes) = split::<16>(message)?;
        let number = u32::from_ne_bytes([header[4], header[5], header[6], header[7]]);
        self.links.insert(number, attributes.require(NAME)?.text()?.to_owned());
        Ok(())
    }

    fn route_message(&mut self, message: Message<'_>) -> Result<(), Malformed> {
        const DESTINATION: u16 = 1;
        const OUTPUT: u16 = 4;
        const TABLE: u16 = 15;
        let (header, attributes) = split::<12>(message)?;
        let [family, length, _, _, small_table, _, _, kind, ..] = *header;
        let number = |kind| attributes.find(kind)?.map(Attribute::host32).transpose();
        let Some(destination) = network(family, length, attributes.find(DESTINATION)?) else { return Ok(()) };
        self.routes.push(Route {
            table: number(TABLE)?.unwrap_or(u32::from(small_table)),
            destination,
            kind: match kind {
                UNICAST => RouteKind::Unicast,
                LOCAL => RouteKind::Local,
                _ => RouteKind::Other,
            },
            interface: number(OUTPUT)?,
        });
        Ok(())
    }

    fn rule(&mut self, message: Message<'_>) -> Result<(), Malformed> {
        const DESTINATION: u16 = 1;
        const SOURCE: u16 = 2;
        const INPUT: u16 = 3;
        const PREFERENCE: u16 = 6;
        const MARK: u16 = 10;
        const TABLE: u16 = 15;
        const MASK: u16 = 16;
        /// Conditions that are not read: the output interface, users, protocols, ports and the
        /// like.
        const CONDITIONS: [u16; 8] = [12, 17, 20, 22, 23, 24, 25, 26];
        let (header, attributes) = split::<12>(message)?;
        let [family, to_length, from_length, service, small_table, _, _, action, f0, f1, f2, f3] = *header;
        // There are rules for multicast, too.
        if ![INET, INET6].contains(&family) {
            return Ok(());
        }
        let number = |kind| attributes.find(kind)?.map(Attribute::host32).transpose();
        let inverted = u32::from_ne_bytes([f0, f1, f2, f3]) & INVERTED != 0;
        let mut conditions = false;
        for attribute in attributes {
            conditions |= CONDITIONS.contains(&attribute?.kind);
        }
        let mark = number(MARK)?.map(|mark| Ok::<_, Malformed>((mark, number(MASK)?.unwrap_or(u32::MAX))));
        self.rules.push(RoutingRule {
            ipv6: family == INET6,
            preference: number(PREFERENCE)?.unwrap_or_default(),
            mark: mark.transpose()?,
            source: attributes.find(SOURCE)?.and_then(|value| network(family, from_length, Some(value))),
            destination: attributes
                .find(DESTINATION)?
                .and_then(|value| network(family, to_length, Some(value))),
            input: attributes.find(INPUT)?.map(Attribute::text).transpose()?.map(str::to_owned),
            table: number(TABLE)?.unwrap_or(u32::from(small_table)),
            unknown: conditions || inverted || service != 0 || action != TO_TABLE,
        });
        Ok(())
    }
}

/// Whether one of the messages is about this address.
pub fn has_address(bytes: &[u8], wanted: IpAddr) -> bool {
    let addresses = Messages(bytes).filter_map(Result::ok).filter(|message| message.kind == NEW_ADDRESS);
    addresses.filter_map(|message| address(message).ok().flatten()).any(|found| found == wanted)
}

/// The local address; on point-to-point interfaces the other attribute is the peer's.
fn address(message: Message<'_>) -> Result<Option<IpAddr>, Malformed> {
    const ADDRESS: u16 = 1;
    const LOCAL_ADDRESS: u16 = 2;
    let (_, attributes) = split::<8>(message)?;
    let found = attributes.find(LOCAL_ADDRESS)?.or(attributes.find(ADDRESS)?);
    Ok(found.and_then(|attribute| ip(attribute.value)))
}

fn split<const N: usize>(message: Message<'_>) -> Result<(&[u8; N], Attributes<'_>), Malformed> {
    let (header, rest) = message.body.split_first_chunk::<N>().ok_or(Malformed::Message)?;
    Ok((header, Attributes(rest)))
}

fn network(family: u8, length: u8, address: Option<Attribute<'_>>) -> Option<IpNet> {
    let any =
        if family == INET6 { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
    let address = address.map_or(Some(any), |attribute| ip(attribute.value))?;
    IpNet::new(address, length).ok()
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let four = || <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    four().or_else(|| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from))
}
