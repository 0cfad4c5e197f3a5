//! The operator on a real cluster of three nodes: effects on clients, leftovers, recovery from
//! kills and from agents that do not start, and minimal permissions.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod admission;
mod bad_wave;
mod gate;
mod kills;

use std::time::{Duration, Instant};

use isp_api::preserve::Phase;
use isp_testkit::control_plane::SYSTEM;
use isp_testkit::rights::{self, Rights};
use isp_testkit::traffic::{STEADY, Traffic};
use isp_testkit::until;
use isp_testkit::web_lab::{AGENT_IMAGE, OBJECT, OPERATOR, WebLab, addresses, operator, sample};
use nix::sys::signal::Signal;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_operator");

/// The whole life of an installation. It is one test because the last part checks the permissions
/// that all parts have used.
#[tokio::test]
async fn what_a_cluster_goes_through_with_the_operator() {
    let began = Instant::now();
    let scenario = WebLab::up("operator", PROGRAM).await;
    println!("up after {:.1} s", began.elapsed().as_secs_f64());
    scenario.install().await;
    println!("installed after {:.1} s", began.elapsed().as_secs_f64());
    let before = scenario.snapshot().await;
    addresses::are_lost(&scenario).await;

    on_and_off_without_a_failed_request(&scenario).await;
    scenario.expect_restored(&before).await;
    addresses::are_lost(&scenario).await;

    scenario.end_operator().await;
    let kubeconfig = operator::kubeconfig(&scenario).await;
    bad_wave::is_rolled_back_or_paused(&scenario, &kubeconfig, &before).await;

    // A working image fixes it.
    let began = Instant::now();
    let mut operator = operator::run(&scenario, &kubeconfig, AGENT_IMAGE, "mended.log");
    scenario.wait_until_ready().await;
    println!("mended after {:.1} s", began.elapsed().as_secs_f64());
    addresses::arrive(&scenario).await;
    an_endpoint_comes_and_goes(&scenario).await;
    admission::follows_the_entries(&scenario).await;
    let agents = rights::user("kube-system", "proxy-agent");
    let rights = Rights::take(&scenario.lab, &[rights::user(SYSTEM, OPERATOR), agents]).await;
    operator.signal(Signal::SIGTERM);
    assert!(operator.end().await.success(), "{}", operator.complained());

    let began = Instant::now();
    let printed = operator::clean_up(&scenario, &kubeconfig).await;
    println!("cleaned up after {:.1} s", began.elapsed().as_secs_f64());
    assert!(printed.contains(&format!("let-object-go ingresssourcepreserve/{OBJECT}")), "{printed}");
    scenario.expect_restored(&before).await;

    rights.expect_enough_and_not_more(&scenario.lab);
}

async fn on_and_off_without_a_failed_request(scenario: &WebLab) {
    let traffic = Traffic::start(scenario, STEADY).await;
    let began = Instant::now();
    scenario.lab.kubectl(["apply", "-f", &sample()]).await.unwrap();
    scenario.wait_until_ready().await;
    println!("ready after {:.1} s", began.elapsed().as_secs_f64());
    addresses::arrive(scenario).await;
    let began = Instant::now();
    scenario.lab.kubectl(["delete", "-f", &sample(), "--timeout=120s"]).await.unwrap();
    println!("gone after {:.1} s", began.elapsed().as_secs_f64());
    // Covers the restart of the last kube-proxy.
    tokio::time::sleep(Duration::from_secs(5)).await;
    traffic.expect_no_failure().await;
}

/// Twice, so that the second notice increases the count of the first Event.
async fn an_endpoint_comes_and_goes(scenario: &WebLab) {
    for _ in 0..2 {
        for (label, phase) in [("app=away", Phase::Degraded), ("app=frontend", Phase::Ready)] {
            let label = ["-n", "web", "label", "pod", "frontend", label, "--overwrite"];
            scenario.lab.kubectl(label).await.unwrap();
            until(&format!("the object is {phase:?}"), async || {
                let now = scenario.phase().await;
                if now == Some(phase) { Ok(()) } else { Err(now) }
            })
            .await;
        }
    }
}
