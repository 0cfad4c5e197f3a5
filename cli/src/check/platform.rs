//! The cluster itself: API server, nodes, Service proxy, network, Pod Security, and the modes that
//! work on it. Nothing here is a fault by itself.

use std::collections::{BTreeMap, BTreeSet};

use super::fit::{AGENTS, ARCHITECTURES, Answer, Fit, KUBERNETES, LINUX, Verdict, enforced, nodes};
use super::line::Line;
use super::proxy::Proxy;
use super::version::Version;
use crate::doctor::cluster::{Cluster, Node};
use crate::doctor::examine::{Examination, proxy_mode};
use crate::doctor::finding::{Code, Severity, Subject};
use crate::doctor::kinds::Kind;
use crate::doctor::network::Network;
use crate::text::{count, few};

pub(super) fn lines(cluster: &Cluster, examination: &Examination) -> Vec<Line> {
    let mut lines = vec![api_server(cluster)];
    if cluster.knows(Kind::Node) {
        lines.extend(systems(cluster));
        lines.extend(kernels(cluster));
    }
    if cluster.knows(Kind::DaemonSet) {
        lines.push(proxy(cluster));
        lines.push(network(cluster));
    }
    lines.extend(pod_security(cluster));
    let settings = examination.findings.iter().filter(|finding| is_of_kube_proxy(finding.code));
    lines.extend(settings.map(|finding| {
        let line = Line::of_finding("kube-proxy-settings", finding);
        // They lose no client's address by themselves, unless doctor calls that an error.
        if finding.severity == Severity::Error { line } else { Line { state: super::State::Notice, ..line } }
    }));
    lines
}

/// Findings about the settings of kube-proxy.
pub(super) fn is_of_kube_proxy(code: Code) -> bool {
    matches!(
        code,
        Code::LocalRangeTooWide
            | Code::LocalRangeTooNarrow
            | Code::MasqueradeAll
            | Code::NoLocalDetection
            | Code::ModeIpvs
    )
}

fn api_server(cluster: &Cluster) -> Line {
    const CHECK: &str = "kubernetes";
    match cluster.version.as_deref().map(|text| (text, Version::of(text))) {
        Some((text, Some(version))) if version < KUBERNETES => {
            Line::notice(CHECK, format!("the API server is {text}; the project needs {KUBERNETES} or later"))
                .coded(Code::ClusterTooOld)
                .about(Subject::cluster())
        }
        Some((text, Some(_))) => {
            Line::passed(CHECK, format!("the API server is {text}; the project needs {KUBERNETES} or later"))
        }
        Some((text, None)) => {
            Line::notice(CHECK, format!("the version of the API server is unclear: {text:?}"))
        }
        None => Line::notice(CHECK, "the version of the API server is not known")
            .detail("kubectl version -o yaml   # a dump may have its output"),
    }
}

fn systems(cluster: &Cluster) -> Vec<Line> {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for node in cluster.nodes.values().filter(|node| node.beside) {
        let known = |text: &str| if text.is_empty() { "unknown".to_owned() } else { text.to_owned() };
        let kind = format!("{} {}", known(&node.system.os), known(&node.system.architecture));
        *kinds.entry(kind).or_default() += 1;
    }
    let counted: Vec<String> = kinds.iter().map(|(kind, number)| format!("{number} {kind}")).collect();
    let total = u64::try_from(cluster.nodes.len()).unwrap_or(u64::MAX);
    let line = format!("{}: {}", count(total, "node"), counted.join(", "));
    let odd = |node: &Node| {
        let system = &node.system;
        !node.beside
            || !system.architecture.is_empty() && !ARCHITECTURES.contains(&system.architecture.as_str())
    };
    let odd = nodes(cluster, odd);
    let mut lines = Vec::new();
    if !counted.is_empty() {
        lines.push(Line::passed("nodes", line));
    }
    if !odd.is_empty() {
        let text = format!("no agent runs on {}", few(&odd));
        let why = "They run Windows, are virtual, or have another architecture than amd64 and arm64. The operator leaves Windows and virtual nodes out.";
        lines.push(Line::notice("nodes", text).about(Subject::cluster()).coded(Code::NodeUnfit).detail(why));
    }
    lines
}

