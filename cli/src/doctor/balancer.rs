//! Annotations of providers by which a load balancer opens its own connections, so that the source
//! IP is its own. Pure.
//!
//! A balancer that sends the PROXY protocol replaces the address, or it would not need to. Some
//! network balancers can do both, so the annotation is a hint and not a proof.

use std::collections::BTreeMap;

/// Annotations whose value turns the PROXY protocol on, unless it is empty, `false` or `none`.
const PROXY_PROTOCOL: [&str; 9] = [
    "service.beta.kubernetes.io/aws-load-balancer-proxy-protocol",
    "service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol",
    "service.beta.kubernetes.io/linode-loadbalancer-proxy-protocol",
    "service.beta.kubernetes.io/linode-loadbalancer-default-proxy-protocol",
    "service.beta.kubernetes.io/scw-loadbalancer-proxy-protocol-v1",
    "service.beta.kubernetes.io/scw-loadbalancer-proxy-protocol-v2",
    "service.beta.kubernetes.io/vultr-loadbalancer-proxy-protocol",
    "load-balancer.hetzner.cloud/uses-proxyprotocol",
    "loadbalancer.openstack.org/proxy-protocol",
];
const OFF: [&str; 3] = ["", "false", "none"];
/// The attributes of an AWS target group, and the one that replaces the source IP.
const ATTRIBUTES: &str = "service.beta.kubernetes.io/aws-load-balancer-target-group-attributes";
const NOT_PRESERVED: &str = "preserve_client_ip.enabled=false";

/// The annotation that tells that the balancer of a Service is a proxy.
pub(crate) fn proxy_annotation(annotations: &BTreeMap<String, String>) -> Option<&'static str> {
    let is_on = |name: &&str| annotations.get(*name).is_some_and(|value| !OFF.contains(&value.trim()));
    let replaces = annotations.get(ATTRIBUTES).is_some_and(|attributes| attributes.contains(NOT_PRESERVED));
    PROXY_PROTOCOL.into_iter().find(is_on).or(replaces.then_some(ATTRIBUTES))
}

#[test]
fn an_annotation_counts_unless_it_is_off() {
    let of = |name: &str, value: &str| proxy_annotation(&[(name.to_owned(), value.to_owned())].into());
    for name in PROXY_PROTOCOL {
        assert_eq!((of(name, "true"), of(name, "*")), (Some(name), Some(name)));
        assert_eq!((of(name, "false"), of(name, "")), (None, None));
    }
    assert_eq!(of(ATTRIBUTES, "stickiness.enabled=true,preserve_client_ip.enabled=false"), Some(ATTRIBUTES));
    assert_eq!(of(ATTRIBUTES, "preserve_client_ip.enabled=true"), None);
    assert_eq!(of("service.beta.kubernetes.io/aws-load-balancer-type", "nlb"), None);
}
