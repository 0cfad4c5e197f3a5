//! The IP families of a lab, and the flags that choose them.

use clap::Args;
use serde::{Deserialize, Serialize};

/// The IP families that everything in a lab has addresses of: nodes, pods, Services, clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Families {
    /// IPv4 alone.
    #[default]
    Ipv4,
    /// IPv4 first, then IPv6.
    Dual,
    /// IPv6 alone, but for the loopback.
    Ipv6,
}

impl Families {
    /// Whether there is IPv4.
    pub fn has_ipv4(self) -> bool {
        self != Self::Ipv6
    }

    /// Whether there is IPv6.
    pub fn has_ipv6(self) -> bool {
        self != Self::Ipv4
    }

    /// Their names, as Kubernetes writes them.
    pub fn names(self) -> Vec<&'static str> {
        self.pick("IPv4", "IPv6")
    }

    /// One value for each family, IPv4 first.
    pub(crate) fn pick<T>(self, v4: T, v6: T) -> Vec<T> {
        match self {
            Self::Ipv4 => vec![v4],
            Self::Dual => vec![v4, v6],
            Self::Ipv6 => vec![v6],
        }
    }
}

/// The flags by which a lab's families are chosen. Without any: IPv4.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct FamilyFlags {
    /// IPv6 beside IPv4.
    #[arg(long)]
    dual_stack: bool,
    /// IPv6 without IPv4.
    #[arg(long, conflicts_with = "dual_stack")]
    ipv6_only: bool,
}

impl FamilyFlags {
    /// The families that they choose.
    pub fn families(self) -> Families {
        match (self.ipv6_only, self.dual_stack) {
            (true, _) => Families::Ipv6,
            (false, true) => Families::Dual,
            (false, false) => Families::Ipv4,
        }
    }
}
