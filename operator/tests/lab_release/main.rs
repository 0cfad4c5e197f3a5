//! Releases on a real cluster of three nodes: installed, upgraded and uninstalled, with and without
//! objects that are still alive.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod install;
mod uninstall;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_operator");
