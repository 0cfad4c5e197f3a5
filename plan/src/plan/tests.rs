#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod accounts;
mod beside;
mod frontend;
mod fuzz;
mod ingress;
mod interlocks;
mod kube_proxy;
mod ownership;
mod properties;
mod sidecars;
mod tables;
mod upgrades;
mod waves;
mod world;

/// The number of generated histories per property; `ISP_PLAN_CASES` overrides it.
fn cases() -> u32 {
    std::env::var("ISP_PLAN_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(500)
}
