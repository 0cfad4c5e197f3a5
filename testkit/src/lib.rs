//! Helpers that the tests of several crates share. Only dev-dependencies use this crate; lint
//! checks it.
//!
//! A helper fails as a test does: it panics with the reason. Programs under test are passed by
//! path, because only the crate that builds a program knows it (`env!("CARGO_BIN_EXE_…")`).
//!
//! | for | use |
//! |---|---|
//! | waiting | [`until`], and [`Patience`] for another limit |
//! | processes | [`Process`], and [`Program`] for one of ours with an admin server |
//! | an API server without nodes | [`control_plane`], [`simulated`], [`plugin`], [`agent`], [`webhook`] |
//! | a cluster before and after | [`snapshot`], [`inventory`], [`difference`] |
//! | a lab with an application | [`web_lab`], [`traffic`], [`answers`] |
//! | a release without a checkout | [`release`] |
//! | agents of mode Beside on it | [`beside`] |
//! | pages | [`browser`] |
//! | the demo | [`demo`] |
//! | Services that change at random | [`churn`], [`random`] |
//! | the output of the plugin and its schemas | [`schema`] |
//! | permissions and their use | [`accounts`], [`rights`] |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "helpers of tests fail as tests do"
)]

pub mod accounts;
pub mod admission;
pub mod agent;
pub mod answers;
pub mod beside;
pub mod browser;
pub mod churn;
pub mod control_plane;
pub mod demo;
pub mod difference;
pub mod images;
pub mod inventory;
pub mod kube_proxy;
mod limits;
pub mod plugin;
pub mod preserve;
mod process;
mod program;
pub mod random;
pub mod redirects;
pub mod release;
pub mod repository;
pub mod rights;
pub mod schema;
pub mod sidecars;
pub mod simulated;
pub mod snapshot;
pub mod traffic;
mod wait;
pub mod web_lab;
pub mod webhook;

pub use limits::allow_many_files;
pub use process::Process;
pub use program::Program;
pub use wait::{Look, Patience, until};
