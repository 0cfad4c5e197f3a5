//! What the theft of each account gives, tried on a real API server with a token of that account: the claims of docs/security.md.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod claims;
mod stolen;
mod webhook;
