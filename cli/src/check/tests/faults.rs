//! The table of faults: each is one change of a sound cluster, and `check` or `doctor` names it by
//! its code. On the sound cluster neither says anything.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::world::{World, checked, codes, node, sound};
use crate::check::line::State;
use crate::doctor::finding::{Code, Severity};
use crate::doctor::tests::faults::{in_mode, kube_proxy_setting, of_filter, remove};

/// What is changed, the code by which `check` names it, whether it fails by it, and the change.
type Fault = (&'static str, Code, State, fn(&mut World));

const LOST: &[Fault] = &[
    ("lost at a node", Code::NotPreserved, State::Failed, cluster_policy),
    ("lost at a node, although an object names the Service", Code::PolicyNotLocal, State::Failed, |world| {
        world.the("Service", "istio-ingressgateway")["spec"]["externalTrafficPolicy"] = json!("Cluster");
    }),
    ("lost before the cluster", Code::IpModeProxy, State::Failed, |world| {
        let service = world.the("Service", "istio-ingressgateway");
        service["status"]["loadBalancer"]["ingress"][0]["ipMode"] = json!("Proxy");
    }),
    ("perhaps lost before the cluster", Code::IpModeProxy, State::Notice, |world| {
        let annotations = &mut world.the("Service", "istio-ingressgateway")["metadata"]["annotations"];
        annotations["load-balancer.hetzner.cloud/uses-proxyprotocol"] = json!("true");
    }),
    ("lost at a sidecar", Code::SidecarHides, State::Failed, |world| {
        let service = world.the("Service", "cart");
        service["spec"]["type"] = json!("NodePort");
        service["spec"]["externalTrafficPolicy"] = json!("Local");
        in_mode(world, "REDIRECT");
    }),
    ("an application behind a gateway", Code::SidecarHides, State::Notice, |world| {
        in_mode(world, "REDIRECT");
    }),
    ("nothing answers", Code::NoIngressEndpoint, State::Notice, |world| {
        let slice = world.the("EndpointSlice", "echo");
        slice["endpoints"][0]["conditions"]["ready"] = json!(false);
    }),
];

const POLICIES: &[Fault] = &[
    ("a NetworkPolicy that rejects everybody", Code::PolicyClosed, State::Failed, |world| {
        cluster_policy(world);
        world.add(network_policy(&json!({"cidr": "203.0.113.0/24"})));
    }),
    ("a NetworkPolicy that excepts nobody", Code::PolicyOpen, State::Failed, |world| {
        cluster_policy(world);
        world.add(network_policy(&json!({"cidr": "0.0.0.0/0", "except": ["203.0.113.0/24"]})));
    }),
    ("an allow list of nginx", Code::PolicyClosed, State::Failed, |world| {
        ingress(world, "nginx.ingress.kubernetes.io/whitelist-source-range");
    }),
    ("a deny list of HAProxy", Code::PolicyOpen, State::Failed, |world| {
        ingress(world, "haproxy.org/deny-list");
    }),
    ("an AuthorizationPolicy at a second way in", Code::PolicyOpen, State::Failed, |world| {
        let mut second = world.the("Service", "istio-ingressgateway").clone();
        second["metadata"] = json!({"name": "node-ports", "namespace": "istio-system"});
        second["spec"]["type"] = json!("NodePort");
        second["spec"]["externalTrafficPolicy"] = json!("Cluster");
        world.add(second);
    }),
    ("a source range that is none", Code::SourceRangeUnreadable, State::Failed, |world| {
        let service = world.the("Service", "istio-ingressgateway");
        service["spec"]["loadBalancerSourceRanges"] = json!(["198.51.100.0/240"]);
    }),
];

const CLUSTER: &[Fault] = &[
    ("an old API server", Code::ClusterTooOld, State::Notice, |world| world.version = "v1.32.9"),
    ("an old kernel", Code::KernelTooOld, State::Notice, |world| {
        node(world, "work-1")["status"]["nodeInfo"]["kernelVersion"] = json!("4.18.0-553.el8.x86_64");
    }),
    ("a Windows node", Code::NodeUnfit, State::Notice, |world| {
        node(world, "work-2")["metadata"]["labels"]["kubernetes.io/os"] = json!("windows");
    }),
    ("a node of another architecture", Code::NodeUnfit, State::Notice, |world| {
        node(world, "work-2")["status"]["nodeInfo"]["architecture"] = json!("s390x");
    }),
    ("Pod Security of kube-system", Code::AgentsRejected, State::Notice, pod_security),
    ("no kube-proxy that is seen", Code::ProxyNotRecognized, State::Notice, |world| {
        world.remove("DaemonSet", "kube-proxy");
    }),
    ("no mode fits", Code::NoModeFits, State::Failed, |world| {
        cluster_policy(world);
        pod_security(world);
    }),
    ("masqueradeAll", Code::MasqueradeAll, State::Notice, |world| {
        kube_proxy_setting(world, "mode: nftables", "mode: nftables\nnftables: {masqueradeAll: true}");
    }),
    ("nodes are taken for pods", Code::LocalRangeTooWide, State::Failed, |world| {
        kube_proxy_setting(world, "10.244.0.0/16", "10.0.0.0/8");
    }),
    ("pods were not read", Code::NotLookedAt, State::Failed, |world| world.remove("Pod", "")),
    ("nodes were not read", Code::NotLookedAt, State::Notice, |world| world.remove("Node", "")),
    ("the operator does not run", Code::OperatorUnavailable, State::Failed, |world| {
        remove(&mut world.the("Deployment", "sourcepreserve-operator")["status"], "availableReplicas");
    }),
];

fn cluster_policy(world: &mut World) {
    world.the("Service", "echo")["spec"]["externalTrafficPolicy"] = json!("Cluster");
}

fn pod_security(world: &mut World) {
    world.the("Namespace", "kube-system")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] =
        json!("restricted");
}

