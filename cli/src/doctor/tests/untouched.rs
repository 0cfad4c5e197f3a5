//! A cluster without any IngressSourcePreserve: policies that compare addresses are judged on every
//! path.

use std::collections::BTreeMap;

use isp_api::IngressSourcePreserve;
use isp_plan::Key;
use serde_json::{Value, json};

use super::world::{World, bare, codes, expect, lines, policy, with};
use crate::doctor::examine::examine;
use crate::doctor::finding::{Code, Finding, Severity};
use crate::doctor::report;

const GATEWAY: &str = "istio-ingressgateway";
const OUTSIDE: &str = "203.0.113.0/24";

/// A policy of one source.
fn one(action: &str, source: &Value) -> Value {
    json!({"action": action, "rules": [{"from": [{"source": source}]}]})
}

fn at_gateway(action: &str, source: &Value) -> World {
    let mut spec = one(action, source);
    spec["selector"] = json!({"matchLabels": {"istio": "ingressgateway"}});
    with("istio-system", &spec)
}

fn mesh(world: &mut World, settings: &str) {
    let text = &mut world.the("ConfigMap", "istio")["data"]["mesh"];
    *text =
        json!(text.as_str().unwrap().replace("defaultConfig:\n", &format!("defaultConfig:\n  {settings}\n")));
}

#[test]
fn services_that_lose_the_address_are_counted_and_nothing_is_wrong() {
    let found = bare().examine(None);
    assert_eq!(
        lines(&found),
        "note ISP315 Cluster: 2 of 2 exposed Services lose the client's source IP: istio-system/istio-ingressgateway, plain/echo\n"
    );
}

#[test]
fn the_policies_of_the_lab_are_a_bypass_and_an_outage() {
    expect(&World::of("untouched"), &[Code::PolicyOpen, Code::PolicyClosed]);
}

#[test]
fn a_lost_address_turns_a_policy_at_the_gateway_into_a_bypass_or_an_outage() {
    for field in ["ipBlocks", "remoteIpBlocks"] {
        let not = format!("not{}{}", field[..1].to_uppercase(), &field[1..]);
        for (action, field, code) in [
            ("DENY", field, Code::PolicyOpen),
            ("DENY", &not, Code::PolicyClosed),
            ("ALLOW", field, Code::PolicyClosed),
            ("ALLOW", &not, Code::PolicyOpen),
            ("CUSTOM", field, Code::PolicyOpen),
            ("CUSTOM", &not, Code::PolicyMisled),
            ("AUDIT", field, Code::PolicyMisled),
        ] {
            expect(&at_gateway(action, &json!({field: [OUTSIDE]})), &[code]);
        }
    }
}

#[test]
fn conditions_of_when_count_as_blocks_do() {
    let when = |key: &str, which: &str| json!({"action": "DENY", "rules": [{"when": [{"key": key, which: [OUTSIDE]}]}]});
    expect(&with("istio-system", &when("source.ip", "values")), &[Code::PolicyOpen]);
    expect(&with("istio-system", &when("remote.ip", "values")), &[Code::PolicyOpen]);
    expect(&with("istio-system", &when("remote.ip", "notValues")), &[Code::PolicyClosed]);
    expect(&with("istio-system", &when("request.auth.principal", "values")), &[]);
}

#[test]
fn an_exception_from_a_range_does_not_make_an_outage_of_a_bypass() {
    let source = json!({"ipBlocks": [OUTSIDE], "notIpBlocks": ["203.0.113.7"]});
    expect(&at_gateway("DENY", &source), &[Code::PolicyOpen]);
}

#[test]
fn a_policy_of_the_root_namespace_is_the_whole_mesh_s() {
    expect(&with("istio-system", &one("DENY", &json!({"remoteIpBlocks": [OUTSIDE]}))), &[Code::PolicyOpen]);
    let mut world = with("mesh-policies", &one("DENY", &json!({"remoteIpBlocks": [OUTSIDE]})));
    expect(&world, &[Code::PolicyNotEnforced]);
    // A control plane of a revision has its settings under another name.
    let settings = world.the("ConfigMap", "istio");
    settings["metadata"]["name"] = json!("istio-canary");
    let text = settings["data"]["mesh"]
        .as_str()
        .unwrap()
        .replace("rootNamespace: istio-system", "rootNamespace: mesh-policies");
    settings["data"]["mesh"] = json!(text);
    expect(&world, &[Code::PolicyOpen]);
}

