#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

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

api: Ready for 3h5m, the client address arrives at 1 Service
  services   web/frontend  Preserved, 192.0.2.10, 2 endpoints on ingress nodes
  nodes      pool default: 2 nodes, 2 have an agent, 2 ready

web: Ready for 3h5m, the client address arrives at 1 Service
  services   web/frontend  Preserved, 192.0.2.10, 2 endpoints on ingress nodes
  nodes      pool default: 2 nodes, 2 have an agent, 2 ready
"
    );
    assert_eq!(told(&ready("web"), &reports), told(&ready("web"), &[]));
    assert!(is_ready(&ready("web")));
}

/// A rollout that has just begun, the reports of its agents, and the nodes.
fn rollout() -> (IngressSourcePreserve, Vec<IngressSourceNode>, Nodes) {
    let rolling = "1 of 8 nodes elsewhere have their agent";
    let extra = [
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
    let web = stands("web", "Progressing", 1, &extra, more);
    let mut ingress_of_web = seen(1, false, None);
    ingress_of_web[0]["view"] = json!("Full");
    let mut was_ingress = seen(2, true, Some(true));
    was_ingress[0]["view"] = json!("Full");
    let mut of_another_pool = agent_report("work-9", true, &seen(2, true, Some(true)));
    if let Some(status) = &mut of_another_pool.status {
        status.pool = "old".to_owned();
    }
    let reports = vec![
        agent_report("edge-9", true, &ingress_of_web),
        agent_report("work-1", true, &seen(2, true, Some(true))),
        agent_report("work-2", true, &seen(1, true, Some(true))),
        agent_report("work-3", true, &seen(2, false, None)),
        agent_report("work-4", true, &seen(2, true, Some(false))),
        agent_report("work-5", false, &seen(2, true, Some(true))),
        agent_report("work-6", true, &was_ingress),
        agent_report("work-7", true, &json!([])),
        of_another_pool,
    ];
    let names = ["1", "2", "3", "4", "5", "6", "7", "9"].map(|number| format!("work-{number}"));
    let ingress = ("edge-9", &[("node-role.kubernetes.io/ingress", "")][..], false);
    let known: Vec<_> = names.iter().map(|name| (name.as_str(), &[][..], false)).chain([ingress]).collect();
    let nodes = nodes(&known);
    (web, reports, nodes)
}

#[test]
fn a_rollout_names_what_it_waits_for_and_the_nodes_that_are_behind() {
    let (web, reports, nodes) = rollout();
    let text = with_context(&web, &context(&reports, &nodes));
    assert_eq!(text, "\
NAME  PHASE        READY  CHECKED  AGENTS  LABELS  ACKS  LOCAL  AGE
web   Progressing  ✖      ✔        ✖       ✖       ✖     ✖      2d3h

web: Progressing for 3h5m
  services   web/frontend  Waiting, no external address, 1 endpoint on ingress nodes: waits until every node elsewhere has acknowledged
  nodes      pool default: 7 nodes, 6 have an agent, 1 ready
               work-2: the agent works with generation 1 of the object, not 2
               work-3: kube-proxy has not listed its Services again yet
               work-4: kube-proxy has not updated the kernel's rules yet
               work-5: kube-proxy is not connected to the agent
               work-6: the node has view Full, not ClusterOnly
               and 1 more (-o wide shows all)
             pool gpu: 1 node, 0 have an agent, 0 ready
             in no pool of this object:
               work-9: has an agent of pool old
  waiting    3h5m for AgentsReady: 1 of 8 nodes elsewhere have their agent
");
    assert!(!is_ready(&web));
    assert!(MANUAL.contains(&text), "the manual shows it");
}

#[test]
fn a_report_fits_the_terminal_and_a_locale_without_utf8() {
    let (web, reports, nodes) = rollout();
    let narrow = Context { width: Some(80), symbols: Symbols::Ascii, ..context(&reports, &nodes) };
    let text = with_context(&web, &narrow);
    assert!(text.is_ascii(), "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert!(
        text.starts_with(
            "\
NAME  PHASE        READY  CHECKED  AGENTS  LABELS  ACKS  LOCAL  AGE
web   Progressing  no     ok       no      no      no    no     2d3h

web: Progressing for 3h5m
  services   web/frontend  Waiting, no external address, 1 endpoint on ingress
               nodes: waits until every node elsewhere has acknowledged
"
        ),
        "{text}"
    );
    let wide = with_context(&web, &Context { width: Some(140), ..context(&reports, &nodes) });
    assert!(wide.lines().all(|line| line.chars().count() <= 140), "{wide}");
    let mut long = web;
    long.metadata.name = Some("a-name-of-16-chr".to_owned());
    let table = with_context(&long, &narrow);
    assert!(table.lines().take(2).all(|line| line.len() <= 80), "{table}");
}

#[test]
fn the_wanted_view_follows_from_the_status_where_nodes_may_not_be_listed() {
    let (mut web, reports, _) = rollout();
    assert!(told(&web, &reports).contains("edge-9: the agent works with generation 1"));
    let status = web.status.as_mut().unwrap();
    status.ingress_nodes = Some(vec!["edge-9".to_owned()]);
    let text = told(&web, &reports);
    assert!(!text.contains("edge-9"), "{text}");
    assert!(text.contains("work-6: the node has view Full, not ClusterOnly"), "{text}");
}

#[test]
fn an_ingress_node_whose_agent_still_hides_the_services_is_shown() {
    let reports = [agent_report("edge-1", true, &seen(2, true, Some(true)))];
    let nodes = nodes(&[("edge-1", &[("node-role.kubernetes.io/ingress", "")], false)]);
    let text = block(&ready("web"), &reports, &nodes);
    assert!(text.contains("               edge-1: the node has view ClusterOnly, not Full\n"), "{text}");
}

#[test]
fn agents_of_other_objects_are_no_strays_and_reports_of_deleted_nodes_are_named() {
    let waiting = [("Ready", false, "NoIngressEndpoint", "no endpoint")];
    let pending = stands("web", "Pending", 0, &waiting, json!({}));
    let reports = [agent_report("work-1", true, &seen(2, true, Some(true)))];
    let there = nodes(&[("work-1", &[], false)]);
    assert!(!block(&pending, &reports, &there).contains("work-1"), "pool default is in the spec");
    let text = block(&ready("web"), &reports, &nodes(&[]));
    assert!(text.contains("work-1: the node no longer exists, and its report is left\n"), "{text}");
}

#[test]
fn an_object_whose_operator_is_gone_is_not_shown_as_ready() {
    let (nodes, lease) = (None, "sourcepreserve-system/sourcepreserve-operator".to_owned());
    let since: Timestamp = "2026-01-01T03:00:00Z".parse().unwrap();
    let operator = Operator::Silent { since, lease };
    let context = Context { operator: &operator, ..context(&[], &nodes) };
    assert_eq!(with_context(&ready("web"), &context), "\
operator: not running: Lease sourcepreserve-system/sourcepreserve-operator was last renewed 5m ago

NAME  PHASE    READY  CHECKED  AGENTS  LABELS  ACKS  LOCAL  AGE
web   Unknown  -      ✔        ✔       ✔       ✔     ✔      2d3h

web: Unknown, was Ready when the operator last ran
  services   web/frontend  Preserved, 192.0.2.10, 2 endpoints on ingress nodes
  nodes      pool default: 2 nodes, 2 have an agent, 2 ready
  waiting    an operator must run, the status may be outdated
  to do      kubectl get pods -A -l app.kubernetes.io/name=sourcepreserve-operator   # whether the operator runs
");
}

#[test]
fn an_object_that_cannot_begin_says_why_with_the_remedy() {
    let message = "spec.ingressNodes.selector matches no node: label the nodes that take in the traffic";
    let extra = [("Ready", false, "NoIngressNodes", message), ("Progressing", false, "Stopped", message)];
    let web = stands("web", "Pending", 0, &extra, json!({}));
    let nodes = nodes(&[("work-1", &[], false), ("work-2", &[], false)]);
    assert_eq!(block(&web, &[], &nodes), "\
web: Pending for 3h5m
  services   none
  nodes      no node needs an agent
  problem    spec.ingressNodes.selector matches no node: label the nodes that take in the traffic (for 3h5m)
  to do      kubectl label node <node> node-role.kubernetes.io/ingress=   # each node that receives the traffic, of work-1, work-2
");
}

#[test]
fn a_failed_wave_is_reported_once_with_commands_that_name_the_node() {
    let failed =
        "a wave missed its deadline: pool default, node work-1: container proxy-agent: ImagePullBackOff";
    let degraded = "the agent of node work-1 in pool default missed its deadline";
    let extra = [
        ("Ready", false, "Degraded", degraded),
        ("Progressing", false, "Stopped", degraded),
        ("Degraded", true, "WaveFailed", degraded),
        ("AgentsReady", false, "WaveFailed", failed),
    ];
    let more = json!({
        "services": [service("frontend", "Waiting", 1)], "nodePools": [pool("default", [2, 0, 0, 1])],
    });
    let web = stands("web", "Degraded", 1, &extra, more);
    let nodes = nodes(&[("work-1", &[], true), ("work-2", &[], false)]);
    let text = with_context(&web, &context(&[], &nodes));
    assert_eq!(text, "\
NAME  PHASE     READY  CHECKED  AGENTS  LABELS  ACKS  LOCAL  AGE
web   Degraded  ✖      ✔        ✖       ✖       ✖     ✖      2d3h

web: Degraded for 3h5m
  services   web/frontend  Waiting, 192.0.2.10, 1 endpoint on ingress nodes
  nodes      pool default: 2 nodes, 0 have an agent, 0 ready, 1 failed
  problem    a wave missed its deadline: pool default, node work-1: container proxy-agent: ImagePullBackOff (for 3h5m)
  to do      kubectl get pods -A -o wide -l app.kubernetes.io/name=proxy-agent   # describe the agents that are not ready
             kubectl annotate node work-1 sourcepreserve.io/agent-failed-   # retries, once the cause is fixed
");
    assert!(MANUAL.contains(&text), "the manual shows it");
    assert!(told(&web, &[]).contains("kubectl annotate node <node> "), "the right to list nodes is missing");
}

#[test]
fn a_node_without_a_pool_is_named_in_the_advice() {
    let message = "node work-2 needs an agent and matches no pool";
    let extra = [("Ready", false, "NodeWithoutPool", message), ("Progressing", false, "Stopped", message)];
    let mut web = stands("web", "Pending", 1, &extra, json!({}));
    web.spec.node_pools = serde_json::from_value(json!([
        {"name": "gpu", "selector": {"matchLabels": {"gpu": "yes"}}},
    ]))
    .unwrap();
    let nodes = nodes(&[
        ("edge-1", &[("node-role.kubernetes.io/ingress", "")], false),
        ("work-1", &[("gpu", "yes")], false),
        ("work-2", &[], false),
    ]);
    let text = block(&web, &[], &nodes);
    assert!(
        text.ends_with("  to do      kubectl isp explain-node work-2   # why no pool selects it\n"),
        "{text}"
    );
}

#[test]
fn a_service_that_is_down_and_a_conflict_stand_beside_each_other() {
    let down = "Service web/frontend has no ready endpoint on an ingress node: nobody outside is answered";
    let conflict = "Service web/api: \"argocd\" has declared spec.externalTrafficPolicy as Cluster: change or remove it there, or \
                    set conflictPolicy: Force";
    let extra = [
        ("Ready", false, "Conflict", conflict),
        ("Progressing", false, "Stopped", conflict),
        ("Degraded", true, "NoIngressEndpoint", down),
        ("Conflict", true, "FieldDeclared", conflict),
    ];
    let mut declared = service("api", "Conflict", 1);
    declared["message"] = json!(conflict);
    let web =
        stands("web", "Conflict", 4, &extra, preserving(&[service("frontend", "Preserved", 0), declared]));
    assert_eq!(told(&web, &[]), "\
web: Conflict for 3h5m
  services   web/frontend  Preserved, 192.0.2.10, 0 endpoints on ingress nodes
             web/api       Conflict, 192.0.2.10, 1 endpoint on ingress nodes
  nodes      pool default: 2 nodes, 2 have an agent, 2 ready
  problem    Service web/api: \"argocd\" has declared spec.externalTrafficPolicy as Cluster: change or remove it there, or set conflictPolicy: Force (for 3h5m)
             Service web/frontend has no ready endpoint on an ingress node: nobody outside is answered (for 3h5m)
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
    let message = "7 of 12 pods have to be created anew: kubectl rollout restart -n shop deployment/cart";
    let condition = condition("SidecarsConsistent", false, "Stale", message);
    status.conditions.push(serde_json::from_value(condition).unwrap());
    let nodes = None;
    assert_eq!(
        with_context(&web, &context(&[], &nodes)),
        "\
NAME  PHASE  READY  CHECKED  AGENTS  LABELS  ACKS  LOCAL  SIDECARS  AGE
web   Ready  ✔      ✔        ✔       ✔       ✔     ✔      ✖         2d3h

web: Ready for 3h5m, the client address arrives at 1 Service
  services   web/frontend  Preserved, 192.0.2.10, 2 endpoints on ingress nodes
  nodes      pool default: 2 nodes, 2 have an agent, 2 ready
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
fn a_status_that_is_missing_or_about_another_generation_is_the_operators_fault() {
    assert_eq!(told(&object("web", &Value::Null), &[]), "\
web: Unknown
  waiting    the operator has not observed the object yet (created 2d3h ago)
  to do      kubectl get pods -A -l app.kubernetes.io/name=sourcepreserve-operator   # whether the operator runs
");
    let mut old = ready("web");
    old.status.as_mut().unwrap().observed_generation = Some(1);
    assert!(!is_ready(&old));
    assert_eq!(told(&old, &[]), "\
web: Unknown, was Ready at generation 1
  services   web/frontend  Preserved, 192.0.2.10, 2 endpoints on ingress nodes
  nodes      pool default: 2 nodes, 2 have an agent, 2 ready
  waiting    the operator has not observed generation 2 of the object yet
  to do      kubectl get pods -A -l app.kubernetes.io/name=sourcepreserve-operator   # whether the operator runs
");
}

#[test]
fn an_object_that_is_being_deleted_says_what_is_left() {
    let extra = [
        ("Ready", false, "Terminating", "the object is being deleted"),
        ("Progressing", true, "Restoring", "1 Services are on their way back"),
    ];
    let mut web = stands("web", "Terminating", 0, &extra, preserving(&[service("frontend", "Restoring", 1)]));
    web.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T03:00:00Z")).unwrap();
    assert_eq!(
        told(&web, &[]),
        "\
web: Terminating for 5m
  services   web/frontend  Restoring, 192.0.2.10, 1 endpoint on ingress nodes
  nodes      pool default: 2 nodes, 2 have an agent, 2 ready
  waiting    3h5m: 1 Services are on their way back
"
    );
}
