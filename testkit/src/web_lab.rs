//! A lab of three nodes with an application behind external IPs, for tests of the operator.

pub mod addresses;
mod application;
pub mod operator;
mod restored;

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use isp_api::IngressSourcePreserve;
use isp_api::conditions::find;
use isp_api::names::AGENT_POOL_LABEL;
use isp_api::preserve::Phase;
use isp_lab::{Builder, Lab, Place, ProxyMode};
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Api;

pub use self::application::{EXTERNAL, NODE_PORT, SERVICE, UNROUTED, serve};
use crate::control_plane::SYSTEM;
use crate::repository;
use crate::wait::until;

/// The ingress node.
pub const EDGE: &str = "edge-1";
/// The non-ingress nodes.
pub const ELSEWHERE: [&str; 2] = ["work-1", "work-2"];
/// The external client.
pub const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 10));
/// The operator's ServiceAccount and Deployment, in [`SYSTEM`].
pub const OPERATOR: &str = "sourcepreserve-operator";
const DEPLOYMENT: &str = "deployment/sourcepreserve-operator";
/// The object in the sample.
pub const OBJECT: &str = "web";
/// The agent's image on every node.
pub const AGENT_IMAGE: &str = "lab.local/proxy-agent:1";

/// The lab with its application.
pub struct WebLab {
    /// The lab.
    pub lab: Lab,
    /// The ClusterIP of the application's Service.
    pub cluster_ip: String,
    /// The IP of the application's pod.
    pub pod_ip: String,
    operator: PathBuf,
    directory: tempfile::TempDir,
}

impl Drop for WebLab {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.directory.disable_cleanup(true);
            eprintln!("logs of operators and clients: {}", self.directory.path().display());
        }
    }
}

impl WebLab {
    /// Starts a lab with the application, and with the agent's image on every node. The project's
    /// other programs are beside the operator's.
    pub async fn up(name: &str, operator: &str) -> Self {
        Self::up_in(name, operator, ProxyMode::default()).await
    }

    /// Like [`Self::up`], with kube-proxy in this mode.
    pub async fn up_in(name: &str, operator: &str, mode: ProxyMode) -> Self {
        Self::up_as(operator, Lab::builder().name(name).proxy_mode(mode)).await
    }

    /// Like [`Self::up`], with everything else about the lab as described.
    pub async fn up_as(operator: &str, lab: Builder) -> Self {
        let operator = PathBuf::from(operator);
        let lab = lab.nodes([EDGE, ELSEWHERE[0], ELSEWHERE[1]]).up().await.unwrap();
        for program in ["proxy-agent", "webhook"] {
            lab.load_program(&operator.with_file_name(program)).await.unwrap();
        }
        application::run(&lab).await;
        let services: Api<Service> = Api::namespaced(lab.client(), "web");
        let cluster_ip = services.get("frontend").await.unwrap().spec.unwrap().cluster_ip.unwrap();
        let pods: Api<Pod> = Api::namespaced(lab.client(), "web");
        let pod_ip = pods.get("frontend").await.unwrap().status.unwrap().pod_ip.unwrap();
        // A route from outside directly to the application's pod, without a Service.
        let edge = lab.topology().node(EDGE).unwrap().address().to_string();
        let route = lab.exec(&Place::Router, &["ip", "route", "add", &pod_ip, "via", &edge]).await.unwrap();
        assert!(route.success, "{}", route.stderr);
        Self { lab, cluster_ip, pod_ip, operator, directory: tempfile::tempdir().unwrap() }
    }

    /// Installs the operator as users do, and waits until it runs.
    pub async fn install(&self) {
        self.lab.load_program(&self.operator).await.unwrap();
        self.apply_manifests().await;
        self.wait_for_operator().await;
    }

    /// Installs everything except the operator's Deployment pods; the test runs the operator as a
    /// process.
    pub async fn install_without_operator(&self) {
        self.apply_manifests().await;
        self.end_operator().await;
    }