#[test]
fn a_policy_that_is_attached_to_a_gateway_of_the_gateway_api_is_judged() {
    let mut spec = one("DENY", &json!({"ipBlocks": [OUTSIDE]}));
    spec["targetRefs"] = json!([{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "front"}]);
    let mut world = with("istio-system", &spec);
    expect(&world, &[Code::PolicyNotEnforced]);
    world.the("Pod", GATEWAY)["metadata"]["labels"]["gateway.networking.k8s.io/gateway-name"] =
        json!("front");
    expect(&world, &[Code::PolicyOpen]);
}

#[test]
fn a_policy_that_is_attached_to_a_service_is_enforced_behind_the_gateway() {
    let mut spec = one("DENY", &json!({"remoteIpBlocks": [OUTSIDE]}));
    spec["targetRefs"] = json!([{"group": "", "kind": "Service", "name": "cart"}]);
    expect(&with("shop", &spec), &[Code::PolicyOpen]);
    spec["targetRefs"][0]["name"] = json!("absent");
    expect(&with("shop", &spec), &[Code::PolicyNotEnforced]);
}

#[test]
fn ranges_that_hold_a_node_let_clients_in_through_it() {
    expect(&at_gateway("ALLOW", &json!({"ipBlocks": ["10.0.0.0/8"]})), &[Code::PolicyOpen]);
    expect(
        &at_gateway("ALLOW", &json!({"ipBlocks": ["198.51.100.0/24", "10.90.0.12"]})),
        &[Code::PolicyOpen],
    );
    // A pod on the node that a client comes through sees an address of the node's range of pods.
    expect(&at_gateway("ALLOW", &json!({"ipBlocks": ["10.244.1.0/24"]})), &[Code::PolicyOpen]);
    expect(&at_gateway("DENY", &json!({"notIpBlocks": ["10.244.1.0/24"]})), &[Code::PolicyOpen]);
    expect(&at_gateway("ALLOW", &json!({"ipBlocks": ["10.244.1.77"]})), &[]);
    // The pod network of kube-proxy: callers inside are rejected, and clients that appear as pods.
    expect(&at_gateway("ALLOW", &json!({"ipBlocks": ["10.244.0.0/16"]})), &[Code::PolicyOpen]);
    expect(&at_gateway("DENY", &json!({"ipBlocks": ["10.244.0.0/16"]})), &[Code::PolicyClosed]);
}

#[test]
fn a_policy_by_which_no_address_decides_is_left_alone() {
    expect(&at_gateway("ALLOW", &json!({"ipBlocks": ["0.0.0.0/0"]})), &[]);
    expect(&at_gateway("DENY", &json!({"notIpBlocks": ["0.0.0.0/0"]})), &[]);
    expect(&at_gateway("DENY", &json!({"principals": ["a"]})), &[]);
    let mut spec = one("ALLOW", &json!({"ipBlocks": [OUTSIDE]}));
    spec["rules"].as_array_mut().unwrap().push(json!({}));
    expect(&with("istio-system", &spec), &[]);
    expect(&with("istio-system", &json!({})), &[]);
    expect(&with("istio-system", &Value::Null), &[]);
}

#[test]
fn behind_the_proxy_protocol_the_remote_address_is_the_client_s_and_the_peer_is_not() {
    for (field, expected) in [
        ("remoteIpBlocks", &[Code::ProxyProtocol][..]),
        ("ipBlocks", &[Code::ProxyProtocol, Code::PolicyOpen]),
    ] {
        let mut world = at_gateway("DENY", &json!({field: [OUTSIDE]}));
        mesh(&mut world, "gatewayTopology: {proxyProtocol: {}}");
        let found = expect(&world, expected);
        let cause = found.iter().find(|finding| finding.code == Code::ProxyProtocol).unwrap();
        assert_eq!(cause.severity, if field == "ipBlocks" { Severity::Error } else { Severity::Note });
    }
}

