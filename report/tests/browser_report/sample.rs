//! A cluster as in the demo, before and after, with as many nodes as a test wants.

use isp_report::Report;
use isp_report::merge::merge;
use isp_report::model::{
    Destination, Event, Finding, Flow, Hop, Journey, Judgement, Node, Outcome, Path, Policy, Role, Service,
    Severity, Source, SourceKind, Stage, Verdict, Way, WayKind,
};

const CLIENT: &str = "198.51.100.10";
const EXTERNAL: &str = "192.0.2.10:80";
const CLUSTER_IP: &str = "10.96.41.7:80";
const POD: &str = "10.244.1.4:8080";

/// The demo's three nodes.
pub(crate) fn demo() -> Report {
    of("istio-system/istio-ingressgateway", nodes(1, 2))
}

/// A cluster with 500 nodes in five pools, some of them not ready, and three Services.
pub(crate) fn large() -> Report {
    let mut all = nodes(4, 496);
    for (number, node) in all.iter_mut().enumerate().skip(4) {
        node.pool = String::from(["default", "default", "gpu", "storage"][number % 4]);
        node.ready = number % 97 != 0;
    }
    let mut report = of("istio-system/istio-ingressgateway", all);
    for name in ["web/frontend", "shop/checkout"] {
        let other = of(name, report.nodes.clone());
        report.services.extend(other.services);
        report.paths.extend(other.paths);
    }
    report.title = String::from("Source IPs in cluster large");
    report
}

fn nodes(ingress: usize, others: usize) -> Vec<Node> {
    let node = |number: usize| {
        let is_ingress = number < ingress;
        let name = if is_ingress {
            format!("edge-{}", number + 1)
        } else {
            format!("work-{}", number + 1 - ingress)
        };
        Node {
            name,
            pool: if is_ingress { "ingress" } else { "default" }.to_owned(),
            role: if is_ingress { Role::Ingress } else { Role::NonIngress },
            ready: true,
            addresses: vec![host(number)],
            remark: if is_ingress { String::new() } else { "acknowledged ClusterOnly".to_owned() },
        }
    };
    (0..ingress + others).map(node).collect()
}

fn host(number: usize) -> String {
    format!("10.90.{}.{}", number / 200, 11 + number % 200)
}

fn pod(number: usize) -> String {
    format!("10.{}.{}.2", 244 + number / 250, 1 + number % 250)
}

fn of(service: &str, nodes: Vec<Node>) -> Report {
    let mut paths = Vec::new();
    for (number, node) in nodes.iter().enumerate() {
        paths.extend(outside(service, number, node));
        for kind in [SourceKind::Pod, SourceKind::Host] {
            let address = if kind == SourceKind::Pod { pod(number) } else { host(number) };
            let from = Source { kind, address, nodes: vec![node.name.clone()] };
            paths.extend(inside(service, node, &from, number));
        }
    }
    let paths = merge(&nodes, paths);
    let way = |kind, address: &str| Way { kind, address: address.to_owned() };
    Report {
        title: "Source IPs in cluster lab".to_owned(),
        time: "2026-01-31T09:14:07Z".to_owned(),
        origin: "context kubernetes-admin@lab".to_owned(),
        stages: vec![
            Stage { label: "Now".to_owned(), basis: "From the objects of the cluster.".to_owned() },
            Stage {
                label: "With istio-gateway.yaml".to_owned(),
                basis: "Planned: what the operator does if the file is applied and every agent starts."
                    .to_owned(),
            },
        ],
        services: vec![Service {
            name: service.to_owned(),
            kind: "LoadBalancer".to_owned(),
            policies: vec!["Cluster".to_owned(), "Local".to_owned()],
            objects: vec![None, Some("istio".to_owned())],
            ways: vec![
                way(WayKind::ClusterIp, CLUSTER_IP),
                way(WayKind::External, EXTERNAL),
                way(WayKind::NodePort, "30219"),
            ],
        }],
        paths,
        policies: policies(),
        findings: findings(),
        timeline: timeline(),
        gaps: vec![
            "ConfigMaps were not read: the right to list them is missing. kube-proxy's defaults are assumed."
                .to_owned(),
        ],
        nodes,
    }
}

