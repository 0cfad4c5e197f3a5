//! The Services that are preserved, or named by `--service`: whether the source IP is kept, and
//! whether an endpoint answers.

use isp_api::names::{HEADLESS_LABEL, PROXY_NAME, SERVICE_PROXY_NAME_LABEL};
use isp_api::preserve::{Mode, Phase};
use isp_plan::Key;

use super::{Object, Scope, service_settings};
use crate::doctor::cluster::Service;
use crate::doctor::finding::{Code, Finding, Severity, Subject};
use crate::doctor::kinds::Kind;

pub(super) fn check(scope: &Scope<'_>, found: &mut Vec<Finding>) {
    for (key, service, object) in scope.services() {
        match object {
            Some(object) => preserved(scope, key, service, object, found),
            None => unclaimed(key, service, found),
        }
        if service.facts.exposed {
            service_settings::check(scope, key, service, found);
        }
    }
    for key in &scope.others {
        if let Some((service, _)) = scope.service(key) {
            service_settings::check_ranges(key, service, found);
        }
    }
}

fn subject(key: &Key) -> Subject {
    Subject::new("Service", key)
}

fn preserved(scope: &Scope<'_>, key: &Key, service: &Service, object: &Object<'_>, found: &mut Vec<Finding>) {
    if !service.facts.exposed {
        found.push(
            Finding::new(Code::ServiceNotExposed, subject(key), "it is not reachable from outside")
                .because(format!("It has no NodePorts, no load balancer and no externalIPs, so the operator does not begin with {}.", object.name))
                .do_this(format!("kubectl patch service -n {} {} -p '{{\"spec\":{{\"type\":\"LoadBalancer\"}}}}'", key.namespace, key.name))
                .do_this(format!("kubectl edit isp {}   # or remove it from spec.services", object.name)),
        );
        return;
    }
    found.extend(other_proxy(key, service, object));
    let lacks_endpoint = endpoints(scope, key, service, object, found);
    let phase = object.written.status.as_ref().and_then(|status| status.phase);
    if matches!(phase, Some(Phase::Pending)) {
        // The operator has not begun, and another finding says why.
        return;
    }
    let label = object.written.service_label();
    if service.facts.labels.get(&label.key) != Some(&label.value) {
        found.push(
            Finding::new(Code::NotLabelled, subject(key), format!("it does not have the label {label} of {}", object.name))
                .because("Agents select Services by the label: non-ingress nodes serve its external addresses themselves and replace the source IP (SNAT).")
                .do_this(format!("kubectl isp status {}   # why the operator has not set the label", object.name)),
        );
    }
    let phase_ready = matches!(phase, Some(Phase::Ready | Phase::Degraded));
    if object.written.spec.mode == Mode::Beside
        && phase_ready
        && !service.facts.labels.contains_key(SERVICE_PROXY_NAME_LABEL)
    {
        found.push(not_taken_over(key, object));
    }
    if !service.is_local() {
        let fell_back = service.facts.record.as_ref().is_some_and(|record| record.fell_back);
        let why = match (fell_back, lacks_endpoint) {
            (true, _) | (_, true) => {
                " It fell back to Cluster because no ingress node had an endpoint (whenNoIngressEndpoint)."
            }
            _ => {
                " The operator sets Local as its last step; if it has done so, another writer has reverted it."
            }
        };
        found.push(
            Finding::new(
                Code::PolicyNotLocal,
                subject(key),
                format!("its externalTrafficPolicy is {}, not Local", service.policy()),
            )
            .because(format!("Nodes replace the client's source IP by their own (SNAT).{why}"))
            .do_this(format!("kubectl isp status {}", object.name))
            .do_this(format!(
                "kubectl get service -n {} {} -o yaml --show-managed-fields   # the managers of the field",
                key.namespace, key.name
            )),
        );
    }
}

