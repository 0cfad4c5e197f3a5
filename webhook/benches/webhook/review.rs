//! The review: a pod of a Deployment as an API server sends it to webhooks, with all defaults.

use serde_json::{Value, json};

pub(crate) const NAMESPACE: &str = "shop";
pub(crate) const UID: &str = "9f1c3a52-6d0e-4b57-8c1f-2a7b9d4e6f10";
const REPLICA_SET: &str = "checkout-7c9d5b8f64";

pub(crate) fn review() -> Value {
    let name = json!({"group": "", "version": "v1", "kind": "Pod"});
    let resource = json!({"group": "", "version": "v1", "resource": "pods"});
    json!({
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": UID,
            "kind": name,
            "resource": resource,
            "requestKind": name,
            "requestResource": resource,
            "namespace": NAMESPACE,
            "operation": "CREATE",
            "userInfo": {
                "username": "system:serviceaccount:kube-system:replicaset-controller",
                "uid": "0b7d7d2c-51a6-4d0e-9c39-5f2f4c1d8e77",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"],
                "extra": {"authentication.kubernetes.io/credential-id": ["JTI=3d9b0a64-1f52-4c8e-b7a5-6e0d2c9f4b18"]},
            },
            "object": pod(),
            "oldObject": null,
            "dryRun": false,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    })
}

fn pod() -> Value {
    json!({
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "generateName": format!("{REPLICA_SET}-"),
            "namespace": NAMESPACE,
            "labels": {
                "app": "checkout",
                "app.kubernetes.io/name": "checkout",
                "app.kubernetes.io/part-of": "shop",
                "pod-template-hash": "7c9d5b8f64",
                "version": "v1",
            },
            "annotations": {
                "kubectl.kubernetes.io/restartedAt": "2026-05-04T09:21:33Z",
                "prometheus.io/port": "8080",
                "prometheus.io/scrape": "true",
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": REPLICA_SET,
                "uid": "54b86a11-09c3-4f6e-a2d7-7d3c1e5b9f02",
                "controller": true,
                "blockOwnerDeletion": true,
            }],
            "managedFields": [managed()],
        },
        "spec": {
            "volumes": [
                {"name": "settings", "configMap": {"name": "checkout", "defaultMode": 420}},
                {"name": "scratch", "emptyDir": {}},
                {"name": TOKEN, "projected": {"defaultMode": 420, "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    {"downwardAPI": {"items": [
                        {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
                    ]}},
                ]}},
            ],
            "initContainers": [container("migrate", &json!({"args": ["migrate", "--wait=60s"]}))],
            "containers": [
                container("checkout", &json!({
                    "ports": [
                        {"name": "http", "containerPort": 8080, "protocol": "TCP"},
                        {"name": "grpc", "containerPort": 9090, "protocol": "TCP"},
                    ],
                    "livenessProbe": probe("/healthz"),
                    "readinessProbe": probe("/readyz"),
                    "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
                })),
                container("exporter", &json!({
                    "ports": [{"name": "metrics", "containerPort": 9102, "protocol": "TCP"}],
                })),
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "checkout",
            "serviceAccount": "checkout",
            "securityContext": {"runAsNonRoot": true, "fsGroup": 2000, "seccompProfile": {"type": "RuntimeDefault"}},
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
                "weight": 100,
                "podAffinityTerm": {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": "checkout"}},
                },
            }]}},
            "schedulerName": "default-scheduler",
            "tolerations": [toleration("not-ready"), toleration("unreachable")],
            "priority": 0,
            "enableServiceLinks": true,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {},
    })
}

const TOKEN: &str = "kube-api-access-x7k2p";

fn container(name: &str, more: &Value) -> Value {
    let mut container = json!({
        "name": name,
        "image": format!("registry.example.com/shop/{name}:1.42.0"),
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
            {"name": "DATABASE_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "checkout", "key": "password"}}},
            {"name": "LOG_LEVEL", "value": "info"},
        ],
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"cpu": "1", "memory": "512Mi"},
        },
        "volumeMounts": [
            {"name": "settings", "mountPath": "/etc/checkout"},
            {"name": "scratch", "mountPath": "/tmp"},
            {"name": TOKEN, "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        ],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
    });
    for (key, value) in more.as_object().unwrap() {
        container[key] = value.clone();
    }
    container
}

fn toleration(state: &str) -> Value {
    let key = format!("node.kubernetes.io/{state}");
    json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
}

fn probe(path: &str) -> Value {
    json!({
        "httpGet": {"path": path, "port": "http", "scheme": "HTTP"},
        "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
    })
}

fn managed() -> Value {
    let fields = |names: &[&str]| -> Value {
        names.iter().map(|name| (format!("f:{name}"), json!({}))).collect::<serde_json::Map<_, _>>().into()
    };
    let of_container = || {
        fields(&[
            "name",
            "image",
            "args",
            "env",
            "ports",
            "resources",
            "volumeMounts",
            "livenessProbe",
            "readinessProbe",
            "lifecycle",
            "terminationMessagePath",
            "terminationMessagePolicy",
            "imagePullPolicy",
            "securityContext",
        ])
    };
    json!({
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-05-04T09:21:34Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {
                "f:generateName": {},
                "f:labels": fields(&["app", "app.kubernetes.io/name", "pod-template-hash", "version"]),
                "f:annotations": fields(&["kubectl.kubernetes.io/restartedAt", "prometheus.io/port"]),
                "f:ownerReferences": {".": {}, "k:{\"uid\":\"54b86a11-09c3-4f6e-a2d7-7d3c1e5b9f02\"}": {}},
            },
            "f:spec": {
                "f:initContainers": {"k:{\"name\":\"migrate\"}": of_container()},
                "f:containers": {"k:{\"name\":\"checkout\"}": of_container(), "k:{\"name\":\"exporter\"}": of_container()},
                "f:affinity": {}, "f:dnsPolicy": {}, "f:enableServiceLinks": {}, "f:restartPolicy": {},
                "f:schedulerName": {}, "f:securityContext": {}, "f:serviceAccountName": {},
                "f:terminationGracePeriodSeconds": {}, "f:volumes": fields(&["settings", "scratch"]),
            },
        },
    })
}