/// The paths of a client outside that enter at a node.
fn outside(service: &str, number: usize, node: &Node) -> Vec<Path> {
    let from = Source { kind: SourceKind::Outside, address: CLIENT.to_owned(), nodes: vec![] };
    let is_ingress = node.role == Role::Ingress;
    let there = Destination {
        kind: WayKind::NodePort,
        address: format!("{}:30219", host(number)),
        nodes: vec![node.name.clone()],
    };
    let seen = if is_ingress { format!("10.244.{}.1", number + 1) } else { host(number) };
    let after = if is_ingress { kept(node, CLIENT, &there.address) } else { dropped(node, &there.address) };
    let mut paths = vec![Path {
        service: service.to_owned(),
        from: from.clone(),
        journeys: vec![replaced(node, CLIENT, &seen, &there.address), after],
        to: there,
    }];
    if is_ingress {
        let to = Destination {
            kind: WayKind::External,
            address: EXTERNAL.to_owned(),
            nodes: vec![node.name.clone()],
        };
        let journeys = vec![replaced(node, CLIENT, &seen, EXTERNAL), kept(node, CLIENT, EXTERNAL)];
        paths.push(Path { service: service.to_owned(), from, to, journeys });
    }
    paths
}

/// The paths from a pod or a host of a node.
fn inside(service: &str, node: &Node, from: &Source, number: usize) -> Vec<Path> {
    let to = |kind, address: &str| Destination { kind, address: address.to_owned(), nodes: vec![] };
    let cluster = Path {
        service: service.to_owned(),
        from: from.clone(),
        to: to(WayKind::ClusterIp, CLUSTER_IP),
        journeys: vec![kept(node, &from.address, CLUSTER_IP), kept(node, &from.address, CLUSTER_IP)],
    };
    let mut after = kept(node, &host(number), EXTERNAL);
    if from.kind == SourceKind::Pod {
        let leaving = Hop {
            place: format!("node {}", node.name),
            actor: "network plugin".to_owned(),
            reason: "Traffic of pods to addresses outside the cluster leaves with the address of the node."
                .to_owned(),
            before: flow(&from.address, EXTERNAL),
            after: flow(&host(number), EXTERNAL),
            rules: vec![],
            assumed: true,
        };
        after.hops.insert(0, leaving);
        after.line = String::from(
            "The gateway sees the address of the pod's node, as any host outside the cluster would.",
        );
    }
    let external = Path {
        service: service.to_owned(),
        from: from.clone(),
        to: to(WayKind::External, EXTERNAL),
        journeys: vec![replaced(node, &from.address, &host(number), EXTERNAL), after],
    };
    vec![cluster, external]
}

fn flow(source: &str, destination: &str) -> Flow {
    Flow { source: source.to_owned(), destination: destination.to_owned() }
}

fn hop(place: String, actor: &str, reason: &str, before: Flow, after: Flow) -> Hop {
    Hop {
        place,
        actor: actor.to_owned(),
        reason: reason.to_owned(),
        before,
        after,
        rules: vec![],
        assumed: false,
    }
}

fn kept(node: &Node, source: &str, destination: &str) -> Journey {
    let reason = "The rules choose an endpoint of this node and keep the source, because externalTrafficPolicy is Local.";
    let mut chosen = hop(
        format!("node {}", node.name),
        "kube-proxy",
        reason,
        flow(source, destination),
        flow(source, POD),
    );
    chosen.rules = vec!["ip daddr 192.0.2.10 tcp dport 80 goto external-NWV5X2332I4OT4T3".to_owned()];
    let gateway = hop(
        "pod istio-system/istio-ingressgateway-5d8".to_owned(),
        "gateway",
        "Envoy appends its peer to X-Forwarded-For.",
        flow(source, POD),
        flow(source, POD),
    );
    Journey {
        outcome: Outcome::Preserved,
        arrives: Some(source.to_owned()),
        line: format!("The gateway sees {source}, the client's own address."),
        hops: vec![chosen, gateway],
    }
}

