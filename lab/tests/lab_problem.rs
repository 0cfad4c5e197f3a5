//! The problem that this project solves, on a real cluster with a real mesh: where the client's
//! source IP is lost and where it is preserved, through every node, with externalTrafficPolicy
//! Cluster and Local, with and without a sidecar.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::net::IpAddr;

use isp_lab::istio::{GATEWAY, NAMESPACE};
use isp_lab::{Answer, EchoApp, Lab, Place, Protocol, ProxyMode};
use isp_testkit::answers;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

const NODES: [&str; 3] = ["edge-1", "work-1", "work-2"];
const CLIENT: &str = "198.51.100.10";
const CLIENT_2: &str = "203.0.113.10";
const EXTERNAL: &str = "192.0.2.10:80";
/// The source IP that a sidecar in REDIRECT mode uses towards the application.
const SIDECAR: &str = "127.0.0.6";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The bridge address of a node's pods: the source IP after masquerading to a pod on the same node.
fn own_bridge(node: &str) -> &'static str {
    match node {
        "edge-1" => "10.244.1.1",
        "work-1" => "10.244.2.1",
        _ => "10.244.3.1",
    }
}

struct Scenario {
    lab: Lab,
}

impl Scenario {
    async fn up(name: &str, mode: ProxyMode) -> Self {
        let lab = Lab::builder().name(name).nodes(NODES).proxy_mode(mode).istio(true).up().await.unwrap();
        Self { lab }
    }

    fn node_port(&self, node: &str, port: u16) -> String {
        format!("{}:{port}", self.lab.topology().node(node).unwrap().address())
    }

    /// The source IP after SNAT: the entry node's, or its bridge's if the pod is on that node.
    fn masqueraded(&self, entry: &str, pod_node: &str) -> IpAddr {
        if entry == pod_node {
            ip(own_bridge(entry))
        } else {
            self.lab.topology().node(entry).unwrap().address().into()
        }
    }

    async fn policy(&self, namespace: &str, service: &str, policy: &str) {
        let services: Api<Service> = Api::namespaced(self.lab.client(), namespace);
        let patch = json!({"spec": {"externalTrafficPolicy": policy}});
        services.patch(service, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Retries until `want` holds: kube-proxy and Envoy need seconds to follow a change.
    async fn eventually(
        &self,
        what: &str,
        place: &Place,
        protocol: Protocol,
        target: &str,
        want: impl Fn(&Answer) -> bool,
    ) -> Answer {
        answers::until(&self.lab, what, place, (protocol, target), want).await
    }

    /// Through every node and with every protocol, the application answers and sees a
    /// cluster-internal source IP.
    async fn expect_lost(&self, pod_node: &str, first_port: u16) {
        for entry in NODES {
            let lost = self.masqueraded(entry, pod_node);
            assert_ne!(lost, ip(CLIENT));
            for (protocol, offset) in [(Protocol::Http, 0), (Protocol::Tcp, 1), (Protocol::Udp, 2)] {
                let target = self.node_port(entry, first_port + offset);
                self.eventually("Cluster loses the client", &Place::Client, protocol, &target, |answer| {
                    answer.peer() == Some(lost)
                })
                .await;
            }
        }
    }

    /// Through the pod's node the application sees the client's IP; through other nodes there is no
    /// answer.
    async fn expect_kept(&self, pod_node: &str, first_port: u16) {
        for entry in NODES {
            for (protocol, offset) in [(Protocol::Http, 0), (Protocol::Tcp, 1), (Protocol::Udp, 2)] {
                let target = self.node_port(entry, first_port + offset);
                let want = |answer: &Answer| {
                    if entry == pod_node {
                        answer.peer() == Some(ip(CLIENT))
                    } else {
                        *answer == Answer::Silent("timed out".to_owned())
                    }
                };
                self.eventually("Local keeps the client", &Place::Client, protocol, &target, want).await;
            }
        }
    }
}

async fn plain_application(scenario: &Scenario) {
    let app =
        EchoApp { name: "plain", namespace: "default", node: "work-1", node_port: 30080, annotations: &[] };
    scenario.lab.run_echo(&app).await.unwrap();
    scenario.expect_lost("work-1", 30080).await;
    scenario.policy("default", "plain", "Local").await;
    scenario.expect_kept("work-1", 30080).await;
    let target = scenario.node_port("work-1", 30080);
    scenario
        .eventually("the second client is told apart", &Place::Client2, Protocol::Http, &target, |answer| {
            answer.peer() == Some(ip(CLIENT_2))
        })
        .await;
}

async fn name_of_a_service_resolves_in_a_pod(scenario: &Scenario) {
    let asked = scenario
        .lab
        .kubectl(["exec", "plain", "--", "/echo", "ask", "http", "plain.default.svc.cluster.local:80"])
        .await
        .unwrap();
    assert!(asked.stdout.contains("\"pod\":\"plain\""), "{asked:?}");
}

async fn meshed_namespace(scenario: &Scenario) {
    let namespace = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "meshed", "labels": {"istio-injection": "enabled"}},
    });
    scenario.lab.apply(&namespace.to_string()).await.unwrap();
}

