//! The exposed Services: whether the source IP is lost, at which hop and on which nodes, and what
//! is in front of them.

use isp_plan::Key;

use super::line::Line;
use crate::doctor::cluster::{Cluster, Service};
use crate::doctor::finding::{Code, Subject};
use crate::doctor::judgement::Arrival;
use crate::doctor::kinds::Kind;
use crate::outside::unseen;
use crate::text::few;

const CHECK: &str = "service";

pub(super) fn lines(cluster: &Cluster, asked: Option<&Key>) -> Vec<Line> {
    let owners = cluster.owners();
    let exposed = cluster.exposed(asked);
    let lines: Vec<Line> = exposed
        .map(|(key, service)| line(cluster, key, service, owners.get(key).map(String::as_str)))
        .collect();
    if !lines.is_empty() {
        return lines;
    }
    let text = match asked {
        Some(key) => {
            format!("Service {key} is not exposed: it has no NodePort, no load balancer and no externalIPs")
        }
        None => "no Service is exposed by a NodePort, a load balancer or externalIPs".to_owned(),
    };
    vec![Line::passed(CHECK, text)]
}

fn line(cluster: &Cluster, key: &Key, service: &Service, object: Option<&str>) -> Line {
    let line = match (service.arrival(), object) {
        (Arrival::Node, object) => at_node(cluster, key, service, object),
        (Arrival::Balancer, _) => Line::failed(
            CHECK,
            format!("Service {key} loses the source IP before the cluster: its load balancer opens its own connections (ipMode Proxy)"),
        )
        .coded(Code::IpModeProxy)
        .detail("let the balancer send the PROXY protocol and the ingress accept it, or let it forward packets (ipMode VIP); no object can preserve the source IP"),
        (Arrival::Client, object) => match service.proxied_by {
            Some(annotation) if service.facts.balanced => perhaps_before(key, annotation),
            _ => kept(cluster, key, object),
        },
    };
    let arrives = service.arrival() == Arrival::Client;
    let line = front(service, line.about(Subject::new("Service", key)));
    if arrives { line.detail(unseen()) } else { line }
}

/// The nodes with and without a ready endpoint.
fn places(cluster: &Cluster, key: &Key) -> Option<(Vec<String>, Vec<String>)> {
    let ready = cluster.ready_endpoints(key);
    let known = cluster.knows(Kind::EndpointSlice) && cluster.knows(Kind::Node);
    let lists = cluster.nodes.keys().cloned().partition(|node| ready.contains_key(node.as_str()));
    known.then_some(lists)
}

/// With policy Cluster, kube-proxy applies SNAT on every node, also on those with an endpoint.
fn at_node(cluster: &Cluster, key: &Key, service: &Service, object: Option<&str>) -> Line {
    let policy = service.policy();
    let text = format!(
        "Service {key} loses the source IP at every node that a client connects to: externalTrafficPolicy {policy}, so the node replaces it by its own (SNAT)"
    );
    let line = Line::failed(CHECK, text);
    let line = match object {
        Some(object) => line.coded(Code::PolicyNotLocal).detail(format!(
            "IngressSourcePreserve {object} names it, but it is not preserved: kubectl isp status {object}"
        )),
        None => line.coded(Code::NotPreserved),
    };
    match places(cluster, key) {
        Some((with, _)) if with.is_empty() => line.detail("it has no ready endpoint on any node"),
        Some((with, _)) => line.detail(format!("ready endpoints on {}", few(&with))),
        None => line.detail("which nodes have endpoints is not known"),
    }
}

fn kept(cluster: &Cluster, key: &Key, object: Option<&str>) -> Line {
    let by =
        object.map_or_else(String::new, |object| format!(", preserved by IngressSourcePreserve {object}"));
    let (with, without) = match places(cluster, key) {
        Some((with, without)) if !with.is_empty() => (with, without),
        Some(_) => {
            let text = format!(
                "Service {key} has externalTrafficPolicy Local and no ready endpoint: every node drops the traffic of clients{by}"
            );
            return Line::notice(CHECK, text).coded(Code::NoIngressEndpoint);
        }
        None => return Line::passed(CHECK, format!("Service {key} keeps the source IP{by}")),
    };
    let line = Line::passed(CHECK, format!("Service {key} keeps the source IP on {}{by}", few(&with)));
    match (without.is_empty(), object) {
        (true, _) => line,
        (false, Some(_)) => line.detail(format!("the other nodes drop the traffic of clients: {}", few(&without))),
        (false, None) => line.detail(format!(
            "the other nodes drop the traffic of clients, and serve its external addresses to their own pods: {}",
            few(&without)
        )),
    }
}

/// An annotation is a hint, and not a proof.
fn perhaps_before(key: &Key, annotation: &str) -> Line {
    let text = format!(
        "Service {key} keeps the source IP inside the cluster, but perhaps not before it: by its annotation {annotation}, the load balancer \
         seems to open its own connections"
    );
    Line::notice(CHECK, text).coded(Code::IpModeProxy).detail(
        "the ingress must accept the PROXY protocol then, and policies must compare the address in it",
    )
}

/// What is in front, as far as the cluster shows it.
fn front(service: &Service, line: Line) -> Line {
    let spec = &service.spec;
    let external = spec.external_ips.as_deref().unwrap_or_default();
    if service.facts.balanced {
        let of_class =
            spec.load_balancer_class.as_ref().map_or_else(String::new, |class| format!(" of class {class}"));
        let addresses = &service.facts.addresses;
        let at = if addresses.is_empty() {
            "without an address yet".to_owned()
        } else {
            format!("at {}", few(addresses))
        };
        let line = line.detail(format!("in front: a load balancer{of_class}, {at}"));
        let port = spec.health_check_node_port.filter(|port| *port != 0);
        return match (port, service.is_local()) {
            (Some(port), _) => line.detail(format!(
                "whether the balancer follows healthCheckNodePort {port} is not visible in the cluster"
            )),
            (None, true) => line
                .detail("it has no healthCheckNodePort, so the balancer cannot know which nodes have an endpoint"),
            (None, false) => line.detail(
                "once it is Local, it has a healthCheckNodePort; whether the balancer follows it is not visible in the cluster",
            ),
        };
    }
    if external.is_empty() {
        line.detail("in front: nothing that the cluster knows; clients use its NodePorts, or a balancer that was set up by hand does")
    } else {
        line.detail(format!("in front: routers that send {} to nodes (externalIPs)", few(external)))
    }
}
