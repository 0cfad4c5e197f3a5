//! Field ownership on a real API server: Services and kube-proxies created in every common way, and
//! what happens to their fields when an object is applied and deleted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod kube_proxy;
mod objects;
mod services;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_operator");
