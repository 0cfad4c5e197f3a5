//! The checks that passed, in a line each, so that a reader sees what was examined.

use std::collections::BTreeSet;

use isp_api::names::{
    AGENT_POOL_LABEL, OBJECT_WEBHOOK_CONFIGURATION, OPERATOR_FIELD_MANAGER, WEBHOOK_SERVICE,
};
use isp_api::node::AgentMode;
use schemars::JsonSchema;
use serde::Serialize;

use super::programs::program;
use super::{Object, Scope, kube_proxy};
use crate::doctor::finding::{Code, Finding, Severity, Subject};
use crate::doctor::judgement::Arrival;
use crate::doctor::kinds::Kind;
use crate::status::is_ready;
use crate::text::count;

/// One check that passed.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub(crate) struct Passed {
    /// The name of the check. It does not change.
    pub(crate) check: &'static str,
    /// The result.
    pub(crate) line: String,
}

pub(super) fn passed(scope: &Scope<'_>, found: &[Finding]) -> Vec<Passed> {
    let checks = Checks { scope, found };
    let lines = [
        ("operator", checks.program("operator", OPERATOR_FIELD_MANAGER, Code::OperatorUnavailable)),
        ("webhook", checks.program("webhook", WEBHOOK_SERVICE, Code::WebhookUnavailable)),
        ("ca-bundle", checks.ca_bundle()),
        ("objects", checks.objects()),
        ("services", checks.services()),
        ("nodes", checks.nodes()),
        ("agents", checks.agents()),
        ("kube-proxy", checks.kube_proxy()),
        ("sidecars", checks.sidecars()),
        ("policies", checks.policies()),
    ];
    lines.into_iter().filter_map(|(check, line)| Some(Passed { check, line: line? })).collect()
}

struct Checks<'s, 'a> {
    scope: &'s Scope<'a>,
    found: &'s [Finding],
}

impl Checks<'_, '_> {
    fn has(&self, codes: &[Code]) -> bool {
        self.found.iter().any(|finding| codes.contains(&finding.code))
    }

    fn program(&self, title: &str, name: &str, fault: Code) -> Option<String> {
        let (_, deployment) = program(self.scope, name).filter(|_| !self.has(&[fault]))?;
        let (available, wanted) = (deployment.available, deployment.wanted);
        (available > 0).then(|| format!("the {title} runs: {available} of {wanted} replicas are available"))
    }

    fn ca_bundle(&self) -> Option<String> {
        use Code::{BundleEmpty, BundleEndsSoon, BundleNotValid, BundlesDiffer};
        let published = self.scope.cluster.validating.contains_key(OBJECT_WEBHOOK_CONFIGURATION);
        let sound = !self.has(&[BundleEmpty, BundleNotValid, BundlesDiffer, BundleEndsSoon]);
        (published && sound).then(|| "API servers trust the webhook: its CA bundle is valid".to_owned())
    }

    fn objects(&self) -> Option<String> {
        let faulty = self.faulty();
        let keeps = |key: &&isp_plan::Key| !faulty.contains(&Subject::new("Service", *key));
        let sound =
            |object: &&Object<'_>| !faulty.contains(&object.subject()) && object.services.iter().all(keeps);
        let ready = self.scope.standing().filter(|object| is_ready(object.written)).filter(sound).count();
        (ready > 0).then(|| format!("{} Ready", are(ready, "IngressSourcePreserve")))
    }

    fn services(&self) -> Option<String> {
        let exposed = self.scope.exposed().count();
        let kept =
            self.scope.exposed().filter(|(_, service, _)| service.arrival() == Arrival::Client).count();
        let verb = if kept == 1 { "keeps" } else { "keep" };
        (kept > 0).then(|| format!("{} exposed; {kept} {verb} the source IP", are(exposed, "Service")))
    }

    fn nodes(&self) -> Option<String> {
        let nodes = self.scope.cluster.nodes.values();
        let ready = nodes.filter(|node| node.ready).count();
        (ready > 0).then(|| format!("{} Ready", are(ready, "node")))
    }

