//! Remedies for Services that lose the source IP, among them an IngressSourcePreserve to apply.

use std::collections::BTreeSet;

use isp_api::names::{NAME_LABEL, OPERATOR_FIELD_MANAGER};
use isp_api::preserve::Mode;
use isp_plan::Key;
use isp_plan::observe::{NoKubeProxy, kube_proxy};
use serde_json::json;

use super::Scope;
use crate::doctor::judgement::Arrival;
use crate::doctor::kinds::Kind;

/// A command names so many Services or nodes at most.
const MAX_NAMES: usize = 5;
/// The label of ingress nodes that the manual uses.
pub(crate) const INGRESS_LABEL: &str = "node-role.kubernetes.io/ingress";

/// The steps after which these Services keep the source IP.
pub(super) fn keep_address(scope: &Scope<'_>, services: &BTreeSet<&Key>) -> Vec<String> {
    let mut steps = Vec::new();
    let mut proxied = false;
    let mut unclaimed: Vec<&Key> = Vec::new();
    let mut objects = BTreeSet::new();
    for key in services {
        let Some((facts, object)) = scope.service(key) else { continue };
        match (facts.arrival(), object) {
            (Arrival::Client, _) => {}
            (Arrival::Balancer, _) => proxied = true,
            (Arrival::Node, Some(object)) => {
                objects.insert(&object.name);
            }
            (Arrival::Node, None) => unclaimed.push(key),
        }
    }
    if proxied {
        steps.push(
            "configure the PROXY protocol on the load balancer and on the gateway (gatewayTopology.proxyProtocol), and use remoteIpBlocks; or let the \
             balancer forward packets (ipMode VIP)"
                .to_owned(),
        );
    }
    for name in objects.into_iter().take(MAX_NAMES) {
        steps.push(format!("kubectl isp status {name}   # why its Services are not Local yet"));
    }
    if let [first, ..] = unclaimed[..] {
        let more = unclaimed.len().saturating_sub(MAX_NAMES);
        unclaimed.truncate(MAX_NAMES);
        steps.extend(label(scope, &unclaimed));
        let file = format!("{}.yaml", first.name);
        steps.push(format!("echo '{}' > {file}", object(scope, first, &unclaimed)));
        let more = if more == 0 { String::new() } else { format!("; {more} more Services need the same") };
        steps.push(format!("kubectl isp plan -f {file}   # the changes that it would cause{more}"));
        steps.push(if is_installed(scope) {
            format!("kubectl apply -f {file}")
        } else {
            format!("kubectl apply -f {file}   # install the project first, see docs/install.md")
        });
    }
    steps
}

/// Whether the project is installed, as far as that is known.
fn is_installed(scope: &Scope<'_>) -> bool {
    let mut deployments = scope.cluster.deployments.values();
    deployments.any(|one| one.labels.get(NAME_LABEL).is_some_and(|name| name == OPERATOR_FIELD_MANAGER))
}

/// Which nodes to label, if no node with an endpoint is an ingress node.
fn label(scope: &Scope<'_>, services: &[&Key]) -> Option<String> {
    let ready: BTreeSet<&str> =
        services.iter().flat_map(|key| scope.cluster.ready_endpoints(key).into_keys()).collect();
    let is_ingress = |name: &&str| {
        scope.cluster.nodes.get(*name).is_some_and(|node| node.labels.contains_key(INGRESS_LABEL))
    };
    if ready.iter().any(is_ingress) {
        return None;
    }
    let nodes = if ready.is_empty() || ready.len() > MAX_NAMES {
        "<node>".to_owned()
    } else {
        ready.into_iter().collect::<Vec<_>>().join(" ")
    };
    Some(format!(
        "kubectl label node {nodes} {INGRESS_LABEL}=   # each node that receives the traffic; it needs an endpoint"
    ))
}

fn object(scope: &Scope<'_>, first: &Key, services: &[&Key]) -> String {
    let taken =
        |name: &str| scope.cluster.objects.iter().any(|object| object.metadata.name.as_deref() == Some(name));
    let name =
        if taken(&first.name) { format!("{}-{}", first.namespace, first.name) } else { first.name.clone() };
    let services: Vec<_> =
        services.iter().map(|key| json!({"namespace": key.namespace, "name": key.name})).collect();
    let mut object = json!({
        "apiVersion": "sourcepreserve.io/v1alpha1",
        "kind": "IngressSourcePreserve",
        "metadata": {"name": name},
        "spec": {
            "ingressNodes": {"selector": {"matchExpressions": [{"key": INGRESS_LABEL, "operator": "Exists"}]}},
            "services": services,
        },
    });
    if !has_kube_proxy(scope) {
        object["spec"]["mode"] = json!(Mode::Beside);
    }
    object.to_string()
}

/// Whether mode Filter finds a kube-proxy, as far as that is known.
fn has_kube_proxy(scope: &Scope<'_>) -> bool {
    !scope.cluster.knows(Kind::DaemonSet)
        || !matches!(kube_proxy(&scope.cluster.daemon_sets, None), Err(NoKubeProxy::NotFound))
}
