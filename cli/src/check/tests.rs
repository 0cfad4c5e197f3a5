//! The whole check on dumps of a real cluster, each changed in one place.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod faults;
mod lines;
mod world;
