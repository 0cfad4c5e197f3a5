#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod accounts;
mod frontend;
mod fuzz;
mod hostile;
mod properties;
mod sidecars;
mod tables;
mod waves;
mod world;

/// How many histories are tried: some hundreds with every run, more when asked.
fn cases() -> u32 {
    std::env::var("ISP_PLAN_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(500)
}
