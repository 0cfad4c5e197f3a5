//! A cluster of three nodes with the operator, an application behind an external IP, and clients
//! that send requests continuously.

use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use isp_api::IngressSourcePreserve;
use isp_api::conditions::find;
use isp_api::names::{AGENT_POOL_LABEL, FAILURE_ANNOTATION, condition};
use isp_lab::{Answer, EchoApp, Lab, Place, Protocol, Shipped, echo_program};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::Api;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::process::Process;

const EDGE: &str = "edge-1";
pub(crate) const ELSEWHERE: [&str; 2] = ["work-1", "work-2"];
/// The external IP that the router sends to the ingress node, and one that it does not route: a
/// response there came from the client's own node.
const EXTERNAL: &str = "192.0.2.50";
const UNROUTED: &str = "192.0.2.51";
const CLIENT: &str = "198.51.100.10";
const OBJECT: &str = "web";
/// When kube-proxy last wrote its rules. By then it has removed the rules of a previous mode.
const WRITTEN: &str = "kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family=\"IPv4\"}";

const DEADLINE: Duration = Duration::from_mins(2);
const OFTEN: Duration = Duration::from_millis(100);

async fn eventually<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = found().await {
            return found;
        }
        assert!(started.elapsed() < DEADLINE, "{what}: not within {} s", DEADLINE.as_secs());
        tokio::time::sleep(OFTEN).await;
    }
}

pub(crate) struct Scenario {
    pub(crate) lab: Lab,
    cluster_ip: String,
    directory: tempfile::TempDir,
}

impl Scenario {
    pub(crate) async fn up(name: &str) -> Self {
        let lab = Lab::builder().name(name).nodes([EDGE, ELSEWHERE[0], ELSEWHERE[1]]).up().await.unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let overlay = root.join("manifests/overlays/lab");
        lab.install_project(Path::new(env!("CARGO_BIN_EXE_operator")), &overlay).await.unwrap();
        lab.kubectl(["create", "namespace", "web"]).await.unwrap();
        let app =
            EchoApp { name: "frontend", namespace: "web", node: EDGE, node_port: 30080, annotations: &[] };
        lab.run_echo(&app).await.unwrap();
        let external = json!({"spec": {"externalIPs": [EXTERNAL, UNROUTED]}}).to_string();
        lab.kubectl(["-n", "web", "patch", "service", "frontend", "-p", &external]).await.unwrap();
        lab.route(EXTERNAL.parse().unwrap(), &[EDGE]).await.unwrap();
        let services: Api<Service> = Api::namespaced(lab.client(), "web");
        let cluster_ip = services.get("frontend").await.unwrap().spec.unwrap().cluster_ip.unwrap();
        Self { lab, cluster_ip, directory: tempfile::tempdir().unwrap() }
    }

    /// Replaces kube-proxy and waits until it serves on all nodes.
    pub(crate) async fn replace(&self, shipped: Shipped) {
        self.lab.replace_kube_proxy(shipped).await.unwrap_or_else(|error| panic!("{shipped}: {error}"));
        for node in [EDGE, ELSEWHERE[0], ELSEWHERE[1]] {
            eventually(&format!("{shipped} has written its rules on {node}"), async || {
                let page = ["curl", "--silent", "--max-time", "2", "http://127.0.0.1:10249/metrics"];
                let page = self.lab.exec(&Place::Node(node.to_owned()), &page).await.unwrap().stdout;
                let written = |line: &str| line.starts_with(WRITTEN) && !line.ends_with(" 0");
                page.lines().any(written).then_some(())
            })
            .await;
        }
        self.addresses_are_lost().await;
    }

    pub(crate) fn write_to_nodes(&self, path: &str, content: &str, mode: u32) {
        for node in [EDGE, ELSEWHERE[0], ELSEWHERE[1]] {
            self.lab.write_to_node(node, path, content, mode).unwrap();
        }
    }

    /// Applies the object with these rollout settings.
    pub(crate) async fn apply(&self, rollout: &str) {
        let rollout: Value = serde_json::from_str(rollout).unwrap();
        let object = json!({
            "apiVersion": "sourcepreserve.io/v1alpha1",
            "kind": "IngressSourcePreserve",
            "metadata": {"name": OBJECT},
            "spec": {
                "ingressNodes": {"selector": {"matchLabels": {"node-role.kubernetes.io/ingress": ""}}},
                "services": [{"namespace": "web", "name": "frontend"}],
                "rollout": rollout,
            },
        });
        self.lab.apply(&object.to_string()).await.unwrap();
    }

    pub(crate) async fn delete(&self) {
        self.lab.kubectl(["delete", "isp", OBJECT, "--timeout=120s"]).await.unwrap();
    }

    fn objects(&self) -> Api<IngressSourcePreserve> {
        Api::all(self.lab.client())
    }

