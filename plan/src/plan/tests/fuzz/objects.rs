//! Kubernetes objects with hostile values in every field that is read, as the API server would
//! deliver them.

use serde_json::{Map, Value, json};

use super::dice::Dice;

pub(super) const US: &str = "sourcepreserve-operator";

const LABELS: [&str; 11] = [
    "service.kubernetes.io/service-proxy-name",
    "sourcepreserve.io/agent-mode",
    "sourcepreserve.io/preserve",
    "sourcepreserve.io/agent-pool",
    "sourcepreserve.io/agent-revision",
    "sourcepreserve.io/agent-images",
    "app.kubernetes.io/name",
    "k8s-app",
    "kubernetes.io/service-name",
    "type",
    "own",
];
const ANNOTATIONS: [&str; 7] = [
    "sourcepreserve.io/original",
    "sourcepreserve.io/handover",
    "sourcepreserve.io/agent-failed",
    "sourcepreserve.io/retained",
    "sourcepreserve.io/kube-proxy",
    "kubectl.kubernetes.io/last-applied-configuration",
    "sidecar.istio.io/interceptionMode",
];

fn labels(dice: &mut Dice) -> Value {
    let some = (0..dice.below(6)).map(|_| (dice.pick(&LABELS).to_owned(), json!(dice.text())));
    Value::Object(some.collect::<Map<_, _>>())
}

fn annotation(dice: &mut Dice, name: &str) -> String {
    let record = match name {
        "sourcepreserve.io/original" => json!({
            "object": dice.text(), "policy": dice.pick(&["Cluster", "Local"]), "policyOwner": dice.text(),
            "healthCheckNodePort": dice.number(), "generation": dice.integer(), "labelled": dice.number(), "localised": dice.number(),
            "opened": dice.one_in(2), "skipped": dice.one_in(2), "takenOver": dice.number(), "fellBack": dice.one_in(2), "retained": dice.one_in(2), "owner": dice.text(),
            "label": {"key": dice.pick(&LABELS), "value": dice.text(), "owner": dice.text()},
            "terms": terms(dice),
        }),
        "sourcepreserve.io/handover" => {
            json!({"pool": dice.text(), "started": dice.time(), "from": dice.text(), "restart": dice.one_in(2)})
        }
        "sourcepreserve.io/agent-failed" => {
            json!({"pool": dice.text(), "revision": dice.text(), "reason": dice.text()})
        }
        "kubectl.kubernetes.io/last-applied-configuration" => json!({
            "metadata": {"labels": {dice.pick(&LABELS): dice.any(1)}}, "spec": {"externalTrafficPolicy": dice.any(1)},
        }),
        _ => return dice.text(),
    };
    dice.mangled(record)
}

/// managedFields, meaningful and arbitrary. `us`: whether labels and annotations were applied as
/// the operator.
fn managed_fields(dice: &mut Dice, us: bool) -> Value {
    let keys = |dice: &mut Dice, all: &[&str]| -> Value {
        let some = all.iter().filter(|_| !dice.one_in(4)).map(|key| (format!("f:{key}"), json!({})));
        Value::Object(some.collect::<Map<_, _>>())
    };
    let mut entries = Vec::new();
    let required = "f:requiredDuringSchedulingIgnoredDuringExecution";
    if us {
        let mut of_labels = keys(dice, &LABELS);
        of_labels["f:app.kubernetes.io/name"] = json!({});
        entries.push((US, "Apply", json!({
            "f:metadata": {"f:labels": of_labels, "f:annotations": keys(dice, &ANNOTATIONS)},
            "f:spec": {"f:externalTrafficPolicy": {}, "f:template": {"f:spec": {"f:affinity": {"f:nodeAffinity": {required: {}}}}}},
        })));
    }
    for _ in 0..dice.below(3) {
        let manager = if us { dice.pick(&["helm", US, ""]) } else { dice.pick(&["helm", "kubectl", ""]) };
        let fields = match dice.below(3) {
            0 => dice.any(4),
            1 => json!({"f:metadata": {"f:labels": dice.any(1)}, "f:spec": dice.any(1)}),
            _ => {
                json!({"f:metadata": {"f:labels": keys(dice, &LABELS)}, "f:spec": {"f:externalTrafficPolicy": {}}})
            }
        };
        entries.push((manager, dice.pick(&["Apply", "Update", "Steal"]), fields));
    }
    // An update as the operator is not an apply.
    if dice.one_in(4) {
        entries.push((US, "Update", json!({"f:metadata": {"f:labels": keys(dice, &LABELS)}})));
    }
    let entry = |(manager, operation, fields): (&str, &str, Value)| {
        json!({
            "manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields,
            "time": dice.real_time(),
        })
    };
    entries.into_iter().map(entry).collect()
}

