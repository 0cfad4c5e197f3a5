//! The agent of a node: what stands between the node's stock kube-proxy and the API server.
//!
//! `filter` is the program: an HTTPS server on the loopback that kube-proxy uses as its API server. What it decides is pure and
//! has no I/O: `request` says what may be asked and how it is narrowed, `session` which reads belong to the current view, `wire`
//! takes addresses out of a stream. `proxy` and `listen` carry requests, `view_source` follows what the node may see, `report`
//! acknowledges it.

mod filter;
#[cfg(test)]
mod fixtures;
mod listen;
mod metrics;
mod proxy;
mod report;
mod request;
mod serving;
mod session;
mod state;
mod upstream;
mod view_source;
mod wire;

pub use filter::{FilterArgs, FilterError, hold, run as filter};
