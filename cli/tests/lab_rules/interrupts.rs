//! The command is interrupted at random moments, and killed.

use std::time::Instant;

use isp_testkit::plugin::interrupt;
use isp_testkit::random::Random;

use super::world::World;

const TIMES: usize = 20;

pub(crate) async fn nothing_is_left_behind(world: &World) {
    let mut random = Random::of_campaign("rules-interrupts");
    let began = Instant::now();
    let whole = world.run("shop/tproxy", &[]).await;
    let takes = began.elapsed();
    assert_eq!(whole.code, Some(0), "{whole:?}");

    let mut interrupted = 0;
    for (time, after) in random.moments(takes, TIMES).into_iter().enumerate() {
        let signal = if time % 2 == 0 { "INT" } else { "TERM" };
        let (ended, sent) = interrupt(world.command("shop/tproxy", &[]), signal, after).await;
        assert!(sent || ended.code == Some(0), "{ended:?}");
        interrupted += usize::from(ended.stderr.contains("interrupted; no helper pod is left"));
        world.expect_no_helper().await;
    }
    assert!(interrupted > 0, "no signal came in time");
}
