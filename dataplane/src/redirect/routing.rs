//! The way back to the proxy: a rule of policy routing and a table that delivers everything
//! locally.

use std::fmt;

use super::{Mark, Settings};
use crate::nft::Family;

/// Packets with this mark are delivered locally, whatever their destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routing {
    /// The mark of packets and of connections.
    pub mark: Mark,
    /// The number of the routing table.
    pub table: u32,
}

impl Routing {
    /// One bit that neither Istio (1337, 1338) nor kube-proxy (0x4000, 0x8000) uses, and a table of
    /// our own, not Istio's 133.
    pub const DEFAULT: Self = Self { mark: Mark { value: 0x0100_0000, mask: 0x0100_0000 }, table: 15_006 };
}

impl Default for Routing {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The routing of one family: `fwmark MARK lookup TABLE`, and `local default dev lo` in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalDelivery {
    /// The family.
    pub family: Family,
    /// Mark and table.
    pub routing: Routing,
}

impl LocalDelivery {
    /// The position among the rules of policy routing: after the local table, before all others.
    pub const PREFERENCE: u32 = 1000;
}

impl Settings {
    /// The routing that the rules of a family need: answers to a proxy that connects with the
    /// client's address are marked, and must not leave the pod.
    pub fn local_delivery(&self, family: Family) -> Option<LocalDelivery> {
        self.inbound.as_ref().map(|_| LocalDelivery { family, routing: self.routing })
    }
}

/// The commands that do the same.
impl fmt::Display for LocalDelivery {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ip = match self.family {
            Family::Ip => "ip -4",
            Family::Ip6 => "ip -6",
        };
        let Routing { mark, table } = self.routing;
        writeln!(out, "{ip} rule add pref {} fwmark {mark} lookup {table}", Self::PREFERENCE)?;
        writeln!(out, "{ip} route add local default dev lo table {table}")
    }
}
