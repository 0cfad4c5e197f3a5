//! One thing is changed in a healthy cluster; exactly that is named first.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::beside;
use super::mesh_faults::MESH;
use super::world::{World, lines};
use crate::doctor::finding::{Code, Severity};

pub(crate) type Fault = (&'static str, Code, fn(&mut World));

pub(super) const GATEWAY: &str = "istio-ingressgateway";
const YEAR: i64 = 366 * 24;

pub(super) fn service(world: &mut World) -> &mut Value {
    world.the("Service", GATEWAY)
}

fn object(world: &mut World) -> &mut Value {
    world.the("IngressSourcePreserve", "shop")
}

fn report(world: &mut World) -> &mut Value {
    &mut world.the("IngressSourceNode", "work-1")["status"]
}

pub(crate) fn remove(from: &mut Value, field: &str) {
    let removed = from.as_object_mut().unwrap().remove(field);
    assert!(removed.is_some(), "there is no {field}");
}

pub(super) fn condition<'a>(object: &'a mut Value, type_: &str) -> &'a mut Value {
    let conditions = object["status"]["conditions"].as_array_mut().unwrap();
    conditions.iter_mut().find(|condition| condition["type"] == type_).unwrap()
}

/// Changes a text somewhere in a setting.
pub(super) fn replace(value: &mut Value, from: &str, to: &str) {
    let text = value.as_str().unwrap();
    assert!(text.contains(from), "{from:?} is not in {text}");
    *value = json!(text.replace(from, to));
}

pub(crate) fn kube_proxy_setting(world: &mut World, from: &str, to: &str) {
    replace(&mut world.the("ConfigMap", "kube-proxy")["data"]["config.conf"], from, to);
}

fn pod_webhooks(world: &mut World) -> &mut Value {
    &mut world.the("MutatingWebhookConfiguration", "0-sourcepreserve.io")["webhooks"]
}

/// The whole pod in another mode.
pub(crate) fn in_mode(world: &mut World, mode: &str) {
    let pod = world.the("Pod", "cart-");
    let text = pod.to_string().replace("TPROXY", mode);
    *pod = serde_json::from_str(&text).unwrap();
}

