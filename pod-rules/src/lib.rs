//! The packet rules of a pod, whoever wrote them: decoded, traced and explained.
//!
//! ```text
//!  dump ──> decode ──> rules, routing ──> trace ──> explain
//!  (bytes of the kernel)                  packet
//! ```
//!
//! `pod-redirect read` makes the dump on the pod's node; `kubectl isp rules` does the rest. This
//! crate does no I/O, and knows no Kubernetes types.

pub mod decode;
pub mod dump;
pub mod explain;
pub mod packet;
pub mod routing;
pub mod rules;
pub mod trace;
