//! A pod's own proxy, transparently: which of the pod's traffic goes to it.
//!
//! [`Settings`] say it. The webhook renders them as [`Settings::arguments`] of an init container,
//! the program of that container parses them again, and [`Settings::rules`] turns them into rules:
//!
//! ```text
//!  Settings ──> arguments ──> (pod) ──> parse ──> rules, routing ──> (netlink bytes, kernel)
//! ```
//!
//! Only TCP is redirected. The loopback interface, replies and everything that a setting excludes
//! are left alone.

mod arguments;
mod check;
mod ports;
mod routing;
mod rules;

pub use arguments::ArgumentError;
pub use check::{Problem, Setting};
pub use ports::{PortRange, Ports};
pub use routing::{LocalDelivery, Routing};
pub use rules::{Rules, TABLE};

use ipnet::IpNet;

pub use crate::nft::Mark;

/// The traffic of a pod that its proxy gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Connections to the pod.
    pub inbound: Option<Inbound>,
    /// Connections of the pod.
    pub outbound: Option<Outbound>,
    /// The processes whose connections are not redirected: the proxy itself.
    pub exempt: Exempt,
    /// How packets come to the proxy that have the client's address, not the pod's.
    pub routing: Routing,
}

/// The redirect of connections to the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inbound {
    /// The way.
    pub method: Method,
    /// The port that the proxy listens on.
    pub port: u16,
    /// The destination ports whose connections go to the proxy.
    pub ports: Ports,
    /// Exceptions from `ports`.
    pub except_ports: Vec<PortRange>,
}

/// How inbound connections come to the proxy. The proxy sees the client's address either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// The destination is kept. The proxy must listen with `IP_TRANSPARENT`.
    Tproxy,
    /// The destination is rewritten. Every proxy can listen for it.
    Redirect,
}

impl Method {
    /// Both methods.
    pub const ALL: [Self; 2] = [Self::Tproxy, Self::Redirect];

    /// The name in the API and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tproxy => "TPROXY",
            Self::Redirect => "REDIRECT",
        }
    }
}

/// The redirect of connections of the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outbound {
    /// The port that the proxy listens on.
    pub port: u16,
    /// The destinations whose connections go to the proxy. Empty means all.
    pub destinations: Vec<IpNet>,
    /// The destination ports whose connections go to the proxy.
    pub ports: Ports,
    /// Exceptions from `destinations`.
    pub except_destinations: Vec<IpNet>,
    /// Exceptions from `ports`.
    pub except_ports: Vec<PortRange>,
}

/// How the proxy's own connections are recognized. One match is enough.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exempt {
    /// Users.
    pub uids: Vec<u32>,
    /// Groups.
    pub gids: Vec<u32>,
    /// Marks that the proxy sets on its sockets (`SO_MARK`).
    pub marks: Vec<Mark>,
    /// Class ids of `net_cls` control groups (version 1).
    pub net_cls: Vec<u32>,
    /// Control groups of version 2 with all groups below them: paths relative to the root.
    pub cgroups: Vec<String>,
}

impl Exempt {
    /// Whether no process is exempt.
    pub fn is_empty(&self) -> bool {
        let Self { uids, gids, marks, net_cls, cgroups } = self;
        uids.is_empty() && gids.is_empty() && marks.is_empty() && net_cls.is_empty() && cgroups.is_empty()
    }
}
