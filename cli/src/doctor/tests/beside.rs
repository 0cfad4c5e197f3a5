//! The healthy cluster in mode Beside, and its faults.

use isp_plan::Key;
use serde_json::{Value, json};

use super::faults::{Fault, condition, kube_proxy_setting, remove};
use super::world::{World, codes, lines};
use crate::doctor::finding::{Code, Severity};

const GATEWAY: &str = "istio-ingressgateway";
const PROXY_NAME: &str = "service.kubernetes.io/service-proxy-name";
const NODES: [&str; 3] = ["edge-1", "work-1", "work-2"];
const SOUND: &str = "note ISP315 Cluster: 1 of 2 exposed Services loses the client's source IP: plain/echo\n";

/// An agent on every node, kube-proxy everywhere as it was, and a Service that the agents serve.
pub(super) fn world() -> World {
    let mut world = World::of("healthy");
    let object = world.the("IngressSourcePreserve", "shop");
    object["spec"]["mode"] = json!("Beside");
    object["status"]["nodePools"] =
        json!([{"name": "beside", "nodes": 3, "handedOver": 3, "ready": 3, "failed": 0}]);
    let uid = object["metadata"]["uid"].clone();
    world.remove("IngressSourceNode", "");
    world.remove("Pod", "proxy-agent");
    world.remove("DaemonSet", "proxy-agent");
    let kube_proxy = world.pod_on("edge-1", "kube-proxy").clone();
    for node in NODES {
        if node != "edge-1" {
            remove(&mut world.the("Node", node)["metadata"]["labels"], "sourcepreserve.io/agent-pool");
            let mut own = kube_proxy.clone();
            own["metadata"]["name"] = json!(format!("kube-proxy-{node}"));
            own["spec"]["nodeName"] = json!(node);
            world.add(own);
        }
        world.add(agent(node));
        world.add(report(node, &uid));
    }
    world.add(json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "proxy-agent-beside", "namespace": "kube-system", "labels": labels()},
        "spec": {"selector": {"matchLabels": labels()}, "template": {"metadata": {"labels": labels()}, "spec": {"containers": []}}},
    }));
    service(&mut world)["metadata"]["labels"][PROXY_NAME] = json!("ingress-source-preserve");
    world
}

fn labels() -> Value {
    json!({"app.kubernetes.io/name": "proxy-agent", "sourcepreserve.io/agent-mode": "beside"})
}

fn agent(node: &str) -> Value {
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "proxy-agent-beside", "uid": "beside", "controller": true,
    });
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("proxy-agent-beside-{node}"), "namespace": "kube-system", "labels": labels(), "ownerReferences": [owner],
        },
        "spec": {"nodeName": node, "hostNetwork": true, "containers": [{"name": "proxy-agent", "args": ["beside"]}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn report(node: &str, uid: &Value) -> Value {
    let view = if node == "edge-1" { "Full" } else { "ClusterOnly" };
    let ready = json!({
        "type": "Ready", "status": "True", "reason": "Current", "message": "the agent serves 1 Service",
        "lastTransitionTime": "2026-11-16T14:09:46Z",
    });
    json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourceNode",
        "metadata": {"name": format!("{node}.beside")}, "spec": {},
        "status": {
            "pool": "", "mode": "Beside", "active": true, "conditions": [ready],
            "views": [{
                "object": "shop", "uid": uid, "generation": 1, "view": view, "received": true, "programmed": true,
                "services": ["istio-system/istio-ingressgateway"],
            }],
        },
    })
}

fn service(world: &mut World) -> &mut Value {
    world.the("Service", GATEWAY)
}

fn status<'a>(world: &'a mut World, node: &str) -> &'a mut Value {
    &mut world.the("IngressSourceNode", node)["status"]
}

fn without_agents(world: &mut World) {
    world.remove("Pod", "proxy-agent-beside");
    world.remove("IngressSourceNode", "");
}

