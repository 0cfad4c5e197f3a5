//! The command is interrupted at random moments, and killed.

use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use isp_testkit::random::Random;

use super::world::World;

const TIMES: u64 = 20;
/// About as long as the command takes.
const LONGEST_MILLISECONDS: usize = 2500;

pub(crate) async fn nothing_is_left_behind(world: &World) {
    let mut random = Random::of_campaign("rules-interrupts");
    let mut interrupted = 0;
    for time in 0..TIMES {
        let signal = if time % 2 == 0 { "INT" } else { "TERM" };
        let after = Duration::from_millis(u64::try_from(random.below(LONGEST_MILLISECONDS)).unwrap());
        let mut command = world.command("shop/tproxy", &[]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = tokio::task::spawn_blocking(move || end(child, signal, after)).await.unwrap();
        interrupted += usize::from(stderr.contains("interrupted; no helper pod is left"));
        world.expect_no_helper().await;
    }
    assert!(interrupted > 0, "no signal came in time");
}

/// Sends a signal to a command, and returns what it said. Before it listens, a signal just ends it.
fn end(child: Child, signal: &str, after: Duration) -> String {
    sleep(after);
    let id = child.id().to_string();
    let sent = std::process::Command::new("kill").args([format!("-{signal}"), id]).output().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(sent.status.success() || output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}