/// The application behind a sidecar, called through its own NodePort.
async fn sidecar(scenario: &Scenario, mode: &'static str, node_port: u16, with_local: &str) {
    let name = mode.to_lowercase();
    let annotations = [("sidecar.istio.io/interceptionMode", mode)];
    let app =
        EchoApp { name: &name, namespace: "meshed", node: "work-1", node_port, annotations: &annotations };
    scenario.lab.run_echo(&app).await.unwrap();
    for entry in NODES {
        let target = scenario.node_port(entry, node_port);
        let lost = if mode == "REDIRECT" { ip(SIDECAR) } else { scenario.masqueraded(entry, "work-1") };
        scenario
            .eventually("Cluster and a sidecar", &Place::Client, Protocol::Http, &target, |answer| {
                answer.peer() == Some(lost)
            })
            .await;
    }
    scenario.policy("meshed", &name, "Local").await;
    for entry in NODES {
        let target = scenario.node_port(entry, node_port);
        scenario
            .eventually("Local and a sidecar", &Place::Client, Protocol::Http, &target, |answer| {
                if entry == "work-1" {
                    answer.peer() == Some(ip(with_local))
                } else {
                    *answer == Answer::Silent("timed out".to_owned())
                }
            })
            .await;
    }
}

/// The gateway on the ingress node, and the application behind it on another. X-Forwarded-For has
/// the source IP that the gateway saw.
async fn gateway(scenario: &Scenario) {
    let host = "*";
    let routes = json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "networking.istio.io/v1",
            "kind": "Gateway",
            "metadata": {"name": "shop", "namespace": "meshed"},
            "spec": {
                "selector": {"istio": "ingressgateway"},
                "servers": [{"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": [host]}],
            },
        },
        {
            "apiVersion": "networking.istio.io/v1",
            "kind": "VirtualService",
            "metadata": {"name": "shop", "namespace": "meshed"},
            "spec": {
                "hosts": [host],
                "gateways": ["shop"],
                "http": [{"route": [{"destination": {"host": "tproxy.meshed.svc.cluster.local", "port": {"number": 80}}}]}],
            },
        },
    ]});
    scenario.lab.apply(&routes.to_string()).await.unwrap();
    let services: Api<Service> = Api::namespaced(scenario.lab.client(), NAMESPACE);
    let ports = services.get(GATEWAY).await.unwrap().spec.unwrap().ports.unwrap();
    let node_port = u16::try_from(ports[0].node_port.unwrap()).unwrap();

    for entry in NODES {
        let target = scenario.node_port(entry, node_port);
        let lost = scenario.masqueraded(entry, "edge-1");
        scenario
            .eventually("Cluster at the gateway", &Place::Client, Protocol::Http, &target, |answer| {
                answer.forwarded_for() == Some(lost)
            })
            .await;
    }
    let lost = ip(own_bridge("edge-1"));
    scenario
        .eventually("Cluster at the external address", &Place::Client, Protocol::Http, EXTERNAL, |answer| {
            answer.forwarded_for() == Some(lost)
        })
        .await;

    scenario.policy(NAMESPACE, GATEWAY, "Local").await;
    for entry in NODES {
        let target = scenario.node_port(entry, node_port);
        scenario
            .eventually("Local at the gateway", &Place::Client, Protocol::Http, &target, |answer| {
                if entry == "edge-1" {
                    answer.forwarded_for() == Some(ip(CLIENT))
                } else {
                    *answer == Answer::Silent("timed out".to_owned())
                }
            })
            .await;
    }
    for (place, address) in [(Place::Client, CLIENT), (Place::Client2, CLIENT_2)] {
        scenario
            .eventually("Local at the external address", &place, Protocol::Http, EXTERNAL, |answer| {
                answer.forwarded_for() == Some(ip(address))
            })
            .await;
    }
}

async fn the_whole_table(name: &str, mode: ProxyMode) {
    let scenario = Scenario::up(name, mode).await;
    plain_application(&scenario).await;
    name_of_a_service_resolves_in_a_pod(&scenario).await;
    meshed_namespace(&scenario).await;
    sidecar(&scenario, "REDIRECT", 30090, SIDECAR).await;
    sidecar(&scenario, "TPROXY", 30100, CLIENT).await;
    gateway(&scenario).await;
}

#[tokio::test]
async fn the_address_is_lost_with_cluster_and_kept_with_local_in_nftables_mode() {
    the_whole_table("problem-nft", ProxyMode::Nftables).await;
}

#[tokio::test]
async fn the_address_is_lost_with_cluster_and_kept_with_local_in_iptables_mode() {
    the_whole_table("problem-ipt", ProxyMode::Iptables).await;
}
