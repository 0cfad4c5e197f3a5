//! The decision about an IngressSourcePreserve: checks that need other objects, which a schema
//! cannot express. Pure.

use std::sync::Arc;

use isp_api::IngressSourcePreserve;
use isp_api::claims::ServiceIdentity;
use isp_api::preserve::{DeletionPolicy, TrafficPolicy};
use isp_api::selector::matcher;
use isp_api::sidecar::Labels;
use isp_api::validate::{Conflict, NodeIdentity, conflicts};
use isp_plan::build::pod_redirect;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use kube::core::SelectorExt;

use super::inventory::Inventory;
use super::review::{Answer, BadReview, Operation, Request};

/// The cluster state.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// All objects; the reviewed one in its old version.
    pub(crate) objects: Vec<IngressSourcePreserve>,
    pub(crate) inventory: Arc<Inventory>,
    /// Labels of namespaces, by name.
    pub(crate) namespaces: Vec<(String, Labels)>,
}

/// The object to check against the cluster, if the request changes its claims. Other requests are
/// answered without reading the cluster.
pub(crate) fn claimant(request: &Request<IngressSourcePreserve>) -> Option<&IngressSourcePreserve> {
    let Request { operation, sub_resource, object, old_object, .. } = request;
    let is_whole = sub_resource.as_ref().is_none_or(String::is_empty);
    let changes = matches!(operation, Operation::Create | Operation::Update);
    let object = object.as_ref().filter(|_| is_whole && changes)?;
    claims(object, old_object.as_ref()).then_some(object)
}

/// An object being deleted must not be blocked, and a change of metadata claims nothing.
fn claims(object: &IngressSourcePreserve, old: Option<&IngressSourcePreserve>) -> bool {
    object.metadata.deletion_timestamp.is_none() && old.is_none_or(|old| old.spec != object.spec)
}

/// The response, and its outcome for the metrics.
pub(crate) fn answer(
    request: Request<IngressSourcePreserve>,
    facts: &Facts,
) -> Result<(Answer, &'static str), BadReview> {
    let Request { uid, operation, sub_resource, object, old_object, .. } = request;
    if sub_resource.is_some_and(|part| !part.is_empty()) {
        return Ok((Answer::allow(uid), "Allowed"));
    }
    let (answer, word) = match operation {
        Operation::Connect => (Answer::allow(uid), "Allowed"),
        Operation::Delete => {
            // Old API servers send bulk deletions without the object; then there is nothing to warn
            // about.
            let warnings = old_object.as_ref().map(on_deletion).unwrap_or_default();
            let word = if warnings.is_empty() { "Allowed" } else { "Warned" };
            (Answer::allow(uid).with_warnings(warnings), word)
        }
        Operation::Create | Operation::Update => {
            let object = object.ok_or(BadReview::NoObject("object", operation))?;
            on_change(uid, &object, old_object.as_ref(), facts)
        }
    };
    Ok((answer, word))
}

fn on_change(
    uid: String,
    object: &IngressSourcePreserve,
    old: Option<&IngressSourcePreserve>,
    facts: &Facts,
) -> (Answer, &'static str) {
    if !claims(object, old) {
        return (Answer::allow(uid), "Allowed");
    }
    let before = old.map(|old| problems(old, facts)).unwrap_or_default();
    let (known, new): (Vec<String>, Vec<String>) =
        problems(object, facts).into_iter().partition(|problem| before.contains(problem));
    if !new.is_empty() {
        return (Answer::deny(uid, new.join("; ")), "Denied");
    }
    let warnings: Vec<String> = known.into_iter().chain(selects_nothing(object, facts)).collect();
    let word = if warnings.is_empty() { "Allowed" } else { "Warned" };
    (Answer::allow(uid).with_warnings(warnings), word)
}

/// Everything for which a new object is denied.
fn problems(object: &IngressSourcePreserve, facts: &Facts) -> Vec<String> {
    let conflicts = conflicts_of(object, facts);
    bad_redirects(object).chain(conflicts.iter().map(ToString::to_string)).collect()
}

/// The problems of redirects that the schema cannot express, or did not when the object was stored.
fn bad_redirects(object: &IngressSourcePreserve) -> impl Iterator<Item = String> {
    let entries = object.spec.sidecars.iter().enumerate();
    let redirects = entries.filter_map(|(place, entry)| Some((place, entry.redirect.as_ref()?)));
    redirects.flat_map(|(place, redirect)| {
        let problems = pod_redirect::problems(redirect);
        problems.into_iter().map(move |problem| format!("spec.sidecars[{place}].redirect{problem}"))
    })
}

