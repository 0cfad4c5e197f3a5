//! Changes of objects that are gone: the finalizer was taken away by hand, or the definition with all objects was deleted.

use std::collections::BTreeSet;

use isp_api::names::AGENT_POOL_LABEL;
use kube::ResourceExt;

use super::Scene;
use crate::doctor::cluster::Cluster;
use crate::doctor::finding::{Code, Finding, Subject};
use crate::doctor::kinds::Kind;
use crate::text::{count, cut};

/// How many nodes are named.
const MOST: usize = 5;

pub(super) fn check(scene: &Scene<'_>, found: &mut Vec<Finding>) {
    let cluster = scene.cluster;
    // A dump without objects may have been taken without them.
    if scene.asked.is_some() && !cluster.objects.is_empty() {
        return;
    }
    services(cluster, scene, found);
    nodes(cluster, found);
}

fn services(cluster: &Cluster, scene: &Scene<'_>, found: &mut Vec<Finding>) {
    let objects: BTreeSet<String> = cluster.objects.iter().map(ResourceExt::name_any).collect();
    for (key, service) in &cluster.services {
        let Some(record) = service.facts.record.as_ref().filter(|record| !record.retained) else { continue };
        if objects.contains(&record.object) || scene.asked.is_some_and(|asked| asked != key) {
            continue;
        }
        let line = format!(
            "IngressSourcePreserve {} has changed it and does not exist any more; its externalTrafficPolicy is {}",
            record.object,
            service.policy()
        );
        found.push(mended(Finding::new(Code::LeftBehind, Subject::new("Service", key), line).because(
            "Nothing has put it back, and no operator looks after its endpoints: nodes without one drop what is sent there.",
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
        "{number} with the label {AGENT_POOL_LABEL}, and no object: {}",
        cut(names, MOST, "").join(", ")
    );
    found.push(mended(Finding::new(Code::LeftBehind, Subject::cluster(), line).because(
        "The cluster's kube-proxy stays away from these nodes. If the agents go, too, nothing serves Services there.",
    )));
}

fn mended(finding: Finding) -> Finding {
    finding
        .do_this("kubectl get deployments -A -l app.kubernetes.io/name=sourcepreserve-operator   # one that runs puts it back by itself")
        .do_this("kubectl apply -k manifests/cleanup   # where the operator is gone")
}