fn network_policy(block: &Value) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "clients", "namespace": "plain"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [{"ipBlock": block}]}]},
    })
}

/// An ingress controller whose Service loses the source IP, and an Ingress with a list.
fn ingress(world: &mut World, annotation: &str) {
    let labels = json!({"app.kubernetes.io/name": "ingress", "app.kubernetes.io/component": "controller"});
    world.add(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "controller-1", "namespace": "edge", "labels": labels},
        "spec": {"nodeName": "edge-1", "containers": [{"name": "controller", "image": "controller:1"}]},
    }));
    world.add(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "controller", "namespace": "edge"},
        "spec": {"type": "NodePort", "externalTrafficPolicy": "Cluster", "selector": labels, "ports": [{"port": 80}]},
    }));
    world.add(json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "shop", "namespace": "shop", "annotations": {annotation: "203.0.113.0/24"}}, "spec": {},
    }));
}

#[test]
fn a_sound_cluster_has_no_fault() {
    let (check, found) = (checked(&sound()), sound().examine(None));
    assert!(found.is_empty(), "{found:#?}");
    assert!(check.is_fine(), "{check:#?}");
    assert_eq!(codes(&check), BTreeSet::new(), "{check:#?}");
    assert_eq!(check.proposal, None);
}

#[test]
fn each_of_more_than_25_faults_is_named_by_check_or_doctor() {
    let mut named = BTreeSet::new();
    let mut wrong = Vec::new();
    let sound = sound();
    for (what, code, state, break_it) in [LOST, POLICIES, CLUSTER].concat() {
        let mut world = sound.clone();
        break_it(&mut world);
        let check = checked(&world);
        let is_named = check.lines().any(|line| line.code == Some(code) && line.state == state);
        // `check` fails if a line does, and only then.
        if !is_named || check.is_fine() && state == State::Failed {
            wrong.push(format!("check, {what}, {}: {:?}", code.as_str(), codes(&check)));
        }
        named.insert(code.as_str());
    }
    for (what, code, break_it) in of_filter() {
        let mut world = sound.clone();
        break_it(&mut world);
        let found = world.examine(None);
        if !found.iter().any(|finding| finding.code == code) {
            wrong.push(format!("doctor, {what}, {}", code.as_str()));
        }
        let is_error = found.iter().any(|finding| finding.severity == Severity::Error);
        if is_error && checked(&world).is_fine() {
            wrong.push(format!("check passes although doctor has an error: {what}"));
        }
        named.insert(code.as_str());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(named.len() >= 25, "{}: {named:?}", named.len());
}
