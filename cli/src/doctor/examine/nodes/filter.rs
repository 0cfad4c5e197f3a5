//! Mode Filter: a non-ingress node has an agent, and its kube-proxy reads the API through it.

use isp_api::names::{AGENT_POOL_LABEL, FAILURE_ANNOTATION, NAME_LABEL};
use isp_api::node::AgentMode;
use isp_api::view::View;

use super::{Here, not_ready};
use crate::doctor::finding::{Code, Finding};
use crate::doctor::kinds::Kind;

const LOGS: &str =
    "kubectl logs -n kube-system -l app.kubernetes.io/name=proxy-agent -c proxy-agent --tail=20";

impl Here<'_, '_> {
    /// The first fault; the others follow from it.
    pub(super) fn filter_problem(&self) -> Option<Finding> {
        if self.is_ingress() {
            return self.hides();
        }
        let over = self.node.labels.contains_key(AGENT_POOL_LABEL);
        if !(over || self.node.failure.is_some() || self.is_rolled_out()) {
            return None;
        }
        if !self.node.ready {
            return Some(not_ready(self.name, "the state of its agent is unknown"));
        }
        let pools = self.object.written.spec.pools();
        if !pools.iter().any(|pool| pool.contains(&self.node.labels).unwrap_or(false)) {
            return Some(
                self.found(Code::NodeWithoutPool, format!("no pool of {} selects it", self.object.name))
                    .because("It is not an ingress node and gets no agent, so it serves the external addresses itself.")
                    .do_this(self.explain())
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
        self.filter_agent().or_else(|| self.filter_report())
    }

    /// A node that became an ingress node, and whose agent still hides the Services.
    fn hides(&self) -> Option<Finding> {
        self.agents().next()?;
        let report = self.scope.cluster.report(self.name, AgentMode::Filter)?;
        let view = self.view(report).filter(|view| view.view != View::Full)?;
        let line =
            format!("it is an ingress node of {}, but its agent has view {:?}", self.object.name, view.view);
        Some(
            self.found(Code::AgentBehind, line)
                .because("The node does not serve the external addresses, although it receives the traffic.")
                .do_this(self.explain()),
        )
    }

    fn filter_agent(&self) -> Option<Finding> {
        if !self.scope.cluster.knows(Kind::Pod) {
            return None;
        }
        let reasons = "kube-proxy cannot read changes in the meantime: the node keeps its rules, which become outdated.";
        let look = format!(
            "kubectl get pods -A -o wide -l {NAME_LABEL}=proxy-agent --field-selector spec.nodeName={}",
            self.name
        );
        if self.agents().next().is_none() {
            return Some(
                self.found(Code::AgentSilent, "no agent runs on it")
                    .because("It is not an ingress node, so without an agent it serves the external addresses itself.")
                    .do_this(look)
                    .do_this(self.explain()),
            );
        }
        if self.agents().any(|agent| agent.ready) {
            return None;
        }
        let trouble = self.agents().find_map(|agent| agent.trouble.clone());
        let trouble = trouble.map(|trouble| format!(": {trouble}")).unwrap_or_default();
        Some(
            self.found(Code::AgentNotReady, format!("its agent is not ready{trouble}"))
                .because(reasons)
                .do_this(look)
                .do_this(format!("{LOGS}   # and -c kube-proxy")),
        )
    }

    fn filter_report(&self) -> Option<Finding> {
        if !self.scope.cluster.knows(Kind::IngressSourceNode) {
            return None;
        }
        let Some(report) = self.scope.cluster.report(self.name, AgentMode::Filter) else {
            return Some(
                self.found(Code::AgentSilent, "its agent does not report: the IngressSourceNode does not exist")
                    .because("The operator waits for its acknowledgement, and the view of the node is unknown.")
                    .do_this(LOGS)
                    .do_this("kubectl get validatingadmissionpolicies   # whether the agent may write the report, see manifests/agent"),
            );
        };
        if !report.active {
            return Some(
                self.found(Code::ProxyNotConnected, "its kube-proxy is not connected to the agent")
                    .because("kube-proxy on this node does not learn of changes of Services and endpoints.")
                    .do_this("kubectl logs -n kube-system -l app.kubernetes.io/name=proxy-agent -c kube-proxy --tail=20")
                    .do_this(self.explain()),
            );
        }
        let (view, wanted) = (self.view(report), self.wanted());
        let Some(line) = wanted.lag(view) else {
            return self.complaint(self.name, &report.conditions);
        };
        let current = |view: &&_| wanted.is_current(view);
        let code = match view.filter(current) {
            Some(view) if view.received => Code::NotProgrammed,
            Some(_) => Code::NotRelisted,
            None => Code::AgentBehind,
        };
        Some(
            self.found(code, format!("{}: {line}", self.object.name))
                .because("The node works with its previous view: it may still serve the external addresses itself, or lack Services that it should see.")
                .do_this(self.explain())
                .do_this(LOGS),
        )
    }
}
