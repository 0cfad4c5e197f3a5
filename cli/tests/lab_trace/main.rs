//! `kubectl isp trace` agrees with real connections: the same outcome, from the same endpoints,
//! with the same source.
//!
//! A real cluster passes through the states of `states`: without an object, with one in each mode,
//! and with kube-proxy in nftables and in iptables mode. In each, generated Services are served
//! (`services`), and generated clients connect to their addresses (`cases`): for real (`observed`),
//! and in `kubectl isp trace` (`traced`). The lab's router is the load balancer (`balancer`).
//!
//! `ISP_TRACE_CASES` sets the number of cases of a campaign, `ISP_SOAK_SEED` its seed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod balancer;
mod cases;
mod compare;
mod figures;
mod objects;
mod observed;
mod pods;
mod services;
mod states;
mod traced;
mod world;

use std::env;
use std::time::Instant;

use isp_testkit::random::Random;

use crate::cases::Draw;
use crate::figures::Figures;
use crate::services::Generator;
use crate::states::STATES;
use crate::world::World;

/// The test layers try the same sixty cases each time. A campaign draws new ones, and more.
fn cases_to_try() -> (Random, usize) {
    match env::var("ISP_TRACE_CASES") {
        Ok(cases) => (Random::of_campaign("trace"), cases.parse().unwrap()),
        Err(_) => (Random::new(1_795_009_310), 60),
    }
}

#[tokio::test]
async fn a_trace_says_how_real_connections_end_and_which_source_arrives() {
    let began = Instant::now();
    let step = |what: &str| println!("{:6.1} s: {what}", began.elapsed().as_secs_f64());
    let (mut random, mut left) = cases_to_try();
    let (mut generator, mut draw, mut figures) = (Generator::new(), Draw::new(), Figures::default());
    let world = World::up().await;
    world.separate_clients().await;
    step("the lab is up");
    let mut before = None;
    for (number, state) in STATES.into_iter().enumerate() {
        let count = left.div_ceil(STATES.len() - number);
        left -= count;
        let services = generator.services(&mut random, (count / 3).clamp(4, 24), state.object.is_some());
        world.replace(&services).await;
        state.enter(&world.web, before, &services).await;
        world.wait_until_served(number).await;
        let written = world.written(&services).await;
        let cases = draw.cases(&mut random, &written, count);
        world.route_cluster_ips(&cases).await;
        step(&format!("{state}: {} Services", services.len()));
        let differing = figures.differences.len();
        compare::compare(&world, &written, &cases, &mut figures).await;
        for difference in &figures.differences[differing..] {
            println!("  {difference}");
        }
        step(&format!("{state}: {count} cases"));
        before = Some(state);
    }
    println!("{figures}");
    assert!(figures.differences.is_empty(), "{} cases differ", figures.differences.len());
    figures.expect_every_kind();
}
