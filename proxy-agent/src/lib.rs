//! The agent of a node.
//!
//! `mode` is the command line. `node` has the parts of every mode: the connection to the API
//! server, the view of this node, and the report to its IngressSourceNode. Each mode has a module
//! of its own. `beside` serves the preserved Services from nftables tables of its own. `filter` is
//! an HTTPS server on the loopback address that the node's stock kube-proxy uses as its API server.

mod beside;
mod cleanup;
mod filter;
#[cfg(test)]
mod fixtures;
mod mode;
mod node;

pub use mode::{AgentError, Mode};
