//! Leader election. The tests need only a Lease, so they share a control plane.

use std::time::{Duration, Instant};

use isp_lab::ControlPlane;
use isp_testkit::control_plane::install_crds;
use isp_testkit::until;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use nix::sys::signal::Signal;

use crate::harness::{Operator, make_namespace};
use crate::way::Way;

async fn cluster(namespace: &str) -> &'static ControlPlane {
    let cluster = ControlPlane::shared().await.unwrap();
    install_crds(cluster).await;
    make_namespace(cluster, namespace).await;
    cluster
}

/// The seconds of a Lease that does not expire during a test.
const A_MINUTE: u64 = 60;
/// Without waiting for such a Lease, on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(40);

async fn lease(cluster: &ControlPlane, namespace: &str) -> LeaseSpec {
    let leases: Api<Lease> = Api::namespaced(cluster.client().unwrap(), namespace);
    leases.get("sourcepreserve-operator").await.unwrap().spec.unwrap()
}

/// Waits until one of the two leads. Returns the leader first.
async fn leader(one: Operator, other: Operator) -> (Operator, Operator) {
    until("one leads", async || one.leads() || other.leads()).await;
    if one.leads() { (one, other) } else { (other, one) }
}

#[tokio::test]
async fn one_of_two_leads_and_the_other_takes_over_when_it_is_killed() {
    let namespace = "lease-takeover";
    let cluster = cluster(namespace).await;
    let kubeconfig = cluster.kubeconfig();
    let start = |identity| Operator::start(&kubeconfig, namespace, identity);
    let (first, second) = leader(start("one"), start("two")).await;
    until("both are ready", async || first.is_ready() && second.is_ready()).await;
    for _ in 0..20 {
        assert!(first.leads() && !second.leads());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    first.signal(Signal::SIGKILL);
    let last = lease(cluster, namespace).await;
    until("the other one takes over", async || second.leads()).await;
    let next = lease(cluster, namespace).await;
    assert_ne!(next.holder_identity, last.holder_identity);
    let waited = next.acquire_time.unwrap().0.duration_since(last.renew_time.unwrap().0);
    assert!(waited.as_secs() >= 10, "not before it expired: {waited:?}");
}

#[tokio::test]
async fn one_that_ends_gives_its_lease_away_at_once() {
    let namespace = "lease-given-away";
    let kubeconfig = cluster(namespace).await.kubeconfig();
    let start = |identity| Operator::start_with_lease(&kubeconfig, namespace, identity, A_MINUTE);
    let mut first = start("one");
    until("it leads", async || first.leads()).await;
    let second = start("two");
    until("a new one is ready", async || second.is_ready()).await;
    assert!(!second.leads() && first.leads());
    let told = Instant::now();
    assert!(first.end(), "{}", first.log());
    until("the new one takes over", async || second.leads()).await;
    assert!(told.elapsed() < AT_ONCE, "it need not expire: {:?}", told.elapsed());
}

#[tokio::test]
async fn a_replica_that_comes_back_under_its_name_goes_on_without_waiting() {
    let namespace = "lease-again";
    let kubeconfig = cluster(namespace).await.kubeconfig();
    let start = || Operator::start_with_lease(&kubeconfig, namespace, "same", A_MINUTE);
    let first = start();
    until("it leads", async || first.leads()).await;
    first.signal(Signal::SIGKILL);
    let again = Instant::now();
    let second = start();
    until("it leads again", async || second.leads()).await;
    assert!(again.elapsed() < AT_ONCE, "{:?}", again.elapsed());
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
