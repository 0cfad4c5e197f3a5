#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use isp_api::preserve::TrafficPolicy;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::ownership::{label_declared, ours, policy_declared, undeclared_owner};

fn read<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

fn managed(manager: &str, operation: &str, fields: &Value) -> Value {
    json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
}

/// A Service as created by `kubectl apply`: the policy is a default and not in the annotation.
fn applied(policy: &str, last_applied: &Value, more: &[Value]) -> Service {
    let update = managed(
        "kubectl-client-side-apply",
        "Update",
        &json!({"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:externalTrafficPolicy": {}, "f:ports": {}}}),
    );
    let managed: Vec<Value> = std::iter::once(update).chain(more.iter().cloned()).collect();
    service(&read(json!({
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7", "labels": {"app": "web"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": last_applied.to_string()},
            "managedFields": managed,
        },
        "spec": {
            "type": "LoadBalancer", "externalTrafficPolicy": policy, "externalIPs": ["192.0.2.1"], "healthCheckNodePort": 0,
        },
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.2"}, {"hostname": "lb.example"}]}},
    })))
}

#[test]
fn a_default_that_an_update_happens_to_own_is_not_declared() {
    let service = applied("Cluster", &json!({"spec": {"type": "LoadBalancer"}}), &[]);
    assert_eq!(policy_declared(&service), None);
    assert_eq!(undeclared_owner(&service.owners).as_deref(), Some("kubectl-client-side-apply"));
    assert_eq!(service.policy, Some(TrafficPolicy::Cluster));
    assert_eq!(service.addresses, ["192.0.2.2", "lb.example", "192.0.2.1"]);
    assert!(service.exposed && service.balanced && service.health_check_node_port.is_none());
}

#[test]
fn what_kubectl_apply_was_given_is_declared() {
    let given = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"externalTrafficPolicy": "Cluster"}});
    let service = applied("Cluster", &given, &[]);
    let declared = policy_declared(&service).unwrap();
    assert_eq!((declared.manager.as_str(), declared.value.as_str()), ("kubectl apply", "Cluster"));
    assert_eq!(label_declared(&service, "app", "web"), None, "the same value is shared");
    assert_eq!(label_declared(&service, "app", "other").unwrap().value, "web");
    let local = json!({"spec": {"externalTrafficPolicy": "Local"}});
    assert_eq!(policy_declared(&applied("Local", &local, &[])), None);
}

#[test]
fn what_a_server_side_apply_owns_is_declared_unless_it_is_what_is_wanted() {
    let argo = managed("argocd", "Apply", &json!({"f:spec": {"f:externalTrafficPolicy": {}}}));
    assert_eq!(
        policy_declared(&applied("Cluster", &json!({}), std::slice::from_ref(&argo))).unwrap().manager,
        "argocd"
    );
    assert_eq!(policy_declared(&applied("Local", &json!({}), &[argo])), None);
    let us = managed("sourcepreserve-operator", "Apply", &json!({"f:spec": {"f:externalTrafficPolicy": {}}}));
    let service = applied("Local", &json!({}), &[us]);
    assert!(ours(&service.owners) && policy_declared(&service).is_none());
}

#[test]
fn only_ready_endpoints_with_a_node_count_and_unknown_is_ready() {
    let slice = read(json!({
        "metadata": {"name": "web-1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": [
            {"addresses": ["10.0.0.1"], "nodeName": "a", "conditions": {"ready": true}},
            {"addresses": ["10.0.0.2"], "nodeName": "a"},
            {"addresses": ["10.0.0.3"], "nodeName": "b", "conditions": {"ready": false}},
            {"addresses": ["10.0.0.4"], "conditions": {"ready": true}},
        ],
    }));
    let (key, ready) = endpoint_slice(&slice).unwrap();
    assert_eq!((key, ready), (Key::new("shop", "web"), [("a".to_owned(), 2)].into()));
}

#[test]
fn a_pool_label_that_somebody_else_put_there_is_nobodys_pool() {
    let node_with = |manager: &str| {
        let fields = json!({"f:metadata": {
            "f:labels": {"f:sourcepreserve.io/agent-pool": {}},
            "f:annotations": {"f:sourcepreserve.io/handover": {}},
        }});
        node(&read(json!({
            "metadata": {
                "name": "a",
                "labels": {"sourcepreserve.io/agent-pool": "default"},
                "annotations": {"sourcepreserve.io/handover": "{\"pool\":\"default\",\"started\":\"2026-01-01T00:00:00Z\"}"},
                "managedFields": [managed(manager, "Apply", &fields)],
            },
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        })))
    };
    let own = node_with("sourcepreserve-operator");
    assert_eq!(own.pool.as_deref(), Some("default"));
    assert_eq!(own.handover.unwrap().pool, "default");
    assert!(own.ready);
    let other = node_with("kubectl-label");
    assert_eq!((other.pool, other.handover), (None, None));
}

#[test]
fn an_unreadable_annotation_counts_as_none() {
    let object =
        read(json!({"metadata": {"name": "a", "annotations": {"sourcepreserve.io/handover": "yesterday"}}}));
    assert_eq!(node(&object).handover, None);
}

#[test]
fn nodes_that_report_the_same_share_it() {
    let object = |name: &str, programmed: Value| {
        read(json!({
            "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourceNode", "metadata": {"name": name}, "spec": {},
            "status": {"pool": "default", "mode": "Filter", "active": true, "views": [{
                "object": "web", "uid": "u", "generation": 3, "view": "ClusterOnly", "received": true, "programmed": programmed,
            }]},
        }))
    };
    let mut known = Vec::new();
    let (one, two) =
        (report(&object("a", json!(true)), &mut known), report(&object("b", json!(null)), &mut known));
    let view = isp_api::view::View::ClusterOnly;
    let said = Acknowledged { generation: 3, view, services: [].into() };
    assert_eq!(one.acknowledged.get("u"), Some(&said));
    assert!(Arc::ptr_eq(&one.acknowledged, &two.acknowledged));
    let behind = report(&object("c", json!(false)), &mut known);
    assert!(behind.acknowledged.is_empty(), "the kernel has not followed");
    assert_eq!(known.len(), 2);
}

#[test]
fn a_pods_trouble_is_what_keeps_a_container_from_running() {
    let object = |state: Value| {
        read(json!({
            "metadata": {"name": "a", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "proxy-agent-default", "uid": "u", "controller": true},
            ]},
            "spec": {"nodeName": "n", "containers": []},
            "status": {"initContainerStatuses": [
                {"name": "proxy-agent", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state},
            ]},
        }))
    };
    let waiting = json!({"waiting": {"reason": "ErrImageNeverPull", "message": "not there"}});
    let found = pod(&object(waiting)).unwrap();
    assert_eq!(found.trouble.as_deref(), Some("container proxy-agent: ErrImageNeverPull: not there"));
    assert_eq!(pod(&object(json!({"waiting": {"reason": "PodInitializing"}}))).unwrap().trouble, None);
    assert_eq!(pod(&object(json!({"running": {}}))).unwrap().trouble, None);
}

