#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod beside;

use isp_plan::record::{Failure, Handover};
use serde_json::{Value, json};

use super::*;

const INGRESS: &str = "node-role.kubernetes.io/ingress";

fn object(name: &str, more: Value) -> IngressSourcePreserve {
    let mut spec = json!({
        "ingressNodes": {"selector": {"matchLabels": {INGRESS: ""}}},
        "services": [{"namespace": "web", "name": name}],
    });
    if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
        spec.extend(more);
    }
    serde_json::from_value(json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": 2}, "spec": spec,
    }))
    .unwrap()
}

fn node(labels: &[(&str, &str)], pool: Option<&str>) -> Node {
    let labels = labels.iter().copied().chain(pool.map(|pool| (AGENT_POOL_LABEL, pool)));
    Node {
        labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        pool: pool.map(str::to_owned),
        ready: true,
        ..Node::default()
    }
}

fn pod(set: &str, trouble: Option<&str>) -> (Key, Pod) {
    let pod = Pod {
        daemon_set: Key::new("kube-system", set),
        role: match set {
            "proxy-agent-default" => {
                Some(PodRole::Agent { pool: "default".to_owned(), revision: "1".to_owned() })
            }
            "proxy-agent-beside" => Some(PodRole::Beside),
            _ => None,
        },
        node: "work-1".to_owned(),
        ready: trouble.is_none(),
        trouble: trouble.map(str::to_owned),
    };
    (Key::new("kube-system", format!("{set}-x7k2p")), pod)
}

fn acknowledging(connected: bool, views: &[(&str, &str, i64, bool, Option<bool>)]) -> IngressSourceNode {
    let views: Vec<Value> = views
        .iter()
        .map(|(object, view, generation, received, programmed)| {
            json!({
                "object": object, "uid": format!("uid-{object}"), "generation": generation, "view": view,
                "received": received, "programmed": programmed,
            })
        })
        .collect();
    serde_json::from_value(json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourceNode", "metadata": {"name": "work-1"}, "spec": {},
        "status": {"pool": "default", "mode": "Filter", "active": connected, "views": views},
    }))
    .unwrap()
}

fn explained(
    node: &Node,
    objects: &[IngressSourcePreserve],
    reports: &[IngressSourceNode],
    pods: &[(Key, Pod)],
) -> (String, bool) {
    let facts = Facts { name: "work-1", node, objects, reports, pods, width: None };
    let report = report(&facts);
    isp_testkit::schema::assert_output("explain-node", &json!(report));
    (explain(&facts), report.sound)
}

#[test]
fn a_node_elsewhere_whose_agent_has_acknowledged() {
    let objects = [object("web", json!({})), object("internal-gateway", json!({"elsewhere": "Hidden"}))];
    let said = acknowledging(
        true,
        &[("web", "ClusterOnly", 2, true, Some(true)), ("internal-gateway", "Hidden", 2, true, None)],
    );
    let pods = [pod("proxy-agent-default", None)];
    let (text, sound) = explained(&node(&[], Some("default")), &objects, &[said], &pods);
    assert!(sound);
    assert_eq!(
        text,
        "\
work-1: served by the agent of pool default
  kube-proxy behind the agent: pod kube-system/proxy-agent-default-x7k2p, ready
  internal-gateway
             Hidden: the node does not see the Services at all, not even their ClusterIPs
             non-ingress node: ingressNodes.selector does not match (node-role.kubernetes.io/ingress=)
             in pool default: its selector matches (every node)
             acknowledged: Hidden at generation 2 (current: 2), listed by kube-proxy, the kernel's rules cannot be read
  web        ClusterOnly: the node does not see the external addresses of the Services
             non-ingress node: ingressNodes.selector does not match (node-role.kubernetes.io/ingress=)
             in pool default: its selector matches (every node)
             acknowledged: ClusterOnly at generation 2 (current: 2), listed by kube-proxy, programmed in the kernel
"
    );
    assert!(include_str!("../../../../docs/kubectl-isp.md").contains(&text), "the manual shows it");
}

