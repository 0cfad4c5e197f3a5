//! The cluster's kube-proxy: whether it can run behind the agent, and whether its settings keep the
//! source IP.

use isp_api::preserve::Mode;
use isp_paths::{KubeProxy, ProxyMode};
use isp_plan::Key;
use isp_plan::cluster::DaemonSet;
use isp_plan::observe::runs_kube_proxy;
use isp_plan::observe::{NoKubeProxy, flag, kube_proxy, mounted_file};
use k8s_openapi::api::core::v1::{Container, PodSpec};
use serde::Deserialize;

use super::{Object, Scope};
use crate::doctor::cluster::Cluster;
use crate::doctor::finding::{Code, Finding, Severity, Subject};
use crate::doctor::kinds::Kind;
use crate::doctor::ranges::{Range, readable};
use crate::text::{count, cut, use_beside};

/// So many nodes are named.
const MAX_NAMES: usize = 5;

pub(super) fn check(scope: &Scope<'_>, found: &mut Vec<Finding>) {
    own_local_detection(scope, found);
    if !scope.concerns_kube_proxy() || !scope.cluster.knows(Kind::DaemonSet) {
        return;
    }
    let Some((key, set)) = find(scope, found) else { return };
    let subject = Subject::new("DaemonSet", key);
    let Some(settings) =
        set.object.spec.template.spec.as_ref().and_then(|pod| settings(scope.cluster, key, pod))
    else {
        found.extend(scope.cluster.knows(Kind::ConfigMap).then(|| unreadable(subject)));
        return;
    };
    let edit = format!(
        "kubectl edit configmap -n {} kube-proxy   # then restart kube-proxy, which reads its settings at the start",
        key.namespace
    );
    mode(scope, &settings, &subject, found);
    if settings.masquerades_all() {
        found.push(
            Finding::new(Code::MasqueradeAll, subject.clone(), "masqueradeAll is on")
                .because("Every caller of a ClusterIP appears as a node, pods included: policies inside the cluster that compare addresses see a node.")
                .do_this(edit.clone()),
        );
    }
    local_detection(scope, &settings, &subject, &edit, found);
}

/// The DaemonSet whose settings were checked.
pub(super) fn checked<'a>(scope: &Scope<'a>) -> Option<&'a Key> {
    if !scope.concerns_kube_proxy() || !scope.cluster.knows(Kind::DaemonSet) {
        return None;
    }
    let (key, set) = find(scope, &mut Vec::new())?;
    let pod = set.object.spec.template.spec.as_ref()?;
    settings(scope.cluster, key, pod).map(|_| key)
}

fn unreadable(subject: Subject) -> Finding {
    Finding::new(Code::NotLookedAt, subject, "its settings were not found, or cannot be parsed")
        .because("Its mode, its clusterCIDR and masqueradeAll were not checked. They are read from the ConfigMap that holds the file of --config.")
        .do_this("kubectl get configmap -n kube-system kube-proxy -o yaml   # or add it to the dump")
}

/// The DaemonSet that the operator would use. If there is none, that is a fault of an object.
fn find<'a>(scope: &Scope<'a>, found: &mut Vec<Finding>) -> Option<(&'a Key, &'a DaemonSet)> {
    let filters = || scope.standing().filter(|object| object.written.spec.mode == Mode::Filter);
    let naming = filters().find(|object| object.written.spec.kube_proxy.is_some());
    let named = naming.and_then(|object| object.written.spec.kube_proxy.as_ref());
    let none = match kube_proxy(&scope.cluster.daemon_sets, named) {
        Ok(there) => return Some(there),
        Err(none) => none,
    };
    let object = naming.or_else(|| filters().next())?;
    found.push(match none {
        NoKubeProxy::NotThere(named) => {
            let line = format!("spec.kubeProxy: DaemonSet {named} does not exist or does not run kube-proxy");
            no_kube_proxy(object, line)
        }
        NoKubeProxy::NotFound => no_kube_proxy(object, "no DaemonSet runs kube-proxy".to_owned()),
        NoKubeProxy::Ambiguous(several) => {
            let all: Vec<String> = several.iter().map(ToString::to_string).collect();
            let line = format!("several DaemonSets run kube-proxy: {}", all.join(", "));
            Finding::new(Code::KubeProxyAmbiguous, object.subject(), line)
                .because("The operator derives the agents from the cluster's kube-proxy, and cannot choose among several.")
                .do_this(format!("kubectl edit isp {}   # name it in spec.kubeProxy", object.name))
        }
    });
    None
}

fn no_kube_proxy(object: &Object<'_>, line: String) -> Finding {
    Finding::new(Code::NoKubeProxy, object.subject(), line)
        .because(
            "Mode Filter runs kube-proxy's pods behind the agent, so kube-proxy must be a DaemonSet. It cannot be a system service, a static pod, \
             part of k3s, or replaced by another proxy.",
        )
        .do_this("kubectl get daemonsets -A   # name the right one in spec.kubeProxy, if it exists")
        .do_this(use_beside(&object.name))
}

