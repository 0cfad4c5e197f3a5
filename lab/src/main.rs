//! `isp-lab`: the lab's command line and its init.

use std::process::ExitCode;

mod cli;

fn main() -> ExitCode {
    cli::main()
}