    pub(crate) async fn wait_until_ready(&self) {
        let wait = ["wait", "--for=condition=Ready", &format!("isp/{OBJECT}"), "--timeout=120s"];
        if let Err(error) = self.lab.kubectl(wait).await {
            let object = self.lab.kubectl(["get", "isp", OBJECT, "-o", "yaml"]).await.unwrap().stdout;
            panic!("{error}\n{object}");
        }
    }

    /// Waits until `AgentsReady` is false for this reason, and returns its message.
    pub(crate) async fn wait_until_said(&self, reason: &str) -> String {
        eventually(reason, async || {
            let status = self.objects().get(OBJECT).await.unwrap().status?;
            let agents = find(&status.conditions, condition::AGENTS_READY)?;
            (agents.reason == reason && agents.status == "False").then(|| agents.message.clone())
        })
        .await
    }

    async fn node(&self, name: &str) -> Node {
        Api::<Node>::all(self.lab.client()).get(name).await.unwrap()
    }

    pub(crate) async fn has_agent_label(&self, node: &str) -> bool {
        self.node(node).await.metadata.labels.is_some_and(|labels| labels.contains_key(AGENT_POOL_LABEL))
    }

    /// The failure recorded on a node whose agent did not start.
    pub(crate) async fn failure_of(&self, node: &str) -> String {
        eventually(&format!("the failure of {node}"), async || {
            self.node(node).await.metadata.annotations?.remove(FAILURE_ANNOTATION)
        })
        .await
    }

    pub(crate) async fn wait_until_handed_back(&self) {
        let sets: Api<DaemonSet> = Api::namespaced(self.lab.client(), "kube-system");
        eventually("kube-proxy is everywhere again", async || {
            let status = sets.get("kube-proxy").await.unwrap().status?;
            (status.number_available == Some(3)).then_some(())
        })
        .await;
    }

    async fn expect(&self, place: Place, host: &str, what: &str, is_so: impl Fn(&Answer) -> bool) {
        eventually(&format!("{place} to {host}: {what}"), async || {
            let answer = self.lab.ask(&place, Protocol::Http, &format!("{host}:80")).await.unwrap();
            is_so(&answer).then_some(())
        })
        .await;
    }

    /// Without the object the source IP is lost, and each node intercepts the external IP.
    pub(crate) async fn addresses_are_lost(&self) {
        let client: IpAddr = CLIENT.parse().unwrap();
        let lost = |answer: &Answer| answer.peer().is_some_and(|peer| peer != client);
        self.expect(Place::Client, EXTERNAL, "the address is lost", lost).await;
        for node in ELSEWHERE {
            let answered = |answer: &Answer| answer.peer().is_some();
            self.expect(Place::Node(node.to_owned()), UNROUTED, "the node answers itself", answered).await;
        }
    }

    /// With the object the source IP is preserved, and non-ingress nodes do not intercept the
    /// external IP.
    pub(crate) async fn addresses_arrive(&self) {
        let client: IpAddr = CLIENT.parse().unwrap();
        let arrived = |answer: &Answer| answer.peer() == Some(client);
        self.expect(Place::Client, EXTERNAL, "the address arrives", arrived).await;
        for node in ELSEWHERE {
            let silent = |answer: &Answer| answer.peer().is_none();
            self.expect(Place::Node(node.to_owned()), UNROUTED, "the router knows no way", silent).await;
        }
    }

    /// Starts clients that send requests continuously, and waits until each has had a response.
    pub(crate) async fn keep_asking(&self) -> Asking {
        let program = echo_program().unwrap().display().to_string();
        let mut clients = Vec::new();
        let inside = ELSEWHERE.map(|node| (Place::Node(node.to_owned()), self.cluster_ip.as_str()));
        for (place, host) in [(Place::Client, EXTERNAL)].into_iter().chain(inside) {
            let target = format!("{host}:80");
            let asks = [&program, "ask", "http", &target, "--count=0", "--interval=20", "--timeout=5000"];
            let command = self.lab.command_in(&place, &asks).await.unwrap();
            let output = self.directory.path().join(place.to_string());
            clients.push((format!("{place} to {host}"), Process::start_in_place(command, &output)));
        }
        eventually("everybody is answered", async || {
            clients.iter().all(|(_, client)| client.printed().contains('\n')).then_some(())
        })
        .await;
        Asking(clients)
    }
}

/// The running clients.
pub(crate) struct Asking(Vec<(String, Process)>);

impl Asking {
    /// Stops the clients, asserts that no request failed, and returns the number of requests.
    pub(crate) async fn expect_no_failure(self) -> usize {
        let mut sent = 0;
        for (name, mut client) in self.0 {
            client.signal(Signal::SIGTERM);
            client.end().await;
            let printed = client.printed();
            let failed: Vec<&str> = printed.lines().filter(|line| line.contains("\"error\"")).collect();
            assert!(failed.is_empty(), "{name}: {failed:#?}");
            sent += printed.lines().count();
        }
        sent
    }
}
