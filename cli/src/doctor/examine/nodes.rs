//! The nodes: whether each node that needs an agent has one that has acknowledged its view.
//! `filter` and `beside` know what that means in their mode.

mod beside;
mod filter;

use std::collections::BTreeSet;

use isp_api::conditions::find;
use isp_api::names::condition::READY;
use isp_api::node::{AcknowledgedView, AgentMode, IngressSourceNodeStatus};
use isp_api::preserve::{Mode, Phase};
use isp_api::validate::NodeIdentity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::{Object, Scope};
use crate::doctor::cluster::Node;
use crate::doctor::finding::{Code, Finding, Severity, Subject};
use crate::status::Wanted;

pub(super) fn check(scope: &Scope<'_>, found: &mut Vec<Finding>) {
    let mut said = BTreeSet::new();
    for object in scope.standing().filter(|object| !object.ingress_nodes.is_empty()) {
        ingress_nodes(scope, object, found);
        for (name, node) in &scope.cluster.nodes {
            let here = Here { scope, object, name, node };
            let problem = match object.written.spec.mode {
                _ if here.is_left_out() => None,
                Mode::Filter => here.filter_problem(),
                Mode::Beside => here.beside_problem(),
            };
            // Objects share nodes; a fault of the node itself is reported once.
            if let Some(finding) = problem
                && said.insert((name, finding.code, finding.line.clone()))
            {
                found.push(finding);
            }
        }
    }
    two_proxies(scope, found);
}

fn ingress_nodes(scope: &Scope<'_>, object: &Object<'_>, found: &mut Vec<Finding>) {
    let ready = |name: &str| scope.cluster.nodes.get(name).is_some_and(|node| node.ready);
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
    scope: &'s Scope<'a>,
    object: &'s Object<'a>,
    name: &'s str,
    node: &'s Node,
}

impl Here<'_, '_> {
    fn found(&self, code: Code, line: impl Into<String>) -> Finding {
        Finding::new(code, Subject::new("Node", self.name), line)
    }

    fn is_ingress(&self) -> bool {
        self.object.ingress_nodes.contains(self.name)
    }

    /// Whether every node should have its agent by now. During a rollout, later waves are not due
    /// yet.
    fn is_rolled_out(&self) -> bool {
        let phase = self.object.written.status.as_ref().and_then(|status| status.phase);
        matches!(phase, Some(Phase::Ready | Phase::Degraded))
    }

    /// Whether the operator gives the node no agent. It names some of these nodes and counts all.
    fn is_left_out(&self) -> bool {
        let status = self.object.written.status.as_ref();
        let Some(left_out) = status.and_then(|status| status.left_out.as_ref()) else { return false };
        let named = left_out.nodes.iter().any(|name| name == self.name);
        let unnamed = usize::try_from(left_out.count).is_ok_and(|count| count > left_out.nodes.len());
        named || unnamed && self.agents().next().is_none()
    }

    fn agents(&self) -> impl Iterator<Item = &isp_plan::cluster::Pod> {
        let mode = match self.object.written.spec.mode {
            Mode::Filter => AgentMode::Filter,
            Mode::Beside => AgentMode::Beside,
        };
        self.scope.cluster.agents_on(self.name, mode)
    }

    fn view<'r>(&self, report: &'r IngressSourceNodeStatus) -> Option<&'r AcknowledgedView> {
        let uid = self.object.written.uid().unwrap_or_default();
        report.views.iter().find(|view| view.uid == uid)
    }

    /// The view that the node should have.
    fn wanted(&self) -> Wanted {
        let node = NodeIdentity { name: self.name, labels: &self.node.labels };
        let views = isp_api::view::view(node, [self.object.written]).objects;
        Wanted {
            mode: self.object.written.spec.mode,
            view: views.first().map(|own| own.view).unwrap_or_default(),
            generation: self.object.written.metadata.generation.unwrap_or_default(),
        }
    }

    fn explain(&self) -> String {
        format!("kubectl isp explain-node {}", self.name)
    }

    /// The agent's own complaint, where no other finding explains it.
    fn complaint(&self, report: &str, conditions: &[Condition]) -> Option<Finding> {
        let ready = find(conditions, READY).filter(|ready| ready.status != "True")?;
        Some(
            self.found(
                Code::AgentNotReady,
                format!("its agent reports that it is not ready: {}", ready.message),
            )
            .because("The rules of the node may be outdated.")
            .do_this(format!("kubectl get isn {report} -o yaml"))
            .do_this(self.explain()),
        )
    }
}

/// Nodes on which two kube-proxies write the same rules. An agent of mode Beside has none.
fn two_proxies(scope: &Scope<'_>, found: &mut Vec<Finding>) {
    if scope.standing().next().is_none() {
        return;
    }
    let agents: BTreeSet<&str> =
        scope.cluster.agents(AgentMode::Filter).map(|agent| agent.node.as_str()).collect();
    let own = scope.cluster.pods.iter().filter(|(_, pod)| pod.agent.is_none());
    let own = own.filter_map(|(key, pod)| Some((pod.proxy.as_ref()?, key)));
    for (proxy, key) in own.filter(|(proxy, _)| agents.contains(proxy.node.as_str())) {
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
