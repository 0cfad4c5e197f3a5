use serde_json::{Value, json};

use super::*;

fn known(service: Value) -> Option<KnownService> {
    super::service(&serde_json::from_value(service).unwrap())
}

fn slice_of(value: Value) -> Option<(ServiceName, KnownSlice)> {
    slice(&serde_json::from_value(value).unwrap())
}

fn web() -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "shop", "labels": {"a": "b"}},
        "spec": {
            "type": "LoadBalancer",
            "clusterIP": "10.96.0.10", "clusterIPs": ["10.96.0.10", "fd00:96::10"],
            "externalIPs": ["203.0.113.7", "not an address"],
            "externalTrafficPolicy": "Local", "internalTrafficPolicy": "Cluster",
            "healthCheckNodePort": 31000,
            "loadBalancerSourceRanges": [" 198.51.100.0/24 ", "nonsense"],
            "sessionAffinity": "ClientIP",
            "ports": [
                {"name": "http", "port": 80, "nodePort": 30080},
                {"name": "dns", "port": 53, "protocol": "UDP"},
                {"name": "odd", "port": 9, "protocol": "ICMP"},
            ],
        },
        "status": {"loadBalancer": {"ingress": [
            {"ip": "198.51.100.20"}, {"ip": "198.51.100.21", "ipMode": "Proxy"},
            {"ip": "198.51.100.22", "ipMode": "VIP"}, {"hostname": "lb.example"},
        ]}},
    })
}

#[test]
fn a_service_keeps_what_the_data_plane_can_use() {
    let known = known(web()).unwrap();
    let service = known.with_endpoints([]);
    let text = |addresses: &[IpAddr]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(text(&service.cluster_ips), ["10.96.0.10", "fd00:96::10"]);
    assert_eq!(text(&service.external_ips), ["203.0.113.7"]);
    assert_eq!(
        text(&service.load_balancer_ips),
        ["198.51.100.20", "198.51.100.22"],
        "no host, no ipMode Proxy"
    );
    assert_eq!(service.source_ranges, ["198.51.100.0/24".parse().unwrap()]);
    assert_eq!(
        (service.external_policy, service.internal_policy),
        (TrafficPolicy::Local, TrafficPolicy::Cluster)
    );
    assert_eq!(service.affinity, Some(10_800), "the default of the API");
    let ports: Vec<_> = service.ports.iter().map(|port| (port.protocol, port.port, port.node_port)).collect();
    assert_eq!(ports, [(Protocol::Tcp, 80, Some(30080)), (Protocol::Udp, 53, None)]);
    assert_eq!(known.health_check_node_port, Some(31000));
}

#[test]
fn the_health_check_port_applies_to_load_balancers_with_policy_local_only() {
    for (field, value) in [("externalTrafficPolicy", "Cluster"), ("type", "NodePort")] {
        let mut service = web();
        service["spec"][field] = json!(value);
        assert_eq!(known(service).unwrap().health_check_node_port, None, "{field} {value}");
    }
}

#[test]
fn a_service_without_a_cluster_ip_is_not_served() {
    for (cluster_ip, kind) in [("None", "ClusterIP"), ("", "ClusterIP"), ("10.96.0.10", "ExternalName")] {
        let spec = json!({"type": kind, "clusterIP": cluster_ip, "clusterIPs": [cluster_ip], "ports": [{"port": 80}]});
        assert_eq!(known(json!({"metadata": {"name": "x"}, "spec": spec})), None, "{cluster_ip} {kind}");
    }
}