/// The part of kube-proxy's configuration that affects the source IP.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Settings {
    mode: String,
    #[serde(rename = "clusterCIDR")]
    cluster_cidr: String,
    detect_local_mode: String,
    detect_local: DetectLocal,
    iptables: Masquerade,
    nftables: Masquerade,
    node_port_addresses: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DetectLocal {
    bridge_interface: String,
    interface_name_prefix: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Masquerade {
    masquerade_all: bool,
}

impl Settings {
    fn masquerades_all(&self) -> bool {
        if self.mode == "nftables" { self.nftables.masquerade_all } else { self.iptables.masquerade_all }
    }

    /// The same for paths of packets. None if the mode is unknown.
    pub(crate) fn for_paths(&self) -> Option<KubeProxy> {
        let DetectLocal { bridge_interface, interface_name_prefix } = &self.detect_local;
        let cidrs = self.cluster_cidr.split(',').filter_map(|range| range.trim().parse().ok());
        Some(KubeProxy {
            mode: ProxyMode::parse(&self.mode)?,
            detect_local: match self.detect_local_mode.as_str() {
                "NodeCIDR" => isp_paths::DetectLocal::NodeCidr,
                "BridgeInterface" => isp_paths::DetectLocal::Bridge(bridge_interface.clone()),
                "InterfaceNamePrefix" => {
                    isp_paths::DetectLocal::InterfacePrefix(interface_name_prefix.clone())
                }
                _ => isp_paths::DetectLocal::ClusterCidr,
            },
            cluster_cidrs: cidrs.collect(),
            masquerade_all: self.masquerades_all(),
            node_port_addresses: self.node_port_addresses.clone().unwrap_or_default(),
        })
    }
}

pub(crate) fn settings(cluster: &Cluster, key: &Key, pod: &PodSpec) -> Option<Settings> {
    let container = pod.containers.iter().find(|container| runs_kube_proxy(container))?;
    let Some(path) = flag(container, "config") else {
        return Some(Settings {
            mode: flag(container, "proxy-mode").unwrap_or_default(),
            cluster_cidr: flag(container, "cluster-cidr").unwrap_or_default(),
            detect_local_mode: flag(container, "detect-local-mode").unwrap_or_default(),
            detect_local: DetectLocal {
                bridge_interface: flag(container, "pod-bridge-interface").unwrap_or_default(),
                interface_name_prefix: flag(container, "pod-interface-name-prefix").unwrap_or_default(),
            },
            iptables: Masquerade { masquerade_all: is_on(container, "masquerade-all") },
            nftables: Masquerade { masquerade_all: is_on(container, "masquerade-all") },
            node_port_addresses: flag(container, "nodeport-addresses")
                .map(|list| list.split(',').map(|range| range.trim().to_owned()).collect()),
        });
    };
    let (map, file) = mounted_file(pod, container, &path)?;
    let map = Key::new(key.namespace.clone(), map.to_owned());
    serde_yaml::from_str(cluster.config_maps.get(&map)?.get(file)?).ok()
}

/// The pod ranges that kube-proxies are configured with. A range that contains a node's address is
/// left out: it is too wide.
pub(super) fn pod_network(cluster: &Cluster) -> Vec<Range> {
    let settings = cluster.daemon_sets.iter().filter_map(|(key, set)| {
        let pod = set.object.spec.template.spec.as_ref()?;
        settings(cluster, key, pod)
    });
    let texts: Vec<String> = settings
        .flat_map(|settings| settings.cluster_cidr.split(',').map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let addresses = || cluster.nodes.values().flat_map(|node| &node.addresses);
    let too_wide =
        |range: &Range| range.is_everything() || addresses().any(|address| range.holds((*address).into()));
    readable(&texts).into_iter().filter(|range| !too_wide(range)).collect()
}

fn is_on(container: &Container, name: &str) -> bool {
    let on = [format!("--{name}"), format!("--{name}=true")];
    container.command.iter().chain(&container.args).flatten().any(|word| on.contains(word))
}

fn mode(scope: &Scope<'_>, settings: &Settings, subject: &Subject, found: &mut Vec<Finding>) {
    if settings.mode != "ipvs" {
        return;
    }
    let lacking = scope.services().any(|(key, _, object)| {
        let ready = scope.cluster.ready_endpoints(key);
        object.is_some_and(|object| object.ingress_nodes.iter().any(|node| !ready.contains_key(node)))
    });
    let finding = Finding::new(Code::ModeIpvs, subject.clone(), "kube-proxy runs in mode ipvs")
        .because(
            "In this mode, a node that sees an external address serves it itself. On an ingress node without an endpoint, the node and pods with \
             hostNetwork get no answer; with an endpoint, they reach only that one. The mode is deprecated since Kubernetes 1.35.",
        )
        .do_this("run an endpoint of each preserved Service on every ingress node")
        .do_this("change to mode nftables if the nodes' kernels support it");
    found.push(if lacking { finding.graded(Severity::Warning) } else { finding });
}

/// How the agents of mode Beside recognize the pods of their node.
fn own_local_detection(scope: &Scope<'_>, found: &mut Vec<Finding>) {
    if !scope.standing().any(|object| object.written.spec.mode == Mode::Beside) {
        return;
    }
    let lacking = scope.cluster.nodes.iter().filter(|(_, node)| node.pod_ranges.is_empty());
    let names: Vec<String> = lacking.map(|(name, _)| name.clone()).collect();
    if names.is_empty() {
        return;
    }
    let number = count(u64::try_from(names.len()).unwrap_or(u64::MAX), "node");
    let line = format!("{number} without spec.podCIDRs: {}", cut(names, MAX_NAMES, "").join(", "));
    found.push(
        Finding::new(Code::NoLocalDetection, Subject::cluster(), line)
            .graded(Severity::Note)
            .because(
                "By these ranges, an agent of mode Beside recognizes the pods of its node. Without them it treats these pods as external clients: on a \
                 node without an endpoint, it drops their traffic to NodePorts of Services with externalTrafficPolicy Local, and on such an ingress \
                 node that to external addresses. Their traffic to ClusterIPs is not affected.",
            )
            .do_this("run an endpoint of each preserved Service on every ingress node; let pods use the ClusterIP or the Service's name"),
    );
}

/// How kube-proxy recognizes the pods of its node.
fn local_detection(
    scope: &Scope<'_>,
    settings: &Settings,
    subject: &Subject,
    edit: &str,
    found: &mut Vec<Finding>,
) {
    let missing = match settings.detect_local_mode.as_str() {
        "" | "ClusterCIDR" if settings.cluster_cidr.trim().is_empty() => "clusterCIDR",
        "BridgeInterface" if settings.detect_local.bridge_interface.is_empty() => {
            "detectLocal.bridgeInterface"
        }
        "InterfaceNamePrefix" if settings.detect_local.interface_name_prefix.is_empty() => {
            "detectLocal.interfaceNamePrefix"
        }
        "NodeCIDR" if scope.cluster.nodes.values().any(|node| node.pod_ranges.is_empty()) => {
            "spec.podCIDRs of each node"
        }
        "" | "ClusterCIDR" => return cluster_range(scope, settings, subject, edit, found),
        _ => return,
    };
    found.push(
        Finding::new(Code::NoLocalDetection, subject.clone(), format!("{missing} is not set"))
            .because(
                "kube-proxy cannot recognize the pods of its node: on a node without an endpoint it drops their traffic to NodePorts of Services \
                 with externalTrafficPolicy Local, like that of clients outside.",
            )
            .do_this(edit),
    );
}

fn cluster_range(
    scope: &Scope<'_>,
    settings: &Settings,
    subject: &Subject,
    edit: &str,
    found: &mut Vec<Finding>,
) {
    let texts: Vec<String> = settings.cluster_cidr.split(',').map(str::to_owned).collect();
    let ranges = readable(&texts);
    let nodes = || scope.cluster.nodes.iter();
    let of_node = |range: &Range| {
        nodes().find(|(_, node)| node.addresses.iter().any(|address| range.holds((*address).into())))
    };
    if let Some(wide) = ranges.iter().find(|range| range.is_everything() || of_node(range).is_some()) {
        let holds = of_node(wide)
            .map_or("every address".to_owned(), |(name, _)| format!("the address of node {name}"));
        found.push(
            Finding::new(Code::LocalRangeTooWide, subject.clone(), format!("clusterCIDR {} contains {holds}", settings.cluster_cidr))
                .because(
                    "kube-proxy treats these addresses as pods of its node: it forwards their traffic to endpoints on other nodes without SNAT, and the \
                     answers are lost.",
                )
                .do_this(edit),
        );
        return;
    }
    let outside = nodes().find_map(|(name, node)| {
        let covered = |pods: &&Range| ranges.iter().any(|range| range.holds(**pods));
        node.pod_ranges.iter().find(|pods| !covered(pods)).map(|_| name)
    });
    if let Some(name) = outside {
        let line = format!("clusterCIDR {} does not contain the pods of node {name}", settings.cluster_cidr);
        found.push(
            Finding::new(Code::LocalRangeTooNarrow, subject.clone(), line)
                .because(
                    "kube-proxy treats pods outside of it as external: it applies SNAT to their traffic to ClusterIPs, and drops their traffic to NodePorts \
                     of Services with externalTrafficPolicy Local where there is no endpoint.",
                )
                .do_this("kubectl get nodes -o custom-columns=NAME:.metadata.name,PODS:.spec.podCIDRs")
                .do_this(edit),
        );
    }
}
