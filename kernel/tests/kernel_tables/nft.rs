//! The program `nft`, as an administrator runs it.

use std::io::Write;
use std::process::{Command, Stdio};

/// Runs `nft` and returns what it prints. Panics if it fails.
pub(crate) fn nft(arguments: &[&str]) -> String {
    let output = Command::new("nft").args(arguments).output().unwrap();
    assert!(output.status.success(), "nft {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs `nft -f -` with this text. Returns its error.
pub(crate) fn feed(text: &str) -> Result<(), String> {
    let mut nft = Command::new("nft");
    let nft = nft.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut nft = nft.spawn().unwrap();
    nft.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = nft.wait_with_output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}
