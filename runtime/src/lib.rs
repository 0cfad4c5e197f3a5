//! What every long-running program of the project needs around its own work.
//!
//! A program's `main` sets up [`telemetry`] and starts a [`program::Program`]: it takes a [`shutdown::Shutdown`] from the
//! signals, holds in [`readiness`] what the program still waits for, and runs the [`admin`] server beside the program's own
//! tasks in [`shutdown::Tasks`], which ends them all in bounded time. [`health`] notices a task that no longer turns. [`listen`] and
//! [`connection`] are for those that serve, [`duration`] reads a kind of argument that all have, [`last_words`] leaves why a program
//! ended. Nothing here knows Kubernetes, or what a program is for.

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
