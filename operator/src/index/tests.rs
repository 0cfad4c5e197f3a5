use isp_plan::cluster::Identity;
use isp_plan::own::Found;
use kube::runtime::watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
use serde_json::{Value, json};

use super::*;

fn index() -> Index {
    Index::new(&Readiness::default())
}

fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn node(name: &str, version: u32) -> Node {
    object(json!({"metadata": {"name": name, "uid": name, "resourceVersion": version.to_string()}}))
}

fn labelled(name: &str, version: u32, pool: &str) -> Node {
    object(json!({"metadata": {
        "name": name, "uid": name, "resourceVersion": version.to_string(), "labels": {"pool": pool},
    }}))
}

fn nodes(event: Event<Node>) -> Update {
    Update::Nodes(Box::new(event))
}

fn names(index: &Index) -> Vec<&str> {
    index.cluster().nodes.keys().map(String::as_str).collect()
}

fn read_whole(index: &mut Index, listed: Vec<Node>) {
    index.take(nodes(Init));
    for node in listed {
        index.take(nodes(InitApply(node)));
    }
    index.take(nodes(InitDone));
}

fn daemon_set(name: &str, version: u32) -> DaemonSet {
    object(json!({
        "metadata": {
            "name": name, "namespace": "kube-system", "uid": name, "resourceVersion": version.to_string(),
            "generation": 1,
        },
        "spec": {
            "selector": {"matchLabels": {"k8s-app": name}},
            "template": {
                "metadata": {"labels": {"k8s-app": name}},
                "spec": {
                    "containers": [
                        {"name": "kube-proxy", "command": ["/usr/local/bin/kube-proxy"],
                         "volumeMounts": [{"name": "config", "mountPath": "/var/lib/kube-proxy"}, {"name": "lib", "mountPath": "/lib"}]},
                        {"name": "other", "volumeMounts": [{"name": "others", "mountPath": "/x"}]},
                    ],
                    "volumes": [
                        {"name": "config", "configMap": {"name": "kube-proxy"}},
                        {"name": "lib", "hostPath": {"path": "/lib"}},
                        {"name": "others", "configMap": {"name": "others"}},
                    ],
                },
            },
        },
    }))
}

fn written(resource: Resource, object: impl serde::Serialize) -> Answer {
    let mut object = json!(object);
    let api = resource.api();
    object["apiVersion"] = json!(api.api_version);
    object["kind"] = json!(api.kind);
    Answer::Written(resource, Box::new(serde_json::from_value(object).unwrap()))
}

fn pod(name: &str, set: &str) -> Pod {
    object(json!({
        "metadata": {
            "name": name, "namespace": "kube-system",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": set, "uid": set, "controller": true}],
        },
        "spec": {"nodeName": "work-1", "containers": []},
    }))
}

