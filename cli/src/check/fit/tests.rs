#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

/// A cluster of objects. All kinds that the function looks at were read.
fn cluster(objects: Vec<Value>) -> Cluster {
    let mut cluster = Cluster { version: Some("v1.37.0".to_owned()), ..Cluster::default() };
    let kinds = [Kind::Node, Kind::DaemonSet, Kind::Pod, Kind::Namespace, Kind::ConfigMap];
    cluster.looked_at.extend(kinds);
    for object in objects {
        let word = |field: &str| object[field].as_str().unwrap().to_owned();
        let kind = Kind::of(&word("apiVersion"), &word("kind")).unwrap();
        cluster.take(kind, object).unwrap();
    }
    cluster
}

fn node(name: &str, labels: &Value, system: [&str; 4]) -> Value {
    let [os, architecture, kernel, kubelet] = system;
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "status": {"nodeInfo": {
            "operatingSystem": os, "architecture": architecture, "kernelVersion": kernel, "kubeletVersion": kubelet,
            "bootID": "", "containerRuntimeVersion": "", "kubeProxyVersion": "", "machineID": "", "osImage": "", "systemUUID": "",
        }},
    })
}

/// Two Linux nodes with this kubelet.
fn linux(kubelet: &str) -> Vec<Value> {
    let labels = json!({"kubernetes.io/os": "linux"});
    let system = ["linux", "amd64", "6.1.0-28-amd64", kubelet];
    vec![node("edge-1", &labels, system), node("work-1", &labels, system)]
}

/// A manifest of kube-proxy as a distribution ships it, from the files that the lab uses.
fn shipped(text: &str) -> Vec<Value> {
    let text = text.replace('@', "");
    let documents = serde_yaml::Deserializer::from_str(&text);
    documents.map(|document| Value::deserialize(document).unwrap()).collect()
}

fn with(mut nodes: Vec<Value>, others: Vec<Value>) -> Cluster {
    nodes.extend(others);
    cluster(nodes)
}

fn static_kube_proxy() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "kube-proxy-work-1", "namespace": "kube-system",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "work-1", "uid": "1", "controller": true}],
        },
        "spec": {"nodeName": "work-1", "hostNetwork": true, "containers": [{"name": "kube-proxy", "image": "kube-proxy:1"}]},
    })
}

fn network(name: &str, labels: &Value, container: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
        "spec": {"selector": {}, "template": {"spec": {"hostNetwork": true, "containers": [container]}}},
    })
}

fn cilium(settings: &Value) -> Vec<Value> {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "cilium-config", "namespace": "kube-system"}, "data": settings,
    });
    vec![network("cilium", &json!({"k8s-app": "cilium"}), &json!({"name": "cilium-agent"})), map]
}

const KUBEADM: &str = include_str!("../../../../lab/kube-proxy/kubeadm.yaml");
const EKS: &str = include_str!("../../../../lab/kube-proxy/eks.yaml");
const AKS: &str = include_str!("../../../../lab/kube-proxy/aks.yaml");

/// kube-proxy as kubeadm runs it, off on every node, as Calico's manual says.
fn idle_kube_proxy() -> Vec<Value> {
    let mut objects = shipped(KUBEADM);
    let set = objects.iter_mut().find(|object| object["kind"] == "DaemonSet").unwrap();
    set["status"] = json!({
        "currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0, "observedGeneration": 2,
    });
    objects
}

#[test]
fn each_kind_of_cluster_gets_the_mode_that_fits() {
    use Answer::{No, Perhaps, Yes};
    use Mode::{Beside, Filter};
    let plain = json!({"name": "agent"});
    let bpf = json!({"name": "calico-node", "env": [{"name": "FELIX_BPFENABLED", "value": "true"}]});
    let calico = network("calico-node", &json!({"k8s-app": "calico-node"}), &bpf);
    let replacing = json!({"kube-proxy-replacement": "true"});
    let legacy = json!({"kube-proxy-replacement": "true", "enable-host-legacy-routing": "true"});
    let named = json!({"kube-proxy-replacement": "true", "k8s-service-proxy-name": "cilium"});
    let aside = json!({"kube-proxy-replacement": "false"});
    let antrea = network("antrea-agent", &json!({"app": "antrea"}), &plain);
    let router = json!({"name": "kube-router", "args": ["--run-service-proxy=true"]});
    let router = network("kube-router", &json!({"k8s-app": "kube-router"}), &router);
    let eks = [shipped(EKS), vec![network("aws-node", &json!({"k8s-app": "aws-node"}), &plain)]].concat();
    let beside_cilium = [shipped(KUBEADM), cilium(&aside)].concat();
    for (what, cluster, filter, beside, mode) in vec![
        ("kubeadm", with(linux("v1.37.0"), shipped(KUBEADM)), Yes, Yes, Some(Filter)),
        ("EKS", with(linux("v1.33.4-eks-1234567"), eks), Yes, Yes, Some(Filter)),
        ("AKS", with(linux("v1.33.4"), shipped(AKS)), No, Yes, Some(Beside)),
        ("GKE", with(linux("v1.33.4-gke.1"), vec![static_kube_proxy()]), No, Yes, Some(Beside)),
        ("k3s", with(linux("v1.33.1+k3s1"), vec![]), No, Yes, Some(Beside)),
        ("RKE2", with(linux("v1.33.1+rke2r1"), vec![static_kube_proxy()]), No, Yes, Some(Beside)),
        ("Cilium as the proxy", with(linux("v1.37.0"), cilium(&replacing)), No, Perhaps, Some(Beside)),
        ("Cilium with legacy routing", with(linux("v1.37.0"), cilium(&legacy)), No, Yes, Some(Beside)),
        ("Cilium with a proxy name", with(linux("v1.37.0"), cilium(&named)), No, No, None),
        ("Cilium on k3s", with(linux("v1.33.1+k3s1"), cilium(&replacing)), No, Perhaps, Some(Beside)),
        ("Cilium beside kube-proxy", with(linux("v1.37.0"), beside_cilium), Yes, Yes, Some(Filter)),
        ("Antrea", with(linux("v1.37.0"), vec![antrea]), No, Perhaps, Some(Beside)),
        (
            "Calico with eBPF",
            with(linux("v1.37.0"), [idle_kube_proxy(), vec![calico]].concat()),
            No,
            Perhaps,
            Some(Beside),
        ),
        ("kube-router", with(linux("v1.37.0"), vec![router]), No, Perhaps, Some(Beside)),
        ("nothing is recognized", with(linux("v1.37.0"), vec![]), No, Perhaps, Some(Beside)),
    ] {
        let fit = fit(&cluster);
        assert_eq!(
            (fit.filter.answer, fit.beside.answer, fit.mode),
            (filter, beside, mode),
            "{what}: {fit:#?}"
        );
        let reasons = fit.filter.reasons.iter().chain(&fit.beside.reasons);
        assert!(reasons.clone().count() >= 2 && reasons.clone().all(|reason| !reason.is_empty()), "{what}");
    }
}

