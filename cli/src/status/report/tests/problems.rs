//! Objects that are not Ready: the reason, and the commands that help.

use super::*;

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
    let message =
        "spec.ingressNodes.selector matches no node: label the nodes that receive the external traffic";
    let extra = [("Ready", false, "NoIngressNodes", message), ("Progressing", false, "Stopped", message)];
    let web = stands("web", "Pending", 0, &extra, json!({}));
    let nodes = nodes(&[("work-1", &[], false), ("work-2", &[], false)]);
    assert_eq!(block(&web, &[], &nodes), "\
web: Pending for 3h5m
  services   none
  nodes      no node needs an agent
  problem    spec.ingressNodes.selector matches no node: label the nodes that receive the external traffic (for 3h5m)
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
    let down =
        "Service web/frontend has no ready endpoint on an ingress node: external traffic to it is dropped";
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
             Service web/frontend has no ready endpoint on an ingress node: external traffic to it is dropped (for 3h5m)
  to do      kubectl get pods -n web -o wide   # where its pods run
");
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
        ("Progressing", true, "Restoring", "1 Services are being restored"),
    ];
    let mut web = stands("web", "Terminating", 0, &extra, preserving(&[service("frontend", "Restoring", 1)]));
    web.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T03:00:00Z")).unwrap();
    assert_eq!(
        told(&web, &[]),
        "\
web: Terminating for 5m
  services   web/frontend  Restoring, 192.0.2.10, 1 endpoint on ingress nodes
  nodes      pool default: 2 nodes, 2 have an agent, 2 ready
  waiting    3h5m: 1 Services are being restored
"
    );
}
