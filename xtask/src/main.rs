//! `cargo xtask`: the project's own commands.
//!
//! This crate depends on none of the project's other crates. It compiles in seconds, and its checks
//! run even while the others do not compile. Features that need their code run one of their
//! programs through cargo.

mod bench;
mod chart;
mod cli;
mod directions;
mod dist;
mod docs;
mod generated;
mod image;
mod lab;
mod lint;
mod process;
mod reference;
mod release;
mod soak;
mod test;
mod tools;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
