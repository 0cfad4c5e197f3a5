//! Mode Beside: every node has an agent, which serves the Services of the object. Every kube-proxy
//! skips these, so a node without an agent serves them for nobody.

use isp_api::conditions::find;
use isp_api::names::condition::READY;
use isp_api::names::{AGENT_MODE_LABEL, BESIDE_MODE, BESIDE_NAME, NAME_LABEL};
use isp_api::node::{AcknowledgedView, AgentMode};

use super::{Here, not_ready};
use crate::doctor::cluster::Service;
use crate::doctor::finding::{Code, Finding};
use crate::doctor::kinds::Kind;
use crate::text::few;

impl Here<'_, '_> {
    /// The first fault; the others follow from it.
    pub(super) fn beside_problem(&self) -> Option<Finding> {
        if !(self.is_rolled_out() || self.taken_over().next().is_some()) {
            return None;
        }
        if !self.node.ready {
            // An ingress node that is not ready is reported as such.
            return (!self.is_ingress()).then(|| not_ready(self.name, "the state of its agent is unknown"));
        }
        self.beside_agent().or_else(|| self.beside_report())
    }

    /// The Services with the object's label that every kube-proxy skips.
    fn taken_over(&self) -> impl Iterator<Item = String> {
        let (services, label) = (&self.scope.cluster.services, self.object.written.service_label());
        let is_taken_over = move |service: &Service| {
            service.facts.is_taken_over() && service.facts.labels.get(&label.key) == Some(&label.value)
        };
        let keys = self.object.services.iter();
        keys.filter(move |key| services.get(**key).is_some_and(&is_taken_over)).map(ToString::to_string)
    }

    fn look(&self) -> String {
        format!("kubectl get pods -A -o wide -l {} --field-selector spec.nodeName={}", selector(), self.name)
    }

    fn beside_agent(&self) -> Option<Finding> {
        if !self.scope.cluster.knows(Kind::Pod) || self.agents().any(|agent| agent.ready) {
            return None;
        }
        let describe =
            format!("kubectl describe daemonset -n kube-system {BESIDE_NAME}   # why it has no pod there");
        let Some(agent) = self.agents().next() else {
            let (code, line, why) = if self.is_ingress() {
                (
                    Code::IngressNodeWithoutAgent,
                    "it is an ingress node, and no agent runs on it",
                    "Clients whose traffic it receives get no answer",
                )
            } else {
                (Code::AgentSilent, "no agent runs on it", "Its pods and host do not reach their ClusterIPs")
            };
            let reason = format!(
                "Every kube-proxy skips the Services of {}, and the agent alone serves them (mode Beside). {why}, unless an agent that ran there \
                 before has left its rules; those become outdated.",
                self.object.name
            );
            return Some(
                self.found(code, line)
                    .because(reason)
                    .do_this(self.look())
                    .do_this(describe)
                    .do_this(self.explain()),
            );
        };
        let trouble = agent.trouble.as_ref().map(|trouble| format!(": {trouble}")).unwrap_or_default();
        Some(
            self.found(Code::AgentNotReady, format!("its agent is not ready{trouble}"))
                .because("The node keeps the rules that it has, and changes of the preserved Services do not reach it.")
                .do_this(self.look())
                .do_this(logs()),
        )
    }

    fn beside_report(&self) -> Option<Finding> {
        if !self.scope.cluster.knows(Kind::IngressSourceNode) {
            return None;
        }
        let name = AgentMode::Beside.report_name(self.name);
        let Some(report) = self.scope.cluster.report(self.name, AgentMode::Beside) else {
            return Some(
                self.found(Code::AgentSilent, format!("its agent does not report: IngressSourceNode {name} does not exist"))
                    .because("The operator waits for its acknowledgement, and the Services that the node serves are unknown.")
                    .do_this(logs())
                    .do_this("kubectl get validatingadmissionpolicies   # whether the agent may write the report, see manifests/agent"),
            );
        };
        if !report.active {
            let said = find(&report.conditions, READY).map(|ready| format!(": {}", ready.message));
            let line = format!("its agent has not programmed the kernel{}", said.unwrap_or_default());
            return Some(
                self.found(Code::NotProgrammed, line)
                    .because("The node keeps the rules that it has, and changes of the preserved Services do not reach it.")
                    .do_this(logs())
                    .do_this(self.explain()),
            );
        }
        let (view, wanted) = (self.view(report), self.wanted());
        if let Some(line) = wanted.lag(view) {
            let is_current = view.is_some_and(|view| wanted.is_current(view));
            let code = if is_current { Code::NotProgrammed } else { Code::AgentBehind };
            return Some(
                self.found(code, format!("{}: {line}", self.object.name))
                    .because("The node works with its previous view: it may still serve the external addresses itself, or lack Services that it should serve.")
                    .do_this(self.explain())
                    .do_this(logs()),
            );
        }
        view.and_then(|view| self.not_served(view)).or_else(|| self.complaint(&name, &report.conditions))
    }

    fn not_served(&self, view: &AcknowledgedView) -> Option<Finding> {
        let lacking: Vec<String> = self.taken_over().filter(|name| !view.services.contains(name)).collect();
        if lacking.is_empty() {
            return None;
        }
        let line = format!("its agent does not serve {}, and every kube-proxy skips it", few(&lacking));
        Some(
            self.found(Code::NotServed, line)
                .because(
                    "Nothing on this node serves the Service: its own pods do not reach the ClusterIP, and an ingress node drops the traffic that it receives.",
                )
                .do_this(logs())
                .do_this(self.explain()),
        )
    }
}

fn selector() -> String {
    format!("{NAME_LABEL}=proxy-agent,{AGENT_MODE_LABEL}={BESIDE_MODE}")
}

fn logs() -> String {
    format!("kubectl logs -n kube-system -l {} -c proxy-agent --tail=20", selector())
}
