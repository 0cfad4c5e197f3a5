//! The command is interrupted at random moments.

use std::env;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use isp_testkit::random::Random;

use super::world::{SERVICE, World};

/// Three, unless a campaign wants more.
fn times() -> usize {
    env::var("ISP_SOAK_PROBE").map_or(3, |times| times.parse().unwrap())
}

/// About as long as the command takes until its clients have asked.
const LONGEST_MILLISECONDS: usize = 20_000;

pub(crate) async fn nothing_is_left_behind(world: &World) {
    let mut random = Random::of_campaign("probe-breaks");
    let mut interrupted = 0;
    for time in 0..times() {
        let signal = ["INT", "TERM", "HUP"][time % 3];
        let after = Duration::from_millis(u64::try_from(random.below(LONGEST_MILLISECONDS)).unwrap());
        let target = if time % 4 == 3 { "own" } else { "canary" };
        let mut command = world.command(&[&SERVICE[..], &["--target", target]].concat());
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = tokio::task::spawn_blocking(move || end(child, signal, after)).await.unwrap();
        println!("{signal} after {after:?}: {}", stderr.lines().last().unwrap_or_default());
        interrupted += usize::from(stderr.contains("interrupted; no helper pod is left"));
        world.expect_nothing_left().await;
    }
    assert!(interrupted > 0, "no signal came in time");
}

/// Sends a signal to a command, and returns what it said. Before it listens, a signal just ends it.
fn end(child: Child, signal: &str, after: Duration) -> String {
    sleep(after);
    let id = child.id().to_string();
    let sent = std::process::Command::new("kill").args([format!("-{signal}"), id]).output().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(sent.status.success() || output.status.code().is_some(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}
