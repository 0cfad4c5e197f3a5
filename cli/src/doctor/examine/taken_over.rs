//! Services that every kube-proxy skips because the agents of mode Beside serve them: whether such
//! agents run, and whether an object makes them serve the Service. Otherwise nothing serves it.

use isp_api::IngressSourcePreserve;
use isp_api::names::{AGENT_MODE_LABEL, BESIDE_MODE, NAME_LABEL, PROXY_NAME, SERVICE_PROXY_NAME_LABEL};
use isp_api::node::AgentMode;
use isp_plan::Key;

use super::Scope;
use crate::doctor::finding::{Code, Finding, Subject};
use crate::doctor::kinds::Kind;

pub(super) fn check(scope: &Scope<'_>, found: &mut Vec<Finding>) {
    let cluster = scope.cluster;
    let services = cluster.services.iter().filter(|(_, service)| service.facts.is_taken_over());
    for (key, _) in services.filter(|(key, _)| scope.asked.is_none_or(|asked| asked == *key)) {
        // Agents serve a Service that an object owns, or lists because it has changed it.
        let is_preserved = scope.services.get(key).is_some_and(Option::is_some);
        let is_listed = || cluster.objects.iter().any(|object| lists(object, key));
        let reason =
            if !cluster.knows(Kind::Pod) || cluster.agents(AgentMode::Beside).any(|agent| agent.ready) {
                // A dump without objects may have been taken without them.
                if is_preserved || is_listed() || !cluster.knows(Kind::IngressSourcePreserve) {
                    continue;
                }
                Reason::NoObject
            } else if cluster.agents(AgentMode::Beside).next().is_some() {
                Reason::NoneReady
            } else {
                Reason::NoAgent
            };
        found.push(served_by_nobody(key, reason, is_preserved));
    }
}

/// Why nothing serves a Service.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    NoAgent,
    NoneReady,
    NoObject,
}

fn lists(object: &IngressSourcePreserve, key: &Key) -> bool {
    let services = object.status.iter().flat_map(|status| &status.services);
    services.into_iter().any(|service| service.namespace == key.namespace && service.name == key.name)
}

fn served_by_nobody(key: &Key, reason: Reason, is_preserved: bool) -> Finding {
    let why = match reason {
        Reason::NoAgent => "no agent of mode Beside runs",
        Reason::NoneReady => "no agent of mode Beside is ready",
        Reason::NoObject => "no IngressSourcePreserve selects it, so no agent serves it",
    };
    let line = format!("every kube-proxy skips it ({SERVICE_PROXY_NAME_LABEL}={PROXY_NAME}), and {why}");
    let finding = Finding::new(Code::ServedByNobody, Subject::new("Service", key), line).because(
        "Nothing serves it: not its ClusterIP, its NodePorts or its external addresses. Rules that agents have left on nodes keep working until \
         the node restarts, but do not follow changes of endpoints.",
    );
    let give_back = format!(
        "kubectl label service -n {} {} {SERVICE_PROXY_NAME_LABEL}-   # every kube-proxy serves it again",
        key.namespace, key.name
    );
    if is_preserved {
        let agents = format!("{NAME_LABEL}=proxy-agent,{AGENT_MODE_LABEL}={BESIDE_MODE}");
        let look = format!("kubectl get pods -A -o wide -l {agents}   # why none is ready");
        return finding.do_this(look).do_this(give_back);
    }
    let finding = finding.do_this(give_back);
    if reason == Reason::NoObject {
        return finding;
    }
    finding.do_this(
        "kubectl apply -k manifests/cleanup   # restores everything, if the operator was uninstalled",
    )
}
