//! What every long-running program of the project needs around its own work.
//!
//! A program's `main` sets up [`telemetry`], takes a [`shutdown::Shutdown`] from the signals, registers with
//! [`readiness`] what it still waits for, and runs the [`admin`] server beside its own tasks in
//! [`shutdown::Tasks`], which ends them all in bounded time. Nothing here knows Kubernetes, or what a program is for.

pub mod admin;
pub mod readiness;
pub mod shutdown;
pub mod telemetry;
