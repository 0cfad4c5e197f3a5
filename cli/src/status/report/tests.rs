#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod beside;
mod nodes;
mod problems;

use std::collections::BTreeMap;

use isp_api::preserve::Mode;
use serde_json::{Value, json};

use super::*;
use crate::status::nodes::NodeFacts;

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
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "generation": 2,
            "creationTimestamp": "2025-12-30T00:00:00Z",
        },
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

const STEPS: [&str; 5] = ["Checked", "AgentsReady", "Labelled", "Acknowledged", "LocalPolicySet"];

/// The steps in order, the first ones done.
fn steps(done: usize) -> Vec<Value> {
    let step = |(place, step): (usize, &&str)| condition(step, place < done, "Reason", "message");
    STEPS.iter().enumerate().map(step).collect()
}

/// A condition beside the steps: type, status, reason, message.
type Extra<'a> = (&'a str, bool, &'a str, &'a str);

fn conditions(done: usize, extra: &[Extra<'_>]) -> Value {
    let extra =
        extra.iter().map(|(type_, status, reason, message)| condition(type_, *status, reason, message));
    extra.chain(steps(done)).collect()
}

/// An object in this phase with so many steps done; `more` are the other fields of its status.
fn stands(name: &str, phase: &str, done: usize, extra: &[Extra<'_>], more: Value) -> IngressSourcePreserve {
    let mut status = more;
    status["phase"] = json!(phase);
    status["conditions"] = conditions(done, extra);
    object(name, &status)
}

/// Everything happened three hours before.
fn now() -> Timestamp {
    "2026-01-01T03:05:00Z".parse().unwrap()
}

fn context<'a>(reports: &'a [IngressSourceNode], nodes: &'a Nodes) -> Context<'a> {
    Context {
        reports,
        nodes,
        operator: &Operator::Running,
        now: now(),
        wide: false,
        width: None,
        symbols: Symbols::Unicode,
    }
}

fn with_context(object: &IngressSourcePreserve, context: &Context<'_>) -> String {
    report(std::slice::from_ref(object), context)
}

/// The block of the object, without the table.
fn block(object: &IngressSourcePreserve, reports: &[IngressSourceNode], nodes: &Nodes) -> String {
    let text = with_context(object, &context(reports, nodes));
    text.split_once("\n\n").unwrap().1.to_owned()
}

/// Without the right to list nodes.
fn told(object: &IngressSourcePreserve, reports: &[IngressSourceNode]) -> String {
    block(object, reports, &None)
}

/// The name of a node, its labels, and whether its agent failed.
type NodeRow<'a> = (&'a str, &'a [(&'a str, &'a str)], bool);

#[allow(clippy::unnecessary_wraps, reason = "None stands for nodes that may not be listed")]
fn nodes(rows: &[NodeRow<'_>]) -> Nodes {
    let facts = rows.iter().map(|(name, labels, failed)| {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        ((*name).to_owned(), NodeFacts { labels, failed: *failed })
    });
    Some(facts.collect::<BTreeMap<_, _>>())
}

fn service(name: &str, state: &str, endpoints: u32) -> Value {
    json!({"namespace": "web", "name": name, "state": state, "ingressEndpoints": endpoints, "addresses": ["192.0.2.10"]})
}

fn pool(name: &str, counts: [u32; 4]) -> Value {
    json!({"name": name, "nodes": counts[0], "handedOver": counts[1], "ready": counts[2], "failed": counts[3]})
}

fn agent_report(name: &str, connected: bool, views: &Value) -> IngressSourceNode {
    serde_json::from_value(json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourceNode", "metadata": {"name": name}, "spec": {},
        "status": {"pool": "default", "mode": "Filter", "active": connected, "views": views},
    }))
    .unwrap()
}

fn seen(generation: i64, received: bool, programmed: Option<bool>) -> Value {
    json!([{
        "object": "web", "uid": "uid-web", "generation": generation, "view": "ClusterOnly",
        "received": received, "programmed": programmed,
    }])
}

const PRESERVED: &str = "the source IP reaches 1 Service";

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
    let reports = [
        agent_report("work-1", true, &seen(2, true, Some(true))),
        agent_report("work-2", true, &seen(2, true, None)),
    ];
    let nodes = None;
    assert_eq!(
        report(&[ready("api"), ready("web")], &context(&[], &nodes)),
        "\
NAME  PHASE  READY  CHECKED  AGENTS  LABELS  ACKS  LOCAL  AGE
api   Ready  ✔      ✔        ✔       ✔       ✔     ✔      2d3h
web   Ready  ✔      ✔        ✔       ✔       ✔     ✔      2d3h

api: Ready for 3h5m, the source IP reaches 1 Service
  services   web/frontend  Preserved, 192.0.2.10, 2 endpoints on ingress nodes
  nodes      pool default: 2 nodes, 2 have an agent, 2 ready

web: Ready for 3h5m, the source IP reaches 1 Service
  services   web/frontend  Preserved, 192.0.2.10, 2 endpoints on ingress nodes
  nodes      pool default: 2 nodes, 2 have an agent, 2 ready
"
    );
    assert_eq!(told(&ready("web"), &reports), told(&ready("web"), &[]));
    assert!(is_ready(&ready("web")));
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
    let message = "7 of 12 pods have to be recreated: kubectl rollout restart -n shop deployment/cart";
    let condition = condition("SidecarsConsistent", false, "Stale", message);
    status.conditions.push(serde_json::from_value(condition).unwrap());
    let nodes = None;
    assert_eq!(
        with_context(&web, &context(&[], &nodes)),
        "\
NAME  PHASE  READY  CHECKED  AGENTS  LABELS  ACKS  LOCAL  SIDECARS  AGE
web   Ready  ✔      ✔        ✔       ✔       ✔     ✔      ✖         2d3h

web: Ready for 3h5m, the source IP reaches 1 Service
  services   web/frontend  Preserved, 192.0.2.10, 2 endpoints on ingress nodes
  nodes      pool default: 2 nodes, 2 have an agent, 2 ready
  sidecars   12 pods, 5 consistent, 7 stale
             kubectl rollout restart -n shop deployment/cart   # 3 pods
             kubectl rollout restart -n shop statefulset/orders   # 2 pods
             delete and create pod shop/debug   # 1 pod
             and 1 more (-o wide shows all)
"
    );
    assert!(is_ready(&web), "Ready does not wait for pods");
}

