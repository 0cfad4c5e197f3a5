//! Mode Beside in both address families, beside a kube-proxy in iptables mode and in nftables mode.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::net::{IpAddr, SocketAddr};

use isp_lab::topology::{self, EXTERNAL_RANGE, Families};
use isp_lab::{Answer, EchoApp, Lab, Place, Protocol, ProxyMode};
use isp_testkit::beside::{Agents, Steps, TABLE, create_object};
use isp_testkit::{answers, preserve, until};
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

type Expected<'a> = &'a dyn Fn(&Answer) -> bool;

const NODES: [&str; 2] = ["edge-1", "work-1"];
/// The places of the external IPs in their range.
const OURS: u8 = 50;
const KUBE_PROXYS: u8 = 60;

#[tokio::test]
async fn both_families_keep_the_source_beside_kube_proxy_in_iptables_mode() {
    both_are_served("beside-iptables", ProxyMode::Iptables, Families::Dual).await;
}

#[tokio::test]
async fn ipv6_keeps_the_source_beside_kube_proxy_in_nftables_mode() {
    both_are_served("beside-ipv6", ProxyMode::Nftables, Families::Ipv6).await;
}

/// The agents serve one Service, and kube-proxy serves another, on the same nodes.
async fn both_are_served(name: &str, mode: ProxyMode, families: Families) {
    let lab = Lab::builder().name(name).nodes(NODES).proxy_mode(mode).families(families).up().await.unwrap();
    let logs = tempfile::tempdir().unwrap();
    preserve::install(&lab).await;
    let ours = serve(&lab, "ours", 30080, OURS, families).await;
    let others = serve(&lab, "others", 30090, KUBE_PROXYS, families).await;
    let ours_steps = Steps { lab: &lab, namespace: "default", service: "ours" };
    create_object(&lab, &[("default", "ours")]).await;
    ours_steps.preserve(true).await;
    let mut agents = Agents::new(&lab, env!("CARGO_BIN_EXE_proxy-agent"), logs.path());
    for node in NODES {
        agents.start(node).await;
    }
    agents.wait_until_served(&["default/ours"]).await;
    ours_steps.ignore(true).await;
    ours_steps.set_policy("Local").await;

    let clients = topology::CLIENT.hosts(10, families);
    let edge = lab.topology().node("edge-1").unwrap().addresses(families);
    for (family, client) in clients.into_iter().enumerate() {
        until("kube-proxy has forgotten the Service", async || {
            !kube_proxy_serves(&lab, mode, ours.cluster_ips[family]).await
        })
        .await;
        assert!(
            kube_proxy_serves(&lab, mode, others.cluster_ips[family]).await,
            "kube-proxy serves the other"
        );
        assert!(has_element(&lab, ours.cluster_ips[family]).await, "our table has ours");
        assert!(!has_element(&lab, others.cluster_ips[family]).await, "our table has only ours");
        let kept = |answer: &Answer| answer.peer() == Some(client);
        let lost = |answer: &Answer| answer.peer().is_some_and(|peer| peer != client);
        let (pod, host) =
            (Place::Pod("default".to_owned(), "others".to_owned()), Place::Node("work-1".to_owned()));
        let any = |answer: &Answer| answer.peer().is_some();
        // The pod of the Service `others` runs on the other node.
        for (protocol, offset) in [(Protocol::Http, 0), (Protocol::Tcp, 1), (Protocol::Udp, 2)] {
            let at = |address: IpAddr, port: u16| SocketAddr::new(address, port + offset).to_string();
            let ways: [(&Place, String, Expected<'_>); 8] = [
                (&Place::Client, at(ours.external[family], 80), &kept),
                (&Place::Client, at(edge[family], 30080), &kept),
                (&pod, at(ours.cluster_ips[family], 80), &any),
                (&host, at(ours.cluster_ips[family], 80), &any),
                (&pod, at(ours.external[family], 80), &any),
                (&Place::Client, at(others.external[family], 80), &lost),
                (&pod, at(others.cluster_ips[family], 80), &any),
                (&host, at(others.cluster_ips[family], 80), &any),
            ];
            for (place, target, is_so) in ways {
                answers::until(&lab, "the same in both families", place, (protocol, &target), is_so).await;
            }
        }
    }
}

/// A Service with external IPs.
struct Served {
    cluster_ips: Vec<IpAddr>,
    external: Vec<IpAddr>,
}

/// Runs the application: ours on the ingress node, the other on the other node.
async fn serve(lab: &Lab, name: &str, node_port: u16, place: u8, families: Families) -> Served {
    let node = if place == OURS { "edge-1" } else { "work-1" };
    let app = EchoApp { name, namespace: "default", node, node_port, annotations: &[] };
    lab.run_echo(&app).await.unwrap();
    let external = EXTERNAL_RANGE.hosts(place, families);
    let services: Api<Service> = Api::namespaced(lab.client(), "default");
    let patch = Patch::Merge(json!({"spec": {"externalIPs": external}}));
    let service = services.patch(name, &PatchParams::default(), &patch).await.unwrap();
    for address in &external {
        lab.route(*address, &["edge-1"]).await.unwrap();
    }
    let cluster_ips = service.spec.unwrap().cluster_ips.unwrap();
    Served { cluster_ips: cluster_ips.iter().map(|address| address.parse().unwrap()).collect(), external }
}

/// Whether kube-proxy on the ingress node has rules for a ClusterIP.
async fn kube_proxy_serves(lab: &Lab, mode: ProxyMode, address: IpAddr) -> bool {
    let family = if address.is_ipv6() { "ip6" } else { "ip" };
    let tables = if address.is_ipv6() { "ip6tables-save" } else { "iptables-save" };
    let list = match mode {
        ProxyMode::Nftables => vec!["nft", "list", "table", family, "kube-proxy"],
        ProxyMode::Iptables => vec![tables, "-t", "nat"],
    };
    rules(lab, &list).await.contains(&address.to_string())
}

/// Whether our table on the ingress node has a ClusterIP.
async fn has_element(lab: &Lab, address: IpAddr) -> bool {
    let family = if address.is_ipv6() { "ip6" } else { "ip" };
    rules(lab, &["nft", "list", "map", family, TABLE, "cluster-ips"]).await.contains(&address.to_string())
}

async fn rules(lab: &Lab, list: &[&str]) -> String {
    let output = lab.exec(&Place::Node("edge-1".to_owned()), list).await.unwrap();
    assert!(output.success, "{list:?}: {}", output.stderr);
    output.stdout
}
