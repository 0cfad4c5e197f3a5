//! Istio's gateways behind the Services: from where they take the client's address.

use std::collections::BTreeSet;

use isp_plan::Key;

use super::Scope;
use crate::doctor::cluster::{Cluster, Pod};
use crate::doctor::finding::{Code, Finding, Severity, Subject};
use crate::doctor::judgement::Front;
use crate::doctor::mesh::{Mesh, Reach};

/// Settings that make Envoy take the client's address from a header.
const HEADER_SETTINGS: [&str; 6] = [
    "xff_num_trusted_hops",
    "xffNumTrustedHops",
    "use_remote_address",
    "useRemoteAddress",
    "original_ip_detection_extensions",
    "originalIpDetectionExtensions",
];

pub(super) fn check(scope: &Scope<'_>, found: &mut Vec<Finding>) {
    for (key, _, object) in scope.exposed() {
        // Without an object this is only a setting. A policy that fails by it raises the severity.
        let graded = |finding: Finding| {
            if object.is_none() && scope.asked.is_none() { finding.graded(Severity::Note) } else { finding }
        };
        let mut said = BTreeSet::new();
        for (pod_key, pod) in scope.pods.of(key).into_iter().filter(|(_, pod)| pod.gateway) {
            if let Some((number, by)) = trusted_proxies(scope.cluster, pod_key, pod)
                && said.insert(by.clone())
            {
                found.push(graded(believes_headers(key, number, &by)));
            }
            if let Some(by) = proxy_protocol(scope.cluster, pod_key, pod)
                && said.insert(by.clone())
            {
                found.push(graded(expects_protocol(key, &by)));
            }
        }
    }
}

fn believes_headers(key: &Key, number: Option<u32>, by: &str) -> Finding {
    let whom = number.map_or("proxies before it".to_owned(), |number| format!("{number} proxies before it"));
    Finding::new(Code::TrustedProxies, Subject::new("Service", key), format!("its gateway trusts {whom} ({by})"))
        .because(
            "The gateway takes the client's address from X-Forwarded-For. That is right behind that many HTTP proxies. Clients that reach the gateway \
             directly, as they do when the source IP is kept, can forge the header.",
        )
        .do_this("behind a network load balancer: remove gatewayTopology.numTrustedProxies")
        .do_this("behind an HTTP proxy: keep it, block all other access to the gateway, and use remoteIpBlocks")
}

fn expects_protocol(key: &Key, by: &str) -> Finding {
    Finding::new(Code::ProxyProtocol, Subject::new("Service", key), format!("its gateway expects the PROXY protocol ({by})"))
        .because(
            "The gateway rejects connections without it, and believes any address that it carries. Clients that bypass the balancer, such as pods and \
             nodes of the cluster, do not send it.",
        )
        .do_this("behind a balancer that sends it: keep it, and block all other access to the gateway")
        .do_this("else: remove it; the source IP of the connection is the client's")
}

/// The kind of hop before a gateway, by the gateway's own settings.
pub(super) fn front(cluster: &Cluster, key: &Key, pod: &Pod) -> Front {
    if proxy_protocol(cluster, key, pod).is_some() {
        Front::ProxyProtocol
    } else if trusted_proxies(cluster, key, pod).is_some() {
        Front::TrustedProxies
    } else {
        Front::Network
    }
}

fn trusted_proxies(cluster: &Cluster, key: &Key, pod: &Pod) -> Option<(Option<u32>, String)> {
    let set = Mesh::of(cluster, pod).trusted_proxies(pod);
    let set = set.map(|setting| (Some(setting.value), setting.by.to_owned()));
    set.or_else(|| Some((None, filter(cluster, key, pod, &HEADER_SETTINGS)?)))
}

fn proxy_protocol(cluster: &Cluster, key: &Key, pod: &Pod) -> Option<String> {
    let set = Mesh::of(cluster, pod).proxy_protocol(pod).map(str::to_owned);
    set.or_else(|| filter(cluster, key, pod, &["envoy.filters.listener.proxy_protocol"]))
}

/// The `EnvoyFilter` that sets one of these for a pod.
fn filter(cluster: &Cluster, key: &Key, pod: &Pod, words: &[&str]) -> Option<String> {
    let found = cluster.filters.iter().find(|(own, filter)| {
        let reach = Reach {
            namespace: &own.namespace,
            of_mesh: cluster.is_root(&own.namespace),
            selector: filter.workload_selector.as_ref(),
            targets: filter.target_refs.iter().collect(),
        };
        words.iter().any(|word| filter.mentions(word)) && reach.meets(&key.namespace, pod)
    });
    found.map(|(own, _)| format!("EnvoyFilter {own}"))
}
