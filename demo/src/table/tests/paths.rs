//! The demo's tables and `isp_paths` say the same about the demo's cluster.

use isp_paths::{
    Actor, Cluster, Delivery, DetectLocal, Key, KubeProxy, Path, Protocol, ProxyMode, Request, Source, paths,
};
use serde_json::{Value, json};

use super::*;

const NODES: [&str; 3] = ["edge-1", "work-1", "work-2"];

/// The demo's cluster at a stage.
fn cluster(stage: Stage, mode: &str, addresses: &Addresses) -> Cluster {
    let is_after = stage == Stage::After;
    let mut cluster = Cluster::default();
    for (place, name) in NODES.iter().enumerate() {
        let number = place + 1;
        let ingress = if place == 0 { json!({"ingress": "yes"}) } else { json!({}) };
        let node = json!({
            "metadata": {"name": name, "labels": ingress},
            "spec": {"podCIDRs": [format!("10.244.{number}.0/24")]},
            "status": {"addresses": [{"type": "InternalIP", "address": format!("10.90.0.{}", 10 + number)}]},
        });
        cluster.take_node(&serde_json::from_value(node).unwrap());
    }
    let range = "10.244.0.0/16".parse().unwrap();
    cluster.set_kube_proxy(KubeProxy {
        mode: ProxyMode::Nftables,
        detect_local: DetectLocal::ClusterCidr,
        cluster_cidrs: vec![range],
        ..KubeProxy::default()
    });
    take_pods(&mut cluster, is_after, addresses);
    take_service(&mut cluster, is_after, mode);
    if is_after {
        take_object(&mut cluster, mode);
    }
    cluster
}

/// The source pod, the endpoint of the Service, and the application behind the gateway.
fn take_pods(cluster: &mut Cluster, is_after: bool, addresses: &Addresses) {
    let gateway = json!([{"name": "istio-proxy", "args": ["proxy", "router"]}]);
    let endpoint = if addresses.gateway.is_some() { gateway } else { json!([{"name": "echo"}]) };
    let mode = if is_after { "TPROXY" } else { "REDIRECT" };
    let behind = json!([{"name": "echo"}, {
        "name": "istio-proxy", "args": ["proxy", "sidecar"],
        "env": [{"name": "ISTIO_META_INTERCEPTION_MODE", "value": mode}],
    }]);
    let pods = [
        ("asking", "work-1", addresses.pod.to_string(), json!([{"name": "echo"}])),
        ("endpoint", "edge-1", "10.244.1.7".to_owned(), endpoint),
        ("behind", "work-2", "10.244.3.7".to_owned(), behind),
    ];
    for (name, node, address, containers) in pods {
        let pod = json!({
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"nodeName": node, "containers": containers},
            "status": {"podIPs": [{"ip": address}]},
        });
        cluster.take_pod(&serde_json::from_value(pod).unwrap());
    }
}

