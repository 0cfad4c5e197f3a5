//! Istio's gateways behind the Services: whom they believe when it comes to the client's address.

use std::collections::BTreeSet;

use isp_plan::Key;

use super::Scene;
use crate::doctor::cluster::{Cluster, Pod};
use crate::doctor::finding::{Code, Finding, Severity, Subject};
use crate::doctor::judgement::Front;
use crate::doctor::mesh::{Mesh, Reach};

/// Settings of Envoy's by which it believes a header about the client.
const HEADER_SETTINGS: [&str; 6] = [
    "xff_num_trusted_hops",
    "xffNumTrustedHops",
    "use_remote_address",
    "useRemoteAddress",
    "original_ip_detection_extensions",
    "originalIpDetectionExtensions",
];

pub(super) fn check(scene: &Scene<'_>, found: &mut Vec<Finding>) {
    for (key, _, object) in scene.exposed() {
        // Where nobody has asked for the address it is as somebody has set it up; a policy that goes wrong by it makes it graver.
        let graded = |finding: Finding| {
            if object.is_none() && scene.asked.is_none() { finding.graded(Severity::Note) } else { finding }
        };
        let mut said = BTreeSet::new();
        for (pod_key, pod) in scene.pods.of(key).into_iter().filter(|(_, pod)| pod.gateway) {
            if let Some((number, by)) = trusted_proxies(scene.cluster, pod_key, pod)
                && said.insert(by.clone())
            {
                found.push(graded(believes_headers(key, number, &by)));
            }
            if let Some(by) = proxy_protocol(scene.cluster, pod_key, pod)
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
            "The client's address is then what X-Forwarded-For says. That is right behind that many proxies for HTTP. Where clients reach the gateway \
             directly, as they do when their address is kept, each of them writes the header himself.",
        )
        .do_this("behind a network load balancer: remove gatewayTopology.numTrustedProxies")
        .do_this("behind a proxy for HTTP: keep it, let nobody else reach the gateway, and use remoteIpBlocks")
}

fn expects_protocol(key: &Key, by: &str) -> Finding {
    Finding::new(Code::ProxyProtocol, Subject::new("Service", key), format!("its gateway expects the PROXY protocol ({by})"))
        .because(
            "Whoever does not speak it is refused, and whoever does can claim any address. Clients that come past the balancer, as pods and nodes of the \
             cluster may, do not speak it.",
        )
        .do_this("behind a balancer that speaks it: keep it, and let nobody else reach the gateway")
        .do_this("else: remove it, the address of the connection is the client's")
}

/// What stands before a gateway, by its own settings.
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

/// The patch of Envoy's configuration that mentions one of these for a pod.
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