    fn agents(&self) -> Option<String> {
        self.scope.standing().next()?;
        let faulty = self.faulty();
        let sound = |name: &String| !faulty.contains(&Subject::new("Node", name));
        let cluster = self.scope.cluster;
        let nodes = || cluster.nodes.iter().filter(|(name, _)| sound(name));
        let filter = nodes().filter(|(name, node)| {
            node.labels.contains_key(AGENT_POOL_LABEL) && cluster.report(name, AgentMode::Filter).is_some()
        });
        let beside = nodes().filter(|(name, _)| cluster.report(name, AgentMode::Beside).is_some());
        let number = filter.count() + beside.count();
        let verb = if number == 1 { "has" } else { "have" };
        (number > 0).then(|| format!("{} {verb} acknowledged the current view", counted(number, "agent")))
    }

    fn kube_proxy(&self) -> Option<String> {
        use Code::{
            KubeProxyAmbiguous, LocalRangeTooNarrow, LocalRangeTooWide, MasqueradeAll, NoKubeProxy,
            NoLocalDetection,
        };
        let faults = [
            NoKubeProxy,
            KubeProxyAmbiguous,
            LocalRangeTooWide,
            LocalRangeTooNarrow,
            MasqueradeAll,
            NoLocalDetection,
        ];
        let key = kube_proxy::checked(self.scope).filter(|_| !self.has(&faults))?;
        Some(format!("the settings of kube-proxy (DaemonSet {key}) keep the source IP"))
    }

    fn sidecars(&self) -> Option<String> {
        use Code::{AnnotationLies, ModeChosen, PodSecurityRefuses, SidecarsStale};
        let wanted = self.scope.standing().any(|object| !object.written.spec.sidecars.is_empty());
        let sound = !self.has(&[AnnotationLies, ModeChosen, PodSecurityRefuses, SidecarsStale]);
        (wanted && sound).then(|| "the sidecars that spec.sidecars selects hand the source IP on".to_owned())
    }

    /// Policies and lists that compare addresses, and have no finding.
    fn policies(&self) -> Option<String> {
        let cluster = self.scope.cluster;
        if !cluster.knows(Kind::Pod) {
            // Without pods there is no enforcer, and no policy was judged.
            return None;
        }
        let policies = cluster.policies.iter().filter(|(_, policy)| !policy.alternatives().is_empty());
        let policies = policies.map(|(key, _)| Subject::new("AuthorizationPolicy", key));
        let network = cluster.network_policies.iter().filter(|(_, policy)| !policy.alternatives.is_empty());
        let network = network.map(|(key, _)| Subject::new("NetworkPolicy", key));
        let ingresses = cluster.ingresses.iter().filter(|(_, ingress)| !ingress.lists.is_empty());
        let ingresses = ingresses.map(|(key, _)| Subject::new("Ingress", key));
        let all: Vec<Subject> = policies.chain(network).chain(ingresses).collect();
        let named: BTreeSet<&Subject> = self.found.iter().map(|finding| &finding.subject).collect();
        let sound = all.iter().filter(|subject| !named.contains(subject)).count();
        let verb = if sound == 1 { "sees" } else { "see" };
        let compare = if all.len() == 1 { "compares" } else { "compare" };
        (sound > 0 && self.scope.asked.is_none()).then(|| {
            let policies =
                if all.len() == 1 { "1 policy".to_owned() } else { format!("{} policies", all.len()) };
            format!("{policies} {compare} addresses; {sound} {verb} the client's")
        })
    }

    /// The subjects of errors and warnings.
    fn faulty(&self) -> BTreeSet<&Subject> {
        let faults = self.found.iter().filter(|finding| finding.severity != Severity::Note);
        faults.map(|finding| &finding.subject).collect()
    }
}

fn counted(number: usize, noun: &str) -> String {
    count(u64::try_from(number).unwrap_or(u64::MAX), noun)
}

/// `1 node is`, `2 nodes are`.
fn are(number: usize, noun: &str) -> String {
    format!("{} {}", counted(number, noun), if number == 1 { "is" } else { "are" })
}
