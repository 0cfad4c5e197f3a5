//! kube-proxy as kubeadm installs it: ServiceAccount, ClusterRoleBinding, ConfigMap with two files,
//! DaemonSet. Nodes that run it as a process use the same configuration.

use serde_json::{Value, json};

use super::{keep_away, service_account};
use crate::images::kube_proxy_image;
use crate::lab::ProxyMode;
use crate::provision::KubernetesVersion;
use crate::topology::{Families, KubeProxy, POD_RANGE, Topology};

/// The path of the kubeconfig in the DaemonSet's pods.
const KUBECONFIG: &str = "/var/lib/kube-proxy/kubeconfig.conf";

pub(super) fn objects(
    topology: &Topology,
    mode: ProxyMode,
    version: KubernetesVersion,
    server: &str,
) -> Vec<Value> {
    vec![
        service_account("kube-proxy"),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "kubeadm:node-proxier"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-proxier"},
            "subjects": [{"kind": "ServiceAccount", "name": "kube-proxy", "namespace": "kube-system"}],
        }),
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "kube-proxy", "namespace": "kube-system", "labels": {"app": "kube-proxy"}},
            "data": {
                "config.conf": configuration(topology.families, mode, KUBECONFIG),
                "kubeconfig.conf": kubeconfig(server),
            },
        }),
        daemon_set(topology, version),
    ]
}

/// kube-proxy's configuration.
pub(crate) fn configuration(families: Families, mode: ProxyMode, kubeconfig: &str) -> String {
    let ranges = POD_RANGE.cidrs(families).join(",");
    let any = families.pick("0.0.0.0", "'::'")[0];
    format!(
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
bindAddress: {any}
clientConnection:
  kubeconfig: {kubeconfig}
clusterCIDR: {ranges}
mode: {mode}
# A network namespace cannot change the machine's limits.
conntrack:
  maxPerCore: 0
  min: 0
  tcpEstablishedTimeout: 0s
  tcpCloseWaitTimeout: 0s
"
    )
}

fn kubeconfig(server: &str) -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
    server: {server}
  name: default
contexts:
- context:
    cluster: default
    namespace: default
    user: default
  name: default
current-context: default
users:
- name: default
  user:
    tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
"
    )
}

fn daemon_set(topology: &Topology, version: KubernetesVersion) -> Value {
    let others = topology.kube_proxy_nodes(&[KubeProxy::Process, KubeProxy::None]);
    let workload = json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "kube-proxy", "namespace": "kube-system", "labels": {"k8s-app": "kube-proxy"}},
        "spec": {
            "selector": {"matchLabels": {"k8s-app": "kube-proxy"}},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {
                "metadata": {"labels": {"k8s-app": "kube-proxy"}},
                "spec": {
                    "priorityClassName": "system-node-critical",
                    "serviceAccountName": "kube-proxy",
                    "hostNetwork": true,
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{
                        "name": "kube-proxy",
                        "image": kube_proxy_image(version),
                        "imagePullPolicy": "IfNotPresent",
                        "command": [
                            "/usr/local/bin/kube-proxy",
                            "--config=/var/lib/kube-proxy/config.conf",
                            "--hostname-override=$(NODE_NAME)",
                        ],
                        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                        "securityContext": {"privileged": true},
                        "volumeMounts": [
                            {"name": "kube-proxy", "mountPath": "/var/lib/kube-proxy"},
                            {"name": "xtables-lock", "mountPath": "/run/xtables.lock"},
                            {"name": "lib-modules", "mountPath": "/lib/modules", "readOnly": true},
                        ],
                    }],
                    "volumes": [
                        {"name": "kube-proxy", "configMap": {"name": "kube-proxy"}},
                        {"name": "xtables-lock", "hostPath": {"path": "/run/xtables.lock", "type": "FileOrCreate"}},
                        // The host's modules are not exposed: the required ones are built in or
                        // already loaded.
                        {"name": "lib-modules", "hostPath": {"path": "/run/lib-modules", "type": "DirectoryOrCreate"}},
                    ],
                },
            },
        },
    });
    keep_away(workload, &others)
}
