//! The cluster: Istio's gateway, an application with a sidecar that a load balancer exposes as
//! well, this project, and what breaks or preserves the source IP.

use std::path::{Path, PathBuf};

use isp_lab::{ECHO_IMAGE, Lab, Place};
use isp_testkit::plugin::{self, Ended};
use isp_testkit::repository;
use isp_testkit::web_lab::{EDGE, ELSEWHERE, wait_until_ready};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

const PLUGIN: &str = env!("CARGO_BIN_EXE_kubectl-isp");
const SHOP: &str = "shop";
const OBJECT: &str = "ingress";

/// A Service that clients outside use.
pub(crate) struct Service {
    /// `NAMESPACE/NAME`.
    pub(crate) name: &'static str,
    /// Its external address and port.
    pub(crate) external: &'static str,
    selector: &'static str,
    pub(crate) is_gateway: bool,
}

pub(crate) const GATEWAY: Service = Service {
    name: "istio-system/istio-ingressgateway",
    external: "192.0.2.10:80",
    selector: "istio=ingressgateway",
    is_gateway: true,
};
pub(crate) const REGISTRY: Service =
    Service { name: "shop/registry", external: "192.0.2.20:80", selector: "app=registry", is_gateway: false };

impl Service {
    /// Namespace and name.
    fn key(&self) -> (&'static str, &'static str) {
        self.name.split_once('/').unwrap()
    }
}

pub(crate) struct World {
    pub(crate) lab: Lab,
    /// A file with the object.
    pub(crate) file: PathBuf,
    directory: tempfile::TempDir,
}

impl World {
    /// The cluster with the project on it, but without an object.
    pub(crate) async fn up(name: &str) -> Self {
        let nodes = [EDGE, ELSEWHERE[0], ELSEWHERE[1]];
        let lab = Lab::builder().name(name).nodes(nodes).istio(true).up().await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ingress.yaml");
        std::fs::write(&file, object(true).to_string()).unwrap();
        lab.apply(&application().to_string()).await.unwrap();
        give_address(&lab, &REGISTRY).await;
        let overlay = repository::file("manifests/overlays/lab");
        lab.install_project(Path::new(PLUGIN), &overlay).await.unwrap();
        lab.load_program(&Path::new(PLUGIN).with_file_name("probe")).await.unwrap();
        let world = Self { lab, file, directory };
        world.rolled_out().await;
        world
    }

    /// Applies the object. The application keeps its pod, whose sidecar hides clients.
    pub(crate) async fn preserve(&self) {
        self.lab.apply(&object(false).to_string()).await.unwrap();
        wait_until_ready(&self.lab, OBJECT).await;
    }

    /// Lets the object choose the mode of the sidecar, and starts the application anew.
    pub(crate) async fn make_transparent(&self) {
        self.lab.apply(&object(true).to_string()).await.unwrap();
        let ready = ["wait", "--for=jsonpath={.status.sidecars.matching}=1", "isp", OBJECT, "--timeout=120s"];
        self.lab.kubectl(ready).await.unwrap();
        self.lab.kubectl(["-n", SHOP, "rollout", "restart", "deployment/registry"]).await.unwrap();
        self.rolled_out().await;
        let consistent =
            ["wait", "--for=jsonpath={.status.sidecars.consistent}=1", "isp", OBJECT, "--timeout=120s"];
        self.lab.kubectl(consistent).await.unwrap();
        wait_until_ready(&self.lab, OBJECT).await;
    }

    /// Lets the router outside replace the addresses of the client by its own.
    pub(crate) async fn translate_outside(&self) {
        let script = "add table ip outside; \
                      add chain ip outside leaving { type nat hook postrouting priority srcnat; }; \
                      add rule ip outside leaving iifname to-client oifname eth0 masquerade";
        let output = self.lab.exec(&Place::Router, &["nft", script]).await.unwrap();
        assert!(output.success, "{}", output.stderr);
    }

    async fn rolled_out(&self) {
        let rollout = ["-n", SHOP, "rollout", "status", "deployment/registry", "--timeout=180s"];
        self.lab.kubectl(rollout).await.unwrap();
    }

