//! Objects of mode Beside: agents on every node, no pools.

use super::*;

const INGRESS: &[(&str, &str)] = &[("node-role.kubernetes.io/ingress", "")];

fn beside(mut object: IngressSourcePreserve) -> IngressSourcePreserve {
    object.spec.mode = Mode::Beside;
    object
}

/// The report of a node's agent: generation, view, whether it is in the kernel, Services.
fn serving(node: &str, generation: i64, view: &str, committed: bool, services: &[&str]) -> IngressSourceNode {
    serde_json::from_value(json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourceNode",
        "metadata": {"name": format!("{node}.beside")}, "spec": {},
        "status": {
            "pool": "", "mode": "Beside", "active": committed,
            "views": [{
                "object": "web", "uid": "uid-web", "generation": generation, "view": view,
                "received": committed, "programmed": committed, "services": services,
            }],
        },
    }))
    .unwrap()
}

fn with_agents(state: &str, counts: [u32; 4]) -> Value {
    json!({"services": [service("frontend", state, 2)], "nodePools": [pool("beside", counts)]})
}

#[test]
fn an_object_that_is_ready_has_one_line_for_its_agents() {
    let said = [("Ready", true, "Preserved", PRESERVED)];
    let web = beside(stands("web", "Ready", 5, &said, with_agents("Preserved", [3, 3, 3, 0])));
    let reports = [
        serving("edge-1", 2, "Full", true, &["web/frontend"]),
        serving("work-1", 2, "ClusterOnly", true, &["web/frontend"]),
        serving("work-2", 2, "ClusterOnly", true, &["web/frontend"]),
        // Of another object, which has mode Filter.
        agent_report("work-2", false, &json!([])),
    ];
    let nodes = nodes(&[("edge-1", INGRESS, false), ("work-1", &[], false), ("work-2", &[], false)]);
    let text = with_context(&web, &context(&reports, &nodes));
    assert_eq!(
        text,
        "\
NAME  PHASE  READY  CHECKED  AGENTS  LABELS  ACKS  LOCAL  AGE
web   Ready  ✔      ✔        ✔       ✔       ✔     ✔      2d3h

web: Ready for 3h5m, the source IP reaches 1 Service
  services   web/frontend  Preserved, 192.0.2.10, 2 endpoints on ingress nodes
  nodes      mode Beside: 3 nodes, 3 have an agent, 3 ready
"
    );
}

#[test]
fn a_rollout_names_the_nodes_that_are_behind_and_ingress_nodes_as_such() {
    let waits = "Service web/frontend waits until the agents serve it on every node";
    let said = [("Ready", false, "Waiting", waits), ("Progressing", true, "Waiting", waits)];
    let mut web = beside(stands("web", "Progressing", 2, &said, with_agents("Preserved", [7, 6, 1, 0])));
    let reports = [
        serving("work-1", 2, "ClusterOnly", true, &["web/frontend"]),
        serving("work-2", 1, "ClusterOnly", true, &["web/frontend"]),
        serving("work-3", 2, "ClusterOnly", false, &[]),
        serving("work-4", 2, "ClusterOnly", true, &[]),
        serving("edge-1", 2, "ClusterOnly", true, &["web/frontend"]),
        serving("gone-1", 2, "ClusterOnly", true, &["web/frontend"]),
    ];
    let known = nodes(&[
        ("edge-1", INGRESS, false),
        ("edge-2", INGRESS, false),
        ("virtual", &[], false),
        ("work-1", &[], false),
        ("work-2", &[], false),
        ("work-3", &[], false),
        ("work-4", &[], false),
        ("work-5", &[], false),
    ]);
    web.status.as_mut().unwrap().left_out =
        serde_json::from_value(json!({"count": 1, "nodes": ["virtual"]})).unwrap();
    let text = with_context(&web, &Context { wide: true, ..context(&reports, &known) });
    assert!(
        text.contains(
            "
  nodes      mode Beside: 7 nodes, 6 have an agent, 1 ready
               edge-1: the node has view ClusterOnly, not Full
               edge-2: no agent reports; it is an ingress node
               gone-1: the node no longer exists, and its report is left
               work-2: the agent works with generation 1 of the object, not 2
               work-3: the agent has not programmed the kernel
               work-4: the agent does not serve web/frontend
               work-5: no agent reports
  waiting    3h5m for Labelled: Service web/frontend waits until the agents serve it on every node
"
        ),
        "{text}"
    );
    assert!(!block(&web, &reports, &None).contains("no agent reports"), "the right to list nodes is missing");
}

#[test]
fn agents_that_fail_have_no_annotation_to_remove() {
    let failed = "a wave missed its deadline: node work-1: container proxy-agent: ImagePullBackOff";
    let said = [
        ("Ready", false, "Degraded", failed),
        ("Degraded", true, "WaveFailed", failed),
        ("AgentsReady", false, "WaveFailed", failed),
    ];
    let web = beside(stands("web", "Degraded", 1, &said, with_agents("Waiting", [3, 3, 2, 1])));
    let text = told(&web, &[]);
    assert!(
        text.contains("  nodes      mode Beside: 3 nodes, 3 have an agent, 2 ready, 1 failed\n"),
        "{text}"
    );
    assert!(
        text.ends_with(
            "  to do      kubectl get pods -A -o wide -l app.kubernetes.io/name=proxy-agent,sourcepreserve.io/agent-mode=beside   \
             # describe the agents that are not ready\n"
        ),
        "{text}"
    );
}

#[test]
fn where_mode_filter_finds_no_kube_proxy_mode_beside_is_offered() {
    for reason in ["KubeProxyNotFound", "KubeProxyUnusable"] {
        let said = [("Ready", false, reason, "no DaemonSet runs kube-proxy")];
        let text = told(&stands("web", "Pending", 1, &said, json!({})), &[]);
        assert!(
            text.ends_with(
                "  to do      kubectl patch isp web --type=merge -p '{\"spec\":{\"mode\":\"Beside\",\"nodePools\":null}}'   \
                 # works beside any kube-proxy, or without one\n"
            ),
            "{text}"
        );
    }
}
