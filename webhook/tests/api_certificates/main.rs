//! The webhook's certificates on a real API server: replicas as processes, and a caller that
//! verifies them like an API server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod bundle;
mod caller;
mod cert_manager;
mod replicas;
mod rotation;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_webhook");
