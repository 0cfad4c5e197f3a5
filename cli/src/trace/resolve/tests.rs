use serde_json::json;

use super::*;

/// A Service with two TCP ports and one UDP port, and two nodes.
fn cluster(kind: &str) -> Cluster {
    let mut cluster = Cluster::default();
    for (name, address) in [("n1", "10.0.0.1"), ("n2", "10.0.0.2")] {
        let node = json!({
            "metadata": {"name": name},
            "status": {"addresses": [{"type": "InternalIP", "address": address}]},
        });
        cluster.take_node(&serde_json::from_value(node).unwrap());
    }
    let node_port = |port: u16| if kind == "ClusterIP" { json!(null) } else { json!(port) };
    let mut service = json!({
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"type": kind, "clusterIPs": ["10.96.0.1", "fd00:96::1"], "ports": [
            {"name": "http", "port": 80, "nodePort": node_port(30080)},
            {"name": "https", "port": 443, "nodePort": node_port(30443)},
            {"name": "dns", "port": 53, "protocol": "UDP", "nodePort": node_port(30053)},
        ]},
    });
    if kind == "LoadBalancer" {
        service["status"] = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    }
    cluster.take_service(&serde_json::from_value(service).unwrap());
    cluster
}

fn asked(kind: &str, from: &str, to: &str, protocol: Protocol) -> Result<Vec<String>, String> {
    let found = requests(&cluster(kind), &from.parse().unwrap(), &to.parse().unwrap(), protocol, None);
    let found = found.map_err(|problem| problem.to_string())?;
    Ok(found.into_iter().map(|request| request.destination.to_string()).collect())
}

#[test]
fn a_service_means_the_addresses_that_the_client_can_use() {
    let tcp = |kind, from, to| asked(kind, from, to, Protocol::Tcp).unwrap();
    assert_eq!(tcp("LoadBalancer", "198.51.100.1", "svc/shop/web:80"), ["192.0.2.1:80"]);
    assert_eq!(tcp("NodePort", "198.51.100.1", "svc/shop/web:80"), ["10.0.0.1:30080", "10.0.0.2:30080"]);
    // The node has no IPv6 address.
    assert_eq!(tcp("LoadBalancer", "node/n1", "svc/shop/web:443"), ["10.96.0.1:443"]);
    assert_eq!(tcp("NodePort", "node/n1", "node/n2:30080"), ["10.0.0.2:30080"]);
    assert_eq!(asked("NodePort", "node/n1", "svc/shop/web", Protocol::Udp).unwrap(), ["10.96.0.1:53"]);
}

#[test]
fn what_cannot_be_meant_is_explained() {
    let refused = |kind, from, to, protocol| asked(kind, from, to, protocol).unwrap_err();
    assert_eq!(
        refused("NodePort", "node/n1", "svc/shop/web", Protocol::Tcp),
        "Service shop/web has several tcp ports: write one of 80/tcp, 443/tcp, 53/udp after its name, as in svc/shop/web:80"
    );
    assert_eq!(
        refused("NodePort", "node/n1", "svc/shop/web:81", Protocol::Tcp),
        "Service shop/web has no tcp port 81; it has 80/tcp, 443/tcp, 53/udp"
    );
    assert!(refused("NodePort", "node/n1", "svc/shop/web", Protocol::Sctp).contains("no sctp port; it has"));
    let inside = refused("ClusterIP", "198.51.100.1", "svc/shop/web:80", Protocol::Tcp);
    assert!(
        inside.starts_with("Service shop/web has no address for clients outside the cluster: "),
        "{inside}"
    );
    let other = refused("LoadBalancer", "2001:db8::1", "svc/shop/web:80", Protocol::Tcp);
    assert!(other.contains("no address family in common"), "{other}");
    assert!(refused("NodePort", "node/n9", "svc/shop/web:80", Protocol::Tcp).contains("no node \"n9\""));
    assert!(refused("NodePort", "node/n1", "svc/shop/x:80", Protocol::Tcp).contains("no Service shop/x"));
}
