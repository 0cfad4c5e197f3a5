//! Field ownership on a real API server: Services and kube-proxies created in every common way, and
//! what happens to their fields when an object is applied and deleted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

#[path = "../common/cluster.rs"]
#[allow(dead_code, reason = "other test programs use the rest of it")]
mod cluster;
#[path = "../common/kube_proxy.rs"]
mod made;

mod kube_proxy;
mod objects;
mod services;