fn kernels(cluster: &Cluster) -> Option<Line> {
    const CHECK: &str = "kernels";
    let of_agents = || cluster.nodes.values().filter(|node| node.beside);
    let known: BTreeSet<Version> = of_agents().filter_map(|node| Version::of(&node.system.kernel)).collect();
    let kernel = |node: &Node| Version::of(&node.system.kernel);
    let old = nodes(cluster, |node| node.beside && kernel(node).is_some_and(|kernel| kernel < LINUX));
    if !old.is_empty() {
        let line =
            format!("the kernels of {} are older than Linux {LINUX}, which mode Beside needs", few(&old));
        let line = Line::notice(CHECK, line).about(Subject::cluster()).coded(Code::KernelTooOld);
        return Some(line.detail("mode Filter needs no particular kernel"));
    }
    let silent = of_agents().filter(|node| kernel(node).is_none()).count();
    if silent > 0 {
        let number = count(u64::try_from(silent).unwrap_or(u64::MAX), "node");
        return Some(Line::notice(CHECK, format!("the kernels of {number} are not known (status.nodeInfo)")));
    }
    let (oldest, newest) = (known.first()?, known.last()?);
    let which =
        if oldest == newest { format!("Linux {oldest}") } else { format!("Linux {oldest} to {newest}") };
    Some(Line::passed(CHECK, format!("kernels: {which}; mode Beside needs {LINUX}")))
}

fn proxy(cluster: &Cluster) -> Line {
    const CHECK: &str = "service-proxy";
    let proxy = Proxy::of(cluster);
    match &proxy {
        Proxy::NotRecognized => Line::notice(CHECK, "the program that serves Services was not recognized")
            .about(Subject::cluster())
            .coded(Code::ProxyNotRecognized)
            .detail(
                "kube-proxy may run as a system service; a proxy of another project may not be known here",
            ),
        Proxy::DaemonSet(_) => match proxy_mode(cluster) {
            Some(mode) => Line::passed(CHECK, format!("Services are served by {proxy}, mode {mode}")),
            None => Line::notice(
                CHECK,
                format!(
                    "Services are served by {proxy}; its settings were not found, so its mode is not known"
                ),
            ),
        },
        _ => Line::passed(CHECK, format!("Services are served by {proxy}")),
    }
}

fn network(cluster: &Cluster) -> Line {
    const CHECK: &str = "network";
    let by_pods = cluster.networks.values().map(|agent| agent.network);
    let marks = cluster.nodes.values().flat_map(|node| node.networks.iter().copied());
    let found: BTreeSet<Network> = by_pods.chain(marks).collect();
    let names: Vec<&str> = found.into_iter().map(Network::as_str).collect();
    if names.is_empty() {
        Line::notice(CHECK, "the pod network was not recognized")
            .detail("mode Beside needs packets that pass netfilter on the nodes")
    } else {
        Line::passed(CHECK, format!("the pod network is {}", names.join(" and ")))
    }
}

fn pod_security(cluster: &Cluster) -> Option<Line> {
    const CHECK: &str = "pod-security";
    if !cluster.knows(Kind::Namespace) {
        return None;
    }
    let Some(level) = enforced(cluster) else {
        return Some(Line::passed(CHECK, format!("Pod Security of {AGENTS} admits the agents")));
    };
    let line = format!("{AGENTS} enforces Pod Security level {level}, which rejects the agents");
    let line = Line::notice(CHECK, line).about(Subject::new("Namespace", AGENTS)).coded(Code::AgentsRejected);
    Some(line.detail(format!(
        "kubectl label namespace {AGENTS} pod-security.kubernetes.io/enforce=privileged --overwrite"
    )))
}

/// The section about the modes.
pub(super) fn modes(fit: &Fit, is_lost: bool) -> Vec<Line> {
    let line = |check: &'static str, name: &str, verdict: &Verdict| {
        let (head, rest) = verdict.reasons.split_first().map_or(("", &[][..]), |(head, rest)| (head, rest));
        let line = match verdict.answer {
            Answer::Yes => Line::passed(check, format!("mode {name} fits: {head}")),
            Answer::Perhaps => Line::notice(check, format!("mode {name} may fit: {head}")),
            Answer::No => Line::notice(check, format!("mode {name} does not fit: {head}")),
            Answer::Unknown => Line::notice(check, format!("mode {name} could not be judged: {head}")),
        };
        let what = if verdict.answer == Answer::No { "" } else { "provided that " };
        rest.iter().fold(line, |line, reason| line.detail(format!("{what}{reason}")))
    };
    let mut lines = vec![line("filter", "Filter", &fit.filter), line("beside", "Beside", &fit.beside)];
    let refused = [&fit.filter, &fit.beside].iter().all(|verdict| verdict.answer == Answer::No);
    if is_lost && refused {
        let text = "neither mode fits this cluster as it is, so no object is proposed";
        lines.push(Line::failed("fit", text).about(Subject::cluster()).coded(Code::NoModeFits));
    }
    lines
}
