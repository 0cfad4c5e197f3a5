//! What is said when one Service is asked about.

use isp_plan::Key;
use serde_json::json;

use super::world::{World, lines};
use crate::doctor::Severity;
use crate::doctor::finding::{Code, Finding};

fn gateway() -> Key {
    Key::new("istio-system", "istio-ingressgateway")
}

fn codes(found: &[Finding]) -> Vec<Code> {
    found.iter().map(|finding| finding.code).collect()
}

#[test]
fn a_preserved_service_that_is_well_has_nothing_to_report() {
    let found = World::of("healthy").examine(Some(&gateway()));
    assert!(found.is_empty(), "{}", lines(&found));
}

#[test]
fn what_is_wrong_with_others_is_left_out() {
    let mut world = World::of("healthy");
    // The object does not select this Service, so faults of the object do not affect it.
    world.remove("Deployment", "sourcepreserve-operator");
    world.the("IngressSourceNode", "work-1")["status"]["active"] = json!(false);
    let found = world.examine(Some(&Key::new("plain", "echo")));
    assert_eq!(codes(&found), [Code::NotPreserved], "{}", lines(&found));
    let found = world.examine(Some(&gateway()));
    assert_eq!(codes(&found), [Code::OperatorUnavailable, Code::ProxyNotConnected], "{}", lines(&found));
}

#[test]
fn of_several_kube_proxies_the_labelled_one_is_taken_as_the_operator_takes_it() {
    let mut world = World::of("healthy");
    let set = world.the("DaemonSet", "kube-proxy");
    set["metadata"]["name"] = json!("proxy-a");
    let mut second = set.clone();
    second["metadata"]["name"] = json!("proxy-b");
    second["metadata"]["labels"] = json!({});
    world.add(second);
    let found = world.examine(None);
    assert!(!codes(&found).contains(&Code::KubeProxyAmbiguous), "{}", lines(&found));
}

#[test]
fn on_an_untouched_cluster_its_policies_are_judged() {
    let found = World::of("untouched").examine(Some(&gateway()));
    assert_eq!(
        codes(&found),
        [Code::PolicyOpen, Code::PolicyClosed, Code::NotPreserved],
        "{}",
        lines(&found)
    );
    let told: Vec<&str> = found.iter().map(|finding| finding.line.as_str()).collect();
    assert_eq!(
        told[..2],
        [
            "DENY fails open: remoteIpBlocks sees a node's address, at the sidecars behind the gateway of Service \
             istio-system/istio-ingressgateway (externalTrafficPolicy Cluster)",
            "ALLOW fails closed: ipBlocks sees a node's address, at the gateway of Service istio-system/istio-ingressgateway \
             (externalTrafficPolicy Cluster)",
        ]
    );
}

#[test]
fn a_policy_that_only_records_is_misled_and_nothing_is_wrong() {
    let mut world = World::of("untouched");
    for namespace in ["shop", "istio-system"] {
        world.rename("AuthorizationPolicy", namespace, "clients", namespace);
        world.the("AuthorizationPolicy", namespace)["spec"]["action"] = json!("AUDIT");
    }
    let found = world.examine(Some(&gateway()));
    assert_eq!(
        codes(&found),
        [Code::NotPreserved, Code::PolicyMisled, Code::PolicyMisled],
        "{}",
        lines(&found)
    );
    assert!(found[1..].iter().all(|finding| finding.severity == Severity::Note));
}

#[test]
fn ranges_of_nodes_let_everybody_in_while_the_address_is_lost() {
    let mut world = World::of("untouched");
    world.rename("AuthorizationPolicy", "istio-system", "clients", "nodes");
    world.the("AuthorizationPolicy", "nodes")["spec"]["rules"] =
        json!([{"from": [{"source": {"ipBlocks": ["10.90.0.0/16"]}}]}]);
    let found = world.examine(Some(&gateway()));
    assert_eq!(codes(&found), [Code::PolicyOpen, Code::PolicyOpen, Code::NotPreserved], "{}", lines(&found));
}

#[test]
fn a_sidecar_that_a_service_exposes_is_judged_by_its_own_service() {
    let mut world = World::of("untouched");
    let service = world.the("Service", "cart");
    service["spec"]["type"] = json!("NodePort");
    service["spec"]["externalTrafficPolicy"] = json!("Local");
    let cart = Key::new("shop", "cart");
    let found = world.examine(Some(&cart));
    // The client writes X-Forwarded-For himself; the application sees 127.0.0.6.
    assert_eq!(
        codes(&found),
        [Code::PolicyOpen, Code::NotPreserved, Code::SidecarHides],
        "{}",
        lines(&found)
    );
    assert!(found[0].line.contains("any address that the client claims"), "{}", found[0].line);
    world.rename("AuthorizationPolicy", "shop", "clients", "shop");
    world.the("AuthorizationPolicy", "shop")["spec"]["rules"] =
        json!([{"from": [{"source": {"ipBlocks": ["203.0.113.0/24"]}}]}]);
    let found = world.examine(Some(&cart));
    assert_eq!(codes(&found), [Code::NotPreserved, Code::SidecarHides], "{}", lines(&found));
}

#[test]
fn callers_inside_the_cluster_are_told_from_clients() {
    let mut world = World::of("untouched");
    world.rename("AuthorizationPolicy", "shop", "clients", "shop");
    world.the("AuthorizationPolicy", "shop")["spec"]["rules"] =
        json!([{"from": [{"source": {"ipBlocks": ["10.244.1.0/24", "10.90.0.11"]}}]}]);
    let found = world.examine(Some(&gateway()));
    assert_eq!(codes(&found), [Code::PolicyClosed, Code::NotPreserved], "{}", lines(&found));
}