fn slice(name: &str, service: &str, node: &str) -> EndpointSlice {
    object(json!({
        "metadata": {"name": name, "namespace": "shop", "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "nodeName": node}],
    }))
}

#[test]
fn a_kind_is_replaced_as_a_whole_when_it_was_read_anew_and_not_before() {
    let mut index = index();
    index.take(nodes(Init));
    index.take(nodes(InitApply(node("a", 1))));
    assert!(names(&index).is_empty());
    assert_eq!(index.take(nodes(InitDone)), News::Facts);
    index.take(nodes(Apply(node("b", 2))));
    assert_eq!(names(&index), ["a", "b"]);
    index.take(nodes(Init));
    index.take(nodes(InitApply(node("c", 3))));
    assert_eq!(names(&index), ["a", "b"], "what is known stays known meanwhile");
    // The list broke off and restarted.
    index.take(nodes(Init));
    index.take(nodes(InitApply(node("d", 3))));
    index.take(nodes(InitDone));
    assert_eq!(names(&index), ["d"]);
    assert_eq!(index.take(nodes(Delete(node("d", 4)))), News::Facts);
    assert!(names(&index).is_empty());
}

#[test]
fn it_is_whole_when_every_kind_was_read_and_so_says_the_readiness() {
    let readiness = Readiness::default();
    let mut index = Index::new(&readiness);
    let done = [
        (Update::Objects(Box::new(InitDone)), "ingresssourcepreserves"),
        (Update::Services(Box::new(InitDone)), "services"),
        (Update::Slices(Box::new(InitDone)), "endpointslices"),
        (Update::Nodes(Box::new(InitDone)), "nodes"),
        (Update::Reports(Box::new(InitDone)), "ingresssourcenodes"),
        (Update::DaemonSets(Box::new(InitDone)), "daemonsets"),
        (Update::AgentPods(Box::new(InitDone)), "pods"),
        (admission(AdmissionUpdate::Published(InitDone)), "validatingwebhookconfigurations"),
        (own(OwnKind::PodWebhook, "0-sourcepreserve.io"), "mutatingwebhookconfigurations"),
        (own(OwnKind::Account, "proxy-agent"), "serviceaccounts"),
        (own(OwnKind::Role, "sourcepreserve-proxy-agent"), "clusterroles"),
        (own(OwnKind::AgentPolicy, "sourcepreserve-agent-own-node"), "validatingadmissionpolicies"),
        (
            own(OwnKind::AgentPolicyBinding, "sourcepreserve-agent-own-node"),
            "validatingadmissionpolicybindings",
        ),
    ];
    for (update, name) in done {
        assert!(!index.is_whole(), "{name}");
        assert!(readiness.pending().contains(&name), "{name}");
        index.take(update);
        assert!(!readiness.pending().contains(&name), "{name}");
    }
    for name in ["sourcepreserve-proxy-agent", "sourcepreserve-node-proxier"] {
        assert!(index.missing().contains(&"clusterrolebindings".to_owned()), "{name}");
        index.take(own(OwnKind::RoleBinding, name));
    }
    assert!(!index.missing().contains(&"clusterrolebindings".to_owned()));
    assert!(!index.is_whole(), "there may be policies");
    index.take(admission(AdmissionUpdate::PoliciesServed(false)));
    assert!(index.is_whole());
    index.take(admission(AdmissionUpdate::PoliciesServed(true)));
    assert_eq!(index.missing(), ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"]);
    index.take(Update::Own(OwnKind::PodPolicy, None, Box::new(InitDone)));
    index.take(Update::Own(OwnKind::PodPolicyBinding, None, Box::new(InitDone)));
    assert!(index.is_whole());
}

fn own(kind: OwnKind, name: &'static str) -> Update {
    Update::Own(kind, Some(name), Box::new(InitDone))
}

/// Empty lists of all kinds that the operator fully owns and finds by name.
fn nothing_of_ours() -> impl Iterator<Item = Update> {
    OwnKind::ALL.into_iter().flat_map(|kind| match kind.found() {
        Found::ByName(names) => names.iter().map(|name| own(kind, name)).collect(),
        Found::ByPrefix(_) => Vec::new(),
    })
}

#[test]
fn one_name_that_is_read_anew_leaves_the_other_of_its_kind_alone() {
    let mut index = index();
    let binding = |name: &str| {
        let object = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
        });
        serde_json::from_value(object).unwrap()
    };
    let names = ["sourcepreserve-proxy-agent", "sourcepreserve-node-proxier"];
    for name in names {
        let told = |event| Update::Own(OwnKind::RoleBinding, Some(name), Box::new(event));
        index.take(told(InitApply(binding(name))));
        index.take(told(InitDone));
    }
    assert_eq!(index.cluster().own(OwnKind::RoleBinding).count(), 2);
    index.take(own(OwnKind::RoleBinding, names[0]));
    let left: Vec<_> = index.cluster().own(OwnKind::RoleBinding).map(|(key, _)| key.name.as_str()).collect();
    assert_eq!(left, ["sourcepreserve-node-proxier"]);
}

fn admission(update: AdmissionUpdate) -> Update {
    Update::Admission(Box::new(update))
}

