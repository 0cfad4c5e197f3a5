//! Which callers are accepted, and what load they can cause: the webhook as a process, a real API
//! server on both sides of it, and anonymous callers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod caller;
mod certificate;
mod flood;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_webhook");
