//! Which mode fits a cluster, and why. Pure. Mode Filter is judged by the function with which the
//! plan accepts or refuses a kube-proxy.

use std::collections::BTreeMap;

use isp_api::preserve::Mode;
use isp_api::sidecar::POD_SECURITY_LABEL;
use isp_plan::observe::kubeconfig_path;
use isp_plan::plan::accepted;
use schemars::JsonSchema;
use serde::Serialize;

use super::proxy::{Proxy, is_idle};
use super::version::Version;
use crate::doctor::cluster::{Cluster, Node};
use crate::doctor::kinds::Kind;
use crate::doctor::network::Network;
use crate::text::few;

#[cfg(test)]
mod tests;

/// The oldest Kubernetes that the project works with.
pub(super) const KUBERNETES: Version = Version(1, 33);
/// The oldest Linux of mode Beside.
pub(super) const LINUX: Version = Version(5, 6);
/// The namespace of the agents.
pub(super) const AGENTS: &str = "kube-system";
/// There are images of the agents for these.
pub(super) const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];

/// A condition of mode Beside on Cilium.
const HOST_ROUTING: &str = "Cilium's eBPF host routing is off (bpf.hostLegacyRouting: true), because it bypasses netfilter, where the agents' rules are";

/// Whether a mode works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Answer {
    Yes,
    /// If a condition holds that the cluster does not show.
    Perhaps,
    No,
    /// Something could not be read.
    Unknown,
}

/// The answer for one mode.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub(crate) struct Verdict {
    pub(crate) answer: Answer,
    pub(crate) reasons: Vec<String>,
}

impl Verdict {
    fn new(answer: Answer, reason: impl Into<String>) -> Self {
        Self { answer, reasons: vec![reason.into()] }
    }

    fn no(reasons: Vec<String>) -> Self {
        Self { answer: Answer::No, reasons }
    }

    /// The same with a condition.
    fn provided(mut self, condition: String) -> Self {
        if self.answer == Answer::Yes {
            self.answer = Answer::Perhaps;
        }
        self.reasons.push(condition);
        self
    }
}

/// The answers for both modes, and the mode to choose.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub(crate) struct Fit {
    pub(crate) filter: Verdict,
    pub(crate) beside: Verdict,
    /// None: neither mode works, or nothing is known about either.
    pub(crate) mode: Option<Mode>,
}

/// Judges both modes.
pub(crate) fn fit(cluster: &Cluster) -> Fit {
    let common = obstacles(cluster);
    let (filter, beside) = if common.is_empty() {
        (filter(cluster), beside(cluster))
    } else {
        (Verdict::no(common.clone()), Verdict::no(common))
    };
    let mode = match (filter.answer, beside.answer) {
        (Answer::Yes, _) => Some(Mode::Filter),
        (_, Answer::Yes) => Some(Mode::Beside),
        (Answer::Perhaps, _) => Some(Mode::Filter),
        (_, Answer::Perhaps) => Some(Mode::Beside),
        _ => None,
    };
    Fit { filter, beside, mode }
}

/// Obstacles to either mode.
fn obstacles(cluster: &Cluster) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(version) = &cluster.version
        && Version::of(version).is_some_and(|version| version < KUBERNETES)
    {
        found.push(format!("the API server is {version}, and the project needs {KUBERNETES}"));
    }
    if let Some(level) = enforced(cluster) {
        found.push(format!("{AGENTS} enforces Pod Security level {level}, which rejects the agents"));
    }
    let foreign = nodes(cluster, |node| {
        let architecture = node.system.architecture.as_str();
        node.beside && !architecture.is_empty() && !ARCHITECTURES.contains(&architecture)
    });
    if !foreign.is_empty() {
        let known = ARCHITECTURES.join(" and ");
        found.push(format!("there are images for {known} only, not for {}", few(&foreign)));
    }
    found
}

/// The Pod Security level that the namespace of the agents enforces, if it rejects them.
pub(super) fn enforced(cluster: &Cluster) -> Option<&String> {
    cluster.namespaces.get(AGENTS)?.get(POD_SECURITY_LABEL).filter(|level| *level != "privileged")
}

/// The names of some nodes.
pub(super) fn nodes(cluster: &Cluster, which: impl Fn(&Node) -> bool) -> Vec<String> {
    cluster.nodes.iter().filter(|(_, node)| which(node)).map(|(name, _)| name.clone()).collect()
}