#[test]
fn namespaces_and_pods_are_known_only_while_an_object_asks_for_sidecars() {
    let mut index = index();
    let namespace = |name: &str| {
        let object = json!({"metadata": {"name": name, "resourceVersion": "1", "labels": {"team": "a"}}});
        serde_json::from_value(object).unwrap()
    };
    let told = |event| admission(AdmissionUpdate::Namespaces(event));
    assert_eq!(index.take(told(Apply(namespace("early")))), News::Nothing);
    index.follow_sidecars();
    assert!(index.missing().contains(&"namespaces".to_owned()));
    assert!(index.missing().contains(&"pods with a sidecar".to_owned()));
    index.take(told(InitApply(namespace("a"))));
    assert_eq!(index.take(told(InitDone)), News::Facts);
    assert_eq!(index.take(told(Apply(namespace("a")))), News::Nothing);
    assert_eq!(index.cluster().namespaces["a"]["team"], "a");
    assert!(!index.missing().contains(&"namespaces".to_owned()));
    index.forget_sidecars();
    assert!(index.cluster().namespaces.is_empty());
    assert!(!index.missing().contains(&"pods with a sidecar".to_owned()));
}

#[test]
fn a_kube_proxy_has_to_be_read_with_its_pods_and_its_configuration() {
    let mut index = index();
    for update in [
        Update::Objects(Box::new(InitDone)),
        Update::Services(Box::new(InitDone)),
        Update::Slices(Box::new(InitDone)),
        Update::Nodes(Box::new(InitDone)),
        Update::Reports(Box::new(InitDone)),
        Update::DaemonSets(Box::new(InitApply(daemon_set("kube-proxy", 1)))),
        Update::DaemonSets(Box::new(InitDone)),
        Update::AgentPods(Box::new(InitDone)),
        admission(AdmissionUpdate::Published(InitDone)),
        admission(AdmissionUpdate::PoliciesServed(false)),
    ]
    .into_iter()
    .chain(nothing_of_ours())
    {
        index.take(update);
    }
    let set = Key::new("kube-system", "kube-proxy");
    let sources = index.sources();
    assert_eq!(sources[&set].selector, "k8s-app=kube-proxy");
    assert_eq!(sources[&set].maps, ["kube-proxy".to_owned()].into(), "only what its container mounts");

    index.follow(set.clone());
    assert_eq!(index.missing(), ["pods and configuration of kube-system/kube-proxy"]);
    index.take(Update::KubeProxyPods(set.clone(), Box::new(InitApply(pod("p", "kube-proxy")))));
    index.take(Update::KubeProxyPods(set.clone(), Box::new(InitApply(pod("q", "somebody-else")))));
    index.take(Update::KubeProxyPods(set.clone(), Box::new(InitDone)));
    assert!(!index.is_whole());
    let map = Key::new("kube-system", "kube-proxy");
    let found: Configurations = [(map.clone(), [("config.conf".to_owned(), "/x".to_owned())].into())].into();
    let update = || Update::Configurations(set.clone(), found.clone());
    assert_eq!(index.take(update()), News::Facts);
    assert_eq!(index.take(update()), News::Nothing);
    assert!(index.is_whole());
    assert_eq!(index.cluster().pods.keys().collect::<Vec<_>>(), [&Key::new("kube-system", "p")]);
    assert!(index.cluster().configurations.contains_key(&map));

    // The agents' pods come from another watch, which replaces only its own pods.
    index.take(Update::AgentPods(Box::new(InitApply(pod("agent", "proxy-agent-default")))));
    index.take(Update::AgentPods(Box::new(InitDone)));
    assert_eq!(index.cluster().pods.len(), 2);
    index.take(Update::KubeProxyPods(set.clone(), Box::new(InitDone)));
    assert_eq!(index.cluster().pods.keys().collect::<Vec<_>>(), [&Key::new("kube-system", "agent")]);

    index.take(Update::KubeProxyPods(set.clone(), Box::new(Apply(pod("p", "kube-proxy")))));
    index.forget(&set);
    assert_eq!(index.cluster().pods.len(), 1);
    assert!(index.cluster().configurations.is_empty());
    assert!(index.is_whole());
}