    /// The only pod of a Service.
    pub(crate) async fn pod(&self, service: &Service) -> Place {
        let (namespace, _) = service.key();
        let pods: Api<Pod> = Api::namespaced(self.lab.client(), namespace);
        let found = pods.list(&ListParams::default().labels(service.selector)).await.unwrap().items;
        let mut running = found.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let (Some(only), None) = (running.next(), running.next()) else {
            panic!("{}: {found:?}", service.name)
        };
        Place::Pod(namespace.to_owned(), only.metadata.name.clone().unwrap())
    }

    /// The plugin, as an administrator runs it.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Ended {
        plugin::end(plugin::command(PLUGIN, &self.lab.kubeconfig(), arguments)).await
    }

    /// The plugin on the machine of the client outside.
    pub(crate) async fn run_at_client(&self, arguments: &[&str]) -> Ended {
        let all = [&[PLUGIN], arguments].concat();
        let mut command = self.lab.command_in(&Place::Client, &all).await.unwrap();
        command.env("KUBECONFIG", self.lab.kubeconfig_inside());
        plugin::end(command).await
    }

    /// The path of a file that goes with the cluster.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// Gives a Service its external address, as a provider's controller would, and routes it.
async fn give_address(lab: &Lab, service: &Service) {
    let (namespace, name) = service.key();
    let address = service.external.split(':').next().unwrap();
    let status =
        json!({"status": {"loadBalancer": {"ingress": [{"ip": address, "ipMode": "VIP"}]}}}).to_string();
    let patch =
        ["-n", namespace, "patch", "service", name, "--subresource=status", "--type=merge", "-p", &status];
    lab.kubectl(patch).await.unwrap();
    lab.route(address.parse().unwrap(), &[EDGE]).await.unwrap();
}

/// The object. With `sidecars`, it chooses the mode of the application's sidecar.
fn object(with_sidecars: bool) -> Value {
    let service = |service: &Service| json!({"namespace": service.key().0, "name": service.key().1});
    let mut object = json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve", "metadata": {"name": OBJECT},
        "spec": {
            "ingressNodes": {"selector": {"matchLabels": {"node-role.kubernetes.io/ingress": ""}}},
            "services": [service(&GATEWAY), service(&REGISTRY)],
        },
    });
    if with_sidecars {
        let shop = json!({"matchLabels": {"kubernetes.io/metadata.name": SHOP}});
        object["spec"]["sidecars"] = json!([{"namespaceSelector": shop, "podSelector": {}}]);
    }
    object
}

/// The application on the ingress node: behind the gateway, and behind a load balancer of its own.
fn application() -> Value {
    let labels = json!({"app": "registry"});
    let metadata = json!({"name": "registry", "namespace": SHOP});
    let items = json!([
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP, "labels": {"istio-injection": "enabled"}}},
        {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {
                "selector": {"matchLabels": labels},
                "strategy": {"type": "Recreate"},
                "template": {
                    "metadata": {"labels": labels, "annotations": {"sidecar.istio.io/nativeSidecar": "true"}},
                    "spec": {
                        "nodeSelector": {"kubernetes.io/hostname": EDGE},
                        "terminationGracePeriodSeconds": 1,
                        "containers": [{
                            "name": "registry", "image": ECHO_IMAGE, "imagePullPolicy": "Never", "args": ["--access-log"],
                        }],
                    },
                },
            },
        },
        {
            "apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {
                "type": "LoadBalancer", "selector": labels,
                "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
            },
        },
        {
            "apiVersion": "networking.istio.io/v1", "kind": "Gateway", "metadata": metadata,
            "spec": {"selector": {"istio": "ingressgateway"}, "servers": [
                {"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": ["*"]},
            ]},
        },
        {
            "apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": metadata,
            "spec": {"hosts": ["*"], "gateways": ["registry"], "http": [
                {"route": [{"destination": {"host": "registry.shop.svc.cluster.local", "port": {"number": 80}}}]},
            ]},
        },
    ]);
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}