#[test]
fn trusted_proxies_are_worth_a_note_until_a_policy_goes_wrong_by_them() {
    let mut world = at_gateway("DENY", &json!({"remoteIpBlocks": [OUTSIDE]}));
    mesh(&mut world, "gatewayTopology: {numTrustedProxies: 1}");
    let found = expect(&world, &[Code::TrustedProxies]);
    assert_eq!(found[0].severity, Severity::Note);
    world.add(policy("shop", &one("DENY", &json!({"remoteIpBlocks": [OUTSIDE]}))));
    let found = expect(&world, &[Code::TrustedProxies, Code::PolicyOpen]);
    assert_eq!(found[0].severity, Severity::Error);
}

#[test]
fn a_service_that_was_made_local_by_hand_keeps_the_address() {
    let mut world = World::of("untouched");
    world.the("Service", GATEWAY)["spec"]["externalTrafficPolicy"] = json!("Local");
    let found = world.examine(None);
    assert_eq!(
        lines(&found),
        "note ISP315 Cluster: 1 of 2 exposed Services loses the client's source IP: plain/echo\n"
    );
    // A load balancer that is a proxy loses it all the same.
    world.the("Service", GATEWAY)["status"]["loadBalancer"]["ingress"][0]["ipMode"] = json!("Proxy");
    let found = expect(&world, &[Code::PolicyOpen, Code::PolicyClosed]);
    assert!(found[0].line.contains("sees the load balancer's address"), "{}", found[0].line);
    assert!(found[0].remedy[0].contains("PROXY protocol"), "{:?}", found[0].remedy);
}

#[test]
fn every_service_in_front_of_the_same_pods_is_a_way_in() {
    let mut world = at_gateway("DENY", &json!({"ipBlocks": [OUTSIDE]}));
    let service = world.the("Service", GATEWAY);
    service["spec"]["externalTrafficPolicy"] = json!("Local");
    let mut second = service.clone();
    second["metadata"] = json!({"name": "second", "namespace": "istio-system"});
    second["spec"]["externalTrafficPolicy"] = json!("Cluster");
    expect(&world, &[]);
    for (type_, external, open) in [
        ("NodePort", json!([]), true),
        ("LoadBalancer", json!([]), true),
        ("ClusterIP", json!(["192.0.2.77"]), true),
        ("ClusterIP", json!([]), false),
    ] {
        let mut world = world.clone();
        second["spec"]["type"] = json!(type_);
        second["spec"]["externalIPs"] = external;
        world.add(second.clone());
        let found = expect(&world, if open { &[Code::PolicyOpen] } else { &[] });
        assert!(found.iter().all(|finding| finding.line.contains("Service istio-system/second")));
    }
}

#[test]
fn a_service_without_a_selector_leads_to_the_pods_of_its_endpoints() {
    let mut world = at_gateway("DENY", &json!({"ipBlocks": [OUTSIDE]}));
    let service = world.the("Service", GATEWAY);
    service["spec"].as_object_mut().unwrap().remove("selector");
    expect(&world, &[Code::PolicyOpen]);
    world.remove("EndpointSlice", GATEWAY);
    expect(&world, &[]);
}

#[test]
fn a_sidecar_that_a_service_exposes_is_judged_by_its_own_service() {
    let mut world = with("shop", &one("DENY", &json!({"ipBlocks": [OUTSIDE]})));
    let service = world.the("Service", "cart");
    service["spec"]["type"] = json!("NodePort");
    service["spec"]["externalTrafficPolicy"] = json!("Cluster");
    let found = expect(&world, &[Code::PolicyOpen]);
    assert!(
        found[0].line.contains("a node's address, at the sidecar of Service shop/cart"),
        "{}",
        found[0].line
    );
}

#[test]
fn where_routes_are_known_only_the_gateways_on_them_count() {
    let mut world = with("shop", &one("DENY", &json!({"remoteIpBlocks": [OUTSIDE]})));
    // A second gateway, with an address that is kept.
    let mut pod = world.the("Pod", GATEWAY).clone();
    pod["metadata"]["name"] = json!("kept-1");
    pod["metadata"]["labels"] = json!({"istio": "kept"});
    let mut service = world.the("Service", GATEWAY).clone();
    service["metadata"]["name"] = json!("kept");
    service["spec"]["selector"] = json!({"istio": "kept"});
    service["spec"]["externalTrafficPolicy"] = json!("Local");
    world.add(pod);
    world.add(service);
    expect(&world, &[Code::PolicyOpen]);
    let istio = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "networking.istio.io/v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": spec});
    let route = json!([{"route": [{"destination": {"host": "cart"}}]}]);
    world.add(istio("Gateway", "kept", json!({"selector": {"istio": "kept"}})));
    world.add(istio("VirtualService", "kept", json!({"gateways": ["kept"], "http": route})));
    expect(&world, &[]);
    world.add(istio("Gateway", "lost", json!({"selector": {"istio": "ingressgateway"}})));
    world.add(istio("VirtualService", "lost", json!({"gateways": ["lost"], "http": route})));
    let found = expect(&world, &[Code::PolicyOpen]);
    assert!(!found[0].line.contains("istio-system/kept"), "{}", found[0].line);
}

