//! Kubernetes objects as the model of the data plane: Services and EndpointSlices
//! ([`services`]), and Nodes ([`node`]).
//!
//! The agent of mode Beside programs what this crate returns, and `isp-paths` traces packets
//! through it, so that both mean the same by an object. Pure: it reads no API server.

pub mod node;
pub mod services;
