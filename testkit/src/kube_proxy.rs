//! kubeadm's kube-proxy, reduced to the fields that the operator reads.

use serde_json::{Value, json};

/// The ConfigMap with its configuration.
pub fn configuration() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kube-proxy", "namespace": "kube-system"},
        "data": {"config.conf": "clientConnection:\n  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf\n"},
    })
}

/// The DaemonSet, with these terms of a required node affinity.
pub fn daemon_set(terms: Option<&Value>) -> Value {
    let mut set = json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "kube-proxy", "namespace": "kube-system", "labels": {"k8s-app": "kube-proxy"}},
        "spec": {
            "selector": {"matchLabels": {"k8s-app": "kube-proxy"}},
            "template": {
                "metadata": {"labels": {"k8s-app": "kube-proxy"}},
                "spec": {
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{
                        "name": "kube-proxy",
                        "image": "kube-proxy:1",
                        "command": ["/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf"],
                        "volumeMounts": [{"name": "config", "mountPath": "/var/lib/kube-proxy"}],
                    }],
                    "volumes": [{"name": "config", "configMap": {"name": "kube-proxy"}}],
                },
            },
        },
    });
    if let Some(terms) = terms {
        set["spec"]["template"]["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
    }
    set
}
