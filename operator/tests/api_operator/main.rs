//! The operator as installed: real processes against a real API server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod cleanup;
mod harness;
mod lease;
mod manifests;
mod pod_policy;
mod reconcile;
mod way;
