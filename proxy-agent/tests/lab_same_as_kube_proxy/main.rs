//! The agent's rules do what those of the real kube-proxy 1.37 in nftables mode do, and `trace`
//! says the same: for generated Services, real connections of every kind of client end alike.
//!
//! Both proxies read the same API server and serve the node with the same name, each in its own
//! copy of the node: network namespaces with the same addresses, clients and endpoints (`world`).
//! So the two nodes differ in nothing but their proxy, and ends are compared literally: the set of
//! endpoints, the source address they see, refused, dropped, or not wanted by any rule. No kubelet
//! is needed: EndpointSlices are written by the test, which allows every combination of conditions.
//!
//! A round has its own node settings and two sets of Services; the second set changes the Services
//! of the first. `ISP_SAME_SERVICES` sets the number of Services, `ISP_SAME_SEED` the first round's
//! seed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod addresses;
mod affinity;
mod cases;
mod clients;
mod compare;
mod differences;
mod endpoints;
mod expected;
mod health;
mod objects;
mod probe;
mod proxies;
mod sctp;
mod services;
mod settings;
mod world;

use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use isp_dataplane::nft::{Family, Protocol};
use isp_lab::ControlPlane;
use isp_testkit::control_plane::{install_crds, kubectl};
use isp_testkit::random::Random;
use isp_testkit::{Patience, until};
use tokio::sync::OnceCell;

use crate::addresses::ZONE;
use crate::cases::{Case, cases};
use crate::clients::Client;
use crate::compare::Figures;
use crate::expected::Rules;
use crate::objects::Objects;
use crate::probe::{End, try_all};
use crate::proxies::Served;
use crate::services::{Generated, NAMESPACE, PLACES, generate, in_zone, marker, without_node, zone_marker};
use crate::settings::Settings;

/// The Services of a round, in two sets.
const ROUND: usize = 20;

async fn cluster() -> &'static ControlPlane {
    static CLUSTER: OnceCell<ControlPlane> = OnceCell::const_new();
    CLUSTER
        .get_or_init(async || {
            let cluster = ControlPlane::start_dual_stack().await.unwrap();
            install_crds(&cluster).await;
            kubectl(&cluster, &["create", "namespace", NAMESPACE]).await;
            cluster
        })
        .await
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().map_or(otherwise, |text| text.parse().unwrap())
}

/// Writes Services in a random order, and waits until both proxies serve them. A marker is written
/// last: both watches are ordered, so a proxy that serves it has read everything before.
async fn program(objects: &Objects, served: &[Served; 2], services: &[Generated], number: u8) {
    for generated in services {
        objects.write(generated).await;
    }
    let marker = marker(number);
    objects.write(&marker).await;
    for served in served {
        for address in &marker.service.cluster_ips {
            until(&format!("{} serves {}", served.name, marker.name), async || {
                let ends = try_marker(served, *address, 1);
                if matches!(ends[..], [End::Answered { .. }]) { Ok(()) } else { Err((ends, served.log())) }
            })
            .await;
        }
    }
}

/// Connects a pod to the address of a marker so many times.
fn try_marker(served: &Served, address: IpAddr, times: usize) -> Vec<End> {
    let case = Case { client: Client::Pod, destination: (address, 80).into(), protocol: Protocol::Tcp };
    try_all(&served.world.netns, case.client, vec![case.attempt(0); times], Duration::from_secs(1))
}

/// Waits until a proxy prefers the endpoints of its node's zone.
///
/// kube-proxy 1.37 adds a handler for the Node to an informer that already runs, and tells the
/// handler whom to call afterwards. If the informer is faster, kube-proxy does not know its zone
/// until the zone changes. So it is removed and set again.
async fn wait_for_zone(objects: &Objects, served: &Served) {
    for address in zone_marker().service.cluster_ips {
        let near = in_zone(Family::of(address));
        let look = async || {
            let ends = try_marker(served, address, 20);
            if ends.iter().all(|end| matches!(end, End::Answered { by, .. } if by.address == near)) {
                return Ok(());
            }
            objects.set_zone(None).await;
            objects.set_zone(Some(ZONE)).await;
            Err((ends, served.log()))
        };
        let patience = Patience { pause: Duration::from_secs(2), ..Patience::DEFAULT };
        patience.until(&format!("{} knows its zone", served.name), look).await;
    }
}

