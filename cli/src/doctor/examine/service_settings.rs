//! Settings of a Service that affect the source IP, or admit clients by it.

use isp_plan::Key;

use super::Scope;
use crate::doctor::cluster::{Service, is_proxy};
use crate::doctor::finding::{Code, Finding, Subject};
use crate::doctor::ranges::Range;

pub(super) fn check(scope: &Scope<'_>, key: &Key, service: &Service, found: &mut Vec<Finding>) {
    if service.facts.balanced {
        balancer(key, service, found);
    }
    source_ranges(scope, key, service, found);
}

fn subject(key: &Key) -> Subject {
    Subject::new("Service", key)
}

fn balancer(key: &Key, service: &Service, found: &mut Vec<Finding>) {
    let Key { namespace, name } = key;
    if service.facts.addresses.is_empty() {
        found.push(
            Finding::new(Code::NoExternalAddress, subject(key), "it has no external address yet")
                .because("No load balancer has assigned one: clients have no address to call, and agents have none to hide.")
                .do_this(format!("kubectl describe service -n {namespace} {name}   # events of the load balancer controller")),
        );
    }
    let proxied = service.ingress.iter().find(|ingress| is_proxy(ingress));
    if let Some(ip) = proxied.and_then(|ingress| ingress.ip.as_ref()) {
        found.push(
            Finding::new(Code::IpModeProxy, subject(key), format!("its address {ip} has ipMode Proxy"))
                .because(
                    "The load balancer opens its own connections, so the source IP is the balancer's, and no node serves the address itself. \
                     externalTrafficPolicy Local does not restore the client's source IP; the PROXY protocol or X-Forwarded-For can.",
                )
                .do_this(format!("kubectl get service -n {namespace} {name} -o jsonpath='{{.status.loadBalancer}}'"))
                .do_this("configure the PROXY protocol on the balancer and on the ingress; or let the balancer forward packets (ipMode VIP)"),
        );
    }
    if service.is_local() && service.spec.health_check_node_port.is_none_or(|port| port == 0) {
        found.push(
            Finding::new(Code::NoHealthCheckPort, subject(key), "it has no healthCheckNodePort")
                .because("A load balancer cannot know which nodes have an endpoint, and also sends to nodes that drop the traffic.")
                .do_this(format!("kubectl get service -n {namespace} {name} -o yaml   # some loadBalancerClasses do not need it; else set the policy again")),
        );
    }
    if service.spec.allocate_load_balancer_node_ports == Some(false) {
        found.push(
            Finding::new(Code::NoNodePorts, subject(key), "allocateLoadBalancerNodePorts is false")
                .because(
                    "Only a load balancer that sends to the address itself (BGP, ARP, direct return) reaches it; one that sends to NodePorts does not. \
                     Either must still follow healthCheckNodePort.",
                )
                .do_this("make sure that the load balancer sends packets for the address itself to the ingress nodes"),
        );
    }
}

/// The admitted source ranges. kube-proxy compares them before SNAT, so externalTrafficPolicy does
/// not matter here.
pub(super) fn check_ranges(key: &Key, service: &Service, found: &mut Vec<Finding>) -> Option<Vec<Range>> {
    let texts: Vec<&String> = service.spec.load_balancer_source_ranges.iter().flatten().collect();
    if texts.is_empty() {
        return None;
    }
    let mut ranges: Vec<Range> = Vec::new();
    for text in &texts {
        match text.trim().parse() {
            Ok(range) if text.contains('/') => ranges.push(range),
            _ => {
                found.push(
                    Finding::new(
                        Code::SourceRangeUnreadable,
                        subject(key),
                        format!("{text:?} in loadBalancerSourceRanges is not a CIDR range"),
                    )
                    .because(
                        "kube-proxy misreads such a Service. Which clients it admits depends on its version.",
                    )
                    .do_this(edit(key)),
                );
                return None;
            }
        }
    }
    let open = ranges.iter().any(|range| range.is_everything());
    if open && !ranges.iter().all(|range| range.is_everything()) {
        found.push(
            Finding::new(
                Code::SourceRangesOpen,
                subject(key),
                "loadBalancerSourceRanges contains a range of all addresses beside others",
            )
            .because("This range makes the whole list ineffective: every client is admitted.")
            .do_this(edit(key)),
        );
    }
    Some(ranges).filter(|_| !open)
}

fn edit(key: &Key) -> String {
    format!("kubectl edit service -n {} {}   # spec.loadBalancerSourceRanges", key.namespace, key.name)
}

fn source_ranges(scope: &Scope<'_>, key: &Key, service: &Service, found: &mut Vec<Finding>) {
    let Some(ranges) = check_ranges(key, service, found) else { return };
    let of_cluster = |range: &Range| {
        let nodes = || scope.cluster.nodes.values();
        let of_nodes = nodes().flat_map(|node| &node.addresses).any(|address| range.holds((*address).into()));
        let of_pods = nodes().flat_map(|node| &node.pod_ranges).any(|pods| pods.holds(*range));
        of_pods || of_nodes && range.is_small()
    };
    if ranges.iter().all(of_cluster) {
        let line = "loadBalancerSourceRanges contains only addresses of the cluster's nodes and pods";
        found.push(
            Finding::new(Code::SourceRangesNodesOnly, subject(key), line)
                .because("Such ranges admit clients only while SNAT makes them appear as nodes. Clients that keep their source IP are rejected.")
                .do_this(edit(key))
                .do_this("add the CIDR ranges of the clients"),
        );
    }
}
