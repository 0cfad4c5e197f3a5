//! Tables in the real kernel: loaded, listed by `nft`, changed, read back, and changed by others.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod fixture;
mod inside;
mod nft;
mod raw;

mod committing;
mod loading;
mod redirecting;
mod traffic;
mod watching;
