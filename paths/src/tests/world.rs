//! A cluster of three nodes in a few words, and paths in one line each.
//!
//! ```text
//!  edge-1  10.90.0.11  fd00:90::11  pods 10.244.1.0/24  fd00:244:0:1::/64   zone z1
//!  work-1  10.90.0.12  fd00:90::12  pods 10.244.2.0/24  fd00:244:0:2::/64   zone z2
//!  work-2  10.90.0.13  fd00:90::13  pods 10.244.3.0/24  fd00:244:0:3::/64   zone z2
//! ```

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use serde_json::{Value, json};

use crate::{
    Cluster, DetectLocal, Key, KubeProxy, Outcome, Path, Protocol, ProxyMode, Request, Source, paths,
};

pub(crate) const NODES: [&str; 3] = ["edge-1", "work-1", "work-2"];
/// A client outside.
pub(crate) const CLIENT: &str = "198.51.100.10";

pub(crate) struct World {
    pub(crate) cluster: Cluster,
}

impl World {
    /// Three nodes, kube-proxy in mode nftables, and a pod `tools/NODE` on each node.
    pub(crate) fn new() -> Self {
        let mut world = Self { cluster: Cluster::default() };
        for (place, name) in NODES.iter().enumerate() {
            let number = place + 1;
            let ready = json!([{"type": "Ready", "status": "True"}]);
            world.node(&json!({
                "metadata": {"name": name, "labels": {
                    "topology.kubernetes.io/zone": if place == 0 { "z1" } else { "z2" },
                    "ingress": if place == 0 { "yes" } else { "no" },
                }},
                "spec": {"podCIDRs": [format!("10.244.{number}.0/24"), format!("fd00:244:0:{number}::/64")]},
                "status": {"conditions": ready, "addresses": [
                    {"type": "InternalIP", "address": format!("10.90.0.{}", 10 + number)},
                    {"type": "InternalIP", "address": format!("fd00:90::{}", 10 + number)},
                ]},
            }));
            world.pod(&format!("tools/{name}"), name, 99, &json!({}));
        }
        world.cluster.set_kube_proxy(Self::kube_proxy());
        world
    }

    pub(crate) fn kube_proxy() -> KubeProxy {
        KubeProxy {
            mode: ProxyMode::Nftables,
            detect_local: DetectLocal::ClusterCidr,
            cluster_cidrs: ["10.244.0.0/16", "fd00:244::/48"].map(|range| range.parse().unwrap()).into(),
            ..KubeProxy::default()
        }
    }

    pub(crate) fn node(&mut self, object: &Value) {
        self.cluster.take_node(&serde_json::from_value(object.clone()).unwrap());
    }

