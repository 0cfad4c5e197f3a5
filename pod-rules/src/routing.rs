//! Addresses, interfaces and routes of a network namespace: where a packet goes, as far as a pod
//! has a choice.

mod read;

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

pub use read::has_address;

/// The routing of a network namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routing {
    /// The names of interfaces by their numbers.
    pub links: BTreeMap<u32, String>,
    /// The addresses of all interfaces.
    pub addresses: Vec<IpAddr>,
    /// The rules, by preference.
    pub rules: Vec<RoutingRule>,
    /// The routes of all tables.
    pub routes: Vec<Route>,
}

/// Chooses a routing table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutingRule {
    /// Whether it is for IPv6.
    pub ipv6: bool,
    /// Lower numbers come first.
    pub preference: u32,
    /// The mark that a packet must have: value and mask.
    pub mark: Option<(u32, u32)>,
    /// The source that it must have.
    pub source: Option<IpNet>,
    /// The destination that it must have.
    pub destination: Option<IpNet>,
    /// The interface that it must have come in by.
    pub input: Option<String>,
    /// The table to look the packet up in.
    pub table: u32,
    /// Whether it has conditions that are not read here. It is then left out.
    pub unknown: bool,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The table.
    pub table: u32,
    /// The destinations.
    pub destination: IpNet,
    /// Whether packets are delivered to local sockets.
    pub kind: RouteKind,
    /// The interface.
    pub interface: Option<u32>,
}

/// What a route does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteKind {
    /// Sends the packet by an interface.
    Unicast,
    /// Delivers it to a local socket.
    Local,
    /// Anything else, such as an error.
    Other,
}

/// The way of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// To a local socket.
    Local,
    /// Out of the pod, by this interface.
    Out(String),
    /// Nowhere.
    None,
}

/// The loopback interface.
pub const LOOPBACK: &str = "lo";

impl Routing {
    /// Whether the address is one of the namespace's own.
    pub fn is_local(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.addresses.contains(&address)
    }

    /// The way of a packet to a destination.
    pub fn way(&self, source: IpAddr, destination: IpAddr, mark: u32, input: Option<&str>) -> Way {
        let applies = |rule: &&RoutingRule| {
            rule.ipv6 == destination.is_ipv6()
                && !rule.unknown
                && rule.mark.is_none_or(|(value, mask)| mark & mask == value)
                && rule.source.is_none_or(|network| network.contains(&source))
                && rule.destination.is_none_or(|network| network.contains(&destination))
                && rule.input.as_deref().is_none_or(|name| Some(name) == input)
        };
        let found = self.rules.iter().filter(applies).find_map(|rule| self.route(rule.table, destination));
        match found {
            Some(Route { kind: RouteKind::Local, .. }) => Way::Local,
            Some(Route { kind: RouteKind::Unicast, interface, .. }) => {
                let name = interface.and_then(|number| self.links.get(&number));
                Way::Out(name.cloned().unwrap_or_else(|| "?".to_owned()))
            }
            _ => Way::None,
        }
    }

    /// The most specific route of a table.
    fn route(&self, table: u32, destination: IpAddr) -> Option<&Route> {
        let routes = self.routes.iter().filter(|route| route.table == table);
        routes
            .filter(|route| route.destination.contains(&destination))
            .max_by_key(|route| route.destination.prefix_len())
    }

    /// The interface by which packets from elsewhere come in.
    pub fn outside(&self) -> &str {
        let other = self.links.values().find(|name| name.as_str() != LOOPBACK);
        other.map_or("eth0", String::as_str)
    }
}
