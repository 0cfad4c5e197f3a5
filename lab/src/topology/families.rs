//! The IP families of a lab, and the flags that select them.

use clap::Args;
use serde::{Deserialize, Serialize};

/// The IP families of a lab's nodes, pods, Services and clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Families {
    /// IPv4 only.
    #[default]
    Ipv4,
    /// IPv4 first, then IPv6.
    Dual,
    /// IPv6 only, except on loopback.
    Ipv6,
}

impl Families {
    /// Whether the lab has IPv4.
    pub fn has_ipv4(self) -> bool {
        self != Self::Ipv6
    }

    /// Whether the lab has IPv6.
    pub fn has_ipv6(self) -> bool {
        self != Self::Ipv4
    }

    /// The families' names in the Kubernetes API.
    pub fn names(self) -> Vec<&'static str> {
        self.pick("IPv4", "IPv6")
    }

    /// Returns one value per family, IPv4 first.
    pub(crate) fn pick<T>(self, v4: T, v6: T) -> Vec<T> {
        match self {
            Self::Ipv4 => vec![v4],
            Self::Dual => vec![v4, v6],
            Self::Ipv6 => vec![v6],
        }
    }
}

/// The flags that select a lab's IP families. Default: IPv4.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct FamilyFlags {
    /// Use IPv6 in addition to IPv4.
    #[arg(long)]
    dual_stack: bool,
    /// Use only IPv6.
    #[arg(long, conflicts_with = "dual_stack")]
    ipv6_only: bool,
}

impl FamilyFlags {
    /// The selected families.
    pub fn families(self) -> Families {
        match (self.ipv6_only, self.dual_stack) {
            (true, _) => Families::Ipv6,
            (false, true) => Families::Dual,
            (false, false) => Families::Ipv4,
        }
    }
}