/// The conflicts that involve this object: as the newer one, or as the older one if a change
/// extended its claims.
fn conflicts_of(object: &IngressSourcePreserve, facts: &Facts) -> Vec<Conflict> {
    let name = object.name_any();
    let others = facts.objects.iter().filter(|other| other.name_any() != name);
    let services: Vec<ServiceIdentity<'_>> = facts
        .inventory
        .services
        .iter()
        .map(|(namespace, name, labels)| ServiceIdentity { namespace, name, labels })
        .collect();
    let nodes: Vec<NodeIdentity<'_>> =
        facts.inventory.nodes.iter().map(|(name, labels)| NodeIdentity { name, labels }).collect();
    let all = conflicts(others.chain([object]), &services, &nodes);
    all.into_iter().filter(|conflict| conflict.object == name || conflict.older == name).collect()
}

/// Warnings about valid selectors that select nothing yet.
fn selects_nothing(object: &IngressSourcePreserve, facts: &Facts) -> Vec<String> {
    let mut warnings = Vec::new();
    let ingress = &object.spec.ingress_nodes.selector;
    if !any_matches(ingress, facts.inventory.nodes.iter().map(|(_, labels)| labels)) {
        warnings.push(
            "spec.ingressNodes.selector matches no node: nothing changes until it does. Label the nodes that run the ingress, or \
             correct the selector."
                .to_owned(),
        );
    }
    for (index, target) in object.spec.services.iter().enumerate() {
        let field = format!("spec.services[{index}]");
        let mut there =
            facts.inventory.services.iter().filter(|(namespace, ..)| *namespace == target.namespace);
        if let Some(name) = &target.name {
            if !there.any(|(_, service, _)| service == name) {
                warnings.push(format!(
                    "{field}: Service {name:?} does not exist in namespace {:?} yet. Create it, or correct the name.",
                    target.namespace
                ));
            }
        } else if let Some(selector) = &target.selector
            && !any_matches(selector, there.map(|(_, _, labels)| labels))
        {
            warnings.push(format!(
                "{field}.selector matches no Service in namespace {:?} yet. Label one, or correct the selector.",
                target.namespace
            ));
        }
    }
    for (index, entry) in object.spec.sidecars.iter().enumerate() {
        if !any_matches(&entry.namespace_selector, facts.namespaces.iter().map(|(_, labels)| labels)) {
            warnings.push(format!(
                "spec.sidecars[{index}].namespaceSelector matches no namespace yet. Label one, or correct the selector."
            ));
        }
    }
    warnings
}

/// Whether a selector matches any labels. Invalid selectors count as matching, since the schema
/// rejects them.
fn any_matches<'a>(selector: &LabelSelector, mut all: impl Iterator<Item = &'a Labels>) -> bool {
    matcher(selector).map_or(true, |matcher| all.any(|labels| matcher.matches(labels)))
}

/// Warnings about Services that would become unreachable after the deletion.
fn on_deletion(object: &IngressSourcePreserve) -> Vec<String> {
    let Some(status) = &object.status else { return Vec::new() };
    let retains = object.spec.deletion_policy == DeletionPolicy::Retain;
    let dark = |service: &&isp_api::preserve::ServiceStatus| {
        let was_local = service
            .original
            .as_ref()
            .is_some_and(|original| original.external_traffic_policy == TrafficPolicy::Local);
        if retains { service.ingress_endpoints == 0 } else { was_local }
    };
    let names: Vec<String> = status
        .services
        .iter()
        .filter(dark)
        .map(|service| format!("{}/{}", service.namespace, service.name))
        .collect();
    if names.is_empty() {
        return Vec::new();
    }
    let names = names.join(", ");
    vec![if retains {
        format!(
            "spec.deletionPolicy is Retain, and {names} keeps externalTrafficPolicy Local without a ready endpoint on an ingress \
             node: traffic to its external IPs is dropped, and nothing reports it any more. Run an endpoint on an ingress node, or \
             set spec.deletionPolicy to Restore first."
        )
    } else {
        format!(
            "{names} had externalTrafficPolicy Local before and keeps it: without the agents, nodes without an endpoint drop their own \
             traffic to its external IPs. Set the policy to Cluster, or spec.deletionPolicy to Retain, first."
        )
    }]
}
