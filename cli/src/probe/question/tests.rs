use serde_json::{Value, json};

use super::*;

fn node(name: &str, addresses: &[&str]) -> Node {
    let addresses: Vec<Value> =
        addresses.iter().map(|ip| json!({"type": "InternalIP", "address": ip})).collect();
    serde_json::from_value(json!({"metadata": {"name": name}, "status": {"addresses": addresses}})).unwrap()
}

fn service(spec: &Value, status: &Value) -> Service {
    serde_json::from_value(json!({"metadata": {"name": "frontend"}, "spec": spec, "status": status})).unwrap()
}

fn told(service: &Service, nodes: &[Node]) -> Vec<String> {
    let all = destinations(service, port(service).unwrap(), nodes);
    all.into_iter().map(|(to, address)| format!("{to} {address}")).collect()
}

#[test]
fn every_address_of_a_service_is_a_destination() {
    let spec = json!({
        "clusterIP": "10.96.7.7", "clusterIPs": ["10.96.7.7", "fd00:96::7"], "externalIPs": ["192.0.2.50", "192.0.2.10"],
        "ports": [{"port": 53, "protocol": "UDP", "nodePort": 30053}, {"port": 80, "nodePort": 30080}],
    });
    let ingress =
        json!([{"ip": "192.0.2.10"}, {"ip": "192.0.2.11", "ipMode": "Proxy"}, {"hostname": "lb.example"}]);
    let service = service(&spec, &json!({"loadBalancer": {"ingress": ingress}}));
    let nodes = [node("edge-1", &["10.90.0.11", "fd00:90::b"]), node("work-1", &["10.90.0.12"])];
    assert_eq!(
        told(&service, &nodes),
        [
            "external 192.0.2.10:80",
            "external 2 192.0.2.50:80",
            "NodePort of edge-1 10.90.0.11:30080",
            "NodePort of edge-1 [fd00:90::b]:30080",
            "NodePort of work-1 10.90.0.12:30080",
            "ClusterIP 10.96.7.7:80",
            "ClusterIP [fd00:96::7]:80",
        ]
    );
}

#[test]
fn without_node_ports_and_external_addresses_the_cluster_ip_is_left() {
    let spec = json!({"clusterIP": "10.96.7.7", "clusterIPs": ["10.96.7.7"], "ports": [{"port": 53, "protocol": "UDP"}]});
    assert_eq!(told(&service(&spec, &json!({})), &[node("a", &["10.90.0.11"])]), ["ClusterIP 10.96.7.7:53"]);
    assert!(port(&service(&json!({"ports": [{"port": 9, "protocol": "SCTP"}]}), &json!({}))).is_none());
}

#[test]
fn questions_are_arguments_of_the_client() {
    let address = "[fd00::1]:80".parse().unwrap();
    let to = Destination::ClusterIp;
    for (how, argument) in [
        (How::Tcp, "tcp://[fd00::1]:80"),
        (How::Udp, "udp://[fd00::1]:80"),
        (How::Connect, "connect://[fd00::1]:80"),
        (How::Http { path: "/x".to_owned() }, "http://[fd00::1]:80/x"),
    ] {
        assert_eq!(Question { to: to.clone(), address, how }.argument(), argument);
    }
}
