//! The demo as a program.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The demo with a lab of this name. It prints JSON.
pub fn demo(program: &str, name: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["--json", "--name", name]).stdin(Stdio::null());
    command
}

/// The report of a demo that succeeded.
pub fn report(output: &Output) -> Value {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stdout));
    assert!(!told.contains('\x1b'), "control characters without a terminal:\n{told}");
    println!("{told}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Whether there is no lab of this name.
pub fn is_gone(name: &str) -> bool {
    isp_lab::list().unwrap().iter().all(|(lab, _)| lab != name)
}