fn take_service(cluster: &mut Cluster, is_after: bool, mode: &str) {
    let mut labels = json!({});
    if is_after {
        labels["sourcepreserve.io/preserve"] = json!("registry");
        if mode == "Beside" {
            labels["service.kubernetes.io/service-proxy-name"] = json!("ingress-source-preserve");
        }
    }
    let service = json!({
        "metadata": {"name": "registry", "namespace": "shop", "labels": labels},
        "spec": {
            "type": "LoadBalancer", "clusterIPs": ["10.96.7.7"], "healthCheckNodePort": 31000,
            "externalTrafficPolicy": if is_after { "Local" } else { "Cluster" },
            "ports": [{"name": "http", "port": 80, "nodePort": 30080}],
        },
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.10", "ipMode": "VIP"}]}},
    });
    cluster.take_service(&serde_json::from_value(service).unwrap());
    let slice = json!({
        "metadata": {"name": "registry-1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "registry"}},
        "addressType": "IPv4", "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": [{"addresses": ["10.244.1.7"], "nodeName": "edge-1", "conditions": {"ready": true}}],
    });
    cluster.take_endpoint_slice(&serde_json::from_value(slice).unwrap());
}

fn take_object(cluster: &mut Cluster, mode: &str) {
    let object = json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve",
        "metadata": {"name": "registry", "uid": "u", "generation": 1},
        "spec": {
            "mode": mode, "ingressNodes": {"selector": {"matchLabels": {"ingress": "yes"}}},
            "services": [{"namespace": "shop", "name": "registry"}],
        },
    });
    cluster.take_object(serde_json::from_value(object).unwrap());
    for node in NODES.iter().filter(|node| mode == "Beside" || **node != "edge-1") {
        let view = if *node == "edge-1" { "Full" } else { "ClusterOnly" };
        let name = if mode == "Beside" { format!("{node}.beside") } else { (*node).to_owned() };
        let report: Value = json!({
            "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourceNode", "metadata": {"name": name},
            "status": {"pool": "default", "mode": mode, "active": true, "served": 1, "views": [{
                "object": "registry", "uid": "u", "generation": 1, "view": view, "received": true,
                "programmed": true, "services": ["shop/registry"],
            }]},
        });
        cluster.take_report(serde_json::from_value(report).unwrap());
    }
}

/// The only path of a request. The demo's router sends the external IP to the ingress node.
fn path(cluster: &Cluster, source: Source, destination: SocketAddr) -> Path {
    let entry = matches!(&source, Source::Outside(_)).then(|| "edge-1".to_owned());
    let request = Request { source, destination, protocol: Protocol::Tcp, entry };
    let mut found = paths(cluster, &request).unwrap();
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

fn delivered(path: &Path) -> Option<&Delivery> {
    match &path.outcome {
        isp_paths::Outcome::Delivered(delivery) => Some(delivery),
        _ => None,
    }
}

/// What the path says, in the words of the demo's table.
fn told(cluster: &Cluster, asker: Asker, target: Target, addresses: &Addresses) -> Outcome {
    let source = match asker {
        Asker::Client | Asker::OtherClient => Source::Outside(addresses.of(asker)),
        Asker::Pod => Source::Pod(Key::new("shop", "asking")),
        Asker::Host => Source::Node("work-1".to_owned()),
    };
    let path = path(cluster, source, addresses.target(target));
    let Some(delivery) = delivered(&path) else { return Outcome::Silent(String::new()) };
    let entrance = delivery.seen().unwrap().address;
    let through_router = path.hops.iter().any(|hop| hop.actor == Actor::LoadBalancer);
    let through_router = (target == Target::ExternalAddress && !asker.is_outside()).then_some(through_router);
    if addresses.gateway.is_none() {
        let seen = Seen { gateway: None, application: entrance, status: 200, through_router };
        return Outcome::Seen(seen);
    }
    let gateway = Source::Pod(Key::new("shop", "endpoint"));
    let behind = self::path(cluster, gateway, "10.244.3.7:8080".parse().unwrap());
    let application = delivered(&behind).unwrap().application.as_ref().unwrap().address;
    let status = if entrance == addresses.client { 200 } else { 403 };
    Outcome::Seen(Seen { gateway: Some(entrance), application, status, through_router })
}

#[test]
fn the_paths_of_packets_give_the_same_tables() {
    for gateway in [None, Some("10.244.1.7")] {
        let addresses = addresses(gateway);
        for (stage, mode) in [(Stage::Before, "Filter"), (Stage::After, "Filter"), (Stage::After, "Beside")] {
            let cluster = cluster(stage, mode, &addresses);
            for (asker, target) in questions() {
                let told = told(&cluster, asker, target, &addresses);
                let expected = expected(stage, asker, target, &addresses);
                assert!(
                    told.is_like(&expected),
                    "{stage} {mode} {asker} to {target}: {told:?}, not {expected:?}"
                );
            }
        }
    }
}