#[test]
fn a_container_that_ends_again_and_again_is_reported_with_its_last_words() {
    let object = |state: Value, last: Value| {
        read(json!({
            "metadata": {"name": "a", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "proxy-agent-default", "uid": "u", "controller": true},
            ]},
            "spec": {"nodeName": "n", "containers": []},
            "status": {"initContainerStatuses": [
                {"name": "proxy-agent", "image": "", "imageID": "", "ready": false, "restartCount": 2, "state": state, "lastState": last},
            ]},
        }))
    };
    let trouble = |state, last| pod(&object(state, last)).unwrap().trouble.unwrap();
    let ended = json!({"terminated": {"exitCode": 1, "message": "starting\ncannot read it\n\n"}});
    let back_off = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}});
    assert_eq!(
        trouble(back_off.clone(), ended.clone()),
        "container proxy-agent: CrashLoopBackOff: cannot read it"
    );
    assert_eq!(trouble(back_off, json!({})), "container proxy-agent: CrashLoopBackOff: back-off 10s");
    assert_eq!(trouble(ended.clone(), json!({})), "container proxy-agent: ended with 1: cannot read it");
    // Started again, but not ready: it may end once more for the same reason.
    for again in [json!({"running": {}}), json!({"waiting": {"reason": "ContainerCreating"}}), json!({})] {
        assert_eq!(trouble(again, ended.clone()), "container proxy-agent: ended with 1: cannot read it");
    }
    let finished = json!({"terminated": {"exitCode": 0}});
    for sound in [json!({"running": {}}), finished.clone(), json!({"waiting": {"reason": "PodInitializing"}})]
    {
        assert_eq!(pod(&object(sound, finished.clone())).unwrap().trouble, None);
    }
    // The previous termination message does not explain an image pull error.
    let image = json!({"waiting": {"reason": "ErrImagePull", "message": "no such image"}});
    assert_eq!(trouble(image, ended), "container proxy-agent: ErrImagePull: no such image");
    let long = json!({"terminated": {"exitCode": 1, "message": "x".repeat(5000)}});
    assert!(trouble(long, json!({})).len() < 700);
}

#[test]
fn a_configuration_says_where_the_kubeconfig_is() {
    let map = read(json!({"data": {
        "config.conf": "kind: KubeProxyConfiguration\nclientConnection:\n  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf\n",
        "kubeconfig.conf": "kind: Config\n",
        "broken": "{",
    }}));
    let found: Vec<_> = configuration(&map).into_iter().collect();
    assert_eq!(found, [("config.conf".to_owned(), "/var/lib/kube-proxy/kubeconfig.conf".to_owned())]);
}

#[test]
fn a_text_of_somebody_else_is_repeated_only_as_far_as_it_can_be_written_again() {
    let fields = json!({"f:metadata": {"f:annotations": {"f:sourcepreserve.io/agent-failed": {}}}});
    let failure = json!({"pool": "default", "revision": "1", "reason": "é".repeat(200_000)}).to_string();
    let object = read(json!({"metadata": {
        "name": "a",
        "annotations": {"sourcepreserve.io/agent-failed": failure},
        "managedFields": [managed("sourcepreserve-operator", "Apply", &fields)],
    }}));
    assert_eq!(node(&object).failure.unwrap().reason.chars().count(), 1025);
}

#[test]
fn only_what_the_operator_applied_is_its_own() {
    let labels = |key: &str| json!({"f:metadata": {"f:labels": {key: {}}}});
    let of = |managed: Value| {
        let metadata = json!({"name": "0-sourcepreserve.io", "uid": "u", "managedFields": [managed]});
        written(&read(json!({"metadata": metadata, "webhooks": ["webhook"]}))).ours
    };
    let label = "f:app.kubernetes.io/name";
    assert!(of(managed("sourcepreserve-operator", "Apply", &labels(label))));
    assert!(!of(managed("sourcepreserve-operator", "Update", &labels(label))));
    assert!(!of(managed("sourcepreserve-operator", "Apply", &labels("f:app"))));
    assert!(!of(managed("helm", "Apply", &labels(label))));
}
