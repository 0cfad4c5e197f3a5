//! Settings of a Service that have a say in who reaches it with which address.

use isp_plan::Key;

use super::Scene;
use crate::doctor::cluster::{Service, is_proxy};
use crate::doctor::finding::{Code, Finding, Subject};
use crate::doctor::ranges::Range;

pub(super) fn check(scene: &Scene<'_>, key: &Key, service: &Service, found: &mut Vec<Finding>) {
    if service.facts.balanced {
        balancer(key, service, found);
    }
    source_ranges(scene, key, service, found);
}

fn subject(key: &Key) -> Subject {
    Subject::new("Service", key)
}

fn balancer(key: &Key, service: &Service, found: &mut Vec<Finding>) {
    let Key { namespace, name } = key;
    if service.facts.addresses.is_empty() {
        found.push(
            Finding::new(Code::NoExternalAddress, subject(key), "it has no external address yet")
                .because("No load balancer has answered: there is nothing that clients could call, and nothing to hide elsewhere.")
                .do_this(format!("kubectl describe service -n {namespace} {name}   # what the controller of load balancers says")),
        );
    }
    let proxied = service.ingress.iter().find(|ingress| is_proxy(ingress));
    if let Some(ip) = proxied.and_then(|ingress| ingress.ip.as_ref()) {
        found.push(
            Finding::new(Code::IpModeProxy, subject(key), format!("its address {ip} has ipMode Proxy"))
                .because(
                    "The load balancer opens connections of its own, so that their source is the balancer; no node answers the address itself. \
                     externalTrafficPolicy Local does not bring the client's address back: the PROXY protocol or X-Forwarded-For has to.",
                )
                .do_this(format!("kubectl get service -n {namespace} {name} -o jsonpath='{{.status.loadBalancer}}'"))
                .do_this("have the balancer tell the address (PROXY protocol), and the ingress read it; or have it pass packets on (ipMode VIP)"),
        );
    }
    if service.is_local() && service.spec.health_check_node_port.is_none_or(|port| port == 0) {
        found.push(
            Finding::new(Code::NoHealthCheckPort, subject(key), "it has no healthCheckNodePort")
                .because("A load balancer cannot tell which nodes have an endpoint, and sends to those that drop what enters there.")
                .do_this(format!("kubectl get service -n {namespace} {name} -o yaml   # a loadBalancerClass may do without; else set the policy anew")),
        );
    }
    if service.spec.allocate_load_balancer_node_ports == Some(false) {
        found.push(
            Finding::new(Code::NoNodePorts, subject(key), "allocateLoadBalancerNodePorts is false")
                .because(
                    "Only a load balancer that sends to the address itself (BGP, ARP, direct return) reaches it; one that sends to NodePorts finds none. \
                     Either must still follow healthCheckNodePort.",
                )
                .do_this("make sure that the load balancer sends packets for the address itself to the ingress nodes"),
        );
    }
}

/// The list of who is let in, wherever it stands. kube-proxy compares it before it masquerades, so that the policy has no say in it.
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
                    Finding::new(Code::SourceRangeUnreadable, subject(key), format!("{text:?} in loadBalancerSourceRanges is no range"))
                        .because("kube-proxy does not read such a Service right, and whom it lets in depends on its version.")
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
                "loadBalancerSourceRanges has a range of all addresses among others",
            )
            .because("One such range turns the whole list off: everybody is let in.")
            .do_this(edit(key)),
        );
    }
    Some(ranges).filter(|_| !open)
}

fn edit(key: &Key) -> String {
    format!("kubectl edit service -n {} {}   # spec.loadBalancerSourceRanges", key.namespace, key.name)
}

fn source_ranges(scene: &Scene<'_>, key: &Key, service: &Service, found: &mut Vec<Finding>) {
    let Some(ranges) = check_ranges(key, service, found) else { return };
    let of_cluster = |range: &Range| {
        let nodes = || scene.cluster.nodes.values();
        let of_nodes = nodes().flat_map(|node| &node.addresses).any(|address| range.holds((*address).into()));
        let of_pods = nodes().flat_map(|node| &node.pod_ranges).any(|pods| pods.holds(*range));
        of_pods || of_nodes && range.is_small()
    };
    if ranges.iter().all(of_cluster) {
        let line = "loadBalancerSourceRanges holds addresses of the cluster's nodes and pods only";
        found.push(
            Finding::new(Code::SourceRangesNodesOnly, subject(key), line)
                .because("Ranges like these let clients in as long as they are seen as nodes. With their own address they are kept out.")
                .do_this(edit(key))
                .do_this("list the ranges of the clients"),
        );
    }
}
