//! The nodes: whether each non-ingress node has an agent that has acknowledged its view.

use std::collections::BTreeSet;

use isp_api::conditions::find;
use isp_api::names::condition::READY;
use isp_api::names::{FAILURE_ANNOTATION, NAME_LABEL};
use isp_api::preserve::Phase;
use isp_api::validate::NodeIdentity;
use isp_api::view::View;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::{Object, Scene};
use crate::doctor::cluster::{Node, Pod};
use crate::doctor::finding::{Code, Finding, Severity, Subject};
use crate::doctor::kinds::Kind;
use crate::status::lag;

pub(super) fn check(scene: &Scene<'_>, found: &mut Vec<Finding>) {
    let mut said = BTreeSet::new();
    for object in scene.standing().filter(|object| !object.ingress_nodes.is_empty()) {
        ingress_nodes(scene, object, found);
        for (name, node) in &scene.cluster.nodes {
            let here = Here { scene, object, name, node };
            let problem = if object.ingress_nodes.contains(name.as_str()) {
                here.hides()
            } else if is_due(object, node) {
                here.problem()
            } else {
                None
            };
            // Objects share nodes; a fault of the node itself is reported once.
            if let Some(finding) = problem
                && said.insert((name, finding.code, finding.line.clone()))
            {
                found.push(finding);
            }
        }
    }
    two_proxies(scene, found);
}

/// Whether a node should have its agent by now. During a rollout, later waves are not due yet.
fn is_due(object: &Object<'_>, node: &Node) -> bool {
    let phase = object.written.status.as_ref().and_then(|status| status.phase);
    let over = node.labels.contains_key(isp_api::names::AGENT_POOL_LABEL);
    over || node.failure.is_some() || matches!(phase, Some(Phase::Ready | Phase::Degraded))
}

fn ingress_nodes(scene: &Scene<'_>, object: &Object<'_>, found: &mut Vec<Finding>) {
    let ready = |name: &str| scene.cluster.nodes.get(name).is_some_and(|node| node.ready);
    let some_ready = object.ingress_nodes.iter().any(|name| ready(name));
    for name in object.ingress_nodes.iter().filter(|name| !ready(name)) {
        let finding = not_ready(name, "it is an ingress node, and traffic to it is lost");
        found.push(if some_ready { finding.graded(Severity::Warning) } else { finding });
    }
}

fn not_ready(name: &str, why: &str) -> Finding {
    Finding::new(Code::NodeNotReady, Subject::new("Node", name), "it is not ready")
        .because(format!(
            "Its kubelet does not answer; {why}. Objects do not become Ready until the node is back or deleted."
        ))
        .do_this(format!("kubectl describe node {name}   # since when, and why"))
        .do_this(format!("kubectl delete node {name}   # if it does not come back"))
}

/// One node, for one object.
struct Here<'s, 'a> {
    scene: &'s Scene<'a>,
    object: &'s Object<'a>,
    name: &'s str,
    node: &'s Node,
}

impl Here<'_, '_> {
    fn found(&self, code: Code, line: impl Into<String>) -> Finding {
        Finding::new(code, Subject::new("Node", self.name), line)
    }

    fn agents(&self) -> impl Iterator<Item = &Pod> {
        let pods = self.scene.cluster.pods.values().filter(|pod| pod.agent);
        pods.filter(|pod| pod.proxy.as_ref().is_some_and(|proxy| proxy.node == self.name))
    }

    /// The first fault; the others follow from it.
    fn problem(&self) -> Option<Finding> {
        if !self.node.ready {
            return Some(not_ready(self.name, "the state of its agent is unknown"));
        }
        let pools = self.object.written.spec.pools();
        if !pools.iter().any(|pool| pool.contains(&self.node.labels).unwrap_or(false)) {
            return Some(
                self.found(Code::NodeWithoutPool, format!("no pool of {} selects it", self.object.name))
                    .because("It is not an ingress node and gets no agent, so it serves the external addresses itself.")
                    .do_this(format!("kubectl isp explain-node {}", self.name))
                    .do_this(format!("kubectl edit isp {}   # add a pool to spec.nodePools, or extend a selector", self.object.name)),
            );
        }
        if let Some(failure) = &self.node.failure {
            return Some(
                self.found(Code::AgentFailed, format!("its agent missed its deadline: {failure}"))
                    .because("The node was rolled back to the cluster's kube-proxy and serves the external addresses itself; no further wave begins in its pool.")
                    .do_this(format!("kubectl get pods -A -o wide -l {NAME_LABEL}=proxy-agent   # describe those that are not ready"))
                    .do_this(format!("kubectl annotate node {} {FAILURE_ANNOTATION}-   # retries, once the cause is fixed", self.name)),
            );
        }
        self.agent().or_else(|| self.report())
    }

    /// A node that became an ingress node, and whose agent still hides the Services.
    fn hides(&self) -> Option<Finding> {
        self.agents().next()?;
        let report = self.scene.cluster.reports.get(self.name)?.status.as_ref()?;
        let uid = self.object.written.uid().unwrap_or_default();
        let view = report.views.iter().find(|view| view.uid == uid && view.view != View::Full)?;
        let line =
            format!("it is an ingress node of {}, but its agent has view {:?}", self.object.name, view.view);
        Some(
            self.found(Code::AgentBehind, line)
                .because("The node does not serve the external addresses, although it receives the traffic.")
                .do_this(format!("kubectl isp explain-node {}", self.name)),
        )
    }

