//! What a pod's proxy and its application see.

use serde_json::{Value, json};

use super::World;
use super::world::{CLIENT, reason};
use crate::{Actor, Outcome, Path};

fn sidecar(mode: &str, annotations: &Value) -> Value {
    json!({
        "metadata": {"annotations": annotations},
        "spec": {
            "containers": [{"name": "app"}, {
                "name": "istio-proxy", "args": ["proxy", "sidecar"],
                "env": [{"name": "ISTIO_META_INTERCEPTION_MODE", "value": mode}],
            }],
            "initContainers": [{"name": "istio-init", "args": ["-m", mode]}],
        },
    })
}

fn world(pod: &Value) -> World {
    let mut world = World::web_on("Local", &["edge-1"]);
    world.pod("shop/web-0", "edge-1", 5, pod);
    world
}

/// The addresses at the pod, its proxy and the application.
fn seen(paths: &[Path]) -> [String; 3] {
    let Outcome::Delivered(delivery) = &paths[0].outcome else { panic!("{paths:#?}") };
    let text = |address: &Option<crate::Address>| {
        address.as_ref().map_or("-".to_owned(), |address| address.address.to_string())
    };
    [delivery.network.address.to_string(), text(&delivery.proxy), text(&delivery.application)]
}

#[test]
fn a_sidecar_in_mode_redirect_hides_the_client_from_the_application_only() {
    let world = world(&sidecar("REDIRECT", &json!({})));
    let paths = world.paths(CLIENT, "192.0.2.10:80");
    assert_eq!(seen(&paths), [CLIENT, CLIENT, "127.0.0.6"]);
    assert!(!paths[0].is_fine());
    assert_eq!(paths[0].loss().unwrap().actor, Actor::Sidecar);
    let paths = world.paths("2001:db8:1::a", "[2001:db8:2::10]:80");
    assert_eq!(seen(&paths)[2], "::6");
}

#[test]
fn a_sidecar_in_mode_tproxy_hands_the_client_on() {
    let paths = world(&sidecar("TPROXY", &json!({}))).paths(CLIENT, "192.0.2.10:80");
    assert_eq!(seen(&paths), [CLIENT, CLIENT, CLIENT]);
    assert!(paths[0].is_fine());
}

#[test]
fn ports_that_a_sidecar_leaves_out_reach_the_application() {
    for annotations in [
        json!({"traffic.sidecar.istio.io/excludeInboundPorts": "9000, 8080"}),
        json!({"traffic.sidecar.istio.io/includeInboundPorts": "9000"}),
    ] {
        let paths = world(&sidecar("REDIRECT", &annotations)).paths(CLIENT, "192.0.2.10:80");
        assert_eq!(seen(&paths), [CLIENT, "-", CLIENT], "{annotations}");
    }
}

#[test]
fn a_sidecar_whose_rules_have_another_mode_is_unclear() {
    let mut pod = sidecar("REDIRECT", &json!({}));
    pod["spec"]["initContainers"][0]["args"] = json!(["-m", "TPROXY"]);
    let paths = world(&pod).paths(CLIENT, "192.0.2.10:80");
    assert!(reason(&paths).contains("different interception modes"), "{paths:#?}");
}

#[test]
fn behind_a_gateway_the_application_sees_the_gateway() {
    let gateway = json!({"spec": {"containers": [{"name": "istio-proxy", "args": ["proxy", "router"]}]}});
    let world = world(&gateway);
    let paths = world.paths(CLIENT, "192.0.2.10:80");
    assert_eq!(seen(&paths), [CLIENT, CLIENT, "10.244.1.5"]);
    assert!(paths[0].is_fine(), "the gateway has the client's address");
    let mut world = World::web_on("Cluster", &["edge-1"]);
    world.pod("shop/web-0", "edge-1", 5, &gateway);
    let paths = world.paths("198.51.100.10 via work-1", "192.0.2.10:80");
    assert_eq!(seen(&paths), ["10.90.0.12", "10.90.0.12", "10.244.1.5"]);
    assert!(!paths[0].is_fine());
}

#[test]
fn a_pods_own_proxy_sees_the_client() {
    let redirect = |ports: &str| {
        let args = json!([
            "--inbound-method=TPROXY",
            "--inbound-port=15006",
            format!("--inbound-ports={ports}"),
            "--exempt-uids=1337",
        ]);
        json!({"spec": {"initContainers": [{"name": "pod-redirect", "args": args}]}})
    };
    let paths = world(&redirect("8080")).paths(CLIENT, "192.0.2.10:80");
    assert_eq!(seen(&paths), [CLIENT, CLIENT, "-"], "{paths:#?}");
    assert_eq!(paths[0].hops.last().unwrap().actor, Actor::PodRedirect);
    let paths = world(&redirect("9000")).paths(CLIENT, "192.0.2.10:80");
    assert_eq!(seen(&paths), [CLIENT, "-", CLIENT]);
    let broken = json!({"spec": {"initContainers": [{"name": "pod-redirect", "args": ["--what"]}]}});
    let paths = world(&broken).paths(CLIENT, "192.0.2.10:80");
    assert!(reason(&paths).contains("cannot be parsed"));
}

#[test]
fn the_sidecar_of_the_client_is_mentioned() {
    let mut world = World::web_on("Cluster", &["edge-1"]);
    world.pod("tools/work-1", "work-1", 99, &sidecar("REDIRECT", &json!({})));
    let paths = world.paths("pod/tools/work-1", "10.96.7.7:80");
    assert_eq!((paths[0].hops[0].actor, paths[0].hops[0].assumed), (Actor::Sidecar, true));
}

#[test]
fn udp_passes_sidecars_by() {
    let world = world(&sidecar("REDIRECT", &json!({})));
    let mut request = World::request("pod/tools/work-1", "10.244.1.5:8080");
    request.protocol = crate::Protocol::Udp;
    let paths = crate::paths(&world.cluster, &request).unwrap();
    assert_eq!(seen(&paths), ["10.244.2.99", "-", "10.244.2.99"]);
}
