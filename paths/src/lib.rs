//! The way of one packet through a whole cluster: which node it meets, whose rules act on it there,
//! which address they change, and whose address the pod and its application see in the end.
//!
//! ```text
//!  objects ──> Cluster ──> paths(Request) ──> Path: hops, outcome
//!              facts        entry   where traffic from outside arrives
//!                           serving who serves a Service on a node, and how much of it
//!                           rules   isp-dataplane: compile, trace
//!                           pod     sidecars, gateways, redirects
//! ```
//!
//! A node's rules are those that `isp-dataplane` compiles: its tests prove that they treat packets
//! as kube-proxy does in the modes iptables and nftables. The network between nodes is not in the
//! API. The crate assumes the usual one, and marks every hop that rests on an assumption.
//!
//! `kubectl isp trace` prints paths, and other commands compare them with real connections. This
//! crate does no I/O.

mod address;
mod cells;
mod cluster;
mod entry;
mod kube_proxy;
mod path;
mod request;
mod rules;
mod serving;
mod walk;

#[cfg(test)]
mod tests;

pub use self::address::{Address, Flow};
pub use self::cells::{Cell, Target, cells, cells_among};
pub use self::cluster::{Cluster, Interception, Node, Pod, Service};
pub use self::kube_proxy::{DetectLocal, KubeProxy, ProxyMode};
pub use self::path::{Actor, Delivery, Hop, Outcome, Path, Place};
pub use self::request::{Impossible, Request, Source};
pub use self::walk::paths;
pub use isp_dataplane::nft::Protocol;
pub use isp_plan::Key;