#[test]
fn public_ranges_at_a_sidecar_behind_a_gateway_never_match() {
    let found = expect(&with("shop", &one("DENY", &json!({"ipBlocks": [OUTSIDE]}))), &[Code::PolicyOpen]);
    assert!(found[0].line.contains("ipBlocks sees the gateway's address"), "{}", found[0].line);
    assert!(found[0].remedy.iter().any(|step| step.contains("use remoteIpBlocks")));
    // The gateway itself may be meant.
    expect(&with("shop", &one("ALLOW", &json!({"ipBlocks": ["10.244.1.0/24"]}))), &[]);
    expect(
        &with("shop", &one("DENY", &json!({"ipBlocks": ["10.244.1.4"], "remoteIpBlocks": [OUTSIDE]}))),
        &[Code::PolicyOpen],
    );
}

#[test]
fn an_entry_that_is_no_range_is_an_error_wherever_it_is() {
    let found = expect(
        &at_gateway("DENY", &json!({"ipBlocks": ["203.0.113.0/240"]})),
        &[Code::PolicyRangeUnreadable],
    );
    assert_eq!(found[0].severity, Severity::Error);
    expect(
        &at_gateway("DENY", &json!({"ipBlocks": ["everybody", OUTSIDE]})),
        &[Code::PolicyRangeUnreadable, Code::PolicyOpen],
    );
}

#[test]
fn a_policy_that_cannot_be_read_is_named_and_the_others_are_judged() {
    let mut world = World::of("untouched");
    world.add(policy("shop", &one("DENY", &json!({"ipBlocks": OUTSIDE}))));
    let found = expect(&world, &[Code::PolicyOpen, Code::PolicyClosed, Code::NotLookedAt]);
    let Finding { severity, subject, line, .. } = &found[2];
    assert_eq!(*severity, Severity::Warning);
    assert_eq!(subject.to_string(), "AuthorizationPolicy shop/by-address");
    assert!(line.starts_with("it cannot be parsed: ") && line.contains("expected a sequence"), "{line}");
}

#[test]
fn a_policy_of_a_namespace_that_is_gone_is_told_as_one_that_nobody_obeys() {
    let found =
        expect(&with("gone", &one("DENY", &json!({"ipBlocks": [OUTSIDE]}))), &[Code::PolicyNotEnforced]);
    assert!(found[0].line.contains("namespace gone does not exist"), "{}", found[0].line);
    assert_eq!(found[0].severity, Severity::Note);
}

#[test]
fn a_list_of_who_may_come_in_is_looked_at_on_every_service() {
    for (ranges, code) in [
        (json!(["198.51.100.0/24", "0.0.0.0/0"]), Code::SourceRangesOpen),
        (json!(["198.51.100.0/240"]), Code::SourceRangeUnreadable),
    ] {
        let mut world = bare();
        world.the("Service", GATEWAY)["spec"]["loadBalancerSourceRanges"] = ranges;
        expect(&world, &[code]);
    }
}

#[test]
fn what_was_not_looked_at_is_a_warning_where_no_policy_can_be_judged_without_it() {
    for (kind, severity) in
        [("Pod", Severity::Warning), ("Service", Severity::Warning), ("EndpointSlice", Severity::Note)]
    {
        let mut world = bare();
        world.remove(kind, "");
        let found = world.examine(None);
        assert_eq!(
            found.iter().find(|finding| finding.code == Code::NotLookedAt).map(|finding| finding.severity),
            Some(severity),
            "{kind}"
        );
    }
}