/// Metadata of a hostile object, forged as the operator if `us`.
pub(super) fn metadata(dice: &mut Dice, namespace: &str, name: &str, us: bool) -> Value {
    let annotations = ANNOTATIONS.iter().filter(|_| dice.one_in(2)).copied().collect::<Vec<_>>();
    let annotations = annotations.into_iter().map(|name| (name.to_owned(), json!(annotation(dice, name))));
    let annotations = Value::Object(annotations.collect::<Map<_, _>>());
    let mut metadata = json!({
        "name": name, "namespace": namespace, "uid": format!("uid-of-{namespace}-{name}"), "resourceVersion": "1",
        "generation": dice.integer(), "labels": labels(dice), "annotations": annotations,
        "managedFields": managed_fields(dice, us),
    });
    if dice.one_in(8) {
        metadata["deletionTimestamp"] = json!(dice.real_time());
    }
    metadata
}

pub(super) fn service(dice: &mut Dice, metadata: &Value) -> Value {
    json!({
        "metadata": metadata,
        "spec": {
            "type": dice.text(), "externalTrafficPolicy": dice.pick(&["Local", "Cluster", "", "None"]),
            "externalIPs": [dice.text()], "healthCheckNodePort": dice.one_of([0, -1, i32::MAX, i32::MIN]),
        },
        "status": {"loadBalancer": {"ingress": [{"ip": dice.text()}, {"hostname": dice.text()}, {}]}},
    })
}

pub(super) fn slice(dice: &mut Dice, mut metadata: Value, service: &str, nodes: &[&str]) -> Value {
    metadata["labels"] = json!({"kubernetes.io/service-name": service});
    let endpoints = (0..dice.below(5)).map(|_| {
        json!({"addresses": [dice.text()], "nodeName": dice.pick(nodes), "conditions": {"ready": dice.one_in(2)}})
    });
    json!({"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints.collect::<Vec<_>>()})
}

/// `ingress`: whether it is an ingress node and so needs no agent.
pub(super) fn node(dice: &mut Dice, mut metadata: Value, ingress: bool) -> Value {
    metadata["labels"][super::super::world::INGRESS] = if ingress { json!("") } else { Value::Null };
    if !ingress && let Some(labels) = metadata["labels"].as_object_mut() {
        labels.remove(super::super::world::INGRESS);
    }
    let taint = json!({
        "key": dice.pick(&["virtual-kubelet.io/provider", "node.kubernetes.io/unreachable", "", "pool"]),
        "value": dice.text(), "effect": dice.pick(&["NoSchedule", "NoExecute", "PreferNoSchedule", ""]),
    });
    json!({
        "metadata": metadata,
        "spec": {"taints": if dice.one_in(2) { vec![taint] } else { Vec::new() }},
        "status": {"conditions": [{"type": "Ready", "status": dice.pick(&["True", "False", "Unknown", ""])}]},
    })
}

pub(super) fn report(dice: &mut Dice, mut metadata: Value) -> Value {
    if let Some(fields) = metadata.as_object_mut() {
        fields.remove("namespace");
    }
    let views: Vec<Value> = (0..dice.below(4)).map(|_| {
        json!({
            "object": dice.text(), "uid": dice.pick(&["", "uid-1", "uid-8", "uid-9", "uid-10"]), "generation": dice.integer(),
            "view": dice.pick(&["Full", "ClusterOnly", "Hidden"]), "received": dice.one_in(2), "programmed": dice.one_in(2),
            "services": [dice.pick(&["web/frontend", "tenant/hostile-0", "", "/"])],
        })
    }).collect();
    json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourceNode", "metadata": metadata, "spec": {},
        "status": {
            "pool": dice.text(), "revision": dice.text(), "mode": dice.pick(&["Filter", "Beside"]), "active": dice.one_in(2),
            "views": views, "lastSync": dice.real_time(),
            "conditions": [{"type": "Ready", "status": dice.text(), "reason": dice.text(), "message": dice.text(), "lastTransitionTime": dice.real_time()}],
        },
    })
}

