//! Programs that provide the pod network or serve Services, recognized by their DaemonSets and by
//! their marks on nodes. It does not judge them; `check` does.

use std::collections::BTreeMap;

use isp_api::sidecar::Labels;
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::ResourceExt;

#[cfg(test)]
mod tests;

/// A project that provides the pod network or serves Services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Network {
    Antrea,
    AwsVpc,
    Calico,
    Cilium,
    Flannel,
    Kindnet,
    KubeRouter,
    OvnKubernetes,
    WeaveNet,
}

/// The names of DaemonSets, and the values of their labels `k8s-app`, `app` and `name`.
const NAMES: [(&str, Network); 13] = [
    ("antrea-agent", Network::Antrea),
    ("aws-node", Network::AwsVpc),
    ("calico-node", Network::Calico),
    ("canal", Network::Calico),
    ("rke2-canal", Network::Calico),
    ("cilium", Network::Cilium),
    // Google's build of Cilium, for GKE Dataplane V2.
    ("anetd", Network::Cilium),
    ("kube-flannel-ds", Network::Flannel),
    ("flannel", Network::Flannel),
    ("kindnet", Network::Kindnet),
    ("kube-router", Network::KubeRouter),
    ("ovnkube-node", Network::OvnKubernetes),
    ("weave-net", Network::WeaveNet),
];

/// Prefixes of annotations that a network puts on nodes.
const MARKS: [(&str, Network); 4] = [
    ("flannel.alpha.coreos.com/", Network::Flannel),
    ("projectcalico.org/", Network::Calico),
    ("network.cilium.io/", Network::Cilium),
    ("k8s.ovn.org/", Network::OvnKubernetes),
];

impl Network {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Antrea => "Antrea",
            Self::AwsVpc => "Amazon VPC CNI",
            Self::Calico => "Calico",
            Self::Cilium => "Cilium",
            Self::Flannel => "flannel",
            Self::Kindnet => "kindnet",
            Self::KubeRouter => "kube-router",
            Self::OvnKubernetes => "OVN-Kubernetes",
            Self::WeaveNet => "Weave Net",
        }
    }

    /// The networks that have annotated a node.
    pub(crate) fn of_node(annotations: &Labels) -> impl Iterator<Item = Self> {
        let marked =
            |(prefix, _): &(&str, Self)| annotations.keys().any(|annotation| annotation.starts_with(prefix));
        MARKS.into_iter().filter(marked).map(|(_, network)| network)
    }
}

/// The DaemonSet of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NetworkAgent {
    pub(crate) network: Network,
    /// Whether its own variables make it serve Services in eBPF.
    pub(crate) serves_by_ebpf: bool,
    /// Whether its command line makes it serve Services.
    pub(crate) serves_by_flag: bool,
}

impl NetworkAgent {
    /// Only pods of the host network provide a network. Others may have any name and label.
    pub(crate) fn of(object: &DaemonSet) -> Option<Self> {
        let pod = object.spec.template.spec.as_ref()?;
        if pod.host_network != Some(true) {
            return None;
        }
        let name = object.name_any();
        let labels = ["k8s-app", "app", "name"].into_iter().filter_map(|key| object.labels().get(key));
        let words: Vec<&str> = labels.map(String::as_str).chain([name.as_str()]).collect();
        let (_, network) = NAMES.into_iter().find(|(known, _)| words.contains(known)).or_else(|| {
            let is_antrea = object.labels().get("app").is_some_and(|app| app == "antrea");
            is_antrea.then_some(("", Network::Antrea))
        })?;
        let variables = pod.containers.iter().flat_map(|container| container.env.iter().flatten());
        let is_on = |value: &Option<String>| value.as_deref().is_some_and(|value| value == "true");
        let words = pod.containers.iter().flat_map(|container| container.args.iter().flatten());
        Some(Self {
            network,
            serves_by_ebpf: variables
                .into_iter()
                .any(|variable| variable.name == "FELIX_BPFENABLED" && is_on(&variable.value)),
            serves_by_flag: words
                .into_iter()
                .any(|word| ["--run-service-proxy", "--run-service-proxy=true"].contains(&word.as_str())),
        })
    }
}

/// The settings of Cilium that concern Services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CiliumSettings {
    /// Whether it serves Services instead of kube-proxy.
    pub(crate) replaces_kube_proxy: bool,
    /// Whether packets pass the host's netfilter, by option.
    pub(crate) legacy_routing: bool,
    /// It serves only Services with this proxy name. Empty: those without one.
    pub(crate) proxy_name: String,
}

impl CiliumSettings {
    /// The name of its `ConfigMap`.
    pub(crate) const MAP: &str = "cilium-config";

    pub(crate) fn of(data: &BTreeMap<String, String>) -> Self {
        let value = |name: &str| data.get(name).map_or("", String::as_str);
        Self {
            // Before 1.14 the value was strict, partial or disabled.
            replaces_kube_proxy: matches!(value("kube-proxy-replacement"), "true" | "strict"),
            legacy_routing: value("enable-host-legacy-routing") == "true",
            proxy_name: value("k8s-service-proxy-name").to_owned(),
        }
    }
}