pub(super) const FAULTS: &[Fault] = &[
    ("an ingress node without an agent", Code::IngressNodeWithoutAgent, |world| {
        world.remove("Pod", "proxy-agent-beside-edge-1");
    }),
    ("no agent at all", Code::IngressNodeWithoutAgent, without_agents),
    ("a node elsewhere without an agent", Code::AgentSilent, |world| {
        world.remove("Pod", "proxy-agent-beside-work-1");
    }),
    ("the agent of an ingress node is not ready", Code::AgentNotReady, |world| {
        condition(world.the("Pod", "proxy-agent-beside-edge-1"), "Ready")["status"] = json!("False");
    }),
    ("an agent reports nothing", Code::AgentSilent, |world| world.remove("IngressSourceNode", "edge-1")),
    ("an agent cannot program the kernel", Code::NotProgrammed, |world| {
        status(world, "work-1")["active"] = json!(false);
    }),
    ("the agent of an ingress node is behind", Code::AgentBehind, |world| {
        status(world, "edge-1")["views"][0]["generation"] = json!(0);
    }),
    ("the agent of an ingress node hides the Service", Code::AgentBehind, |world| {
        status(world, "edge-1")["views"][0]["view"] = json!("ClusterOnly");
    }),
    ("an agent knows another object", Code::AgentBehind, |world| {
        status(world, "work-1")["views"][0]["uid"] = json!("another");
    }),
    ("not committed to the kernel", Code::NotProgrammed, |world| {
        status(world, "work-1")["views"][0]["programmed"] = json!(false);
    }),
    ("an agent does not serve the Service", Code::NotServed, |world| {
        status(world, "work-2")["views"][0]["services"] = json!([]);
    }),
    ("an agent says that something is wrong", Code::AgentNotReady, |world| {
        let said = condition(world.the("IngressSourceNode", "work-1"), "Ready");
        said["status"] = json!("False");
    }),
    ("a node is down", Code::NodeNotReady, |world| {
        condition(world.the("Node", "work-1"), "Ready")["status"] = json!("Unknown");
    }),
    ("the ingress node is down", Code::NodeNotReady, |world| {
        condition(world.the("Node", "edge-1"), "Ready")["status"] = json!("Unknown");
    }),
    ("another proxy's Service", Code::ServiceProxyName, |world| {
        service(world)["metadata"]["labels"][PROXY_NAME] = json!("other");
    }),
    ("kube-proxies serve it as well", Code::NotLabelled, |world| {
        remove(&mut service(world)["metadata"]["labels"], PROXY_NAME);
    }),
    ("the label of the object is gone", Code::NotLabelled, |world| {
        remove(&mut service(world)["metadata"]["labels"], "sourcepreserve.io/preserve");
    }),
    ("a file declares another proxy", Code::FieldDeclared, |world| {
        let applied = json!({"metadata": {"labels": {PROXY_NAME: "other"}}}).to_string();
        let annotations = &mut service(world)["metadata"]["annotations"];
        annotations["kubectl.kubernetes.io/last-applied-configuration"] = json!(applied);
    }),
    ("nobody serves a Service of an object that is gone", Code::ServedByNobody, |world| {
        world.remove("IngressSourcePreserve", "");
        without_agents(world);
    }),
    ("a Service that somebody handed to the agents", Code::ServedByNobody, |world| {
        world.the("Service", "echo")["metadata"]["labels"][PROXY_NAME] = json!("ingress-source-preserve");
    }),
    ("pods that no agent recognizes", Code::NoLocalDetection, |world| {
        remove(&mut world.the("Node", "work-1")["spec"], "podCIDRs");
    }),
    ("paused", Code::Paused, |world| {
        world.the("IngressSourcePreserve", "shop")["spec"]["rollout"]["paused"] = json!(true);
    }),
];

#[test]
fn a_sound_cluster_has_no_faults_with_kube_proxy_or_without_it() {
    let mut world = world();
    assert_eq!(lines(&world.examine(None)), SOUND);
    let gateway = Key::new("istio-system", GATEWAY);
    assert_eq!(lines(&world.examine(Some(&gateway))), "");
    world.remove("Pod", "kube-proxy");
    world.remove("DaemonSet", "kube-proxy");
    world.remove("ConfigMap", "kube-proxy");
    assert_eq!(lines(&world.examine(None)), SOUND);
}

