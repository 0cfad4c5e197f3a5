//! Leader election. The tests need only a Lease, so they share a control plane.

use std::time::{Duration, Instant};

use isp_lab::ControlPlane;
use nix::sys::signal::Signal;

use crate::harness::{Operator, install_definitions, make_namespace, until};
use crate::way::Way;

async fn cluster(namespace: &str) -> &'static ControlPlane {
    let cluster = ControlPlane::shared().await.unwrap();
    install_definitions(cluster).await;
    make_namespace(cluster, namespace).await;
    cluster
}

/// Waits until one of the two leads. Returns the leader first.
async fn leader(one: Operator, other: Operator) -> (Operator, Operator) {
    until("one leads", async || one.leads() || other.leads()).await;
    if one.leads() { (one, other) } else { (other, one) }
}

#[tokio::test]
async fn one_of_two_leads_and_the_other_takes_over_when_it_is_killed_and_at_once_when_it_ends() {
    let namespace = "lease-takeover";
    let kubeconfig = cluster(namespace).await.kubeconfig();
    let start = |identity| Operator::start(&kubeconfig, namespace, identity);
    let (first, second) = leader(start("one"), start("two")).await;
    until("both are ready", async || first.is_ready() && second.is_ready()).await;
    for _ in 0..20 {
        assert!(first.leads() && !second.leads());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    let killed = Instant::now();
    first.signal(Signal::SIGKILL);
    until("the other one takes over", async || second.leads()).await;
    // The Lease was renewed about a second before the kill and lasts ten.
    assert!(killed.elapsed() > Duration::from_secs(6), "not before it expired: {:?}", killed.elapsed());

    let third = start("three");
    until("a new one is ready", async || third.is_ready()).await;
    assert!(!third.leads() && second.leads());
    let told = Instant::now();
    let mut second = second;
    assert!(second.end(), "{}", second.log());
    until("the new one takes over", async || third.leads()).await;
    assert!(told.elapsed() < Duration::from_secs(6), "it need not expire: {:?}", told.elapsed());
}

#[tokio::test]
async fn a_replica_that_comes_back_under_its_name_goes_on_without_waiting() {
    let namespace = "lease-again";
    let kubeconfig = cluster(namespace).await.kubeconfig();
    let first = Operator::start(&kubeconfig, namespace, "same");
    until("it leads", async || first.leads()).await;
    first.signal(Signal::SIGKILL);
    let again = Instant::now();
    let second = Operator::start(&kubeconfig, namespace, "same");
    until("it leads again", async || second.leads()).await;
    assert!(again.elapsed() < Duration::from_secs(6), "{:?}", again.elapsed());
}

#[tokio::test]
async fn a_leader_that_is_cut_off_stops_before_the_other_begins_and_comes_back_as_a_standby() {
    let namespace = "lease-silence";
    let cluster = cluster(namespace).await;
    let way = Way::to(cluster).await;
    let first = Operator::start(way.kubeconfig(), namespace, "far");
    until("it leads", async || first.leads()).await;
    let second = Operator::start(&cluster.kubeconfig(), namespace, "near");
    until("the other one is ready", async || second.is_ready()).await;

    way.go_silent();
    until("it stops", async || {
        let (begun, goes_on) = (second.leads(), first.leads());
        assert!(!(begun && goes_on), "both lead");
        !goes_on
    })
    .await;
    until("the other one takes over", async || second.leads()).await;
    assert!(first.is_ready(), "it has not ended, and still knows what it read");

    way.reopen();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(second.leads() && !first.leads());
    let mut second = second;
    assert!(second.end(), "{}", second.log());
    until("it leads again", async || first.leads()).await;
}