fn replaced(node: &Node, source: &str, seen: &str, destination: &str) -> Journey {
    let reason = "SNAT: externalTrafficPolicy is Cluster, so the node replaces the source to get the reply.";
    Journey {
        outcome: Outcome::Lost,
        arrives: Some(format!("{seen} (node {})", node.name)),
        line: format!("The gateway sees {seen} instead of {source}: node {} applied SNAT.", node.name),
        hops: vec![hop(
            format!("node {}", node.name),
            "kube-proxy",
            reason,
            flow(source, destination),
            flow(seen, POD),
        )],
    }
}

fn dropped(node: &Node, destination: &str) -> Journey {
    let reason = "externalTrafficPolicy is Local, and the node has no endpoint.";
    Journey {
        outcome: Outcome::Dropped,
        arrives: None,
        line: format!("Node {} drops external traffic: it is no ingress node.", node.name),
        hops: vec![hop(
            format!("node {}", node.name),
            "kube-proxy",
            reason,
            flow(CLIENT, destination),
            flow(CLIENT, destination),
        )],
    }
}

fn policies() -> Vec<Policy> {
    let judgement = |verdict, reason: &str| Judgement { verdict, reason: reason.to_owned() };
    vec![
        Policy {
            kind: "AuthorizationPolicy".to_owned(),
            name: "istio-system/office-only".to_owned(),
            rule: "ALLOW ipBlocks 198.51.100.0/24".to_owned(),
            judgements: vec![
                judgement(
                    Verdict::FailsClosed,
                    "It compares the address of a node, which is never in the list.",
                ),
                judgement(Verdict::Right, "Its peer is the client."),
            ],
        },
        Policy {
            kind: "AuthorizationPolicy".to_owned(),
            name: "shop/no-crawlers".to_owned(),
            rule: "DENY remoteIpBlocks 203.0.113.0/24".to_owned(),
            judgements: vec![
                judgement(
                    Verdict::FailsOpen,
                    "The clients that it should reject have the address of a node.",
                ),
                judgement(Verdict::Right, "X-Forwarded-For has the client."),
            ],
        },
    ]
}

fn findings() -> Vec<Finding> {
    vec![
        Finding {
            code: "ISP702".to_owned(),
            severity: Severity::Error,
            subject: "AuthorizationPolicy istio-system/office-only".to_owned(),
            line: "ALLOW, ipBlocks: rejects the clients that it should admit".to_owned(),
            reason: "The gateway's peer is a node, because externalTrafficPolicy is Cluster.".to_owned(),
            remedy: vec![
                "kubectl isp plan -f isp.yaml   # preserve Service istio-system/istio-ingressgateway"
                    .to_owned(),
            ],
        },
        Finding {
            code: "ISP307".to_owned(),
            severity: Severity::Warning,
            subject: "Service istio-system/istio-ingressgateway".to_owned(),
            line: "no object preserves it".to_owned(),
            reason: "Clients from outside lose their source IP at the first node.".to_owned(),
            remedy: vec![],
        },
        Finding {
            code: "ISP605".to_owned(),
            severity: Severity::Note,
            subject: "Pod shop/cart-1".to_owned(),
            line: "its sidecar connects from 127.0.0.6".to_owned(),
            reason: String::new(),
            remedy: vec![],
        },
    ]
}

fn timeline() -> Vec<Event> {
    let event = |time: &str, warning, object: &str, reason: &str, message: &str, count| Event {
        time: format!("2026-01-31T{time}Z"),
        warning,
        object: object.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        count,
    };
    let object = "IngressSourcePreserve istio";
    vec![
        event("09:10:02", false, object, "AgentsStarting", "pool default: handing over node work-1", 1),
        event("09:10:19", true, "Node work-2", "AgentNotReady", "container proxy-agent: ImagePullBackOff", 3),
        event("09:11:40", false, object, "AgentsReady", "2 of 2 non-ingress nodes have their agent", 1),
        event(
            "09:11:44",
            false,
            "Service istio-system/istio-ingressgateway",
            "Labelled",
            "label sourcepreserve.io/preserve set",
            1,
        ),
        event("09:11:52", false, object, "Ready", "the source IP reaches 1 Service", 1),
    ]
}
