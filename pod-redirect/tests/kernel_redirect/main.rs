//! Real connections to and from a pod with a proxy of its own: a network namespace is the pod,
//! another one is the rest of the world. The proxy has a user of its own, so this needs root.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod proxies;
mod relay;
mod world;

mod exempt;
mod inbound;
mod outbound;
mod program;
