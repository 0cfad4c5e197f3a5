//! A cluster of two nodes with Istio, applications behind its gateway, and this project.

use std::net::IpAddr;
use std::path::Path;

use isp_lab::istio::{GATEWAY, NAMESPACE};
use isp_lab::{Answer, ECHO_IMAGE, Lab, Place, Protocol};
use isp_testkit::sidecars::Counts;
use isp_testkit::web_lab::wait_until_ready;
use isp_testkit::{answers, repository};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

/// The source IP with which a REDIRECT sidecar calls the application.
pub(crate) const REDIRECT: &str = "127.0.0.6";
pub(crate) const OBJECT: &str = "shop";
pub(crate) const SHOP: &str = "shop";
pub(crate) const WEBHOOK: &str = "deployment/sourcepreserve-webhook";
/// The external IP of the gateway.
const EXTERNAL: &str = "192.0.2.10";
const NODES: [&str; 2] = ["edge-1", "work-1"];

/// The address and path of an application from outside.
pub(crate) fn external(name: &str) -> String {
    format!("{EXTERNAL}:80/{name}")
}

pub(crate) struct Scenario {
    pub(crate) lab: Lab,
}

impl Scenario {
    /// A cluster with Istio, and a namespace with sidecar injection.
    pub(crate) async fn up(name: &str) -> Self {
        let lab = Lab::builder().name(name).nodes(NODES).istio(true).up().await.unwrap();
        let shop = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": SHOP, "labels": {"istio-injection": "enabled", "team": "shop"}},
        });
        lab.apply(&shop.to_string()).await.unwrap();
        Self { lab }
    }

    /// Installs the project as users do, and waits until it runs.
    pub(crate) async fn install(&self) {
        let overlay = repository::file("manifests/overlays/lab");
        self.lab.install_project(Path::new(env!("CARGO_BIN_EXE_webhook")), &overlay).await.unwrap();
    }

    /// Applies the object and waits until it is ready.
    pub(crate) async fn preserve(&self) {
        let object = json!({
            "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve", "metadata": {"name": OBJECT},
            "spec": {
                "ingressNodes": {"selector": {"matchLabels": {"node-role.kubernetes.io/ingress": ""}}},
                "services": [{"namespace": NAMESPACE, "name": GATEWAY}],
                "sidecars": [{"namespaceSelector": {"matchLabels": {"team": "shop"}}, "podSelector": {"matchExpressions": [
                    {"key": "tier", "operator": "NotIn", "values": ["batch"]},
                ]}}],
            },
        });
        self.lab.apply(&object.to_string()).await.unwrap();
        wait_until_ready(&self.lab, OBJECT).await;
    }

    /// Waits until the status has these counts of pods.
    pub(crate) async fn expect_sidecars(&self, what: &str, counts: Counts) {
        counts.expect(what, &self.lab, OBJECT).await;
    }

    /// A Deployment on the non-ingress node, behind the gateway under its own path.
    pub(crate) async fn run_application(&self, name: &str, native: &str) {
        let labels = json!({"app": name});
        let items = json!([
            {
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": SHOP},
                "spec": {
                    "selector": {"matchLabels": labels},
                    "strategy": {"type": "Recreate"},
                    "template": {
                        "metadata": {"labels": labels, "annotations": {"sidecar.istio.io/nativeSidecar": native}},
                        "spec": {
                            "nodeSelector": {"kubernetes.io/hostname": NODES[1]},
                            "terminationGracePeriodSeconds": 1,
                            "containers": [{"name": "echo", "image": ECHO_IMAGE, "imagePullPolicy": "Never"}],
                        },
                    },
                },
            },
            {
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": SHOP},
                "spec": {"selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
            },
            {
                "apiVersion": "networking.istio.io/v1", "kind": "Gateway", "metadata": {"name": name, "namespace": SHOP},
                "spec": {"selector": {"istio": "ingressgateway"}, "servers": [
                    {"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["*"]},
                ]},
            },
            {
                "apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": {"name": name, "namespace": SHOP},
                "spec": {"hosts": ["*"], "gateways": [name], "http": [{
                    "match": [{"uri": {"prefix": format!("/{name}")}}],
                    "route": [{"destination": {"host": format!("{name}.{SHOP}.svc.cluster.local"), "port": {"number": 80}}}],
                }]},
            },
        ]);
        self.lab
            .apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string())
            .await
            .unwrap();
        self.rolled_out(name).await;
    }

    async fn rolled_out(&self, name: &str) {
        let status = ["-n", SHOP, "rollout", "status", &format!("deployment/{name}"), "--timeout=120s"];
        self.lab.kubectl(status).await.unwrap();
    }

    pub(crate) async fn restart(&self, name: &str) {
        self.lab.kubectl(["-n", SHOP, "rollout", "restart", &format!("deployment/{name}")]).await.unwrap();
        self.rolled_out(name).await;
    }

    /// Sends requests until `want` holds; kube-proxy and Envoy apply changes within seconds.
    pub(crate) async fn expect(&self, what: &str, place: &Place, name: &str, want: impl Fn(&Answer) -> bool) {
        answers::until(&self.lab, what, place, (Protocol::Http, &external(name)), want).await;
    }

    pub(crate) async fn expect_peer(&self, name: &str, peer: IpAddr) {
        let what = format!("{name} sees {peer}");
        self.expect(&what, &Place::Client, name, |answer| answer.peer() == Some(peer)).await;
    }

    /// Asserts by the arguments of a new pod's sidecar that the annotation was set before the
    /// injector ran.
    pub(crate) async fn expect_injected_transparent(&self, name: &str, native: bool) {
        let pods: Api<Pod> = Api::namespaced(self.lab.client(), SHOP);
        let found = pods.list(&ListParams::default().labels(&format!("app={name}"))).await.unwrap();
        let pod = found.iter().find(|pod| pod.metadata.deletion_timestamp.is_none()).unwrap();
        let sidecar = isp_api::sidecar::Sidecar::of(pod).unwrap();
        assert_eq!((sidecar.proxy.as_str(), sidecar.rules.as_deref()), ("TPROXY", Some("TPROXY")));
        let inits = pod.spec.as_ref().unwrap().init_containers.as_ref().unwrap();
        assert_eq!(inits.iter().any(|init| init.name == "istio-proxy"), native);
    }

    pub(crate) async fn gateway_address(&self) -> IpAddr {
        let pods: Api<Pod> = Api::namespaced(self.lab.client(), NAMESPACE);
        let found = pods.list(&ListParams::default().labels("istio=ingressgateway")).await.unwrap();
        found.items[0].status.as_ref().unwrap().pod_ip.as_ref().unwrap().parse().unwrap()
    }
}
