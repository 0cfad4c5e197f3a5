//! A cluster of three nodes with Istio, an application behind its gateway with policies that go by
//! addresses, and this project on it.

use std::path::Path;
use std::process::Command;

use isp_lab::istio::{GATEWAY, NAMESPACE};
use isp_lab::{ECHO_IMAGE, EchoApp, Lab};
use isp_testkit::control_plane::SYSTEM;
use isp_testkit::repository;
use serde_json::{Value, json};

/// How `doctor` ended, and what it found.
pub(crate) async fn doctor(kubeconfig: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-isp"));
    command.args(["doctor", "-o", "json"]).args(arguments).env("KUBECONFIG", kubeconfig);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.is_empty(), "{stderr}");
    let mut examination: Value = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code(), examination["findings"].take())
}

pub(crate) struct Scenario {
    pub(crate) lab: Lab,
}

impl Scenario {
    /// A cluster on which nothing of the project is.
    pub(crate) async fn up(name: &str) -> Self {
        let lab =
            Lab::builder().name(name).nodes(["edge-1", "work-1", "work-2"]).istio(true).up().await.unwrap();
        let scenario = Self { lab };
        scenario.lab.kubectl(["create", "namespace", "plain"]).await.unwrap();
        let app =
            EchoApp { name: "echo", namespace: "plain", node: "work-1", node_port: 30080, annotations: &[] };
        scenario.lab.run_echo(&app).await.unwrap();
        let items = json!({"apiVersion": "v1", "kind": "List", "items": application()});
        scenario.lab.apply(&items.to_string()).await.unwrap();
        scenario.rolled_out("shop", "deployment/cart").await;
        scenario
    }

    async fn rolled_out(&self, namespace: &str, what: &str) {
        self.lab.kubectl(["-n", namespace, "rollout", "status", what, "--timeout=180s"]).await.unwrap();
        // Pods on their way out are nobody's, but they are in a dump for a while.
        let gone = [
            "-n",
            namespace,
            "wait",
            "--for=jsonpath={.status.phase}=Running",
            "pod",
            "--all",
            "--timeout=60s",
        ];
        self.lab.kubectl(gone).await.unwrap();
    }

    /// Installs the project as users do, and waits until it runs.
    pub(crate) async fn install(&self) {
        let overlay = repository::file("manifests/overlays/lab");
        self.lab.install_project(Path::new(env!("CARGO_BIN_EXE_kubectl-isp")), &overlay).await.unwrap();
        for deployment in ["deployment/sourcepreserve-operator", "deployment/sourcepreserve-webhook"] {
            self.rolled_out(SYSTEM, deployment).await;
        }
    }

    /// Asks for it, and waits until it is so.
    pub(crate) async fn preserve(&self) {
        let object = json!({
            "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve", "metadata": {"name": "shop"},
            "spec": {
                "ingressNodes": {"selector": {"matchLabels": {"node-role.kubernetes.io/ingress": ""}}},
                "services": [{"namespace": NAMESPACE, "name": GATEWAY}],
                "sidecars": [{"namespaceSelector": {"matchLabels": {"team": "shop"}}}],
                "rollout": {"maxUnavailable": 2},
            },
        });
        self.lab.apply(&object.to_string()).await.unwrap();
        self.lab.kubectl(["wait", "--for=condition=Ready", "isp/shop", "--timeout=180s"]).await.unwrap();
    }

    /// Its pods are created anew, and the operator has counted them.
    pub(crate) async fn restart_application(&self) {
        self.lab.kubectl(["-n", "shop", "rollout", "restart", "deployment/cart"]).await.unwrap();
        self.rolled_out("shop", "deployment/cart").await;
        let counted = ["wait", "--for=condition=SidecarsConsistent", "isp/shop", "--timeout=60s"];
        self.lab.kubectl(counted).await.unwrap();
    }

    /// The gateway ends.
    pub(crate) async fn lose_endpoint(&self) {
        self.lab.kubectl(["-n", NAMESPACE, "scale", "deployment", GATEWAY, "--replicas=0"]).await.unwrap();
        let gone =
            ["-n", NAMESPACE, "wait", "--for=delete", "pod", "-l", "istio=ingressgateway", "--timeout=60s"];
        self.lab.kubectl(gone).await.unwrap();
    }
}

/// A Deployment with a sidecar, behind the gateway, which lets one network in; the sidecar keeps
/// another one out.
fn application() -> Vec<Value> {
    let labels = json!({"app": "cart"});
    let policy = |namespace: &str, spec: Value| {
        json!({
            "apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy",
            "metadata": {"name": "clients", "namespace": namespace}, "spec": spec,
        })
    };
    vec![
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "shop", "labels": {"istio-injection": "enabled", "team": "shop"}},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "cart", "namespace": "shop"},
            "spec": {
                "selector": {"matchLabels": labels},
                "strategy": {"type": "Recreate"},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "nodeSelector": {"kubernetes.io/hostname": "work-2"},
                        "terminationGracePeriodSeconds": 1,
                        "containers": [{"name": "echo", "image": ECHO_IMAGE, "imagePullPolicy": "Never"}],
                    },
                },
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "cart", "namespace": "shop"},
            "spec": {"selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
        }),
        policy(
            NAMESPACE,
            json!({
                "selector": {"matchLabels": {"istio": "ingressgateway"}}, "action": "ALLOW",
                "rules": [{"from": [{"source": {"ipBlocks": ["198.51.100.0/24", "203.0.113.0/24"]}}]}],
            }),
        ),
        policy(
            "shop",
            json!({"action": "DENY", "rules": [{"from": [{"source": {"remoteIpBlocks": ["203.0.113.0/24"]}}]}]}),
        ),
    ]
}