#[test]
fn the_settings_of_a_kube_proxy_that_skips_the_services_do_not_matter() {
    for (from, to) in [
        ("10.244.0.0/16", "0.0.0.0/0"),
        ("10.244.0.0/16", "''"),
        ("10.244.0.0/16", "10.245.0.0/16"),
        ("mode: nftables", "mode: nftables\nnftables: {masqueradeAll: true}"),
        ("mode: nftables", "mode: ipvs"),
    ] {
        let mut world = world();
        kube_proxy_setting(&mut world, from, to);
        assert_eq!(lines(&world.examine(None)), SOUND, "{to}");
    }
    // They do as soon as an object of mode Filter exists.
    let mut world = world();
    kube_proxy_setting(&mut world, "mode: nftables", "mode: nftables\nnftables: {masqueradeAll: true}");
    let mut second = world.the("IngressSourcePreserve", "shop").clone();
    second["metadata"] = json!({
        "name": "second", "uid": "another", "generation": 1, "creationTimestamp": "2026-12-31T00:00:00Z",
    });
    second["spec"]["mode"] = json!("Filter");
    second["spec"]["services"] = json!([{"namespace": "plain", "name": "echo"}]);
    world.add(second);
    assert!(codes(&world.examine(None)).contains(&Code::MasqueradeAll));
}

#[test]
fn a_service_that_nobody_serves_comes_with_the_way_out() {
    let remedy = "kubectl label service -n istio-system istio-ingressgateway service.kubernetes.io/service-proxy-name-   \
                  # every kube-proxy serves it again";
    for (preserved, line) in [(true, "no agent of mode Beside runs"), (false, "no agent of mode Beside runs")]
    {
        let mut world = world();
        without_agents(&mut world);
        if !preserved {
            world.remove("IngressSourcePreserve", "");
        }
        let asked = world.examine(Some(&Key::new("istio-system", GATEWAY)));
        for found in [world.examine(None), asked] {
            let nobody = found.iter().find(|finding| finding.code == Code::ServedByNobody);
            let nobody = nobody.unwrap_or_else(|| panic!("{}", lines(&found)));
            assert_eq!(nobody.severity, Severity::Error);
            assert!(nobody.line.ends_with(line), "{}", nobody.line);
            assert!(nobody.remedy.iter().any(|step| step == remedy), "{:?}", nobody.remedy);
        }
    }
    let mut world = world();
    condition(world.the("Pod", "proxy-agent-beside-edge-1"), "Ready")["status"] = json!("False");
    world.remove("Pod", "proxy-agent-beside-work");
    let found = world.examine(None);
    let nobody = found.iter().find(|finding| finding.code == Code::ServedByNobody);
    assert!(nobody.unwrap().line.ends_with("no agent of mode Beside is ready"), "{}", lines(&found));
}

#[test]
fn a_service_that_an_object_gives_back_is_served_while_it_is_listed() {
    let mut world = world();
    let object = world.the("IngressSourcePreserve", "shop");
    object["metadata"]["deletionTimestamp"] = object["metadata"]["creationTimestamp"].clone();
    let found = world.examine(None);
    assert!(!codes(&found).contains(&Code::ServedByNobody), "{}", lines(&found));
    world.the("IngressSourcePreserve", "shop")["status"]["services"] = json!([]);
    let found = world.examine(None);
    let nobody = found.iter().find(|finding| finding.code == Code::ServedByNobody);
    assert!(nobody.unwrap().line.ends_with("no IngressSourcePreserve selects it, so no agent serves it"));
}

#[test]
fn a_service_of_another_proxy_is_reported_once_and_never_forced() {
    let mut world = world();
    service(&mut world)["metadata"]["labels"][PROXY_NAME] = json!("other");
    let said = condition(world.the("IngressSourcePreserve", "shop"), "Conflict");
    said["status"] = json!("True");
    said["reason"] = json!("FieldDeclared");
    said["message"] =
        json!(format!("Service a/b: \"kubectl\" has set metadata.labels[{PROXY_NAME}] to other"));
    let found = world.examine(None);
    assert_eq!(codes(&found)[0], Code::ServiceProxyName, "{}", lines(&found));
    assert!(!codes(&found).contains(&Code::FieldDeclared), "{}", lines(&found));
    assert!(found.iter().flat_map(|finding| &finding.remedy).all(|step| !step.contains("Force")));
}

