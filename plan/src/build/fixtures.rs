#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use k8s_openapi::api::apps::v1::DaemonSet;
use serde_json::{Value, json};

/// The agents of a pool, with this command of kube-proxy.
pub(super) fn agents(command: &Value) -> DaemonSet {
    serde_json::from_value(json!({
        "metadata": {"name": "proxy-agent-workers", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/name": "proxy-agent"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": {"app.kubernetes.io/name": "proxy-agent"}},
                "spec": {
                    "nodeSelector": {"sourcepreserve.io/agent-pool": "workers"},
                    "tolerations": [{"operator": "Exists"}],
                    "initContainers": [{"name": "proxy-agent", "image": "agent:1", "imagePullPolicy": "IfNotPresent"}],
                    "containers": [{"name": "kube-proxy", "image": "kube-proxy:1", "command": command}],
                },
            },
        },
    }))
    .unwrap()
}
