//! Step 1: the preconditions for starting on an object.

use isp_api::Reason;
use isp_api::names::{PROXY_NAME, SERVICE_PROXY_NAME_LABEL};
use isp_api::preserve::{Mode, TrafficPolicy};

use super::snapshot::Object;
use crate::cluster::{Cluster, Key, Node, Service};
use crate::ownership::{Declared, foreign, label_declared, policy_declared};

/// A precondition that is not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The selector for ingress nodes is invalid.
    BadSelector(String),
    /// No node is an ingress node.
    NoIngressNodes,
    /// No Service is named, and none is selected.
    NoServices,
    /// A named Service does not exist.
    Missing(Key),
    /// The Service is not reachable from outside the cluster.
    NotExposed(Key),
    /// No ingress node has an endpoint, so policy Local would drop all external traffic.
    NoIngressEndpoint(Key),
    /// Another manager has declared a different value.
    Declared(Key, Declared),
    /// Mode Beside: another proxy serves the Service.
    ProxyNameTaken(Key, Declared),
}

impl Finding {
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::BadSelector(_) => Reason::BadSelector,
            Self::NoIngressNodes => Reason::NoIngressNodes,
            Self::NoServices => Reason::NoServices,
            Self::Missing(_) => Reason::ServiceMissing,
            Self::NotExposed(_) => Reason::NotExposed,
            Self::NoIngressEndpoint(_) => Reason::NoIngressEndpoint,
            Self::Declared(..) | Self::ProxyNameTaken(..) => Reason::FieldDeclared,
        }
    }

    /// Whether this is a conflict with another field manager.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Declared(..) | Self::ProxyNameTaken(..))
    }

    pub(super) fn message(&self) -> String {
        match self {
            Self::BadSelector(bad) => format!("spec.ingressNodes.selector: {bad}"),
            Self::NoIngressNodes => {
                "spec.ingressNodes.selector matches no node: label the nodes that receive the external traffic"
                    .to_owned()
            }
            Self::NoServices => "spec.services selects no Service: label one, or name it".to_owned(),
            Self::Missing(key) => {
                format!("Service {key} does not exist: create it, or remove it from spec.services")
            }
            Self::NotExposed(key) => format!(
                "Service {key} is not exposed: give it type NodePort or LoadBalancer, or externalIPs, or \
                 remove it from spec.services"
            ),
            Self::NoIngressEndpoint(key) => format!(
                "Service {key} has no ready endpoint on an ingress node, so externalTrafficPolicy Local would drop all external traffic: \
                 run one of its pods on an ingress node"
            ),
            Self::Declared(key, declared) => declared_message(key, declared),
            Self::ProxyNameTaken(key, taken) => proxy_name_message(key, taken),
        }
    }
}

pub(super) fn declared_message(key: &Key, declared: &Declared) -> String {
    let Declared { manager, field, value } = declared;
    format!(
        "Service {key}: {manager:?} has declared {field} as {value}: change or remove it there, or set conflictPolicy: Force"
    )
}

pub(super) fn proxy_name_message(key: &Key, taken: &Declared) -> String {
    let Declared { manager, field, value } = taken;
    format!(
        "Service {key}: {manager:?} has set {field} to {value}, so kube-proxy leaves it to another proxy, which mode Beside never replaces: \
         remove the label there, or remove the Service from spec.services"
    )
}

pub(super) fn check(cluster: &Cluster, object: &Object<'_>, nodes: &[(&str, &Node)]) -> Vec<Finding> {
    if object.deletion.is_some() {
        return Vec::new();
    }
    let mut found = Vec::new();
    match &object.bad_selector {
        Some(bad) => found.push(Finding::BadSelector(bad.to_string())),
        None if !object.ingress.iter().any(|ingress| *ingress) => found.push(Finding::NoIngressNodes),
        None => {}
    }
    found.extend(object.missing.iter().cloned().map(Finding::Missing));
    if object.claimed.is_empty() && object.missing.is_empty() {
        found.push(Finding::NoServices);
    }
    for key in &object.claimed {
        let Some(service) = cluster.services.get(*key) else { continue };
        if !service.exposed {
            found.push(Finding::NotExposed((*key).clone()));
        } else if ingress_endpoints(cluster, object, nodes, key) == 0 {
            found.push(Finding::NoIngressEndpoint((*key).clone()));
        }
        found.extend(declared(object, service).map(|declared| Finding::Declared((*key).clone(), declared)));
        let taken = proxy_name_taken(object, service);
        found.extend(taken.map(|taken| Finding::ProxyNameTaken((*key).clone(), taken)));
    }
    found
}

/// A conflicting declaration of a field of the Service that must change. None with `conflictPolicy:
/// Force`.
pub(super) fn declared(object: &Object<'_>, service: &Service) -> Option<Declared> {
    if object.forces() {
        return None;
    }
    let label = || label_declared(service, &object.label.key, &object.label.value);
    policy_declared(service).or_else(label)
}

/// Mode Beside: the label by which kube-proxies leave the Service to another proxy, or that
/// somebody else has set to our value. It is never overridden, whatever `conflictPolicy` says.
pub(super) fn proxy_name_taken(object: &Object<'_>, service: &Service) -> Option<Declared> {
    if object.mode != Mode::Beside {
        return None;
    }
    let taken_over =
        service.owns_proxy_name() || service.record.as_ref().is_some_and(|record| record.skipped);
    let value = service.labels.get(SERVICE_PROXY_NAME_LABEL);
    if let Some(value) = value.filter(|value| *value != PROXY_NAME || !taken_over) {
        let owner = foreign(&service.owners).find(|owner| owner.labels.contains(SERVICE_PROXY_NAME_LABEL));
        return Some(Declared {
            manager: owner.map_or_else(|| "somebody".to_owned(), |owner| owner.manager.clone()),
            field: format!("metadata.labels[{SERVICE_PROXY_NAME_LABEL}]"),
            value: value.clone(),
        });
    }
    label_declared(service, SERVICE_PROXY_NAME_LABEL, PROXY_NAME)
}

pub(super) fn ingress_endpoints(
    cluster: &Cluster,
    object: &Object<'_>,
    nodes: &[(&str, &Node)],
    service: &Key,
) -> u32 {
    let ready = cluster.ready_endpoints(service);
    let on_ingress = |node: &str| {
        nodes.binary_search_by_key(&node, |(name, _)| *name).is_ok_and(|place| object.ingress[place])
    };
    ready.into_iter().filter(|(node, _)| on_ingress(node)).map(|(_, count)| count).sum()
}

/// A Service's policy, or its default.
pub(super) fn policy(service: &Service) -> TrafficPolicy {
    service.policy.unwrap_or(TrafficPolicy::Cluster)
}