#[test]
fn a_daemon_set_that_no_longer_runs_kube_proxy_is_forgotten() {
    let mut index = index();
    index.take(Update::DaemonSets(Box::new(Apply(daemon_set("kube-proxy", 1)))));
    assert_eq!(index.cluster().daemon_sets.len(), 1);
    let mut other = daemon_set("kube-proxy", 2);
    other.spec.template.spec.as_mut().unwrap().containers.remove(0);
    assert_eq!(index.take(Update::DaemonSets(Box::new(Apply(other)))), News::Facts);
    assert!(index.cluster().daemon_sets.is_empty());
}

#[test]
fn what_says_nothing_new_is_no_reason_to_plan() {
    let mut index = index();
    read_whole(&mut index, vec![node("a", 1)]);
    assert_eq!(index.take(nodes(Apply(node("a", 2)))), News::Version, "a kubelet's heartbeat");
    assert_eq!(index.version(&Target { resource: Resource::Node, key: Key::new("", "a") }), Some("2"));
    assert_eq!(index.take(nodes(Apply(labelled("a", 3, "x")))), News::Facts);
    assert_eq!(index.take(nodes(Apply(labelled("a", 3, "x")))), News::Nothing, "the same event again");
}

#[test]
fn an_answer_is_known_before_the_watch_tells_and_older_events_do_not_undo_it() {
    let mut index = index();
    read_whole(&mut index, vec![node("a", 1)]);
    assert_eq!(index.take_answer(written(Resource::Node, labelled("a", 5, "x"))), News::Facts);
    assert_eq!(index.take(nodes(Apply(node("a", 4)))), News::Nothing);
    assert_eq!(index.cluster().nodes["a"].labels["pool"], "x");
    assert_eq!(index.take(nodes(Apply(labelled("a", 5, "x")))), News::Nothing, "the echo of our own write");
    assert_eq!(index.take(nodes(Apply(labelled("a", 6, "y")))), News::Facts);
    assert_eq!(index.take_answer(written(Resource::Node, labelled("a", 5, "x"))), News::Nothing);
    assert_eq!(index.cluster().nodes["a"].labels["pool"], "y", "an answer that comes late");
}

#[test]
fn an_answer_about_something_that_is_gone_since_does_not_bring_it_back() {
    let mut index = index();
    read_whole(&mut index, vec![node("a", 1)]);
    index.take(nodes(Delete(node("a", 9))));
    assert_eq!(index.take_answer(written(Resource::Node, node("a", 5))), News::Nothing);
    // Right after a list, the age of a response about an unknown object cannot be determined.
    read_whole(&mut index, vec![node("b", 2)]);
    assert_eq!(index.take_answer(written(Resource::Node, node("a", 5))), News::Nothing);
    assert_eq!(names(&index), ["b"]);
}

#[test]
fn what_was_just_created_is_known_and_an_old_deletion_of_its_namesake_is_not_about_it() {
    let mut index = index();
    index.take(Update::DaemonSets(Box::new(InitApply(daemon_set("one", 3)))));
    index.take(Update::DaemonSets(Box::new(InitDone)));
    index.take(Update::DaemonSets(Box::new(Apply(daemon_set("one", 4)))));
    assert_eq!(index.take_answer(written(Resource::DaemonSet, daemon_set("two", 8))), News::Facts);
    assert_eq!(index.take(Update::DaemonSets(Box::new(Delete(daemon_set("two", 6))))), News::Nothing);
    assert_eq!(index.cluster().daemon_sets.len(), 2);
    let gone = |uid: &str| Answer::Gone {
        target: Target { resource: Resource::DaemonSet, key: Key::new("kube-system", "two") },
        uid: uid.to_owned(),
    };
    assert_eq!(index.take_answer(gone("another")), News::Nothing);
    assert_eq!(index.take_answer(gone("two")), News::Facts);
    assert_eq!(index.cluster().daemon_sets.len(), 1);
}