#[test]
fn only_commands_are_wider_than_the_terminal() {
    let (cluster, now) = at_gateway("DENY", &json!({"ipBlocks": [OUTSIDE]})).read();
    let text = report::text(&cluster, &examine(&cluster, None, now), Some(80));
    let wide =
        |line: &&str| line.chars().count() > 80 && !line.contains("kubectl") && !line.contains("echo '");
    assert_eq!(text.lines().filter(wide).collect::<Vec<_>>(), [""; 0]);
    assert!(text.contains("\n             # "), "a comment that does not fit precedes its command: {text}");
}

#[test]
fn words_of_a_policy_cannot_forge_the_report() {
    let forged = format!("{OUTSIDE}\n\u{1b}[2Jno faults found{}", "!".repeat(10_000));
    let world = at_gateway("DENY", &json!({"ipBlocks": [forged, OUTSIDE]}));
    let (cluster, now) = world.read();
    let text = report::text(&cluster, &examine(&cluster, None, now), None);
    assert!(!text.contains('\u{1b}') && !text.contains("\nno faults found"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() < 2100), "no line is without an end");
}

#[test]
fn a_dump_of_a_mesh_without_policies_may_have_been_taken_without_them() {
    let mut world = World::of("untouched");
    world.remove("AuthorizationPolicy", "");
    let found = expect(&world, &[Code::NotLookedAt]);
    assert_eq!(found[0].severity, Severity::Note);
    // Without a mesh there is none to be missed.
    world.remove("Pod", "istio-ingressgateway");
    world.remove("Pod", "cart");
    expect(&world, &[]);
}

#[test]
fn a_bypass_is_told_hop_by_hop_and_with_an_object_to_apply() {
    let found = World::of("untouched").examine(None);
    let bypass = &found[0];
    assert_eq!((bypass.code, bypass.severity), (Code::PolicyOpen, Severity::Error));
    let pod = bypass.path[1].split_whitespace().nth(2).unwrap();
    assert!(pod.starts_with("istio-system/istio-ingressgateway-"), "{pod}");
    assert_eq!(
        bypass.path,
        [
            "Service istio-system/istio-ingressgateway, LoadBalancer, externalTrafficPolicy Cluster: the node that receives the connection \
             replaces the source IP by its own (SNAT)",
            &format!("gateway pod {pod} its peer is a node, and it appends that to X-Forwarded-For"),
            "sidecar behind it: it takes the rightmost address of X-Forwarded-For, which is a node's address",
            "AuthorizationPolicy shop/clients: DENY by remoteIpBlocks 203.0.113.0/24 fails open",
        ]
    );
    let step = bypass.remedy.iter().find_map(|step| step.strip_prefix("echo '")?.split_once("' > "));
    let (object, file) = step.unwrap();
    assert!(bypass.remedy.iter().any(|step| step.starts_with(&format!("kubectl apply -f {file}"))));
    let object: IngressSourcePreserve = serde_json::from_str(object).unwrap();
    assert!(object.spec.services[0].matches("istio-system", GATEWAY, &BTreeMap::new()).unwrap());
    // What is said to be done does it.
    let mut world = World::of("untouched");
    world.the("Service", GATEWAY)["spec"]["externalTrafficPolicy"] = json!("Local");
    assert!(codes(&world.examine(None)) == [Code::AddressLost]);
}

#[test]
fn the_nodes_that_an_object_needs_are_labelled_first() {
    let mut world = World::of("untouched");
    let label = |found: &[Finding]| {
        found[0].remedy.iter().find(|step| step.starts_with("kubectl label node ")).cloned()
    };
    assert_eq!(label(&world.examine(None)), None, "edge-1 has the label and an endpoint");
    let labels = world.the("Node", "edge-1")["metadata"]["labels"].as_object_mut().unwrap();
    labels.remove("node-role.kubernetes.io/ingress");
    let step = label(&world.examine(None)).unwrap();
    assert!(step.starts_with("kubectl label node edge-1 node-role.kubernetes.io/ingress=   #"), "{step}");
}

#[test]
fn a_service_that_is_asked_about_is_judged_as_it_is_without_being_asked() {
    let world = World::of("untouched");
    let asked = world.examine(Some(&Key::new("istio-system", GATEWAY)));
    let unasked = world.examine(None);
    assert_eq!(asked[..2], unasked[..2], "{}", lines(&asked));
}
