//! `echo`: the application of the lab's scenarios, its client, and the lab's pause program.

use std::process::ExitCode;

fn main() -> ExitCode {
    isp_echo::main()
}
