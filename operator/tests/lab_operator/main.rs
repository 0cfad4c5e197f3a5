//! The operator on a real cluster of three nodes: effects on clients, leftovers, recovery from
//! kills and from agents that do not start, and minimal permissions.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod addresses;
mod admission;
mod bad_wave;
mod gate;
mod harness;
mod install;
mod inventory;
mod kills;
mod operator;
mod process;
mod rights;
mod snapshot;
mod traffic;
mod uninstall;

use std::time::{Duration, Instant};

use harness::{AGENT_IMAGE, OBJECT, OPERATOR, SYSTEM, Scenario, eventually, sample};
use isp_api::preserve::Phase;
use nix::sys::signal::Signal;
use rights::Rights;
use snapshot::Snapshot;
use traffic::Traffic;

/// The whole life of an installation. It is one test because the last part checks the permissions
/// that all parts have used.
#[tokio::test]
async fn what_a_cluster_goes_through_with_the_operator() {
    let began = Instant::now();
    let scenario = Scenario::up("operator").await;
    println!("up after {:.1} s", began.elapsed().as_secs_f64());
    scenario.install().await;
    println!("installed after {:.1} s", began.elapsed().as_secs_f64());
    let before = Snapshot::take(&scenario.lab).await;
    addresses::are_lost(&scenario).await;

    on_and_off_without_a_failed_request(&scenario).await;
    before.expect_again(&scenario.lab).await;
    addresses::are_lost(&scenario).await;

    scenario.end_operator().await;
    let kubeconfig = operator::kubeconfig(&scenario).await;
    bad_wave::is_rolled_back_or_paused(&scenario, &kubeconfig, &before).await;

    // A working image fixes it.
    let began = Instant::now();
    let mut operator = operator::run(&scenario, &kubeconfig, AGENT_IMAGE, "mended.log");
    wait_until_ready(&scenario).await;
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
    before.expect_again(&scenario.lab).await;

    rights.expect_enough_and_not_more(&scenario.lab);
}

async fn on_and_off_without_a_failed_request(scenario: &Scenario) {
    let traffic = Traffic::start(scenario, traffic::STEADY).await;
    let began = Instant::now();
    scenario.lab.kubectl(["apply", "-f", &sample()]).await.unwrap();
    wait_until_ready(scenario).await;
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
async fn an_endpoint_comes_and_goes(scenario: &Scenario) {
    for _ in 0..2 {
        for (label, phase) in [("app=away", Phase::Degraded), ("app=frontend", Phase::Ready)] {
            let label = ["-n", "web", "label", "pod", "frontend", label, "--overwrite"];
            scenario.lab.kubectl(label).await.unwrap();
            eventually("the object says so", async || scenario.phase().await == Some(phase)).await;
        }
    }
}

async fn wait_until_ready(scenario: &Scenario) {
    let wait = ["wait", "--for=condition=Ready", &format!("isp/{OBJECT}"), "--timeout=120s"];
    if let Err(error) = scenario.lab.kubectl(wait).await {
        let object = scenario.lab.kubectl(["get", "isp", OBJECT, "-o", "yaml"]).await.unwrap().stdout;
        panic!("{error}\n{object}");
    }
}
