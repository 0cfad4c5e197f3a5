//! A node in mode Beside: an agent on every node, beside whatever kube-proxy there is.

use super::*;

fn beside(name: &str, more: Value) -> IngressSourcePreserve {
    let mut object = object(name, more);
    object.spec.mode = Mode::Beside;
    object
}

/// The report of an agent of mode Beside: object, view, generation, whether it is in the kernel,
/// and the Services that it serves.
fn serving(views: &[(&str, &str, i64, bool, &[&str])]) -> IngressSourceNode {
    let views: Vec<Value> = views
        .iter()
        .map(|(object, view, generation, committed, services)| {
            json!({
                "object": object, "uid": format!("uid-{object}"), "generation": generation, "view": view,
                "received": committed, "programmed": committed, "services": services,
            })
        })
        .collect();
    serde_json::from_value(json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourceNode",
        "metadata": {"name": "work-1.beside"}, "spec": {},
        "status": {"pool": "", "mode": "Beside", "active": true, "views": views},
    }))
    .unwrap()
}

fn agent() -> (Key, Pod) {
    pod("proxy-agent-beside", None)
}

#[test]
fn a_node_elsewhere_whose_agent_serves_the_services_beside_kube_proxy() {
    let objects = [beside("internal", json!({"elsewhere": "Hidden"})), beside("web", json!({}))];
    let said = serving(&[
        ("internal", "Hidden", 2, true, &["web/internal"]),
        ("web", "ClusterOnly", 2, true, &["web/api", "web/web"]),
    ]);
    let pods = [pod("kube-proxy", None), agent()];
    let (text, sound) = explained(&node(&[], None), &objects, &[said], &pods);
    assert!(sound, "{text}");
    assert_eq!(
        text,
        "\
work-1: the agent serves 3 preserved Services beside the cluster's kube-proxy
  kube-proxy the cluster's own: pod kube-system/kube-proxy-x7k2p, ready
  agent      mode Beside: pod kube-system/proxy-agent-beside-x7k2p, ready
  internal   Hidden: the agent serves no address of the Services, not even their ClusterIPs
             non-ingress node: ingressNodes.selector does not match (node-role.kubernetes.io/ingress=)
             mode Beside: every node needs an agent, because every kube-proxy skips the Services
             acknowledged: Hidden at generation 2 (current: 2), the agent has the view, committed to the kernel
             serves: web/internal
  web        ClusterOnly: the agent serves the Services without their external addresses
             non-ingress node: ingressNodes.selector does not match (node-role.kubernetes.io/ingress=)
             mode Beside: every node needs an agent, because every kube-proxy skips the Services
             acknowledged: ClusterOnly at generation 2 (current: 2), the agent has the view, committed to the kernel
             serves: web/api, web/web
"
    );
}

#[test]
fn an_ingress_node_needs_an_agent_too_and_a_cluster_without_kube_proxy_will_do() {
    let (edge, objects) = (node(&[(INGRESS, "")], None), [beside("web", json!({}))]);
    let said = serving(&[("web", "Full", 2, true, &["web/web"])]);
    let (text, sound) = explained(&edge, &objects, &[said], &[agent()]);
    assert!(sound, "{text}");
    assert_eq!(
        text,
        "\
work-1: the agent serves 1 preserved Service beside the node's own proxy
  kube-proxy no pod on this node runs it; mode Beside needs none
  agent      mode Beside: pod kube-system/proxy-agent-beside-x7k2p, ready
  web        Full: the agent serves all addresses of the Services
             ingress node: ingressNodes.selector matches (node-role.kubernetes.io/ingress=)
             mode Beside: every node needs an agent, because every kube-proxy skips the Services
             acknowledged: Full at generation 2 (current: 2), the agent has the view, committed to the kernel
             serves: web/web
"
    );
    assert!(include_str!("../../../../../docs/kubectl-isp.md").contains(&text), "the manual shows it");
    let (text, sound) = explained(&edge, &objects, &[], &[]);
    assert!(!sound);
    assert!(text.starts_with("work-1: served by its own proxy\n"), "{text}");
    assert!(text.contains("  agent      mode Beside: no pod on this node runs it\n"), "{text}");
    assert!(text.contains("             acknowledged: nothing, no agent reports\n"), "{text}");
    assert!(text.ends_with("  behind     the node has no agent of mode Beside\n"), "{text}");
}

