//! Who owns what, on the real API server: Services and kube-proxies made in every way that people make them, and what
//! becomes of their fields on the way on and off.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

#[path = "../common/cluster.rs"]
#[allow(dead_code, reason = "other test programs use the rest of it")]
mod cluster;
#[path = "../common/kube_proxy.rs"]
mod made;

mod kube_proxy;
mod objects;
mod services;
