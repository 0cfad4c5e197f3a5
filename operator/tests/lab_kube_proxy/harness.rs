//! A cluster of three nodes with the operator, an application behind an external IP, and clients
//! that send requests continuously.

use std::path::Path;

use isp_api::IngressSourcePreserve;
use isp_api::conditions::find;
use isp_api::names::{FAILURE_ANNOTATION, condition};
use isp_lab::{Answer, Lab, Place, Protocol, Shipped};
use isp_testkit::traffic::start_echo;
use isp_testkit::web_lab::{CLIENT, EDGE, ELSEWHERE, EXTERNAL, OBJECT, UNROUTED, serve, wait_until_ready};
use isp_testkit::{Process, answers, repository, until};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::Api;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// When kube-proxy last wrote its rules. By then it has removed the rules of a previous mode.
const WRITTEN: &str = "kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family=\"IPv4\"}";

pub(crate) struct Scenario {
    pub(crate) lab: Lab,
    cluster_ip: String,
    directory: tempfile::TempDir,
}

impl Scenario {
    pub(crate) async fn up(name: &str) -> Self {
        let lab = Lab::builder().name(name).nodes([EDGE, ELSEWHERE[0], ELSEWHERE[1]]).up().await.unwrap();
        let overlay = repository::file("manifests/overlays/lab");
        lab.install_project(Path::new(env!("CARGO_BIN_EXE_operator")), &overlay).await.unwrap();
        lab.kubectl(["create", "namespace", "web"]).await.unwrap();
        serve(&lab).await;
        let services: Api<Service> = Api::namespaced(lab.client(), "web");
        let cluster_ip = services.get("frontend").await.unwrap().spec.unwrap().cluster_ip.unwrap();
        Self { lab, cluster_ip, directory: tempfile::tempdir().unwrap() }
    }

    /// Replaces kube-proxy and waits until it serves on all nodes.
    pub(crate) async fn replace(&self, shipped: Shipped) {
        self.lab.replace_kube_proxy(shipped).await.unwrap_or_else(|error| panic!("{shipped}: {error}"));
        for node in [EDGE, ELSEWHERE[0], ELSEWHERE[1]] {
            until(&format!("{shipped} has written its rules on {node}"), async || {
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
        wait_until_ready(&self.lab, OBJECT).await;
    }

    /// Waits until `AgentsReady` is false for this reason, and returns its message.
    pub(crate) async fn wait_until_said(&self, reason: &str) -> String {
        until(reason, async || {
            let status = self.objects().get(OBJECT).await.unwrap().status?;
            let agents = find(&status.conditions, condition::AGENTS_READY)?;
            (agents.reason == reason && agents.status == "False").then(|| agents.message.clone())
        })
        .await
    }

    async fn node(&self, name: &str) -> Node {
        Api::<Node>::all(self.lab.client()).get(name).await.unwrap()
    }

    /// The failure recorded on a node whose agent did not start.
    pub(crate) async fn failure_of(&self, node: &str) -> String {
        until(&format!("the failure of {node}"), async || {
            self.node(node).await.metadata.annotations?.remove(FAILURE_ANNOTATION)
        })
        .await
    }

    pub(crate) async fn wait_until_handed_back(&self) {
        let sets: Api<DaemonSet> = Api::namespaced(self.lab.client(), "kube-system");
        until("kube-proxy is everywhere again", async || {
            let status = sets.get("kube-proxy").await.unwrap().status?;
            (status.number_available == Some(3)).then_some(())
        })
        .await;
    }

    async fn expect(&self, place: Place, host: &str, what: &str, is_so: impl Fn(&Answer) -> bool) {
        answers::until(&self.lab, what, &place, (Protocol::Http, &format!("{host}:80")), is_so).await;
    }

    /// Without the object the source IP is lost, and each node intercepts the external IP.
    pub(crate) async fn addresses_are_lost(&self) {
        let lost = |answer: &Answer| answer.peer().is_some_and(|peer| peer != CLIENT);
        self.expect(Place::Client, EXTERNAL, "the address is lost", lost).await;
        for node in ELSEWHERE {
            let answered = |answer: &Answer| answer.peer().is_some();
            self.expect(Place::Node(node.to_owned()), UNROUTED, "the node answers itself", answered).await;
        }
    }

    /// With the object the source IP is preserved, and non-ingress nodes do not intercept the
    /// external IP.
    pub(crate) async fn addresses_arrive(&self) {
        let arrived = |answer: &Answer| answer.peer() == Some(CLIENT);
        self.expect(Place::Client, EXTERNAL, "the address arrives", arrived).await;
        for node in ELSEWHERE {
            let silent = |answer: &Answer| answer.peer().is_none();
            self.expect(Place::Node(node.to_owned()), UNROUTED, "the router knows no way", silent).await;
        }
    }

    /// Starts clients that send requests continuously, and waits until each has had a response.
    pub(crate) async fn keep_asking(&self) -> Asking {
        let mut clients = Vec::new();
        let inside = ELSEWHERE.map(|node| (Place::Node(node.to_owned()), self.cluster_ip.as_str()));
        for (place, host) in [(Place::Client, EXTERNAL)].into_iter().chain(inside) {
            let target = format!("{host}:80");
            let asks = ["ask", "http", &target, "--count=0", "--interval=20", "--timeout=5000"];
            let output = self.directory.path().join(place.to_string());
            let client = start_echo(&self.lab, &place, &asks, &output).await;
            clients.push((format!("{place} to {host}"), client));
        }
        until("each client has an answer", async || {
            let waiting = clients.iter().filter(|(_, client)| !client.printed().contains('\n'));
            let waiting: Vec<&str> = waiting.map(|(name, _)| name.as_str()).collect();
            if waiting.is_empty() { Ok(()) } else { Err(waiting) }
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