#[test]
fn windows_and_virtual_nodes_are_left_out_and_count_only_where_they_matter() {
    let windows =
        node("win-1", &json!({"kubernetes.io/os": "windows"}), ["windows", "amd64", "10.0.20348", "v1.37.0"]);
    let virtual_ = node("virtual-1", &json!({"type": "virtual-kubelet"}), ["linux", "amd64", "", "v1.37.0"]);
    let fargate = node(
        "fargate-1",
        &json!({"eks.amazonaws.com/compute-type": "fargate"}),
        ["linux", "amd64", "5.4", "v1.33.0"],
    );
    let only_virtual = fit(&with(linux("v1.37.0"), [shipped(KUBEADM), vec![virtual_, fargate]].concat()));
    assert_eq!(
        (only_virtual.filter.answer, only_virtual.beside.answer),
        (Answer::Yes, Answer::Yes),
        "{only_virtual:#?}"
    );
    let mixed = fit(&with(linux("v1.37.0"), [shipped(KUBEADM), vec![windows]].concat()));
    assert_eq!((mixed.filter.answer, mixed.beside.answer), (Answer::Yes, Answer::Perhaps), "{mixed:#?}");
    assert!(mixed.beside.reasons[1].contains("win-1"), "{mixed:#?}");
}

#[test]
fn an_old_kernel_rules_out_beside_only_and_an_unknown_one_is_a_condition() {
    let system = |kernel: &'static str| ["linux", "amd64", kernel, "v1.37.0"];
    let old = with(vec![node("old-1", &json!({}), system("4.18.0-553.el8"))], shipped(KUBEADM));
    let fitting = fit(&old);
    assert_eq!((fitting.filter.answer, fitting.beside.answer), (Answer::Yes, Answer::No));
    assert!(fitting.beside.reasons[0].contains("old-1"), "{fitting:#?}");
    let unknown = with(vec![node("new-1", &json!({}), system(""))], shipped(KUBEADM));
    assert_eq!(fit(&unknown).beside.answer, Answer::Perhaps);
}

#[test]
fn an_old_api_server_pod_security_and_foreign_architectures_rule_out_both_modes() {
    let sound = || with(linux("v1.37.0"), shipped(KUBEADM));
    let mut old = sound();
    old.version = Some("v1.32.5".to_owned());
    let mut strict = sound();
    strict
        .namespaces
        .insert(AGENTS.to_owned(), [(POD_SECURITY_LABEL.to_owned(), "baseline".to_owned())].into());
    let foreign = node("z-1", &json!({}), ["linux", "s390x", "6.1.0", "v1.37.0"]);
    let foreign = with(linux("v1.37.0"), [shipped(KUBEADM), vec![foreign]].concat());
    for (cluster, word) in [(old, "v1.32.5"), (strict, "baseline"), (foreign, "z-1")] {
        let fit = fit(&cluster);
        assert_eq!((fit.filter.answer, fit.beside.answer, fit.mode), (Answer::No, Answer::No, None));
        assert!(fit.filter.reasons[0].contains(word), "{fit:#?}");
    }
    let mut privileged = sound();
    privileged
        .namespaces
        .insert(AGENTS.to_owned(), [(POD_SECURITY_LABEL.to_owned(), "privileged".to_owned())].into());
    assert_eq!(fit(&privileged).mode, Some(Mode::Filter));
}

#[test]
fn kinds_that_were_not_read_are_not_taken_for_empty() {
    let mut cluster = with(linux("v1.37.0"), shipped(KUBEADM));
    cluster.daemon_sets.clear();
    cluster.looked_at.remove(&Kind::DaemonSet);
    let without_sets = fit(&cluster);
    assert_eq!((without_sets.filter.answer, without_sets.beside.answer), (Answer::Unknown, Answer::Unknown));
    let mut cluster = with(linux("v1.37.0"), shipped(KUBEADM));
    cluster.config_maps.clear();
    let without_maps = fit(&cluster);
    assert_eq!(without_maps.filter.answer, Answer::Unknown, "{without_maps:#?}");
    assert!(without_maps.filter.reasons[0].contains("ConfigMap kube-system/kube-proxy"), "{without_maps:#?}");
    assert_eq!(without_maps.mode, Some(Mode::Beside));
    assert_eq!(fit(&Cluster::default()).mode, None);
}
