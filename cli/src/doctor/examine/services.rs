//! The Services that are preserved, or asked about: whether the client's address gets in, and to somebody who answers.

use isp_api::names::{HEADLESS_LABEL, SERVICE_PROXY_NAME_LABEL};
use isp_api::preserve::Phase;
use isp_plan::Key;

use super::{Object, Scene, service_settings};
use crate::doctor::cluster::Service;
use crate::doctor::finding::{Code, Finding, Severity, Subject};
use crate::doctor::kinds::Kind;

pub(super) fn check(scene: &Scene<'_>, found: &mut Vec<Finding>) {
    for (key, service, object) in scene.services() {
        match object {
            Some(object) => preserved(scene, key, service, object, found),
            None => unclaimed(key, service, found),
        }
        if service.facts.exposed {
            service_settings::check(scene, key, service, found);
        }
    }
    for key in &scene.others {
        if let Some((service, _)) = scene.service(key) {
            service_settings::check_ranges(key, service, found);
        }
    }
}

fn subject(key: &Key) -> Subject {
    Subject::new("Service", key)
}

fn preserved(scene: &Scene<'_>, key: &Key, service: &Service, object: &Object<'_>, found: &mut Vec<Finding>) {
    if !service.facts.exposed {
        found.push(
            Finding::new(Code::ServiceNotExposed, subject(key), "nothing outside can reach it")
                .because(format!("It has neither NodePorts nor a load balancer nor externalIPs, so {} does nothing for it and is not begun.", object.name))
                .do_this(format!("kubectl patch service -n {} {} -p '{{\"spec\":{{\"type\":\"LoadBalancer\"}}}}'", key.namespace, key.name))
                .do_this(format!("kubectl edit isp {}   # or take it out of spec.services", object.name)),
        );
        return;
    }
    if let Some(label) = [SERVICE_PROXY_NAME_LABEL, HEADLESS_LABEL]
        .into_iter()
        .find(|label| service.facts.labels.contains_key(*label))
    {
        found.push(
            Finding::new(Code::ServiceProxyName, subject(key), format!("it has the label {label}"))
                .because("Every kube-proxy ignores Services with it, those of the ingress nodes too: nobody answers, unless another proxy does.")
                .do_this(format!("kubectl label service -n {} {} {label}-", key.namespace, key.name)),
        );
    }
    let lacks_endpoint = endpoints(scene, key, service, object, found);
    let phase = object.written.status.as_ref().and_then(|status| status.phase);
    if matches!(phase, Some(Phase::Pending)) {
        // Nothing has been begun, and what hinders it is said.
        return;
    }
    let label = object.written.service_label();
    if service.facts.labels.get(&label.key) != Some(&label.value) {
        found.push(
            Finding::new(Code::NotLabelled, subject(key), format!("it does not have the label {label} of {}", object.name))
                .because("Agents go by the label: nodes elsewhere answer its external addresses themselves, and its clients are seen as nodes.")
                .do_this(format!("kubectl isp status {}   # why the operator has not set it", object.name)),
        );
    }
    if !service.is_local() {
        let fell_back = service.facts.record.as_ref().is_some_and(|record| record.fell_back);
        let why = match (fell_back, lacks_endpoint) {
            (true, _) | (_, true) => {
                " It went back to Cluster because no ingress node had an endpoint (whenNoIngressEndpoint)."
            }
            _ => " The operator sets it last, or somebody has put it back.",
        };
        found.push(
            Finding::new(
                Code::PolicyNotLocal,
                subject(key),
                format!("its externalTrafficPolicy is {}, and not Local", service.policy()),
            )
            .because(format!("Nodes put their own address in the place of the client's.{why}"))
            .do_this(format!("kubectl isp status {}", object.name))
            .do_this(format!(
                "kubectl get service -n {} {} -o yaml --show-managed-fields   # who owns the field",
                key.namespace, key.name
            )),
        );
    }
}

/// Whether no ingress node has one.
fn endpoints(
    scene: &Scene<'_>,
    key: &Key,
    service: &Service,
    object: &Object<'_>,
    found: &mut Vec<Finding>,
) -> bool {
    if !scene.cluster.knows(Kind::EndpointSlice) || object.ingress_nodes.is_empty() {
        return false;
    }
    let ready = scene.cluster.ready_endpoints(key);
    let lacking: Vec<&str> =
        object.ingress_nodes.iter().filter(|node| !ready.contains_key(**node)).copied().collect();
    let pods = format!("kubectl get pods -n {} -o wide   # where its pods run", key.namespace);
    if lacking.len() == object.ingress_nodes.len() {
        let elsewhere: u32 = ready.values().sum();
        let line = format!("it has no ready endpoint on an ingress node ({elsewhere} elsewhere)");
        found.push(
            Finding::new(Code::NoIngressEndpoint, subject(key), line)
                .because("With externalTrafficPolicy Local nobody outside is answered; without, their addresses are lost.")
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
        .because("What is sent there is dropped. A load balancer that follows healthCheckNodePort does not send there; anybody else must be told.")
        .do_this(pods);
        found.push(if checked { finding.graded(Severity::Note) } else { finding });
    }
    false
}

/// One that was asked about and that no object names.
fn unclaimed(key: &Key, service: &Service, found: &mut Vec<Finding>) {
    if !service.facts.exposed {
        return;
    }
    let finding = if service.is_local() {
        Finding::new(Code::NotPreserved, subject(key), "no IngressSourcePreserve names it; its externalTrafficPolicy is Local")
            .because(
                "Clients outside keep their address through nodes with an endpoint. Other nodes drop what enters there and answer its external \
                 addresses themselves, so their own pods and processes pass the ingress by.",
            )
            .graded(Severity::Note)
    } else {
        Finding::new(Code::NotPreserved, subject(key), "no IngressSourcePreserve names it, and its externalTrafficPolicy is Cluster")
            .because("Nodes put their own address in the place of the client's: whatever decides by address decides about a node.")
    };
    found.push(
        finding
            .do_this("kubectl isp plan -f FILE   # what an IngressSourcePreserve for it would change; manifests/samples has some")
    );
}