const OBJECTS: &[Fault] = &[
    ("no operator", Code::OperatorUnavailable, |world| {
        remove(&mut world.the("Deployment", "sourcepreserve-operator")["status"], "availableReplicas");
    }),
    ("the operator was removed", Code::OperatorUnavailable, |world| {
        world.remove("Deployment", "sourcepreserve-operator");
    }),
    ("not observed", Code::NotObserved, |world| object(world)["status"]["observedGeneration"] = json!(0)),
    ("never observed", Code::NotObserved, |world| remove(object(world), "status")),
    ("two objects claim the Service", Code::ObjectsClash, |world| {
        let mut second = object(world).clone();
        second["metadata"]["name"] = json!("second");
        second["metadata"]["uid"] = json!("another");
        second["metadata"]["creationTimestamp"] = json!("2026-12-31T00:00:00Z");
        world.add(second);
    }),
    ("the operator reports a conflict", Code::FieldDeclared, |world| {
        let said = condition(object(world), "Conflict");
        said["status"] = json!("True");
        said["reason"] = json!("FieldDeclared");
        said["message"] = json!("Service a/b: \"argocd\" has declared spec.externalTrafficPolicy as Cluster");
    }),
    ("a file declares another policy", Code::FieldDeclared, |world| {
        let applied = json!({"spec": {"externalTrafficPolicy": "Cluster"}}).to_string();
        let annotations = &mut service(world)["metadata"]["annotations"];
        annotations["kubectl.kubernetes.io/last-applied-configuration"] = json!(applied);
    }),
    ("no ingress nodes", Code::NoIngressNodes, |world| {
        remove(&mut world.the("Node", "edge-1")["metadata"]["labels"], "node-role.kubernetes.io/ingress");
    }),
    ("the Service is gone", Code::ServiceMissing, |world| {
        object(world)["spec"]["services"][0]["name"] = json!("absent");
    }),
    ("nothing is selected", Code::ServiceMissing, |world| {
        object(world)["spec"]["services"] =
            json!([{"namespace": "istio-system", "selector": {"matchLabels": {"no": "body"}}}]);
    }),
    ("paused", Code::Paused, |world| object(world)["spec"]["rollout"]["paused"] = json!(true)),
    ("degraded", Code::NotReady, |world| condition(object(world), "Ready")["status"] = json!("False")),
    ("a Service of an object that is gone", Code::LeftBehind, |world| {
        let record = json!({"object": "gone", "policy": "Cluster", "generation": 1});
        world.the("Service", "echo")["metadata"]["annotations"]["sourcepreserve.io/original"] =
            json!(record.to_string());
    }),
    ("being deleted", Code::BeingDeleted, |world| {
        object(world)["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }),
];

const SERVICES: &[Fault] = &[
    ("not exposed", Code::ServiceNotExposed, |world| service(world)["spec"]["type"] = json!("ClusterIP")),
    ("another proxy's", Code::ServiceProxyName, |world| {
        service(world)["metadata"]["labels"]["service.kubernetes.io/service-proxy-name"] = json!("other");
    }),
    ("no endpoint on an ingress node", Code::NoIngressEndpoint, |world| {
        world.the("EndpointSlice", GATEWAY)["endpoints"][0]["nodeName"] = json!("work-1");
    }),
    ("an endpoint that is not ready", Code::NoIngressEndpoint, |world| {
        world.the("EndpointSlice", GATEWAY)["endpoints"][0]["conditions"]["ready"] = json!(false);
    }),
    ("the label is gone", Code::NotLabelled, |world| {
        remove(&mut service(world)["metadata"]["labels"], "sourcepreserve.io/preserve");
    }),
    ("the policy is Cluster", Code::PolicyNotLocal, |world| {
        service(world)["spec"]["externalTrafficPolicy"] = json!("Cluster");
    }),
    ("an ingress node without an endpoint", Code::IngressNodeWithoutEndpoint, |world| {
        world.the("Node", "work-1")["metadata"]["labels"]["node-role.kubernetes.io/ingress"] = json!("");
        report(world)["views"][0]["view"] = json!("Full");
    }),
    ("no address", Code::NoExternalAddress, |world| service(world)["status"] = json!({"loadBalancer": {}})),
    ("ipMode Proxy", Code::IpModeProxy, |world| {
        service(world)["status"]["loadBalancer"]["ingress"][0]["ipMode"] = json!("Proxy");
    }),
    ("a range that is none", Code::SourceRangeUnreadable, |world| {
        service(world)["spec"]["loadBalancerSourceRanges"] = json!(["198.51.100.0/240"]);
    }),
    ("a range of everybody", Code::SourceRangesOpen, |world| {
        service(world)["spec"]["loadBalancerSourceRanges"] = json!(["198.51.100.0/24", "0.0.0.0/0"]);
    }),
    ("ranges of nodes", Code::SourceRangesNodesOnly, |world| {
        service(world)["spec"]["loadBalancerSourceRanges"] = json!(["10.90.0.0/24", "10.244.1.0/24"]);
    }),
    ("no port for health checks", Code::NoHealthCheckPort, |world| {
        remove(&mut service(world)["spec"], "healthCheckNodePort");
    }),
    ("no node ports", Code::NoNodePorts, |world| {
        service(world)["spec"]["allocateLoadBalancerNodePorts"] = json!(false);
    }),
];

const NODES: &[Fault] = &[
    ("a node is down", Code::NodeNotReady, |world| {
        condition(world.the("Node", "work-1"), "Ready")["status"] = json!("Unknown");
    }),
    ("the ingress node is down", Code::NodeNotReady, |world| {
        condition(world.the("Node", "edge-1"), "Ready")["status"] = json!("Unknown");
    }),
    ("a node without a pool", Code::NodeWithoutPool, |world| {
        let pool =
            json!({"name": "default", "selector": {"matchLabels": {"kubernetes.io/hostname": "work-2"}}});
        object(world)["spec"]["nodePools"] = json!([pool]);
    }),
    ("an agent missed its deadline", Code::AgentFailed, |world| {
        let failure =
            json!({"pool": "default", "revision": "1", "reason": "container proxy-agent: ImagePullBackOff"});
        world.the("Node", "work-1")["metadata"]["annotations"]["sourcepreserve.io/agent-failed"] =
            json!(failure.to_string());
    }),
    ("an agent is not ready", Code::AgentNotReady, |world| {
        condition(world.pod_on("work-1", "proxy-agent"), "Ready")["status"] = json!("False");
    }),
    ("an agent is gone", Code::AgentSilent, |world| {
        let name = world.pod_on("work-1", "proxy-agent")["metadata"]["name"].as_str().unwrap().to_owned();
        world.remove("Pod", &name);
    }),
    ("an agent reports nothing", Code::AgentSilent, |world| world.remove("IngressSourceNode", "work-1")),
    ("kube-proxy is not connected", Code::ProxyNotConnected, |world| {
        report(world)["active"] = json!(false);
    }),
    ("an agent is behind", Code::AgentBehind, |world| report(world)["views"][0]["generation"] = json!(0)),
    ("an agent knows another object", Code::AgentBehind, |world| {
        report(world)["views"][0]["uid"] = json!("another");
    }),
    ("a wider view", Code::AgentBehind, |world| report(world)["views"][0]["view"] = json!("Full")),
    ("not read anew", Code::NotRelisted, |world| report(world)["views"][0]["received"] = json!(false)),
    ("not in the kernel", Code::NotProgrammed, |world| {
        report(world)["views"][0]["programmed"] = json!(false);
    }),
    ("an ingress node that hides", Code::AgentBehind, |world| {
        world.the("Node", "work-1")["metadata"]["labels"]["node-role.kubernetes.io/ingress"] = json!("");
    }),
    ("an agent says that something is wrong", Code::AgentNotReady, |world| {
        let said = condition(world.the("IngressSourceNode", "work-1"), "Ready");
        said["status"] = json!("False");
        said["message"] = json!("the cache is stale");
    }),
    ("two kube-proxies on a node", Code::TwoProxies, |world| {
        world.pod_on("edge-1", "kube-proxy")["spec"]["nodeName"] = json!("work-1");
    }),
];

const KUBE_PROXY: &[Fault] = &[
    ("kube-proxy is no DaemonSet", Code::NoKubeProxy, |world| world.remove("DaemonSet", "kube-proxy")),
    ("another kube-proxy is named", Code::NoKubeProxy, |world| {
        object(world)["spec"]["kubeProxy"] = json!({"namespace": "kube-system", "daemonSet": "absent"});
    }),
    ("several kube-proxies", Code::KubeProxyAmbiguous, |world| {
        let set = world.the("DaemonSet", "kube-proxy");
        set["metadata"]["name"] = json!("proxy-a");
        let mut second = set.clone();
        second["metadata"]["name"] = json!("proxy-b");
        world.add(second);
    }),
    ("everybody is a local pod", Code::LocalRangeTooWide, |world| {
        kube_proxy_setting(world, "10.244.0.0/16", "0.0.0.0/0");
    }),
    ("nodes are local pods", Code::LocalRangeTooWide, |world| {
        kube_proxy_setting(world, "10.244.0.0/16", "10.0.0.0/8");
    }),
    ("no pod is local", Code::NoLocalDetection, |world| kube_proxy_setting(world, "10.244.0.0/16", "''")),
    ("pods of another range", Code::LocalRangeTooNarrow, |world| {
        kube_proxy_setting(world, "10.244.0.0/16", "10.245.0.0/16");
    }),
    ("masqueradeAll", Code::MasqueradeAll, |world| {
        kube_proxy_setting(world, "mode: nftables", "mode: nftables\nnftables: {masqueradeAll: true}");
    }),
    ("masqueradeAll by a flag", Code::MasqueradeAll, |world| {
        let container =
            &mut world.the("DaemonSet", "kube-proxy")["spec"]["template"]["spec"]["containers"][0];
        container["command"] = json!([
            "kube-proxy",
            "--proxy-mode=nftables",
            "--cluster-cidr",
            "10.244.0.0/16",
            "--masquerade-all"
        ]);
    }),
    ("mode ipvs", Code::ModeIpvs, |world| kube_proxy_setting(world, "mode: nftables", "mode: ipvs")),
];

const WEBHOOKS: &[Fault] = &[
    ("no webhook", Code::WebhookUnavailable, |world| {
        remove(&mut world.the("Deployment", "sourcepreserve-webhook")["status"], "availableReplicas");
    }),
    ("an empty bundle", Code::BundleEmpty, |world| {
        remove(&mut pod_webhooks(world)[0]["clientConfig"], "caBundle");
    }),
    ("nothing was published", Code::BundleEmpty, |world| {
        let published = world.the("ValidatingWebhookConfiguration", "sourcepreserve.io");
        remove(&mut published["webhooks"][0]["clientConfig"], "caBundle");
    }),
    ("a bundle of something else", Code::BundleNotValid, |world| {
        pod_webhooks(world)[0]["clientConfig"]["caBundle"] = json!("bm90aGluZw==");
    }),
    ("certificates have ended", Code::BundleNotValid, |world| world.later = YEAR),
    ("certificates have not begun", Code::BundleNotValid, |world| world.later = -YEAR),
    ("certificates end soon", Code::BundleEndsSoon, |world| world.later = YEAR - 24 - 12),
    ("bundles differ", Code::BundlesDiffer, |world| {
        // The same twice is another bundle, and as good.
        let bundle = &mut pod_webhooks(world)[0]["clientConfig"]["caBundle"];
        let twice = format!("{0}{0}", bundle.as_str().unwrap());
        assert!(!twice.contains('='), "in base64 only what ends on three bytes can be put together");
        *bundle = json!(twice);
    }),
    ("no configuration for pods", Code::PodWebhookMissing, |world| {
        world.remove("MutatingWebhookConfiguration", "0-sourcepreserve.io");
    }),
    ("Istio's injector comes first", Code::PodWebhookLate, |world| {
        world.the("MutatingWebhookConfiguration", "istio-sidecar-injector")["metadata"]["name"] =
            json!("0-istio");
    }),
];

const LEFT_OUT: &[Fault] = &[
    ("no settings of kube-proxy", Code::NotLookedAt, |world| world.remove("ConfigMap", "kube-proxy")),
    ("no Deployments in the dump", Code::NotLookedAt, |world| world.remove("Deployment", "")),
    ("a cluster that keeps all addresses but one", Code::AddressLost, |_| {}),
];

/// Faults of a cluster with an object of mode Filter.
pub(crate) fn of_filter() -> Vec<Fault> {
    [OBJECTS, SERVICES, NODES, KUBE_PROXY, WEBHOOKS, MESH].concat()
}

/// Codes that `check` reports, and doctor never does. The tests of `check` have faults for them.
const CHECKED: [Code; 6] = [
    Code::ClusterTooOld,
    Code::KernelTooOld,
    Code::NodeUnfit,
    Code::AgentsRejected,
    Code::ProxyNotRecognized,
    Code::NoModeFits,
];

/// Codes that tests of `asked` cover: to be the first finding, they need several faults.
const ASKED: [Code; 4] = [Code::PolicyClosed, Code::NotPreserved, Code::SidecarHides, Code::PolicyMisled];

#[test]
fn of_a_healthy_cluster_only_the_service_beside_it_is_told() {
    let found = World::of("healthy").examine(None);
    let told = "note ISP315 Cluster: 1 of 2 exposed Services loses the client's source IP: plain/echo\n";
    assert_eq!(lines(&found), told);
}

#[test]
fn each_fault_is_named_first() {
    let (healthy, beside) = (World::of("healthy"), beside::world());
    let mut codes = BTreeSet::new();
    let mut wrong = Vec::new();
    let faults = of_filter().into_iter().chain(LEFT_OUT.iter().copied()).map(|fault| (&healthy, fault));
    for (sound, (what, code, break_it)) in faults.chain(beside::FAULTS.iter().map(|fault| (&beside, *fault)))
    {
        let mut world = sound.clone();
        break_it(&mut world);
        let found = world.examine(None);
        if found.first().map(|first| first.code) != Some(code) {
            wrong.push(format!("{what}, {}:\n{}", code.as_str(), lines(&found)));
        }
        codes.insert(code.as_str());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    codes.extend(ASKED.map(Code::as_str));
    codes.extend(CHECKED.map(Code::as_str));
    // Read from nodes; `pod_rules` tests it.
    codes.insert(Code::RulesDiffer.as_str());
    let all: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(codes, all, "every code has a fault");
}

#[test]
fn a_deletion_that_does_not_end_is_a_warning() {
    let mut world = World::of("healthy");
    let soon = world.read().1.to_string();
    for (since, severity) in [(soon.as_str(), Severity::Note), ("2026-01-01T00:00:00Z", Severity::Warning)] {
        object(&mut world)["metadata"]["deletionTimestamp"] = json!(since);
        let found = world.examine(None);
        assert_eq!((found[0].code, found[0].severity), (Code::BeingDeleted, severity), "{}", lines(&found));
    }
}

#[test]
fn what_an_object_leaves_behind_that_was_torn_out_is_told() {
    let mut world = World::of("healthy");
    world.remove("IngressSourcePreserve", "shop");
    let found = world.examine(None);
    assert_eq!(
        lines(&found),
        "warning ISP209 Cluster: 2 nodes with label sourcepreserve.io/agent-pool, but no IngressSourcePreserve exists: work-1, work-2\n\
         warning ISP209 Service istio-system/istio-ingressgateway: IngressSourcePreserve shop changed it and no longer exists; its \
         externalTrafficPolicy is Local\n\
         note ISP315 Cluster: 1 of 2 exposed Services loses the client's source IP: plain/echo\n"
    );
    // One that was deleted with deletionPolicy Retain is as it was meant.
    let record = &mut service(&mut world)["metadata"]["annotations"]["sourcepreserve.io/original"];
    let mut kept: Value = serde_json::from_str(record.as_str().unwrap()).unwrap();
    kept["retained"] = json!(true);
    *record = json!(kept.to_string());
    assert_eq!(world.examine(None).iter().filter(|finding| finding.code == Code::LeftBehind).count(), 1);
}