    fn agent(&self) -> Option<Finding> {
        if !self.scene.cluster.knows(Kind::Pod) {
            return None;
        }
        let reasons = "kube-proxy cannot read changes in the meantime: the node keeps its rules, which become outdated.";
        let look = format!(
            "kubectl get pods -A -o wide -l {NAME_LABEL}=proxy-agent --field-selector spec.nodeName={}",
            self.name
        );
        let agents: Vec<&Pod> = self.agents().collect();
        if agents.is_empty() {
            return Some(
                self.found(Code::AgentSilent, "no agent runs on it")
                    .because("It is not an ingress node, so without an agent it serves the external addresses itself.")
                    .do_this(look)
                    .do_this(format!("kubectl isp explain-node {}", self.name)),
            );
        }
        let proxies = || agents.iter().filter_map(|pod| pod.proxy.as_ref());
        if proxies().any(|proxy| proxy.ready) {
            return None;
        }
        let trouble = proxies().find_map(|proxy| proxy.trouble.clone());
        let trouble = trouble.map(|trouble| format!(": {trouble}")).unwrap_or_default();
        Some(
            self.found(Code::AgentNotReady, format!("its agent is not ready{trouble}"))
                .because(reasons)
                .do_this(look)
                .do_this(format!("kubectl logs -n kube-system -l {NAME_LABEL}=proxy-agent -c proxy-agent --tail=20   # and -c kube-proxy")),
        )
    }

    fn report(&self) -> Option<Finding> {
        if !self.scene.cluster.knows(Kind::IngressSourceNode) {
            return None;
        }
        let report = self.scene.cluster.reports.get(self.name).and_then(|report| report.status.as_ref());
        let explain = format!("kubectl isp explain-node {}", self.name);
        let logs =
            "kubectl logs -n kube-system -l app.kubernetes.io/name=proxy-agent -c proxy-agent --tail=20";
        let Some(report) = report else {
            return Some(
                self.found(Code::AgentSilent, "its agent does not report: the IngressSourceNode does not exist")
                    .because("The operator waits for its acknowledgement, and the view of the node is unknown.")
                    .do_this(logs)
                    .do_this("kubectl get validatingadmissionpolicies   # whether the agent may write the report, see manifests/agent"),
            );
        };
        if !report.proxy_connected {
            return Some(
                self.found(Code::ProxyNotConnected, "its kube-proxy is not connected to the agent")
                    .because("kube-proxy on this node does not learn of changes of Services and endpoints.")
                    .do_this("kubectl logs -n kube-system -l app.kubernetes.io/name=proxy-agent -c kube-proxy --tail=20")
                    .do_this(explain),
            );
        }
        let uid = self.object.written.uid().unwrap_or_default();
        let view = report.views.iter().find(|view| view.uid == uid);
        let generation = self.object.written.metadata.generation.unwrap_or_default();
        let node = NodeIdentity { name: self.name, labels: &self.node.labels };
        let wanted = isp_api::view::view(node, [self.object.written]).objects;
        let wanted = wanted.first().map(|own| own.view).unwrap_or_default();
        let Some(line) = lag(view, wanted, generation) else {
            return self.complaint(&report.conditions);
        };
        let code = match view.filter(|view| view.generation == generation && view.view == wanted) {
            Some(view) if view.relisted => Code::NotProgrammed,
            Some(_) => Code::NotRelisted,
            None => Code::AgentBehind,
        };
        Some(
            self.found(code, format!("{}: {line}", self.object.name))
                .because("The node works with its previous view: it may still serve the external addresses itself, or lack Services that it should see.")
                .do_this(explain)
                .do_this(logs),
        )
    }
}

impl Here<'_, '_> {
    /// The agent's own complaint, where no other finding explains it.
    fn complaint(&self, conditions: &[Condition]) -> Option<Finding> {
        let ready = find(conditions, READY).filter(|ready| ready.status != "True")?;
        Some(
            self.found(
                Code::AgentNotReady,
                format!("its agent reports that it is not ready: {}", ready.message),
            )
            .because("The rules of the node may be outdated.")
            .do_this(format!("kubectl get isn {} -o yaml", self.name))
            .do_this(format!("kubectl isp explain-node {}", self.name)),
        )
    }
}

/// Nodes on which two kube-proxies write the same rules.
fn two_proxies(scene: &Scene<'_>, found: &mut Vec<Finding>) {
    if scene.standing().next().is_none() {
        return;
    }
    let pods = &scene.cluster.pods;
    let on = |agent: bool| {
        pods.iter()
            .filter(move |(_, pod)| pod.agent == agent)
            .filter_map(|(key, pod)| Some((pod.proxy.as_ref()?, key)))
    };
    let agents: BTreeSet<&str> = on(true).map(|(proxy, _)| proxy.node.as_str()).collect();
    for (proxy, key) in on(false).filter(|(proxy, _)| agents.contains(proxy.node.as_str())) {
        let line = format!("the cluster's kube-proxy ({key}) runs on it together with the agent's");
        found.push(
            Finding::new(Code::TwoProxies, Subject::new("Node", &proxy.node), line)
                .because("Both write the same rules, and the cluster's own adds the external addresses that the agent hides.")
                .do_this(format!(
                    "kubectl get daemonset -n {} {} -o jsonpath='{{.spec.template.spec.affinity}}'   # sourcepreserve.io/agent-pool DoesNotExist must be in each term",
                    key.namespace, proxy.daemon_set
                ))
                .do_this(format!("kubectl delete pod -n {} {}", key.namespace, key.name)),
        );
    }
}
