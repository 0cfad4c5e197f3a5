#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};

use super::*;
use crate::doctor::cluster::Cluster;

fn pod() -> (Key, Pod) {
    let labels: Labels = [("istio", "ingressgateway"), (GATEWAY_LABEL, "front")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    (Key::new("edge", "gateway-1"), Pod { labels, ..Pod::default() })
}

fn behind(objects: &[(Kind, &str, &str, Value)]) -> Vec<String> {
    let mut cluster = Cluster::default();
    for (kind, namespace, name, spec) in objects {
        let metadata = json!({"namespace": namespace, "name": name});
        cluster.take(*kind, json!({"metadata": metadata, "spec": spec})).unwrap();
    }
    assert!(cluster.unreadable.is_empty(), "{:?}", cluster.unreadable);
    let (key, pod) = pod();
    cluster
        .routes
        .behind(&PodIndex::of_cluster(&cluster), &key, &pod)
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn to(host: &str) -> Value {
    json!([{"route": [{"destination": {"host": host}}]}])
}

#[test]
fn a_virtual_service_leads_from_the_gateways_that_it_names() {
    let selector = json!({"selector": {"istio": "ingressgateway"}});
    let other = json!({"selector": {"istio": "other"}});
    let objects = [
        (Kind::IstioGateway, "edge", "front", selector),
        (Kind::IstioGateway, "edge", "other", other),
        (Kind::VirtualService, "shop", "a", json!({"gateways": ["edge/front"], "http": to("cart")})),
        (
            Kind::VirtualService,
            "edge",
            "b",
            json!({"gateways": ["mesh", "front"], "tls": to("pay.bank.svc.cluster.local")}),
        ),
        (Kind::VirtualService, "shop", "c", json!({"gateways": ["edge/other"], "http": to("hidden")})),
        (Kind::VirtualService, "shop", "d", json!({"http": to("inside")})),
    ];
    assert_eq!(behind(&objects), ["bank/pay", "shop/cart"]);
}

#[test]
fn a_delegate_is_followed_one_step() {
    let delegate = |name: &str| json!([{"delegate": {"name": name, "namespace": "shop"}}]);
    let objects = [
        (Kind::IstioGateway, "edge", "front", json!({"selector": {"istio": "ingressgateway"}})),
        (Kind::VirtualService, "edge", "root", json!({"gateways": ["front"], "http": delegate("a")})),
        (
            Kind::VirtualService,
            "shop",
            "a",
            json!({"http": [{"route": [{"destination": {"host": "cart"}}]}, delegate("a")[0]]}),
        ),
    ];
    assert_eq!(behind(&objects), ["shop/cart"]);
}

#[test]
fn a_route_of_the_gateway_api_leads_from_its_parents() {
    let route =
        |parent: Value| json!({"parentRefs": [parent], "rules": [{"backendRefs": [{"name": "cart"}]}]});
    let objects = [
        (Kind::HttpRoute, "shop", "a", route(json!({"name": "front", "namespace": "edge"}))),
        (Kind::GrpcRoute, "edge", "b", route(json!({"name": "front"}))),
        (
            Kind::TcpRoute,
            "mesh",
            "c",
            route(json!({"name": "front", "namespace": "edge", "kind": "Service"})),
        ),
        (Kind::TlsRoute, "away", "d", route(json!({"name": "front"}))),
    ];
    assert_eq!(behind(&objects), ["edge/cart", "shop/cart"]);
}
