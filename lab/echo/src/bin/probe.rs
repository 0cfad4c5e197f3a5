//! `probe`: the same program under the name of its released image, for the helper pods of `kubectl
//! isp probe`.

use std::process::ExitCode;

fn main() -> ExitCode {
    isp_echo::main()
}