fn filter(cluster: &Cluster) -> Verdict {
    if !cluster.knows(Kind::DaemonSet) {
        return Verdict::new(Answer::Unknown, "DaemonSets were not read, and kube-proxy must be one of them");
    }
    let files = |files: &BTreeMap<String, String>| {
        files.iter().filter_map(|(file, text)| Some((file.clone(), kubeconfig_path(text)?))).collect()
    };
    let configurations = cluster.config_maps.iter().map(|(key, texts)| (key.clone(), files(texts))).collect();
    match accepted(&cluster.daemon_sets, &configurations) {
        Ok((key, set)) if is_idle(set) => Verdict::no(vec![format!(
            "DaemonSet {key} runs on no node, so another proxy serves the Services"
        )]),
        Ok((key, _)) => Verdict::new(
            Answer::Yes,
            format!("DaemonSet {key} can run behind the agent, with its own image and flags"),
        ),
        Err(refusal) => match refusal.config_map.filter(|map| !cluster.config_maps.contains_key(map)) {
            Some(map) => Verdict::new(
                Answer::Unknown,
                format!("ConfigMap {map}, which has the configuration of kube-proxy, was not read"),
            ),
            None => Verdict::no(vec![refusal.message]),
        },
    }
}

fn beside(cluster: &Cluster) -> Verdict {
    let hosts = || cluster.nodes.values().filter(|node| node.beside);
    if !cluster.knows(Kind::Node) || hosts().next().is_none() {
        return Verdict::new(Answer::Unknown, "no node was read, so kernels are not known");
    }
    let kernel = |node: &Node| Version::of(&node.system.kernel);
    let old = nodes(cluster, |node| node.beside && kernel(node).is_some_and(|kernel| kernel < LINUX));
    if !old.is_empty() {
        return Verdict::no(vec![format!(
            "it needs Linux {LINUX}, and the kernels of these nodes are older: {}",
            few(&old)
        )]);
    }
    let mut verdict = by_proxy(cluster);
    if verdict.answer != Answer::No && hosts().any(|node| kernel(node).is_none()) {
        verdict = verdict
            .provided(format!("all nodes run Linux {LINUX} or later; some do not report their kernel"));
    }
    let windows = nodes(cluster, |node| node.system.os == "windows");
    if !windows.is_empty() {
        let names = few(&windows);
        verdict = verdict.provided(format!("pods on Windows nodes ({names}) do not call the Services: no agent runs there, and their kube-proxy skips the Services"));
    }
    let autopilot = cluster.nodes.keys().any(|name| name.starts_with("gk3-"));
    if autopilot {
        verdict = verdict.provided("GKE Autopilot admits pods with NET_ADMIN in the host network".to_owned());
    }
    verdict
}

/// Whether the proxy leaves the Services to the agents, and whether packets reach their rules.
fn by_proxy(cluster: &Cluster) -> Verdict {
    let proxy = Proxy::of(cluster);
    let network = match &proxy {
        Proxy::DaemonSet(_) | Proxy::DaemonSets(_) | Proxy::StaticPods(_) | Proxy::K3s => {
            let verdict =
                Verdict::new(Answer::Yes, format!("{proxy} skips Services with the label of another proxy"));
            // Its eBPF host routing needs that it replaces kube-proxy.
            let routes = cluster.cilium.as_ref().is_none_or(|cilium| cilium.replaces_kube_proxy);
            let is_there = cluster.networks.values().any(|agent| agent.network == Network::Cilium);
            return if routes && is_there { verdict.provided(HOST_ROUTING.to_owned()) } else { verdict };
        }
        Proxy::NotRecognized => {
            let answer = if cluster.knows(Kind::DaemonSet) { Answer::Perhaps } else { Answer::Unknown };
            return Verdict::new(
                answer,
                "the program that serves Services was not recognized; it must skip Services with the label of another proxy",
            );
        }
        Proxy::Network { network, .. } => *network,
    };
    let perhaps = |condition: &str| Verdict::new(Answer::Perhaps, format!("{proxy}: {condition}"));
    match network {
        Network::Cilium => match &cluster.cilium {
            Some(settings) if !settings.proxy_name.is_empty() => Verdict::no(vec![format!(
                "Cilium is set to serve only Services with the proxy name {:?} (k8s-service-proxy-name)",
                settings.proxy_name
            )]),
            Some(settings) if settings.legacy_routing => Verdict::new(
                Answer::Yes,
                "Cilium skips Services with the label of another proxy, and its packets pass netfilter (enable-host-legacy-routing); not tested with this project",
            ),
            _ => perhaps(HOST_ROUTING),
        },
        Network::Antrea => perhaps(
            "AntreaProxy skips the Services unless antreaProxy.serviceProxyName is set; not tested with this project",
        ),
        Network::Calico => perhaps(
            "its eBPF programs can forward pods' packets past netfilter, where the agents' rules are; try it on a test cluster first",
        ),
        Network::KubeRouter => perhaps("releases before 2024 do not skip the Services; check yours"),
        other => perhaps(&format!(
            "whether {} skips Services with the label of another proxy is not known",
            other.as_str()
        )),
    }
}