#[test]
fn of_many_services_those_that_are_not_well_come_first_and_wide_shows_all() {
    let lost = "Service web/last has no ready endpoint on an ingress node: it fell back to Cluster, so the source IP is lost";
    let waits = "Service web/last does not yet have externalTrafficPolicy Local";
    let extra = [
        ("Ready", false, "Degraded", lost),
        ("Progressing", true, "Waiting", waits),
        ("Degraded", true, "NoIngressEndpoint", lost),
    ];
    let mut services: Vec<Value> =
        (0..9).map(|number| service(&format!("s{number}"), "Preserved", 1)).collect();
    services.push(service("last", "FellBack", 0));
    services[8]["original"] = json!({"externalTrafficPolicy": "Cluster"});
    let web = stands("web", "Degraded", 4, &extra, preserving(&services));

    let expected = |services: &[String], conditions: &str| {
        let services = services.join("\n             ");
        format!(
            "\
web: Degraded for 3h5m
  services   {services}
  nodes      pool default: 2 nodes, 2 have an agent, 2 ready
  waiting    3h5m for LocalPolicySet: {waits}
  problem    {lost} (for 3h5m)
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
  conditions Ready               False    3h5m  Degraded: {lost}
             Progressing         True     3h5m  Waiting: {waits}
             Degraded            True     3h5m  NoIngressEndpoint: {lost}
             Checked             True     3h5m  Reason: message
             AgentsReady         True     3h5m  Reason: message
             Labelled            True     3h5m  Reason: message
             Acknowledged        True     3h5m  Reason: message
             LocalPolicySet      False    3h5m  Reason: message
"
    );
    let nodes = None;
    let text = with_context(&web, &Context { wide: true, ..context(&[], &nodes) });
    assert_eq!(text.split_once("\n\n").unwrap().1, expected(&all, &conditions));
}

#[test]
fn a_table_that_is_wider_than_the_terminal_shortens_the_names() {
    let sidecars = ("SidecarsConsistent", true, "Consistent", "all 2 pods are as spec.sidecars asks");
    let names = ["istio-ingressgateway-public", "web"];
    let objects = names.map(|name| stands(name, "Progressing", 2, &[sidecars], json!({})));
    let at = |width| {
        let text = report(&objects, &Context { width, ..context(&[], &None) });
        text.split_once("\n\n").unwrap().0.to_owned()
    };
    assert_eq!(
        at(Some(80)),
        "\
NAME      PHASE        READY  CHECKED  AGENTS  LABELS  ACKS  LOCAL  SIDECARS  AGE
istio-..  Progressing  -      ✔        ✔       ✖       ✖     ✖      ✔         2d3h
web       Progressing  -      ✔        ✔       ✖       ✖     ✖      ✔         2d3h"
    );
    for wide in [Some(140), None] {
        assert!(at(wide).contains("istio-ingressgateway-public  Progressing"), "{}", at(wide));
    }
}
