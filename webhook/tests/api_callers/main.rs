//! Who is answered, and what callers can make an API server do: the webhook as a process, a real API server that calls it and is called
//! by it, and callers that are nobody.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod caller;
mod certificate;
mod flood;
#[path = "../api_certificates/harness.rs"]
mod harness;