fn terms(dice: &mut Dice) -> Value {
    let requirement = |dice: &mut Dice| {
        json!({
            "key": dice.pick(&["sourcepreserve.io/agent-pool", "metadata.name", "", "own"]),
            "operator": dice.pick(&["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "", "Like"]),
            "values": (0..dice.below(3)).map(|_| dice.text()).collect::<Vec<_>>(),
        })
    };
    let count = dice.below(4);
    let term = |_| match dice.below(4) {
        0 => json!({}),
        1 => json!({"matchExpressions": [], "matchFields": []}),
        2 => json!({"matchFields": [requirement(dice)]}),
        _ => json!({"matchExpressions": [requirement(dice), requirement(dice)]}),
    };
    (0..count).map(term).collect()
}

/// `made`: whether name and labels are those of an operator DaemonSet.
pub(super) fn daemon_set(dice: &mut Dice, mut metadata: Value, made: bool) -> Value {
    if made {
        metadata["labels"] = json!({
            "app.kubernetes.io/name": "proxy-agent", "sourcepreserve.io/agent-pool": "default",
            "sourcepreserve.io/agent-revision": "0123456789",
        });
    }
    let required = json!({"nodeSelectorTerms": terms(dice)});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
    json!({
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": {dice.text(): dice.text()}, "matchExpressions": [{"key": dice.text(), "operator": dice.text()}]},
            "template": {
                "metadata": {"labels": labels(dice)},
                "spec": {
                    "affinity": if dice.one_in(2) { affinity } else { json!({}) },
                    "tolerations": [{"operator": dice.pick(&["Exists", "Equal", ""]), "key": dice.text(), "effect": dice.text()}],
                    "containers": [{
                        "name": dice.pick(&["kube-proxy", "other"]),
                        "image": dice.text(),
                        "command": [dice.pick(&["/kube-proxy", "sh"]), dice.pick(&["--kubeconfig", "--kubeconfig=/a/b", "--config=/c/d", "--config"])],
                        "volumeMounts": [{"name": dice.text(), "mountPath": dice.pick(&["/a", "/c", "", "/"])}],
                    }],
                    "volumes": [{"name": dice.text(), "configMap": {"name": dice.text()}}],
                },
            },
        },
    })
}

pub(super) fn pod(dice: &mut Dice, mut metadata: Value, daemon_set: &str, nodes: &[&str]) -> Value {
    metadata["ownerReferences"] = json!([
        {"apiVersion": "v1", "kind": dice.text(), "name": dice.text(), "uid": "", "controller": dice.one_in(2)},
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": daemon_set, "uid": "", "controller": true},
    ]);
    let state = match dice.below(3) {
        0 => json!({"waiting": {"reason": dice.text(), "message": "m".repeat(dice.below(5000))}}),
        1 => {
            json!({"terminated": {"exitCode": dice.one_of([0, i32::MIN, i32::MAX]), "message": dice.text()}})
        }
        _ => json!({}),
    };
    json!({
        "metadata": metadata,
        "spec": {"nodeName": dice.pick(nodes), "containers": []},
        "status": {
            "phase": dice.text(),
            "conditions": [{"type": "Ready", "status": dice.pick(&["True", "False"])}],
            "containerStatuses": [{"name": dice.text(), "image": "", "imageID": "", "ready": false, "restartCount": i32::MIN, "state": state}],
        },
    })
}

pub(super) fn config_map(dice: &mut Dice, metadata: &Value) -> Value {
    let text = match dice.below(4) {
        0 => "clientConnection: {kubeconfig: /a/b}".to_owned(),
        1 => "&a [*a, *a]".to_owned(),
        2 => "{".repeat(dice.below(2000)),
        _ => dice.any(3).to_string(),
    };
    json!({"metadata": metadata, "data": {dice.text(): text, "config.conf": dice.text()}})
}

/// An object with a spec that mostly passes the schema, and an arbitrary status.
pub(super) fn preserve(dice: &mut Dice, mut metadata: Value) -> Value {
    if let Some(fields) = metadata.as_object_mut() {
        fields.remove("namespace");
        fields.insert("creationTimestamp".to_owned(), json!(dice.real_time()));
        if dice.one_in(2) {
            fields.insert("finalizers".to_owned(), json!(["sourcepreserve.io/restore"]));
        }
    }
    let selector = |dice: &mut Dice| match dice.below(4) {
        0 => json!({}),
        1 => json!({"matchLabels": {super::super::world::INGRESS: ""}}),
        2 => {
            json!({"matchExpressions": [{"key": dice.text(), "operator": dice.text(), "values": [dice.text()]}]})
        }
        _ => json!({"matchLabels": {dice.text(): dice.text()}}),
    };
    let target = match dice.below(3) {
        0 => json!({"namespace": "web", "name": "frontend"}),
        1 => json!({"namespace": dice.pick(&["tenant", "web", ""]), "selector": selector(dice)}),
        _ => json!({"namespace": "tenant", "name": "hostile-0"}),
    };
    let mut object = json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve", "metadata": metadata,
        "spec": {
            "ingressNodes": {"selector": selector(dice)},
            "services": [target],
            "mode": dice.pick(&["Filter", "Filter", "Beside"]),
            "nodePools": [{"name": dice.pick(&["default", "even"]), "selector": selector(dice)}],
            "deletionPolicy": dice.pick(&["Restore", "Retain"]),
            "conflictPolicy": dice.pick(&["Report", "Force"]),
            "whenNoIngressEndpoint": dice.pick(&["KeepLocal", "FallBack"]),
            "rollout": {
                "maxUnavailable": if dice.one_in(2) { json!(65535) } else { json!("100%") },
                "progressDeadlineSeconds": dice.one_of([1, 600, u32::MAX]), "paused": dice.one_in(4),
            },
            "sidecars": [
                {"namespaceSelector": selector(dice), "podSelector": selector(dice), "via": dice.pick(&["Webhook", "Policy"])},
                {
                    "namespaceSelector": selector(dice), "podSelector": selector(dice), "via": dice.pick(&["Webhook", "Policy"]),
                    // None of it has to be valid: the object may be older than the schema.
                    "redirect": {"outbound": {"port": dice.one_of([0, 15_001]), "destinations": [dice.pick(&["10.0.0.0/8", "", "x"])]}},
                },
            ],
        },
    });
    if dice.one_in(3) {
        object["spec"]["kubeProxy"] = json!({"namespace": dice.pick(&["kube-system", "tenant"]), "daemonSet": dice.pick(&["kube-proxy", "hostile-0", ""])});
    }
    if dice.one_in(2) {
        object["status"] = json!({
            "observedGeneration": dice.integer(),
            "ingressNodes": [dice.text(), "edge", "work-1"],
            "conditions": [{"type": "Ready", "status": dice.text(), "reason": dice.text(), "message": dice.text(), "lastTransitionTime": dice.real_time(), "observedGeneration": dice.integer()}],
            "services": [{
                "namespace": dice.pick(&["web", "tenant"]), "name": dice.pick(&["frontend", "hostile-0", "hostile-1"]), "state": "Preserved",
                "ingressEndpoints": u32::MAX, "ingressEndpointsSince": dice.real_time(),
                "original": {"externalTrafficPolicy": "Local", "healthCheckNodePort": i32::MIN},
            }],
            "nodePools": [{"name": dice.text(), "nodes": u32::MAX, "handedOver": u32::MAX, "ready": u32::MAX, "failed": u32::MAX}],
            "leftOut": {"count": u32::MAX, "nodes": [dice.text()]},
            "kubeProxy": {
                "namespace": dice.pick(&["kube-system", "tenant"]), "daemonSet": dice.pick(&["kube-proxy", "hostile-0"]),
                "keptOff": dice.one_of([0, 1, 2, u32::MAX]), "generation": dice.integer(),
            },
            "sidecars": {"matching": u32::MAX, "consistent": u32::MAX, "stale": u32::MAX, "restart": []},
        });
    }
    object
}