    async fn apply_manifests(&self) {
        let overlay = repository::path("manifests/overlays/lab");
        self.lab.kubectl(["apply", "--server-side", "-k", &overlay]).await.unwrap();
    }

    /// Stops the operator and waits until it is gone.
    pub async fn end_operator(&self) {
        self.lab.kubectl(["-n", SYSTEM, "scale", DEPLOYMENT, "--replicas=0"]).await.unwrap();
        let operator = format!("--selector=app.kubernetes.io/name={OPERATOR}");
        let gone = ["-n", SYSTEM, "wait", "--for=delete", "pod", &operator, "--timeout=60s"];
        self.lab.kubectl(gone).await.unwrap();
    }

    /// Starts the operator again.
    pub async fn restart_operator(&self) {
        self.lab.kubectl(["-n", SYSTEM, "scale", DEPLOYMENT, "--replicas=1"]).await.unwrap();
        self.wait_for_operator().await;
    }

    async fn wait_for_operator(&self) {
        let status = ["-n", SYSTEM, "rollout", "status", DEPLOYMENT, "--timeout=120s"];
        self.lab.kubectl(status).await.unwrap();
    }

    /// The API of the objects.
    pub fn objects(&self) -> Api<IngressSourcePreserve> {
        Api::all(self.lab.client())
    }

    /// The phase of the sample's object.
    pub async fn phase(&self) -> Option<Phase> {
        let object = self.objects().get_opt(OBJECT).await.unwrap();
        object.and_then(|object| object.status).and_then(|status| status.phase)
    }

    /// Waits until the sample's object is ready.
    pub async fn wait_until_ready(&self) {
        wait_until_ready(&self.lab, OBJECT).await;
    }

    /// One of the conditions of the sample's object.
    pub async fn condition(&self, type_: &str) -> Option<Condition> {
        let status = self.objects().get(OBJECT).await.unwrap().status.unwrap_or_default();
        find(&status.conditions, type_).cloned()
    }

    /// Waits until a condition has this status and reason, and returns its message.
    pub async fn wait_for_condition(&self, type_: &str, status: &str, reason: &str) -> String {
        until(&format!("{type_} is {status}, {reason}"), async || match self.condition(type_).await {
            Some(found) if found.status == status && found.reason == reason => Ok(found.message),
            other => Err(other),
        })
        .await
    }

    /// The IP of a node.
    pub fn node_address(&self, node: &str) -> IpAddr {
        self.lab.topology().node(node).unwrap().address().into()
    }

    /// The directory of this lab's logs.
    pub fn logs(&self) -> &Path {
        self.directory.path()
    }

    /// A file in the directory of this lab's logs. The name may be any text.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name.replace([' ', ':', '/'], "-"))
    }
}

/// Waits until an object is ready. A failure shows the object.
pub async fn wait_until_ready(lab: &Lab, object: &str) {
    let wait = ["wait", "--for=condition=Ready", &format!("isp/{object}"), "--timeout=120s"];
    if let Err(error) = lab.kubectl(wait).await {
        let object = lab.kubectl(["get", "isp", object, "-o", "yaml"]).await.unwrap().stdout;
        panic!("{error}\n{object}");
    }
}

/// Whether a node has the label that an agent's DaemonSet selects.
pub async fn has_agent_label(lab: &Lab, node: &str) -> bool {
    let node = Api::<Node>::all(lab.client()).get(node).await.unwrap();
    node.metadata.labels.is_some_and(|labels| labels.contains_key(AGENT_POOL_LABEL))
}

/// The path of the sample with the object [`OBJECT`].
pub fn sample() -> String {
    repository::path("manifests/samples/minimal.yaml")
}

/// A client pod on a non-ingress node.
pub fn pod_on(node: &str) -> Place {
    Place::Pod("default".to_owned(), format!("asks-from-{node}"))
}