#[test]
fn a_service_that_is_open_is_served_in_full_and_no_agent_lacks_it() {
    let mut world = world();
    world.the("EndpointSlice", GATEWAY)["endpoints"][0]["nodeName"] = json!("work-1");
    remove(&mut service(&mut world)["metadata"]["labels"], "sourcepreserve.io/preserve");
    for node in NODES {
        status(&mut world, node)["views"][0]["services"] = json!([]);
    }
    let found = world.examine(None);
    assert!(codes(&found).contains(&Code::NoIngressEndpoint), "{}", lines(&found));
    assert!(!codes(&found).contains(&Code::NotServed), "{}", lines(&found));
}

#[test]
fn a_rollout_that_has_just_begun_lacks_no_agents() {
    let mut world = world();
    without_agents(&mut world);
    remove(&mut service(&mut world)["metadata"]["labels"], PROXY_NAME);
    let object = world.the("IngressSourcePreserve", "shop");
    object["status"]["phase"] = json!("Progressing");
    condition(object, "Ready")["status"] = json!("False");
    let found = world.examine(None);
    assert_eq!(codes(&found)[..1], [Code::NotReady], "{}", lines(&found));
}

#[test]
fn nodes_that_are_left_out_lack_no_agent_in_either_mode() {
    for (mut world, pod) in [(world(), "proxy-agent-beside-work-1"), (World::of("healthy"), "")] {
        if pod.is_empty() {
            let name = world.pod_on("work-1", "proxy-agent")["metadata"]["name"].as_str().unwrap().to_owned();
            world.remove("Pod", &name);
        } else {
            world.remove("Pod", pod);
        }
        world.remove("IngressSourceNode", "work-1");
        assert!(codes(&world.examine(None)).contains(&Code::AgentSilent));
        let object = world.the("IngressSourcePreserve", "shop");
        object["status"]["leftOut"] = json!({"count": 1, "nodes": ["work-1"]});
        assert_eq!(lines(&world.examine(None)), SOUND);
        let object = world.the("IngressSourcePreserve", "shop");
        object["status"]["leftOut"] = json!({"count": 30, "nodes": ["other"]});
        assert_eq!(lines(&world.examine(None)), SOUND, "not all of them are named");
    }
}

#[test]
fn where_no_daemon_set_runs_kube_proxy_the_advice_is_mode_beside() {
    let mut world = World::of("untouched");
    let echo = |found: &[crate::doctor::finding::Finding]| {
        found[0].remedy.iter().find(|step| step.starts_with("echo '")).cloned().unwrap()
    };
    assert!(!echo(&world.examine(None)).contains("Beside"), "mode Filter is the default");
    let mut agent = world.the("DaemonSet", "kube-proxy").clone();
    agent["metadata"]["name"] = json!("anetd");
    agent["spec"]["template"]["spec"]["containers"][0]["name"] = json!("anetd");
    agent["spec"]["template"]["spec"]["containers"][0]["command"] = json!(["anetd"]);
    agent["spec"]["template"]["spec"]["containers"][0]["image"] = json!("anetd:1");
    world.remove("DaemonSet", "kube-proxy");
    world.add(agent);
    assert!(echo(&world.examine(None)).contains(r#""mode":"Beside""#));
    let mut world = World::of("healthy");
    world.remove("DaemonSet", "kube-proxy");
    let found = world.examine(None);
    assert_eq!(found[0].code, Code::NoKubeProxy);
    let step = r#"kubectl patch isp shop --type=merge -p '{"spec":{"mode":"Beside","nodePools":null}}'"#;
    assert!(found[0].remedy.iter().any(|remedy| remedy.starts_with(step)), "{:?}", found[0].remedy);
}
