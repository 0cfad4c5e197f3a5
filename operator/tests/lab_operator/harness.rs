//! A cluster of three nodes with an application behind an external IP, and the operator.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use isp_api::IngressSourcePreserve;
use isp_api::preserve::Phase;
use isp_lab::{ECHO_IMAGE, EchoApp, Lab, Place, ProxyMode};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Api;
use serde_json::json;

pub(crate) const EDGE: &str = "edge-1";
pub(crate) const ELSEWHERE: [&str; 2] = ["work-1", "work-2"];
/// The external IP that the router sends to the ingress node.
pub(crate) const EXTERNAL: &str = "192.0.2.50";
/// An external IP of the Service that the router does not route: a response came from the client's
/// own node.
pub(crate) const UNROUTED: &str = "192.0.2.51";
pub(crate) const NODE_PORT: u16 = 30080;
/// The operator's namespace and name.
pub(crate) const SYSTEM: &str = "sourcepreserve-system";
pub(crate) const OPERATOR: &str = "sourcepreserve-operator";
const DEPLOYMENT: &str = "deployment/sourcepreserve-operator";
/// The object in the sample.
pub(crate) const OBJECT: &str = "web";

pub(crate) const AGENT_IMAGE: &str = "lab.local/proxy-agent:1";

/// Generous timeout for things that should take seconds, for busy machines.
const DEADLINE: Duration = Duration::from_mins(2);
const OFTEN: Duration = Duration::from_millis(100);

pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !holds().await {
        assert!(started.elapsed() < DEADLINE, "{what}: not within {} s", DEADLINE.as_secs());
        tokio::time::sleep(OFTEN).await;
    }
}

pub(crate) struct Scenario {
    pub(crate) lab: Lab,
    pub(crate) cluster_ip: String,
    /// The IP of the application's pod.
    pub(crate) pod_ip: String,
    directory: tempfile::TempDir,
}

impl Drop for Scenario {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.directory.disable_cleanup(true);
            eprintln!("logs of operators and clients: {}", self.directory.path().display());
        }
    }
}

impl Scenario {
    /// A cluster with the application, and with the agent's image on every node.
    pub(crate) async fn up(name: &str) -> Self {
        Self::up_in(name, ProxyMode::default()).await
    }

    /// Like [`Self::up`], with kube-proxy in this mode.
    pub(crate) async fn up_in(name: &str, mode: ProxyMode) -> Self {
        let nodes = [EDGE, ELSEWHERE[0], ELSEWHERE[1]];
        let lab = Lab::builder().name(name).nodes(nodes).proxy_mode(mode).up().await.unwrap();
        for program in ["proxy-agent", "webhook"] {
            lab.load_program(&Path::new(env!("CARGO_BIN_EXE_operator")).with_file_name(program))
                .await
                .unwrap();
        }
        run_application(&lab).await;
        let services: Api<Service> = Api::namespaced(lab.client(), "web");
        let cluster_ip = services.get("frontend").await.unwrap().spec.unwrap().cluster_ip.unwrap();
        let pods: Api<Pod> = Api::namespaced(lab.client(), "web");
        let pod_ip = pods.get("frontend").await.unwrap().status.unwrap().pod_ip.unwrap();
        // A route from outside directly to the application's pod, without a Service.
        let edge = lab.topology().node(EDGE).unwrap().address().to_string();
        let route = lab.exec(&Place::Router, &["ip", "route", "add", &pod_ip, "via", &edge]).await.unwrap();
        assert!(route.success, "{}", route.stderr);
        Self { lab, cluster_ip, pod_ip, directory: tempfile::tempdir().unwrap() }
    }

    /// Installs the operator as users do, and waits until it runs.
    pub(crate) async fn install(&self) {
        self.lab.load_program(Path::new(env!("CARGO_BIN_EXE_operator"))).await.unwrap();
        self.apply_manifests().await;
        let status = ["-n", SYSTEM, "rollout", "status", DEPLOYMENT, "--timeout=120s"];
        self.lab.kubectl(status).await.unwrap();
    }

    /// Installs everything except the operator's Deployment pods; the test runs the operator as a
    /// process.
    pub(crate) async fn install_without_operator(&self) {
        self.apply_manifests().await;
        self.end_operator().await;
    }

    async fn apply_manifests(&self) {
        let overlay = path("manifests/overlays/lab");
        self.lab.kubectl(["apply", "--server-side", "-k", &overlay]).await.unwrap();
    }

    /// Stops the operator and waits until it is gone.
    pub(crate) async fn end_operator(&self) {
        self.lab.kubectl(["-n", SYSTEM, "scale", DEPLOYMENT, "--replicas=0"]).await.unwrap();
        let operator = format!("--selector=app.kubernetes.io/name={OPERATOR}");
        let gone = ["-n", SYSTEM, "wait", "--for=delete", "pod", &operator, "--timeout=60s"];
        self.lab.kubectl(gone).await.unwrap();
    }

    pub(crate) fn objects(&self) -> Api<IngressSourcePreserve> {
        Api::all(self.lab.client())
    }

    pub(crate) async fn phase(&self) -> Option<Phase> {
        let object = self.objects().get_opt(OBJECT).await.unwrap();
        object.and_then(|object| object.status).and_then(|status| status.phase)
    }

    /// The IP of a node.
    pub(crate) fn node_address(&self, node: &str) -> IpAddr {
        self.lab.topology().node(node).unwrap().address().into()
    }

    /// A file in this scenario's directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// A path in the repository.
pub(crate) fn path(of: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    root.join(of).to_str().unwrap().to_owned()
}

/// The object under test.
pub(crate) fn sample() -> String {
    path("manifests/samples/minimal.yaml")
}

/// A client pod on a non-ingress node.
pub(crate) fn pod_on(node: &str) -> Place {
    Place::Pod("default".to_owned(), format!("asks-from-{node}"))
}

/// The application on the ingress node, its Service, and client pods on the non-ingress nodes.
async fn run_application(lab: &Lab) {
    lab.kubectl(["create", "namespace", "web"]).await.unwrap();
    // Like an ingress: without a CPU request the application would starve first on a busy machine.
    let share = json!({
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "share", "namespace": "web"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "1"}}]},
    });
    lab.apply(&share.to_string()).await.unwrap();
    let app =
        EchoApp { name: "frontend", namespace: "web", node: EDGE, node_port: NODE_PORT, annotations: &[] };
    lab.run_echo(&app).await.unwrap();
    let external = json!({"spec": {"externalIPs": [EXTERNAL, UNROUTED]}}).to_string();
    lab.kubectl(["-n", "web", "patch", "service", "frontend", "-p", &external]).await.unwrap();
    lab.route(EXTERNAL.parse().unwrap(), &[EDGE]).await.unwrap();

    let pods = ELSEWHERE.map(|node| {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": format!("asks-from-{node}"), "namespace": "default"},
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": node},
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "echo", "image": ECHO_IMAGE, "imagePullPolicy": "Never"}],
            },
        })
    });
    lab.apply(&json!({"apiVersion": "v1", "kind": "List", "items": pods}).to_string()).await.unwrap();
    lab.kubectl(["wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s"]).await.unwrap();
}
