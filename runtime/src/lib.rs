//! Process lifecycle shared by all long-running programs of the project.
//!
//! A program's `main` sets up [`telemetry`] and starts a [`program::Program`]. The program installs
//! signal handlers ([`shutdown::Shutdown`]), tracks its [`readiness`], and runs the [`admin`]
//! server next to its own tasks in [`shutdown::Tasks`], which end in bounded time. [`health`]
//! detects stuck tasks. [`listen`] and [`connection`] are for programs that serve requests,
//! [`duration`] parses durations on the command line, and [`last_words`] writes the termination
//! message. Nothing here depends on Kubernetes or on the purpose of a program.

pub mod admin;
pub mod connection;
pub mod duration;
pub mod health;
pub mod last_words;
pub mod listen;
pub mod program;
pub mod readiness;
pub mod shutdown;
pub mod telemetry;