#[test]
fn an_agent_that_is_behind() {
    let objects = [object("api", json!({})), object("new", json!({})), object("web", json!({}))];
    let said = acknowledging(
        false,
        &[("api", "ClusterOnly", 2, true, Some(false)), ("web", "ClusterOnly", 1, true, Some(true))],
    );
    let pods = [
        pod("kube-proxy", None),
        pod("proxy-agent-default", Some("container proxy-agent: CrashLoopBackOff")),
    ];
    let (text, sound) = explained(&node(&[], Some("default")), &objects, &[said], &pods);
    assert!(!sound);
    assert_eq!(text, "\
work-1: served by the agent of pool default
  kube-proxy the cluster's own: pod kube-system/kube-proxy-x7k2p, ready
             behind the agent: pod kube-system/proxy-agent-default-x7k2p, container proxy-agent: CrashLoopBackOff
  api        ClusterOnly: the node does not see the external addresses of the Services
             non-ingress node: ingressNodes.selector does not match (node-role.kubernetes.io/ingress=)
             in pool default: its selector matches (every node)
             acknowledged: ClusterOnly at generation 2 (current: 2), listed by kube-proxy, not programmed in the kernel yet
  new        ClusterOnly: the node does not see the external addresses of the Services
             non-ingress node: ingressNodes.selector does not match (node-role.kubernetes.io/ingress=)
             in pool default: its selector matches (every node)
             acknowledged: nothing of this object
  web        ClusterOnly: the node does not see the external addresses of the Services
             non-ingress node: ingressNodes.selector does not match (node-role.kubernetes.io/ingress=)
             in pool default: its selector matches (every node)
             acknowledged: ClusterOnly at generation 1 (current: 2), listed by kube-proxy, programmed in the kernel
  behind     kube-proxy is not connected to the agent
             api: kube-proxy has not updated the kernel's rules yet
             new: the agent has not read the object yet
             web: the agent works with generation 1 of the object, not 2
             the cluster's own kube-proxy still runs on the node and writes rules, too
");
}

#[test]
fn an_ingress_node_needs_no_agent() {
    let (node, objects) = (node(&[(INGRESS, "")], None), [object("web", json!({}))]);
    let (text, sound) = explained(&node, &objects, &[], &[pod("kube-proxy", None)]);
    assert!(sound);
    assert_eq!(
        text,
        "\
work-1: served by the cluster's kube-proxy
  kube-proxy the cluster's own: pod kube-system/kube-proxy-x7k2p, ready
  web        Full: the node sees all addresses of the Services
             ingress node: ingressNodes.selector matches (node-role.kubernetes.io/ingress=)
"
    );
}

#[test]
fn a_node_that_matches_no_pool() {
    let pools = json!([{"name": "gpu", "selector": {"matchLabels": {"accelerator": "gpu"}}}]);
    let objects = [object("web", json!({"nodePools": pools}))];
    let (text, sound) = explained(&node(&[], None), &objects, &[], &[pod("kube-proxy", None)]);
    assert!(!sound);
    assert_eq!(
        text,
        "\
work-1: served by the cluster's kube-proxy
  kube-proxy the cluster's own: pod kube-system/kube-proxy-x7k2p, ready
  web        ClusterOnly: the node does not see the external addresses of the Services
             non-ingress node: ingressNodes.selector does not match (node-role.kubernetes.io/ingress=)
             in no pool: no selector of gpu matches, so the node gets no agent
             acknowledged: nothing, no agent reports
  behind     web: no pool selects the node, so it gets no agent
"
    );
}

#[test]
fn objects_that_cannot_be_vouched_for() {
    let label = json!({"key": "example.com/skip", "value": "yes"});
    let bad = json!({"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}});
    let objects = [
        object("a", json!({"serviceLabel": label.clone()})),
        object("b", json!({"serviceLabel": label})),
        object("c", json!({"ingressNodes": bad})),
    ];
    let (text, sound) = explained(&node(&[], None), &objects, &[], &[]);
    assert!(!sound);
    assert_eq!(text, "\
work-1: served by the cluster's kube-proxy
  kube-proxy no pod on this node runs it
  a          ClusterOnly: the node does not see the external addresses of the Services
             non-ingress node: ingressNodes.selector does not match (node-role.kubernetes.io/ingress=)
             in pool default: its selector matches (every node)
             acknowledged: nothing, no agent reports
  b          ClusterOnly: the node does not see the external addresses of the Services
             non-ingress node: ingressNodes.selector does not match (node-role.kubernetes.io/ingress=)
             in doubt: spec.serviceLabel: example.com/skip=yes already marks the Services of the older IngressSourcePreserve a, whose view applies; give this one another value
             in pool default: its selector matches (every node)
             acknowledged: nothing, no agent reports
  c          ClusterOnly: the node does not see the external addresses of the Services
             non-ingress node: ingressNodes.selector does not match (a in ())
             in doubt: spec.ingressNodes.selector: In on label \"a\" lists no values; add at least one, or use Exists or DoesNotExist
             in pool default: its selector matches (every node)
             acknowledged: nothing, no agent reports
  behind     the node has no agent yet
");
}

#[test]
fn a_node_between_the_two() {
    let handover = Handover::new("default", "2026-01-01T00:00:00Z".parse().unwrap());
    let over = Node { handover: Some(handover.clone()), ready: false, ..node(&[], Some("default")) };
    let (text, sound) = explained(&over, &[], &[], &[]);
    assert!(!sound);
    assert_eq!(
        text,
        "\
work-1: moving to the agent of pool default since 2026-01-01 00:00:00 UTC; the node is NotReady
  kube-proxy no pod on this node runs it
  objects    none: the node sees all Services
"
    );
    let failure = Failure {
        pool: "default".to_owned(),
        revision: "1".to_owned(),
        reason: "container proxy-agent: ImagePullBackOff".to_owned(),
    };
    let back = Node { handover: Some(handover), failure: Some(failure), ..node(&[], None) };
    let (text, sound) = explained(&back, &[], &[], &[pod("kube-proxy", None)]);
    assert!(!sound);
    assert_eq!(
        text,
        "\
work-1: moving back from the agent of pool default to the cluster's kube-proxy since 2026-01-01 00:00:00 UTC
  kube-proxy the cluster's own: pod kube-system/kube-proxy-x7k2p, ready
  objects    none: the node sees all Services
  problem    the agent of pool default failed on this node: container proxy-agent: ImagePullBackOff
  to do      kubectl annotate node work-1 sourcepreserve.io/agent-failed-   # retries, once the cause is fixed
"
    );
    let stray = node(&[(AGENT_POOL_LABEL, "mine")], None);
    let (text, sound) = explained(&stray, &[], &[], &[pod("kube-proxy", None)]);
    assert!(!sound);
    assert_eq!(
        text,
        "\
work-1: has label sourcepreserve.io/agent-pool=mine, which the operator did not set: remove it
  kube-proxy the cluster's own: pod kube-system/kube-proxy-x7k2p, ready
  objects    none: the node sees all Services
"
    );
}

#[test]
fn a_node_without_kube_proxy_is_left_out_and_needs_no_agent() {
    let mut web = object("web", json!({}));
    web.status = serde_json::from_value(json!({"leftOut": {"count": 1, "nodes": ["work-1"]}})).unwrap();
    let (text, sound) = explained(&node(&[], None), &[web], &[], &[]);
    assert!(sound, "{text}");
    assert!(text.contains("left out: the cluster's kube-proxy does not run on this node"), "{text}");
    assert!(!text.contains("behind"), "{text}");
}

#[test]
fn the_same_is_told_as_data() {
    let objects = [object("web", json!({}))];
    let said = acknowledging(true, &[("web", "ClusterOnly", 1, true, None)]);
    let mut failing = node(&[], Some("default"));
    failing.failure =
        Some(Failure { pool: "default".to_owned(), revision: "1".to_owned(), reason: "no image".to_owned() });
    let pods = [pod("proxy-agent-default", Some("container proxy-agent: CrashLoopBackOff"))];
    let facts = Facts {
        name: "work-1",
        node: &failing,
        objects: &objects,
        reports: &[said],
        pods: &pods,
        width: None,
    };
    let told = json!(report(&facts));
    assert_eq!(
        told,
        json!({
            "node": "work-1", "sound": false, "ready": true,
            "summary": "served by the agent of pool default", "pool": "default",
            "kubeProxies": [{
                "pod": "kube-system/proxy-agent-default-x7k2p", "ofOperator": true, "ready": false,
                "trouble": "container proxy-agent: CrashLoopBackOff",
            }],
            "besideAgents": [],
            "objects": [{
                "object": "web", "mode": "Filter", "generation": 2, "view": "ClusterOnly", "selected": false,
                "ingressNode": false, "leftOut": false, "pool": "default",
                "acknowledged": {
                    "generation": 1, "view": "ClusterOnly", "received": true, "programmed": null, "services": [],
                },
                "description": [
                    "ClusterOnly: the node does not see the external addresses of the Services",
                    "non-ingress node: ingressNodes.selector does not match (node-role.kubernetes.io/ingress=)",
                    "in pool default: its selector matches (every node)",
                    "acknowledged: ClusterOnly at generation 1 (current: 2), listed by kube-proxy, the kernel's rules cannot be read",
                ],
            }],
            "behind": ["web: the agent works with generation 1 of the object, not 2"],
            "failure": {"pool": "default", "reason": "no image"},
        })
    );
}