fn web_slice(address_type: &str, endpoints: &Value) -> Value {
    json!({
        "metadata": {"name": "web-1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": address_type,
        "ports": [
            {"name": "http", "port": 8080, "protocol": "TCP"},
            {"name": "dns", "port": 5353, "protocol": "TCP"},
            {"name": "http", "protocol": "TCP"},
            {"port": 1, "protocol": "TCP"},
        ],
        "endpoints": endpoints,
    })
}

#[test]
fn endpoints_belong_to_the_port_of_the_same_name_and_protocol() {
    let endpoints = json!([
        {"addresses": ["10.244.1.5", "10.244.1.6"], "nodeName": "n1", "conditions": {},
         "hints": {"forZones": [{"name": "z"}], "forNodes": [{"name": "n1"}]}},
        {"addresses": ["10.244.2.5"], "conditions": {"ready": false, "serving": true, "terminating": true}},
        {"addresses": ["fd00::1"]}, {"addresses": []},
    ]);
    let (name, slice) = slice_of(web_slice("IPv4", &endpoints)).unwrap();
    assert_eq!(name.to_string(), "shop/web");
    let service = known(web()).unwrap().with_endpoints([&slice]);
    let [http, dns] = service.ports.as_slice() else { panic!("{service:?}") };
    assert!(dns.endpoints.is_empty(), "the slice has this name with another protocol");
    let targets: Vec<_> = http.endpoints.iter().map(|each| each.target.to_string()).collect();
    assert_eq!(
        targets,
        ["10.244.1.5:8080", "10.244.2.5:8080"],
        "the first address only, of the slice's family"
    );
    let [first, second] = http.endpoints.as_slice() else { panic!("{http:?}") };
    assert!(first.ready && first.serving && !first.terminating, "unknown counts as ready");
    assert_eq!((first.node.as_deref(), first.zone_hints.len(), first.node_hints.len()), (Some("n1"), 1, 1));
    assert!(!second.ready && second.serving && second.terminating && second.node.is_none());
}

#[test]
fn a_slice_of_host_names_or_of_no_service_is_ignored() {
    assert_eq!(slice_of(web_slice("FQDN", &json!([{"addresses": ["a.example"]}]))), None);
    let mut slice = web_slice("IPv6", &json!([{"addresses": ["fd00::1"]}]));
    slice["metadata"]["labels"] = json!({});
    assert_eq!(slice_of(slice), None);
}

#[test]
fn an_endpoint_that_would_lead_to_the_node_itself_is_ignored() {
    let v4 =
        ["127.0.0.1", "169.254.1.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "010.0.0.1", "10.244.1.5"];
    let v6 = ["::1", "fe80::1", "::", "ff02::1", "::ffff:127.0.0.1%eth0", "10.244.1.5", "fd00::5"];
    for (address_type, addresses, used) in [("IPv4", v4, "10.244.1.5"), ("IPv6", v6, "fd00::5")] {
        let endpoints: Vec<Value> = addresses.iter().map(|address| json!({"addresses": [address]})).collect();
        let (_, slice) = slice_of(web_slice(address_type, &json!(endpoints))).unwrap();
        let found: Vec<_> = slice.endpoints.iter().map(|(address, _)| address.to_string()).collect();
        assert_eq!(found, [used]);
    }
}

#[test]
fn a_slice_without_ports_or_endpoints_is_empty() {
    for field in ["ports", "endpoints"] {
        let mut slice = web_slice("IPv4", &json!([{"addresses": ["10.244.1.5"]}]));
        slice[field] = Value::Null;
        let (_, slice) = slice_of(slice).unwrap();
        let service = known(web()).unwrap().with_endpoints([&slice]);
        assert!(service.ports.iter().all(|port| port.endpoints.is_empty()), "{field}");
    }
}

#[test]
fn a_slice_of_a_thousand_endpoints_is_used_whole() {
    let address = |index: u16| format!("10.244.{}.{}", index / 250, index % 250 + 1);
    let endpoints: Vec<Value> = (0..1000).map(|index| json!({"addresses": [address(index)]})).collect();
    let (_, slice) = slice_of(web_slice("IPv4", &json!(endpoints))).unwrap();
    let service = known(web()).unwrap().with_endpoints([&slice]);
    assert_eq!(service.ports[0].endpoints.len(), 1000);
}
