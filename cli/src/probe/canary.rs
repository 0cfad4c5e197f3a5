//! The canary Service: of the same shape as the user's, with our echo program behind it. Pure.
//!
//! Fields that name something which only one Service can have (addresses, node ports, host names of
//! DNS controllers) are left out: the canary must take nothing from the user's Service.

use std::collections::BTreeMap;

use isp_api::names::{SERVICE_LABEL, SERVICE_PROXY_NAME_LABEL};
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::pods::{TCP_PORT, UDP_PORT};
use crate::helper::Kind;

#[cfg(test)]
mod tests;

/// Annotations that are not copied, by prefix: they say who manages the Service, or what the
/// operator has recorded about it.
const FOREIGN: [&str; 8] = [
    "kubectl.kubernetes.io/",
    "sourcepreserve.io/",
    "external-dns.alpha.kubernetes.io/",
    "meta.helm.sh/",
    "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/",
    "helm.toolkit.fluxcd.io/",
    "field.cattle.io/",
];
/// Parts of annotations that name an address, a load balancer or a host name of one Service.
const SINGULAR: [&str; 12] = [
    "loadbalancerip",
    "load-balancer-ip",
    "loadbalancer-ip",
    "static-ip",
    "shared-ip",
    "sharing-key",
    "eip-allocation",
    "load-balancer-name",
    "pip-name",
    "lbipam.cilium.io/ips",
    "hostname",
    "dns-label",
];
/// Labels of tools that delete what they find with their label and do not know.
const OWNED: [&str; 5] = [
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/instance",
    "argocd.argoproj.io/instance",
    "kustomize.toolkit.fluxcd.io/name",
    "kustomize.toolkit.fluxcd.io/namespace",
];

/// Whether a canary is treated as the user's Service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// By the same rules, because it has the same labels, or because no object preserves the
    /// user's Service.
    Alike,
    /// An object selects both by their labels: the operator changes the canary as it has changed
    /// the user's Service.
    ByOperator { object: String },
    /// The agents of mode Beside serve only Services that an object owns, and this one names the
    /// user's.
    NotServed { object: String },
    /// Another object than the user's Service has would select it.
    OfAnother { object: String },
}

/// Filter agents decide by the label, which the canary has as well. Agents of mode Beside serve
/// only Services that an object owns, whatever their labels say. `taken_over` is whether
/// kube-proxies skip the user's Service for their sake.
pub(crate) fn treatment(
    owner: Option<(&str, bool)>,
    canary_owner: Option<&str>,
    taken_over: bool,
) -> Treatment {
    match (owner, canary_owner) {
        (Some((object, _)), Some(other)) if object == other => {
            Treatment::ByOperator { object: object.to_owned() }
        }
        (_, Some(object)) => Treatment::OfAnother { object: object.to_owned() },
        (Some((object, beside)), None) if beside || taken_over => {
            Treatment::NotServed { object: object.to_owned() }
        }
        (None, None) if taken_over => Treatment::NotServed { object: "that was deleted".to_owned() },
        _ => Treatment::Alike,
    }
}

/// The labels of the canary. If the operator changes it, it writes its labels itself.
pub(crate) fn labels(
    kind: &Kind,
    service: &Service,
    preserve_label: Option<&str>,
    by_operator: bool,
) -> BTreeMap<String, String> {
    let of_operator = [SERVICE_LABEL, SERVICE_PROXY_NAME_LABEL];
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.retain(|key, _| {
        let written = of_operator.contains(&key.as_str()) || Some(key.as_str()) == preserve_label;
        !(OWNED.contains(&key.as_str()) || by_operator && written)
    });
    // Ours are last: by them a later run finds the canary.
    labels.extend(kind.labels());
    labels
}

/// The canary of a Service.
pub(crate) fn canary(
    name: &str,
    service: &Service,
    labels: BTreeMap<String, String>,
    selector: BTreeMap<String, String>,
    owners: Vec<OwnerReference>,
) -> Service {
    let of = service.spec.clone().unwrap_or_default();
    let is_balanced = of.type_.as_deref() == Some("LoadBalancer");
    // An external IP belongs to the user's Service. What is left of a ClusterIP Service with
    // external IPs has no other way in.
    let type_ = match of.type_.as_deref() {
        Some(type_ @ ("LoadBalancer" | "NodePort")) => type_,
        _ if of.external_ips.as_ref().is_some_and(|ips| !ips.is_empty()) => "NodePort",
        _ => "ClusterIP",
    };
    let is_exposed = type_ != "ClusterIP";
    Service {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: Some(annotations(service)).filter(|all| !all.is_empty()),
            owner_references: Some(owners).filter(|all| !all.is_empty()),
            ..ObjectMeta::default()
        },
        spec: Some(ServiceSpec {
            type_: Some(type_.to_owned()),
            selector: Some(selector),
            ports: Some(ports(of.ports.as_deref().unwrap_or_default())),
            external_traffic_policy: of.external_traffic_policy.filter(|_| is_exposed),
            internal_traffic_policy: of.internal_traffic_policy,
            ip_families: of.ip_families,
            ip_family_policy: of.ip_family_policy,
            session_affinity: of.session_affinity,
            session_affinity_config: of.session_affinity_config,
            traffic_distribution: of.traffic_distribution,
            load_balancer_class: of.load_balancer_class.filter(|_| is_balanced),
            load_balancer_source_ranges: of.load_balancer_source_ranges.filter(|_| is_balanced),
            allocate_load_balancer_node_ports: of.allocate_load_balancer_node_ports.filter(|_| is_balanced),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// The same ports, which lead to the echo program. It speaks TCP and UDP.
fn ports(of: &[ServicePort]) -> Vec<ServicePort> {
    let port = |port: &ServicePort| {
        let target = match port.protocol.as_deref() {
            None | Some("TCP") => TCP_PORT,
            Some("UDP") => UDP_PORT,
            Some(_) => return None,
        };
        Some(ServicePort {
            name: port.name.clone(),
            port: port.port,
            protocol: port.protocol.clone(),
            app_protocol: port.app_protocol.clone(),
            target_port: Some(IntOrString::Int(target.into())),
            node_port: None,
        })
    };
    of.iter().filter_map(port).collect()
}

fn annotations(service: &Service) -> BTreeMap<String, String> {
    let mut annotations = service.metadata.annotations.clone().unwrap_or_default();
    annotations.retain(|key, _| {
        let name = key.to_lowercase();
        let is_singular = SINGULAR.iter().any(|part| name.contains(part));
        !FOREIGN.iter().any(|prefix| name.starts_with(prefix)) && !is_singular
    });
    annotations
}

/// The name of a Service of the namespace that would send its traffic to our pods.
pub(crate) fn selected_by<'a>(
    services: impl IntoIterator<Item = &'a Service>,
    pod_labels: &BTreeMap<String, String>,
) -> Option<&'a str> {
    services.into_iter().find_map(|service| {
        let selector = service.spec.as_ref()?.selector.as_ref().filter(|selector| !selector.is_empty())?;
        let selects = selector.iter().all(|(key, value)| pod_labels.get(key) == Some(value));
        selects.then_some(service.metadata.name.as_deref())?
    })
}
