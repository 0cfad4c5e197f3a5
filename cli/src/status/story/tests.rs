#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};

use super::*;

const MANUAL: &str = include_str!("../../../../docs/kubectl-isp.md");

fn condition(type_: &str, status: bool, reason: &str, message: &str) -> Value {
    json!({
        "type": type_, "status": if status { "True" } else { "False" }, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

/// An object of generation 2, whose status has these fields.
fn object(name: &str, status: &Value) -> IngressSourcePreserve {
    let mut object = json!({
        "apiVersion": "sourcepreserve.io/v1alpha1",
        "kind": "IngressSourcePreserve",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": 2},
        "spec": {
            "ingressNodes": {"selector": {"matchLabels": {"node-role.kubernetes.io/ingress": ""}}},
            "services": [{"namespace": "web", "name": "frontend"}],
        },
        "status": status,
    });
    if let Some(status) = object["status"].as_object_mut() {
        status.entry("observedGeneration").or_insert(json!(2));
    }
    serde_json::from_value(object).unwrap()
}

/// The steps in order, done as far as told.
fn steps(done: usize) -> Vec<Value> {
    let step = |(place, step): (usize, &&str)| condition(step, place < done, "Reason", "message");
    STEPS.iter().enumerate().map(step).collect()
}

/// What is said beside the steps: type, status, reason, message.
type Said<'a> = (&'a str, bool, &'a str, &'a str);

fn conditions(done: usize, said: &[Said<'_>]) -> Value {
    let said = said.iter().map(|(type_, status, reason, message)| condition(type_, *status, reason, message));
    said.chain(steps(done)).collect()
}

/// An object in this phase, of which so many steps are done; `more` are the other fields of its status.
fn stands(name: &str, phase: &str, done: usize, said: &[Said<'_>], more: Value) -> IngressSourcePreserve {
    let mut status = more;
    status["phase"] = json!(phase);
    status["conditions"] = conditions(done, said);
    object(name, &status)
}

fn told(object: &IngressSourcePreserve, nodes: &[IngressSourceNode]) -> String {
    tell(std::slice::from_ref(object), nodes, false)
}

fn service(name: &str, state: &str, endpoints: u32) -> Value {
    json!({"namespace": "web", "name": name, "state": state, "ingressEndpoints": endpoints, "addresses": ["192.0.2.10"]})
}

fn pool(name: &str, counts: [u32; 4]) -> Value {
    json!({"name": name, "nodes": counts[0], "handedOver": counts[1], "ready": counts[2], "failed": counts[3]})
}

fn report(name: &str, connected: bool, views: &Value) -> IngressSourceNode {
    serde_json::from_value(json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourceNode", "metadata": {"name": name}, "spec": {},
        "status": {"pool": "default", "mode": "Filter", "proxyConnected": connected, "views": views},
    }))
    .unwrap()
}

fn seen(generation: i64, relisted: bool, programmed: Option<bool>) -> Value {
    json!([{
        "object": "web", "uid": "uid-web", "generation": generation, "view": "ClusterOnly",
        "relisted": relisted, "programmed": programmed,
    }])
}

const PRESERVED: &str = "the client address arrives at 1 Service";

fn ready(name: &str) -> IngressSourcePreserve {
    let said =
        [("Ready", true, "Preserved", PRESERVED), ("Progressing", false, "Done", "nothing is left to do")];
    stands(name, "Ready", 5, &said, preserving(&[service("frontend", "Preserved", 2)]))
}

/// These Services, and a pool whose nodes are all ready.
fn preserving(services: &[Value]) -> Value {
    json!({"services": services, "nodePools": [pool("default", [2, 2, 2, 0])]})
}

#[test]
fn objects_that_are_ready_have_little_to_say() {
    let nodes =
        [report("work-1", true, &seen(2, true, Some(true))), report("work-2", true, &seen(2, true, None))];
    assert_eq!(
        tell(&[ready("api"), ready("web")], &nodes[..0], false),
        "\
api: Ready, the client address arrives at 1 Service
  steps      5 of 5 done
  services   web/frontend  Preserved, 192.0.2.10, 2 endpoints on ingress nodes
  nodes      pool default: 2 nodes, 2 handed over, 2 ready

web: Ready, the client address arrives at 1 Service
  steps      5 of 5 done
  services   web/frontend  Preserved, 192.0.2.10, 2 endpoints on ingress nodes
  nodes      pool default: 2 nodes, 2 handed over, 2 ready
"
    );
    assert_eq!(told(&ready("web"), &nodes), told(&ready("web"), &[]));
    assert!(is_ready(&ready("web")));
}

#[test]
fn what_a_rollout_waits_for_is_told_and_which_nodes_are_behind() {
    let rolling = "1 of 8 nodes elsewhere have their agent";
    let said = [
        ("Ready", false, "RollingOut", rolling),
        ("Progressing", true, "RollingOut", rolling),
        ("Degraded", false, "None", "nothing that worked has stopped"),
        ("Conflict", false, "None", "nobody else claims anything"),
    ];
    let more = json!({
        "services": [{
            "namespace": "web", "name": "frontend", "state": "Waiting", "ingressEndpoints": 1,
            "message": "waits until every node elsewhere has acknowledged",
        }],
        "nodePools": [pool("default", [7, 6, 1, 0]), pool("gpu", [1, 0, 0, 0])],
    });
    let web = stands("web", "Progressing", 1, &said, more);
    let mut ingress_of_web = seen(1, false, None);
    ingress_of_web[0]["view"] = json!("Full");
    let nodes = [
        report("edge-9", true, &ingress_of_web),
        report("work-1", true, &seen(2, true, Some(true))),
        report("work-2", true, &seen(1, true, Some(true))),
        report("work-3", true, &seen(2, false, None)),
        report("work-4", true, &seen(2, true, Some(false))),
        report("work-5", false, &seen(2, true, Some(true))),
        report("work-6", true, &json!([])),
        report("work-7", true, &json!([])),
    ];
    assert_eq!(told(&web, &nodes), "\
web: Progressing
  steps      1 of 5 done: Checked; left: AgentsReady, Labelled, Acknowledged, LocalPolicySet
  services   web/frontend  Waiting, no external address, 1 endpoint on ingress nodes: waits until every node elsewhere has acknowledged
  nodes      pool default: 7 nodes, 6 handed over, 1 ready
               work-2: has generation 1 of the object, not 2
               work-3: kube-proxy has not read its Services anew
               work-4: the kernel's rules have not followed yet
               work-5: kube-proxy is not connected to the agent
               work-6: the agent does not know the object yet
               and 1 more (-o wide shows all)
             pool gpu: 1 node, 0 handed over, 0 ready
  waits for  1 of 8 nodes elsewhere have their agent
");
    assert!(!is_ready(&web));
    assert!(MANUAL.contains(&told(&web, &nodes)), "the manual shows it");
}

#[test]
fn what_keeps_an_object_from_being_begun_is_told_with_the_way_out() {
    let message = "spec.ingressNodes.selector matches no node: label the nodes that take in the traffic";
    let said = [("Ready", false, "NoIngressNodes", message), ("Progressing", false, "Stopped", message)];
    assert_eq!(
        told(&stands("web", "Pending", 0, &said, json!({})), &[]),
        "\
web: Pending
  steps      0 of 5 done; left: Checked, AgentsReady, Labelled, Acknowledged, LocalPolicySet
  services   none
  nodes      none needs an agent
  wrong      spec.ingressNodes.selector matches no node: label the nodes that take in the traffic
  to do      kubectl label node NODE node-role.kubernetes.io/ingress=
"
    );
}

#[test]
fn what_has_failed_is_told_once_with_what_to_do() {
    let failed =
        "a wave missed its deadline: pool default, node work-1: container proxy-agent: ImagePullBackOff";
    let degraded = "the agent of node work-1 in pool default missed its deadline";
    let said = [
        ("Ready", false, "Degraded", degraded),
        ("Progressing", false, "Stopped", degraded),
        ("Degraded", true, "WaveFailed", degraded),
        ("AgentsReady", false, "WaveFailed", failed),
    ];
    let more = json!({
        "services": [service("frontend", "Waiting", 1)], "nodePools": [pool("default", [2, 0, 0, 1])],
    });
    let web = stands("web", "Degraded", 1, &said, more);
    assert_eq!(told(&web, &[]), "\
web: Degraded
  steps      1 of 5 done: Checked; left: AgentsReady, Labelled, Acknowledged, LocalPolicySet
  services   web/frontend  Waiting, 192.0.2.10, 1 endpoint on ingress nodes
  nodes      pool default: 2 nodes, 0 handed over, 0 ready, 1 failed
  wrong      a wave missed its deadline: pool default, node work-1: container proxy-agent: ImagePullBackOff
  to do      kubectl get pods -A -o wide -l app.kubernetes.io/name=proxy-agent   # the agents; describe those that are not ready
             kubectl annotate node NODE sourcepreserve.io/agent-failed-   # tries it again once it is mended
");
    assert!(MANUAL.contains(&told(&web, &[])), "the manual shows it");
}

#[test]
fn a_service_that_is_down_and_a_conflict_stand_beside_each_other() {
    let down = "Service web/frontend has no ready endpoint on an ingress node: nobody outside is answered";
    let conflict = "Service web/api: \"argocd\" has declared spec.externalTrafficPolicy as Cluster: change or remove it there, or \
                    set conflictPolicy: Force";
    let said = [
        ("Ready", false, "Conflict", conflict),
        ("Progressing", false, "Stopped", conflict),
        ("Degraded", true, "NoIngressEndpoint", down),
        ("Conflict", true, "FieldDeclared", conflict),
    ];
    let mut declared = service("api", "Conflict", 1);
    declared["message"] = json!(conflict);
    let web =
        stands("web", "Conflict", 4, &said, preserving(&[service("frontend", "Preserved", 0), declared]));
    assert_eq!(told(&web, &[]), "\
web: Conflict
  steps      4 of 5 done: Checked, AgentsReady, Labelled, Acknowledged; left: LocalPolicySet
  services   web/frontend  Preserved, 192.0.2.10, 0 endpoints on ingress nodes
             web/api       Conflict, 192.0.2.10, 1 endpoint on ingress nodes
  nodes      pool default: 2 nodes, 2 handed over, 2 ready
  wrong      Service web/api: \"argocd\" has declared spec.externalTrafficPolicy as Cluster: change or remove it there, or set conflictPolicy: Force
             Service web/frontend has no ready endpoint on an ingress node: nobody outside is answered
  to do      kubectl get pods -n web -o wide   # where its pods run
");
}

#[test]
fn sidecars_come_with_the_commands_that_help() {
    let mut web = ready("web");
    let stale = |kind: &str, name: &str, pods: u32| json!({"namespace": "shop", "kind": kind, "name": name, "pods": pods});
    let status = web.status.as_mut().unwrap();
    status.sidecars = serde_json::from_value(json!({
        "matching": 12, "consistent": 5, "stale": 7, "restart": [
            stale("Deployment", "cart", 3), stale("StatefulSet", "orders", 2), stale("Pod", "debug", 1), stale("Job", "batch", 1),
        ],
    }))
    .unwrap();
    let said = "7 of 12 pods have to be created anew: kubectl rollout restart -n shop deployment/cart";
    let said = condition("SidecarsConsistent", false, "Stale", said);
    status.conditions.push(serde_json::from_value(said).unwrap());
    assert_eq!(
        told(&web, &[]),
        "\
web: Ready, the client address arrives at 1 Service
  steps      5 of 5 done
  services   web/frontend  Preserved, 192.0.2.10, 2 endpoints on ingress nodes
  nodes      pool default: 2 nodes, 2 handed over, 2 ready
  sidecars   12 pods, 5 consistent, 7 stale
             kubectl rollout restart -n shop deployment/cart (3 pods)
             kubectl rollout restart -n shop statefulset/orders (2 pods)
             delete and create pod shop/debug (1 pod)
             and 1 more (-o wide shows all)
"
    );
    assert!(is_ready(&web), "Ready does not wait for pods");
}

#[test]
fn of_many_services_those_that_are_not_well_come_first_and_wide_shows_all() {
    let lost = "Service web/last has no ready endpoint on an ingress node: it fell back to Cluster, so its clients' address is lost";
    let waits = "Service web/last does not yet have externalTrafficPolicy Local";
    let said = [
        ("Ready", false, "Degraded", lost),
        ("Progressing", true, "Waiting", waits),
        ("Degraded", true, "NoIngressEndpoint", lost),
    ];
    let mut services: Vec<Value> =
        (0..9).map(|number| service(&format!("s{number}"), "Preserved", 1)).collect();
    services.push(service("last", "FellBack", 0));
    services[8]["original"] = json!({"externalTrafficPolicy": "Cluster"});
    let web = stands("web", "Degraded", 4, &said, preserving(&services));

    let expected = |services: &[String], conditions: &str| {
        let services = services.join("\n             ");
        format!(
            "\
web: Degraded
  steps      4 of 5 done: Checked, AgentsReady, Labelled, Acknowledged; left: LocalPolicySet
  services   {services}
  nodes      pool default: 2 nodes, 2 handed over, 2 ready
  waits for  {waits}
  wrong      {lost}
  to do      kubectl get pods -n web -o wide   # where its pods run
{conditions}"
        )
    };
    let well = |number: u32| format!("web/s{number}    Preserved, 192.0.2.10, 1 endpoint on ingress nodes");
    let fell_back = || "web/last  FellBack, 192.0.2.10, 0 endpoints on ingress nodes".to_owned();
    let few: Vec<String> = std::iter::once(fell_back())
        .chain((0..7).map(well))
        .chain(["and 2 more (-o wide shows all)".to_owned()])
        .collect();
    assert_eq!(told(&web, &[]), expected(&few, ""));

    let all: Vec<String> = (0..8).map(well).chain([well(8) + ", was Cluster", fell_back()]).collect();
    let conditions = format!(
        "  \
  conditions Ready               False Degraded: {lost}
             Progressing         True  Waiting: {waits}
             Degraded            True  NoIngressEndpoint: {lost}
             Checked             True  Reason: message
             AgentsReady         True  Reason: message
             Labelled            True  Reason: message
             Acknowledged        True  Reason: message
             LocalPolicySet      False Reason: message
"
    );
    assert_eq!(tell(&[web], &[], true), expected(&all, &conditions));
}

#[test]
fn a_status_that_is_missing_or_about_another_generation_is_the_operators_fault() {
    assert_eq!(told(&object("web", &Value::Null), &[]), "\
web: Unknown
  waits for  the operator, which has not looked at it yet
  to do      kubectl get pods -A -l app.kubernetes.io/name=sourcepreserve-operator   # whether the operator runs
");
    let mut old = ready("web");
    old.status.as_mut().unwrap().observed_generation = Some(1);
    assert!(!is_ready(&old));
    assert_eq!(told(&old, &[]), "\
web: Unknown, was Ready at generation 1
  steps      5 of 5 done
  services   web/frontend  Preserved, 192.0.2.10, 2 endpoints on ingress nodes
  nodes      pool default: 2 nodes, 2 handed over, 2 ready
  waits for  the operator, which has not looked at generation 2 yet
  to do      kubectl get pods -A -l app.kubernetes.io/name=sourcepreserve-operator   # whether the operator runs
");
}

#[test]
fn an_object_on_its_way_out_says_what_is_left() {
    let said = [
        ("Ready", false, "Terminating", "the object is being deleted"),
        ("Progressing", true, "Restoring", "1 Services are on their way back"),
    ];
    let web = stands("web", "Terminating", 0, &said, preserving(&[service("frontend", "Restoring", 1)]));
    assert_eq!(
        told(&web, &[]),
        "\
web: Terminating
  services   web/frontend  Restoring, 192.0.2.10, 1 endpoint on ingress nodes
  nodes      pool default: 2 nodes, 2 handed over, 2 ready
  waits for  1 Services are on their way back
"
    );
}