    /// A pod with the last byte of its addresses, and fields to merge into it.
    pub(crate) fn pod(&mut self, key: &str, node: &str, last: u8, fields: &Value) {
        let (namespace, name) = key.split_once('/').unwrap();
        let number = NODES.iter().position(|known| *known == node).unwrap() + 1;
        let ips = json!([
            {"ip": format!("10.244.{number}.{last}")}, {"ip": format!("fd00:244:0:{number}::{last}")},
        ]);
        let mut pod = json!({
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"nodeName": node, "containers": [{"name": "app"}]},
            "status": {"podIPs": ips},
        });
        merge(&mut pod, fields);
        self.cluster.take_pod(&serde_json::from_value(pod).unwrap());
    }

    /// The Service `shop/web`: port 80 of every kind of address, with fields to merge into it.
    pub(crate) fn service(&mut self, fields: &Value) {
        let mut service = json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "type": "LoadBalancer", "externalTrafficPolicy": "Cluster",
                "clusterIP": "10.96.7.7", "clusterIPs": ["10.96.7.7", "fd00:96::7"],
                "externalIPs": ["192.0.2.11"],
                "ports": [{"name": "http", "port": 80, "nodePort": 30080, "targetPort": 8080}],
            },
            "status": {"loadBalancer": {"ingress": [
                {"ip": "192.0.2.10", "ipMode": "VIP"}, {"ip": "2001:db8:2::10"},
            ]}},
        });
        merge(&mut service, fields);
        if service["spec"]["externalTrafficPolicy"] == "Local" {
            merge(&mut service, &json!({"spec": {"healthCheckNodePort": 31000}}));
        }
        self.cluster.take_service(&serde_json::from_value(service).unwrap());
    }

    /// Endpoints of `shop/web`: pods `shop/web-N` on these nodes, with fields to merge into each.
    pub(crate) fn endpoints(&mut self, nodes: &[(&str, Value)]) {
        let mut listed = [Vec::new(), Vec::new()];
        for (place, (node, fields)) in nodes.iter().enumerate() {
            let last = u8::try_from(5 + place).unwrap();
            self.pod(&format!("shop/web-{place}"), node, last, &json!({}));
            let number = NODES.iter().position(|known| known == node).unwrap() + 1;
            let addresses = [format!("10.244.{number}.{last}"), format!("fd00:244:0:{number}::{last}")];
            for (address, into) in addresses.into_iter().zip(&mut listed) {
                let mut endpoint =
                    json!({"addresses": [address], "nodeName": node, "conditions": {"ready": true}});
                merge(&mut endpoint, fields);
                into.push(endpoint);
            }
        }
        for (family, endpoints) in ["IPv4", "IPv6"].into_iter().zip(listed) {
            self.slice(family, &json!(endpoints));
        }
    }

    pub(crate) fn slice(&mut self, family: &str, endpoints: &Value) {
        let slice = json!({
            "metadata": {"name": format!("web-{family}"), "namespace": "shop",
                         "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": family, "endpoints": endpoints,
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        });
        self.cluster.take_endpoint_slice(&serde_json::from_value(slice).unwrap());
    }

    /// One ready endpoint on each of these nodes.
    pub(crate) fn web_on(policy: &str, nodes: &[&str]) -> Self {
        let mut world = Self::new();
        world.service(&json!({"spec": {"externalTrafficPolicy": policy}}));
        let ready: Vec<_> = nodes.iter().map(|node| (*node, json!({}))).collect();
        world.endpoints(&ready);
        world
    }

    /// An object that preserves `shop/web`, with edge-1 as the ingress node.
    pub(crate) fn preserve(&mut self, mode: &str, elsewhere: &str) {
        let object = json!({
            "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve",
            "metadata": {"name": "web", "uid": "u1", "generation": 1},
            "spec": {
                "mode": mode, "elsewhere": elsewhere,
                "ingressNodes": {"selector": {"matchLabels": {"ingress": "yes"}}},
                "services": [{"namespace": "shop", "name": "web"}],
            },
            "status": {"ingressNodes": ["edge-1"]},
        });
        self.cluster.take_object(serde_json::from_value(object).unwrap());
    }

    /// The report of a node's agent.
    pub(crate) fn report(&mut self, node: &str, mode: &str, view: &str, acknowledged: bool) {
        let suffix = if mode == "Beside" { ".beside" } else { "" };
        let report = json!({
            "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourceNode",
            "metadata": {"name": format!("{node}{suffix}")},
            "status": {"pool": "default", "mode": mode, "active": true, "served": 1, "views": [{
                "object": "web", "uid": "u1", "generation": 1, "view": view,
                "received": acknowledged, "programmed": acknowledged,
                "services": if mode == "Beside" { json!(["shop/web"]) } else { json!([]) },
            }]},
        });
        self.cluster.take_report(serde_json::from_value(report).unwrap());
    }

    /// All paths. A source is an address, `pod/NAMESPACE/NAME` or `node/NAME`; ` via NODE` names
    /// the entry.
    pub(crate) fn paths(&self, from: &str, to: &str) -> Vec<Path> {
        paths(&self.cluster, &Self::request(from, to)).unwrap()
    }

    pub(crate) fn request(from: &str, to: &str) -> Request {
        let (from, entry) =
            from.split_once(" via ").map_or((from, None), |(from, entry)| (from, Some(entry)));
        let source = match from.split('/').collect::<Vec<_>>().as_slice() {
            ["pod", namespace, name] => Source::Pod(Key::new(*namespace, *name)),
            ["node", name] => Source::Node((*name).to_owned()),
            _ => Source::Outside(from.parse().unwrap()),
        };
        let destination = to.parse().unwrap();
        Request { source, destination, protocol: Protocol::Tcp, entry: entry.map(str::to_owned) }
    }

    /// The distinct ends of all paths, sorted.
    pub(crate) fn ends(&self, from: &str, to: &str) -> String {
        let mut ends: Vec<String> = self.paths(from, to).iter().map(end).collect();
        ends.sort();
        ends.dedup();
        ends.join(", ")
    }

    /// Checks a table: a line for each source and destination, `from -> to: ends`.
    pub(crate) fn check(&self, table: &str) {
        for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (asked, expected) = line.split_once(": ").unwrap();
            let (from, to) = asked.split_once(" -> ").unwrap();
            let ends = self.ends(from.trim(), to.trim());
            assert_eq!(ends, expected.trim(), "{line}\n{:#?}", self.paths(from.trim(), to.trim()));
        }
    }
}

/// The end of a path in a few words.
pub(crate) fn end(path: &Path) -> String {
    match &path.outcome {
        Outcome::Delivered(delivery) => {
            let pod = delivery.pod.as_ref().map_or("?".to_owned(), |pod| pod.name.clone());
            let seen = delivery.seen().map_or("?".to_owned(), |seen| seen.address.to_string());
            let fine = if path.is_fine() { "" } else { "!" };
            format!("{pod} sees {seen}{fine}")
        }
        Outcome::Refused { .. } => "refused".to_owned(),
        Outcome::Dropped { .. } => "dropped".to_owned(),
        Outcome::Leaves { source, .. } => format!("leaves as {}", source.address),
        Outcome::Unclear { .. } => "unclear".to_owned(),
    }
}

/// The reason of the only path.
pub(crate) fn reason(paths: &[Path]) -> String {
    let [path] = paths else { panic!("{paths:#?}") };
    match &path.outcome {
        Outcome::Refused { reason }
        | Outcome::Dropped { reason }
        | Outcome::Leaves { reason, .. }
        | Outcome::Unclear { reason } => reason.clone(),
        Outcome::Delivered(_) => panic!("{path:#?}"),
    }
}

/// JSON merge patch.
fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    into.remove(key);
                } else {
                    merge(into.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}
