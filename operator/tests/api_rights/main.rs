//! The blast radius of each stolen ServiceAccount token, tried on a real API server: the claims of
//! docs/security.md.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod claims;
mod stolen;
mod webhook;