/// What an agent lacks: its report and its pods, and the lines below `behind`.
#[test]
fn whatever_an_agent_lacks_is_named() {
    let mut web = beside("web", json!({}));
    let service = |name: &str, state: &str| json!({"namespace": "web", "name": name, "state": state, "ingressEndpoints": 1});
    web.status = serde_json::from_value(json!({
        "services": [service("web", "Preserved"), service("next", "Waiting")],
    }))
    .unwrap();
    let inactive = {
        let mut report = serving(&[("web", "ClusterOnly", 2, false, &[])]);
        report.status.as_mut().unwrap().active = false;
        report
    };
    let kube_proxy = || pod("kube-proxy", None);
    let with_agent = || vec![kube_proxy(), agent()];
    let of_filter = acknowledging(true, &[("web", "ClusterOnly", 2, true, Some(true))]);
    for (reports, pods, behind) in [
        (vec![serving(&[("web", "ClusterOnly", 2, true, &["web/web"])])], with_agent(), &[][..]),
        (vec![], with_agent(), &["the agent of mode Beside has not reported yet"]),
        (vec![of_filter], with_agent(), &["the agent of mode Beside has not reported yet"]),
        (vec![], vec![kube_proxy()], &["the node has no agent of mode Beside"]),
        (
            vec![serving(&[("web", "ClusterOnly", 2, true, &["web/web"])])],
            vec![kube_proxy()],
            &["the node has no agent of mode Beside"],
        ),
        (
            vec![inactive],
            with_agent(),
            &[
                "the agent of mode Beside has not programmed the kernel",
                "web: the agent does not have the view yet",
            ],
        ),
        (vec![serving(&[])], with_agent(), &["web: the agent has not read the object yet"]),
        (
            vec![serving(&[("web", "ClusterOnly", 1, true, &["web/web"])])],
            with_agent(),
            &["web: the agent works with generation 1 of the object, not 2"],
        ),
        (
            vec![serving(&[("web", "Full", 2, true, &["web/web"])])],
            with_agent(),
            &["web: the node has view Full, not ClusterOnly"],
        ),
        (
            vec![serving(&[("web", "ClusterOnly", 2, true, &["web/other"])])],
            with_agent(),
            &["web: the agent does not serve web/web"],
        ),
    ] {
        let (text, sound) = explained(&node(&[], None), &[web.clone()], &reports, &pods);
        assert_eq!(sound, behind.is_empty(), "{text}");
        let told = text.split_once("  behind     ").map(|(_, told)| told).unwrap_or_default();
        let told: Vec<&str> = told.lines().map(str::trim).collect();
        assert_eq!(told, behind, "{text}");
    }
}

#[test]
fn a_node_that_changes_its_mode_has_an_agent_of_each() {
    let objects = [beside("web", json!({}))];
    let reports = [acknowledging(true, &[]), serving(&[("web", "ClusterOnly", 2, true, &["web/web"])])];
    let pods = [pod("proxy-agent-default", None), agent()];
    let (text, sound) = explained(&node(&[], Some("default")), &objects, &reports, &pods);
    assert!(sound, "{text}");
    let heading =
        "work-1: served by the agent of pool default; an agent of mode Beside serves 1 preserved Service\n";
    assert!(text.starts_with(heading), "{text}");
    assert!(
        text.contains("  kube-proxy behind the agent: pod kube-system/proxy-agent-default-x7k2p, ready\n")
    );
    assert!(text.contains("  agent      mode Beside: pod kube-system/proxy-agent-beside-x7k2p, ready\n"));
}

#[test]
fn a_virtual_node_is_left_out() {
    let mut web = beside("web", json!({}));
    web.status = serde_json::from_value(json!({"leftOut": {"count": 1, "nodes": ["work-1"]}})).unwrap();
    let (text, sound) = explained(&node(&[], None), &[web], &[], &[]);
    assert!(sound, "{text}");
    assert!(
        text.contains("left out: no agent can run on this node, which is a virtual or Windows node\n"),
        "{text}"
    );
    assert!(!text.contains("acknowledged"), "{text}");
}