#[test]
fn an_object_whose_last_finalizer_was_taken_is_gone() {
    let preserve = |version: u32, finalizers: Value| -> IngressSourcePreserve {
        object(json!({
            "apiVersion": "sourcepreserve.io/v1alpha1",
            "kind": "IngressSourcePreserve",
            "metadata": {
                "name": "a", "uid": "a", "resourceVersion": version.to_string(), "finalizers": finalizers,
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "managedFields": [{"manager": "somebody"}],
            },
            "spec": {"ingressNodes": {"selector": {}}, "services": []},
        }))
    };
    let mut index = index();
    index.take(Update::Objects(Box::new(InitApply(preserve(1, json!(["x"]))))));
    index.take(Update::Objects(Box::new(InitDone)));
    assert_eq!(index.cluster().objects["a"].metadata.managed_fields, None, "nobody looks at it");
    assert_eq!(index.take_answer(written(Resource::Preserve, preserve(2, json!(["x"])))), News::Version);
    assert_eq!(index.take_answer(written(Resource::Preserve, preserve(3, json!([])))), News::Facts);
    assert!(index.cluster().objects.is_empty());
}

#[test]
fn endpoints_are_counted_by_service_and_a_slice_can_change_its_service() {
    let slices = |event| Update::Slices(Box::new(event));
    let mut index = index();
    index.take(slices(InitApply(slice("web-1", "web", "edge-1"))));
    index.take(slices(InitApply(slice("web-2", "web", "edge-2"))));
    index.take(slices(InitDone));
    let ready = |index: &Index, service: &str| {
        let ready = index.cluster().ready_endpoints(&Key::new("shop", service));
        ready.into_iter().map(|(node, count)| format!("{node}:{count}")).collect::<Vec<_>>()
    };
    assert_eq!(ready(&index, "web"), ["edge-1:1", "edge-2:1"]);
    assert_eq!(index.take(slices(Apply(slice("web-1", "web", "edge-1")))), News::Nothing);
    assert_eq!(index.take(slices(Apply(slice("web-1", "other", "edge-1")))), News::Facts);
    assert_eq!(ready(&index, "web"), ["edge-2:1"]);
    assert_eq!(ready(&index, "other"), ["edge-1:1"]);
    assert_eq!(index.take(slices(Delete(slice("web-1", "other", "edge-1")))), News::Facts);
    assert_eq!(index.take(slices(Delete(slice("web-1", "other", "edge-1")))), News::Nothing);
    assert!(!index.cluster().endpoints.contains_key(&Key::new("shop", "other")));
    assert_eq!(index.take(slices(Apply(slice("web-2", "web", "edge-1")))), News::Facts);
    assert_eq!(ready(&index, "web"), ["edge-1:1"]);
}

#[test]
fn nodes_that_report_the_same_share_it() {
    let report = |name: &str| -> IngressSourceNode {
        object(json!({
            "apiVersion": "sourcepreserve.io/v1alpha1",
            "kind": "IngressSourceNode",
            "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
            "spec": {},
            "status": {
                "pool": "default", "mode": "Filter", "active": true,
                "views": [{"object": "a", "uid": "u", "generation": 2, "view": "Hidden", "received": true}],
            },
        }))
    };
    let mut index = index();
    for name in ["a", "b"] {
        index.take(Update::Reports(Box::new(Apply(report(name)))));
    }
    let reports = &index.cluster().reports;
    assert_eq!(reports["a"].acknowledged["u"].generation, 2);
    assert!(Arc::ptr_eq(&reports["a"].acknowledged, &reports["b"].acknowledged));
    assert_eq!(reports["a"].identity, Identity { uid: "a".to_owned(), version: "1".to_owned() });
}

#[test]
fn a_policy_with_a_name_of_ours_is_known_whatever_its_labels_and_others_are_not() {
    let mut index = index();
    let policy =
        |name: &str| object(json!({"metadata": {"name": name, "uid": name, "resourceVersion": "1"}}));
    let event = |event| Update::Own(OwnKind::PodPolicy, None, Box::new(event));
    index.take(event(Init));
    index.take(event(InitApply(policy("sourcepreserve.web.0"))));
    index.take(event(InitApply(policy("somebody-elses"))));
    index.take(event(InitDone));
    index.take(event(Apply(policy("another"))));
    let known: Vec<_> =
        index.cluster().own(OwnKind::PodPolicy).map(|(key, own)| (&*key.name, own.ours)).collect();
    assert_eq!(known, [("sourcepreserve.web.0", false)]);
}
