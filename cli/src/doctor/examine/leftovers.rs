//! Changes of objects that no longer exist: the finalizer was removed by hand, or the
//! `CustomResourceDefinition` was deleted with all objects.

use std::collections::BTreeSet;

use isp_api::names::AGENT_POOL_LABEL;
use kube::ResourceExt;

use super::Scope;
use crate::doctor::cluster::Cluster;
use crate::doctor::finding::{Code, Finding, Subject};
use crate::doctor::kinds::Kind;
use crate::text::{count, cut};

/// So many nodes are named.
const MAX_NAMES: usize = 5;

pub(super) fn check(scope: &Scope<'_>, found: &mut Vec<Finding>) {
    let cluster = scope.cluster;
    // A dump without objects may have been taken without them.
    if scope.asked.is_some() && !cluster.objects.is_empty() {
        return;
    }
    services(cluster, scope, found);
    nodes(cluster, found);
}

fn services(cluster: &Cluster, scope: &Scope<'_>, found: &mut Vec<Finding>) {
    let objects: BTreeSet<String> = cluster.objects.iter().map(ResourceExt::name_any).collect();
    for (key, service) in &cluster.services {
        let Some(record) = service.facts.record.as_ref().filter(|record| !record.retained) else { continue };
        if objects.contains(&record.object) || scope.asked.is_some_and(|asked| asked != key) {
            continue;
        }
        let line = format!(
            "IngressSourcePreserve {} changed it and no longer exists; its externalTrafficPolicy is {}",
            record.object,
            service.policy()
        );
        found.push(remedied(Finding::new(Code::LeftBehind, Subject::new("Service", key), line).because(
            "Nothing has restored it, and no operator watches its endpoints: nodes without one drop the traffic that they receive.",
        )));
    }
}

fn nodes(cluster: &Cluster, found: &mut Vec<Finding>) {
    if !cluster.objects.is_empty() || !cluster.knows(Kind::Node) {
        return;
    }
    let handed_over = cluster.nodes.iter().filter(|(_, node)| node.labels.contains_key(AGENT_POOL_LABEL));
    let names: Vec<String> = handed_over.map(|(name, _)| name.clone()).collect();
    if names.is_empty() {
        return;
    }
    let number = count(u64::try_from(names.len()).unwrap_or(u64::MAX), "node");
    let line = format!(
        "{number} with label {AGENT_POOL_LABEL}, but no IngressSourcePreserve exists: {}",
        cut(names, MAX_NAMES, "").join(", ")
    );
    found.push(remedied(Finding::new(Code::LeftBehind, Subject::cluster(), line).because(
        "The cluster's kube-proxy does not run on these nodes. Without the agents, nothing serves Services there.",
    )));
}

fn remedied(finding: Finding) -> Finding {
    finding
        .do_this("kubectl get deployments -A -l app.kubernetes.io/name=sourcepreserve-operator   # an operator that runs restores it")
        .do_this("kubectl apply -k manifests/cleanup   # if the operator was uninstalled")
}
