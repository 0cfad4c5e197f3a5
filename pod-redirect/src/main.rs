//! `pod-redirect`

use std::io::{self, Write as _};
use std::process::ExitCode;

use isp_pod_redirect::{HELP, VERSION, run};

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    let asked = |names: [&str; 2]| arguments.iter().any(|argument| names.contains(&argument.as_str()));
    let result = if asked(["--help", "-h"]) || arguments.is_empty() {
        Ok(HELP.to_owned())
    } else if asked(["--version", "-V"]) {
        Ok(VERSION.to_owned())
    } else {
        run(arguments)
    };
    match result {
        // The rules are in force, whether or not somebody reads this.
        Ok(text) => drop(io::stdout().write_all(text.as_bytes())),
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
