use serde_json::{Value, json};

use super::super::pods::{self, KIND};
use super::*;

fn service(metadata: &Value, spec: &Value) -> Service {
    let mut whole = json!({"metadata": {"name": "frontend", "namespace": "web"}, "spec": spec});
    whole["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

/// The canary's spec without selector and ports.
fn shape(spec: &Value) -> Value {
    let of = service(&json!({}), spec);
    let canary = canary("isp-probe-1", &of, BTreeMap::new(), pods::selector("1"), Vec::new());
    let mut spec = serde_json::to_value(canary.spec.unwrap()).unwrap();
    for field in ["selector", "ports"] {
        spec.as_object_mut().unwrap().remove(field);
    }
    spec
}

#[test]
fn a_canary_has_the_shape_of_the_service_and_nothing_that_only_one_can_have() {
    let port = json!([{"port": 80, "nodePort": 30080}]);
    for (what, spec, expected) in [
        ("ClusterIP", json!({"ports": port}), json!({"type": "ClusterIP"})),
        (
            "NodePort",
            json!({"type": "NodePort", "externalTrafficPolicy": "Cluster", "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]}),
            json!({"type": "NodePort", "externalTrafficPolicy": "Cluster"}),
        ),
        (
            "a policy Local with its health check",
            json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 31000}),
            json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local"}),
        ),
        (
            "an address that was asked for",
            json!({"type": "LoadBalancer", "loadBalancerIP": "192.0.2.10", "externalTrafficPolicy": "Cluster"}),
            json!({"type": "LoadBalancer", "externalTrafficPolicy": "Cluster"}),
        ),
        (
            "a class",
            json!({"type": "LoadBalancer", "loadBalancerClass": "example.com/internal"}),
            json!({"type": "LoadBalancer", "loadBalancerClass": "example.com/internal"}),
        ),
        (
            "source ranges",
            json!({"type": "LoadBalancer", "loadBalancerSourceRanges": ["198.51.100.0/24"]}),
            json!({"type": "LoadBalancer", "loadBalancerSourceRanges": ["198.51.100.0/24"]}),
        ),
        (
            "no node ports",
            json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false}),
            json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false}),
        ),
        (
            "external IPs of a NodePort",
            json!({"type": "NodePort", "externalIPs": ["192.0.2.50"], "externalTrafficPolicy": "Local"}),
            json!({"type": "NodePort", "externalTrafficPolicy": "Local"}),
        ),
        (
            "external IPs of a ClusterIP",
            json!({"type": "ClusterIP", "externalIPs": ["192.0.2.50"], "externalTrafficPolicy": "Local"}),
            json!({"type": "NodePort", "externalTrafficPolicy": "Local"}),
        ),
        (
            "two families",
            json!({"type": "NodePort", "ipFamilies": ["IPv6", "IPv4"], "ipFamilyPolicy": "RequireDualStack"}),
            json!({"type": "NodePort", "ipFamilies": ["IPv6", "IPv4"], "ipFamilyPolicy": "RequireDualStack"}),
        ),
        (
            "one family",
            json!({"type": "NodePort", "ipFamilies": ["IPv6"], "ipFamilyPolicy": "SingleStack"}),
            json!({"type": "NodePort", "ipFamilies": ["IPv6"], "ipFamilyPolicy": "SingleStack"}),
        ),
        (
            "the internal policy",
            json!({"type": "NodePort", "internalTrafficPolicy": "Local"}),
            json!({"type": "NodePort", "internalTrafficPolicy": "Local"}),
        ),
        (
            "affinity",
            json!({"type": "NodePort", "sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}}}),
            json!({"type": "NodePort", "sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}}}),
        ),
        (
            "a distribution",
            json!({"type": "NodePort", "trafficDistribution": "PreferClose"}),
            json!({"type": "NodePort", "trafficDistribution": "PreferClose"}),
        ),
        (
            "a class of a Service that is no load balancer any more",
            json!({"type": "NodePort", "publishNotReadyAddresses": true, "loadBalancerSourceRanges": ["10.0.0.0/8"]}),
            json!({"type": "NodePort"}),
        ),
    ] {
        assert_eq!(shape(&spec), expected, "{what}");
    }
}

#[test]
fn ports_lead_to_the_echo_program_and_node_ports_are_new() {
    let of = service(
        &json!({}),
        &json!({"type": "NodePort", "ports": [
            {"name": "http", "port": 80, "targetPort": "web", "nodePort": 30080, "appProtocol": "http"},
            {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53},
            {"name": "sctp", "port": 9999, "protocol": "SCTP"},
        ]}),
    );
    let canary = canary("isp-probe-1", &of, BTreeMap::new(), pods::selector("1"), Vec::new());
    assert_eq!(
        serde_json::to_value(canary.spec.unwrap().ports).unwrap(),
        json!([
            {"name": "http", "port": 80, "targetPort": 8081, "appProtocol": "http"},
            {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 8082},
        ])
    );
}

#[test]
fn annotations_of_a_load_balancer_are_copied_and_those_of_one_service_are_not() {
    let copied = [
        "service.beta.kubernetes.io/aws-load-balancer-type",
        "service.beta.kubernetes.io/azure-load-balancer-internal",
        "metallb.io/address-pool",
    ];
    let left = [
        "kubectl.kubernetes.io/last-applied-configuration",
        "external-dns.alpha.kubernetes.io/hostname",
        "metallb.universe.tf/loadBalancerIPs",
        "metallb.universe.tf/allow-shared-ip",
        "service.beta.kubernetes.io/aws-load-balancer-eip-allocations",
        "service.beta.kubernetes.io/aws-load-balancer-name",
        "service.beta.kubernetes.io/azure-pip-name",
        "service.beta.kubernetes.io/azure-dns-label-name",
        "lbipam.cilium.io/ips",
        "kube-vip.io/loadbalancerIPs",
        "networking.gke.io/load-balancer-ip-addresses",
        "argocd.argoproj.io/tracking-id",
        "meta.helm.sh/release-name",
        "sourcepreserve.io/original",
    ];
    let all: BTreeMap<&str, &str> = copied.iter().chain(&left).map(|key| (*key, "x")).collect();
    let of = service(&json!({"annotations": all}), &json!({"type": "LoadBalancer"}));
    let canary = canary("isp-probe-1", &of, BTreeMap::new(), pods::selector("1"), Vec::new());
    let mut names: Vec<String> = canary.metadata.annotations.unwrap().into_keys().collect();
    names.sort();
    let mut copied = copied;
    copied.sort_unstable();
    assert_eq!(names, copied);
}

#[test]
fn the_operator_writes_its_labels_itself_if_it_changes_the_canary() {
    let of = service(
        &json!({"labels": {
            "tier": "edge", "app.kubernetes.io/name": "frontend", "app.kubernetes.io/managed-by": "Helm",
            "sourcepreserve.io/preserve": "web", "example.com/skip": "yes",
            "service.kubernetes.io/service-proxy-name": "ingress-source-preserve",
        }}),
        &json!({}),
    );
    let names = |by_operator, key| -> Vec<String> {
        labels(&KIND, &of, key, by_operator)
            .into_iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect()
    };
    let ours = ["app.kubernetes.io/name=isp-probe", "app.kubernetes.io/part-of=ingress-source-preserve"];
    assert_eq!(names(true, Some("example.com/skip")), [&ours[..], &["tier=edge"]].concat());
    let written = [
        "example.com/skip=yes",
        "service.kubernetes.io/service-proxy-name=ingress-source-preserve",
        "sourcepreserve.io/preserve=web",
        "tier=edge",
    ];
    assert_eq!(names(false, None), [&ours[..], &written].concat());
}

#[test]
fn a_canary_is_refused_where_it_would_be_treated_differently() {
    let named = |object: &str| object.to_owned();
    for (owner, canary_owner, taken_over, expected) in [
        (None, None, false, Treatment::Alike),
        (Some(("web", false)), None, false, Treatment::Alike),
        (Some(("web", false)), Some("web"), false, Treatment::ByOperator { object: named("web") }),
        (Some(("web", true)), Some("web"), true, Treatment::ByOperator { object: named("web") }),
        (Some(("web", true)), None, true, Treatment::NotServed { object: named("web") }),
        // The operator is about to take it over, or to give it back.
        (Some(("web", true)), None, false, Treatment::NotServed { object: named("web") }),
        (Some(("web", false)), None, true, Treatment::NotServed { object: named("web") }),
        (None, None, true, Treatment::NotServed { object: named("that was deleted") }),
        (None, Some("other"), false, Treatment::OfAnother { object: named("other") }),
        (Some(("web", false)), Some("other"), false, Treatment::OfAnother { object: named("other") }),
    ] {
        assert_eq!(treatment(owner, canary_owner, taken_over), expected, "{owner:?} {canary_owner:?}");
    }
}

#[test]
fn a_service_that_would_send_its_clients_to_our_pods_is_found() {
    let labels = pods::target("isp-probe-1", "1", "n", "i").metadata.labels.unwrap();
    let with = |selector: Value| service(&json!({}), &json!({"selector": selector}));
    assert_eq!(selected_by(&[with(json!({"app": "frontend"})), with(json!({}))], &labels), None);
    let wide = with(json!({"app.kubernetes.io/part-of": "ingress-source-preserve"}));
    assert_eq!(selected_by([&wide], &labels), Some("frontend"));
    let of_another_run = with(json!(pods::selector("2")));
    assert_eq!(selected_by([&of_another_run], &labels), None);
}