/// A label by which every kube-proxy skips the Service, other than the one by which the agents of
/// mode Beside take it over.
fn other_proxy(key: &Key, service: &Service, object: &Object<'_>) -> Option<Finding> {
    let labels = &service.facts.labels;
    let (label, value) = [SERVICE_PROXY_NAME_LABEL, HEADLESS_LABEL]
        .into_iter()
        .find_map(|label| Some((label, labels.get(label)?)))?;
    let is_beside = object.written.spec.mode == Mode::Beside;
    if service.facts.is_taken_over() {
        let phase = object.written.status.as_ref().and_then(|status| status.phase);
        // While an object changes its mode to Filter, the operator removes the label.
        if is_beside || phase == Some(Phase::Progressing) {
            return None;
        }
    }
    let remove = format!("kubectl label service -n {} {} {label}-", key.namespace, key.name);
    if !is_beside || label == HEADLESS_LABEL {
        return Some(
            Finding::new(Code::ServiceProxyName, subject(key), format!("it has the label {label}"))
                .because("Every kube-proxy ignores Services with this label, also on ingress nodes: nothing answers, unless another proxy does.")
                .do_this(remove),
        );
    }
    let line = format!("it has the label {label}={value}, so another proxy is to serve it");
    Some(
        Finding::new(Code::ServiceProxyName, subject(key), line)
            .because(format!(
                "In mode Beside the value is {PROXY_NAME}. The operator never replaces another one, so it does not go on with {}.",
                object.name
            ))
            .do_this(format!("{remove}   # if no such proxy runs"))
            .do_this(format!("kubectl edit isp {}   # or remove the Service from spec.services", object.name)),
    )
}

/// Mode Beside: kube-proxies serve the Service as well as the agents.
fn not_taken_over(key: &Key, object: &Object<'_>) -> Finding {
    let line = format!("it does not have the label {SERVICE_PROXY_NAME_LABEL}={PROXY_NAME} of mode Beside");
    Finding::new(Code::NotLabelled, subject(key), line)
        .because(
            "kube-proxies serve it beside the agents: on non-ingress nodes they serve its external addresses themselves. The operator sets the label \
             once the agents of all nodes serve the Service; if it has done so, another writer has removed it.",
        )
        .do_this(format!("kubectl isp status {}   # why the operator has not set the label", object.name))
        .do_this(format!(
            "kubectl get service -n {} {} -o yaml --show-managed-fields   # the managers of the field",
            key.namespace, key.name
        ))
}

/// Whether no ingress node has an endpoint.
fn endpoints(
    scope: &Scope<'_>,
    key: &Key,
    service: &Service,
    object: &Object<'_>,
    found: &mut Vec<Finding>,
) -> bool {
    if !scope.cluster.knows(Kind::EndpointSlice) || object.ingress_nodes.is_empty() {
        return false;
    }
    let ready = scope.cluster.ready_endpoints(key);
    let lacking: Vec<&str> =
        object.ingress_nodes.iter().filter(|node| !ready.contains_key(**node)).copied().collect();
    let pods = format!("kubectl get pods -n {} -o wide   # where its pods run", key.namespace);
    if lacking.len() == object.ingress_nodes.len() {
        let elsewhere: u32 = ready.values().sum();
        let line = format!("it has no ready endpoint on an ingress node ({elsewhere} on other nodes)");
        found.push(
            Finding::new(Code::NoIngressEndpoint, subject(key), line)
                .because("With externalTrafficPolicy Local, clients outside get no answer; with Cluster, their source IP is lost.")
                .do_this(pods)
                .do_this("run one of its pods on an ingress node: nodeSelector, or a DaemonSet there"),
        );
        return true;
    }
    if !lacking.is_empty() {
        let checked = service.spec.health_check_node_port.is_some_and(|port| port != 0);
        let finding = Finding::new(
            Code::IngressNodeWithoutEndpoint,
            subject(key),
            format!("no ready endpoint on ingress nodes {}", lacking.join(", ")),
        )
        .because("These nodes drop the traffic that they receive. A load balancer that follows healthCheckNodePort avoids them; any other sender must be configured to.")
        .do_this(pods);
        found.push(if checked { finding.graded(Severity::Note) } else { finding });
    }
    false
}

/// The Service of `--service`, if no object names it.
fn unclaimed(key: &Key, service: &Service, found: &mut Vec<Finding>) {
    if !service.facts.exposed {
        return;
    }
    let finding = if service.is_local() {
        Finding::new(Code::NotPreserved, subject(key), "no IngressSourcePreserve selects it; its externalTrafficPolicy is Local")
            .because(
                "Clients outside keep their source IP through nodes with an endpoint. Other nodes drop the traffic that they receive. They serve the \
                 external addresses for their own pods and processes, which bypass the ingress.",
            )
            .graded(Severity::Note)
    } else {
        Finding::new(Code::NotPreserved, subject(key), "no IngressSourcePreserve selects it, and its externalTrafficPolicy is Cluster")
            .because("Nodes replace the client's source IP by their own (SNAT): policies that compare addresses see a node.")
    };
    found.push(
        finding
            .do_this("kubectl isp plan -f FILE   # the changes of an IngressSourcePreserve for it; manifests/samples has examples")
    );
}
