//! The agent of a node: what stands between the node's stock kube-proxy and the API server.
//!
//! `filter` is the program: an HTTPS server on the loopback that kube-proxy uses as its API server. What it decides is pure and
//! has no I/O: `request` says what may be asked and how it is narrowed, `session` which reads of a client belong to the current view,
//! `readers` what of them is kube-proxy's, `wire` takes addresses out of a stream. `serving` has the certificates by which agent and
//! kube-proxy know each other; `listen` lets in who has one, `proxy` carries requests, `view_source` follows what the node may see,
//! `report` acknowledges it.

mod filter;
#[cfg(test)]
mod fixtures;
mod node;

pub use filter::{FilterArgs, FilterError, hold, run as filter};
