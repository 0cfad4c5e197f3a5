#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};

use super::*;

fn daemon_set(name: &str, labels: &Value, pod: &Value) -> DaemonSet {
    let set = json!({
        "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
        "spec": {"selector": {}, "template": {"spec": pod}},
    });
    serde_json::from_value(set).unwrap()
}

fn host(container: &Value) -> Value {
    json!({"hostNetwork": true, "containers": [container]})
}

#[test]
fn networks_are_recognized_by_name_or_label_and_only_in_the_host_network() {
    let plain = host(&json!({"name": "a"}));
    for (name, labels, expected) in [
        ("calico-node", json!({}), Some(Network::Calico)),
        ("cilium", json!({"k8s-app": "cilium"}), Some(Network::Cilium)),
        ("anetd", json!({"k8s-app": "cilium"}), Some(Network::Cilium)),
        ("antrea-agent", json!({"app": "antrea"}), Some(Network::Antrea)),
        ("aws-node", json!({"k8s-app": "aws-node"}), Some(Network::AwsVpc)),
        ("kube-flannel-ds-amd64", json!({"app": "flannel"}), Some(Network::Flannel)),
        ("node-exporter", json!({"app": "node-exporter"}), None),
    ] {
        let found = NetworkAgent::of(&daemon_set(name, &labels, &plain));
        assert_eq!(found.map(|agent| agent.network), expected, "{name}");
    }
    let pod = json!({"containers": [{"name": "a"}]});
    assert_eq!(NetworkAgent::of(&daemon_set("cilium", &json!({"k8s-app": "cilium"}), &pod)), None);
}

#[test]
fn calico_and_kube_router_say_in_their_pods_whether_they_serve_services() {
    let bpf = host(&json!({"name": "a", "env": [{"name": "FELIX_BPFENABLED", "value": "true"}]}));
    assert!(NetworkAgent::of(&daemon_set("calico-node", &json!({}), &bpf)).unwrap().serves_by_ebpf);
    let flag = host(&json!({"name": "a", "args": ["--run-router=true", "--run-service-proxy=true"]}));
    assert!(NetworkAgent::of(&daemon_set("kube-router", &json!({}), &flag)).unwrap().serves_by_flag);
    let none = host(&json!({"name": "a", "args": ["--run-service-proxy=false"]}));
    assert!(!NetworkAgent::of(&daemon_set("kube-router", &json!({}), &none)).unwrap().serves_by_flag);
}

#[test]
fn nodes_bear_the_marks_of_their_networks() {
    let annotations = [("flannel.alpha.coreos.com/backend-type", "vxlan"), ("a/b", "c")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
    let found: Vec<Network> = Network::of_node(&annotations.into()).collect();
    assert_eq!(found, [Network::Flannel]);
}

#[test]
fn the_settings_of_cilium_are_read_as_cilium_reads_them() {
    let data = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        CiliumSettings::of(&pairs.collect())
    };
    assert_eq!(data(&[]), CiliumSettings::default());
    assert!(data(&[("kube-proxy-replacement", "strict")]).replaces_kube_proxy);
    assert!(!data(&[("kube-proxy-replacement", "partial")]).replaces_kube_proxy);
    assert!(data(&[("enable-host-legacy-routing", "true")]).legacy_routing);
    assert_eq!(data(&[("k8s-service-proxy-name", "other")]).proxy_name, "other");
}