/// One round: a node's settings, Services, and changes to them.
async fn round(seed: u64, count: usize, figures: &mut Figures) {
    let mut dice = Random::new(seed);
    let settings = Settings::of_round(seed);
    println!("ISP_SAME_SEED={seed} ISP_SAME_SERVICES={count}: {settings:?}");
    let objects = Objects::new(cluster().await.client().unwrap());
    let files = tempfile::tempdir().unwrap();
    let served = serve_twice(&objects, settings, &[], files.path()).await;
    let sizes = [count.div_ceil(2), count / 2];
    for (set, size) in (1_u8..).zip(sizes).filter(|(_, size)| *size > 0) {
        let started = Instant::now();
        let without_node = without_node(&mut dice);
        let services: Vec<Generated> =
            (1..=PLACES).take(size).map(|place| generate(&mut dice, place, &without_node)).collect();
        program(&objects, &served, &services, set).await;
        for served in &served {
            served.world.forget_connections();
        }
        let programmed = started.elapsed();
        let rules = Rules::new(settings, &services);
        let cases: Vec<Case> = services
            .iter()
            .filter(|each| each.service.affinity.is_none())
            .flat_map(|each| cases(&mut dice, each))
            .collect();
        compare::compare(&served, &rules, &cases, figures);
        let compared = started.elapsed();
        affinity::compare(&served, &rules, &services, figures);
        health::compare(&served, &services, figures);
        figures.services += size;
        println!(
            "  set {set}: programmed after {programmed:?}, compared after {compared:?}, all after {:?}",
            started.elapsed()
        );
    }
}

/// A node with these settings, once with each proxy.
async fn serve_twice(objects: &Objects, settings: Settings, more: &[&str], files: &Path) -> [Served; 2] {
    let cluster = cluster().await;
    objects.clear().await;
    objects.replace_node(settings.has_pod_ranges()).await;
    let served =
        [Served::by_kube_proxy(cluster, settings, files), Served::by_agent(cluster, settings, more, files)];
    objects.write(&zone_marker()).await;
    for served in &served {
        wait_for_zone(objects, served).await;
    }
    served
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_differs_from_kube_proxy_only_where_the_documentation_says_so() {
    differences::are_documented();
    let objects = Objects::new(cluster().await.client().unwrap());
    let files = tempfile::tempdir().unwrap();
    let limit = format!("--remembered-clients={}", differences::REMEMBERED);
    let served = serve_twice(&objects, Settings::NODE_PORTS_ON_ALL, &[&limit], files.path()).await;
    program(&objects, &served, &differences::services(), 1).await;
    differences::check(&objects, &served).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_end_as_with_kube_proxy_and_as_the_trace_says() {
    isp_testkit::allow_many_files();
    let started = Instant::now();
    let first = number("ISP_SAME_SEED", 1);
    let mut left = usize::try_from(number("ISP_SAME_SERVICES", 40)).unwrap();
    let mut figures = Figures::default();
    for seed in first.. {
        let count = left.min(ROUND);
        if count == 0 {
            break;
        }
        let before = figures.differences.len();
        round(seed, count, &mut figures).await;
        for difference in &figures.differences[before..] {
            println!("  seed {seed}: {difference}");
        }
        left -= count;
    }
    let Figures { services, cases, connections, tried_again, outcomes, differences } = figures;
    println!(
        "{services} Services, {cases} cases, {connections} connections, {tried_again} cases tried again, {} differences, {:?}; cases by outcome: {outcomes:?}",
        differences.len(),
        started.elapsed()
    );
    assert!(differences.is_empty(), "{} of {cases} cases differ", differences.len());
    let all = ["untouched", "source kept", "masqueraded", "rejected", "dropped"];
    assert!(
        all.iter().all(|kind| outcomes.contains_key(kind)),
        "the Services do not reach every outcome: {outcomes:?}"
    );
}
