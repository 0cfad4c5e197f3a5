//! The command is interrupted at random moments.

use std::env;
use std::time::Instant;

use isp_testkit::plugin::{end, interrupt};
use isp_testkit::random::Random;

use super::world::{SERVICE, World};

/// Three, unless a campaign wants more.
fn times() -> usize {
    env::var("ISP_SOAK_PROBE").map_or(3, |times| times.parse().unwrap())
}

pub(crate) async fn nothing_is_left_behind(world: &World) {
    let mut random = Random::of_campaign("probe-breaks");
    let command = |target| world.command(&[&SERVICE[..], &["--target", target]].concat());
    let began = Instant::now();
    let whole = end(command("canary")).await;
    let takes = began.elapsed();
    assert_eq!(whole.code, Some(2), "{whole:?}");
    world.expect_nothing_left().await;
    println!("a run takes {takes:?}");

    let mut interrupted = 0;
    for (time, after) in random.moments(takes, times()).into_iter().enumerate() {
        let signal = ["INT", "TERM", "HUP"][time % 3];
        let target = if time % 4 == 3 { "own" } else { "canary" };
        let (ended, sent) = interrupt(command(target), signal, after).await;
        assert!(sent || ended.code.is_some(), "{ended:?}");
        let stderr = ended.stderr;
        println!("{signal} after {after:?}: {}", stderr.lines().last().unwrap_or_default());
        interrupted += usize::from(stderr.contains("interrupted; no helper pod is left"));
        world.expect_nothing_left().await;
    }
    assert!(interrupted > 0, "no signal came in time");
}
