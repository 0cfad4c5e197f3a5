//! A lab, and a non-ingress node whose rules the tests compare.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use isp_api::IngressSourceNode;
use isp_lab::{EchoApp, Lab, Place, Protocol, ProxyMode};
use isp_plan::build::agents::{Agent, filter_daemon_set};
use isp_testkit::{answers, preserve, until};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::rules;

pub(crate) const NODE: &str = "work-1";
const AGENT_IMAGE: &str = "lab.local/proxy-agent:1";

pub(crate) struct Scenario {
    pub(crate) lab: Lab,
    pub(crate) mode: ProxyMode,
    /// The number of processes so far, each with its own log.
    logs: AtomicUsize,
    directory: tempfile::TempDir,
}

impl Drop for Scenario {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.directory.disable_cleanup(true);
            eprintln!("logs of the agent and kube-proxy: {}", self.directory.path().display());
        }
    }
}

impl Scenario {
    /// Starts an empty cluster.
    pub(crate) async fn bare(name: &str, nodes: &[&str], mode: ProxyMode) -> Self {
        let lab = Lab::builder().name(name).nodes(nodes.iter().copied()).proxy_mode(mode).up().await.unwrap();
        preserve::install(&lab).await;
        Self { lab, mode, logs: AtomicUsize::new(0), directory: tempfile::tempdir().unwrap() }
    }

    /// Starts a cluster with an ingress node and two Services.
    pub(crate) async fn up(name: &str, mode: ProxyMode) -> Self {
        let scenario = Self::bare(name, &["edge-1", NODE], mode).await;
        let lab = &scenario.lab;
        for (name, port) in [("narrowed", 30080), ("hidden", 30090)] {
            let app =
                EchoApp { name, namespace: "default", node: "edge-1", node_port: port, annotations: &[] };
            lab.run_echo(&app).await.unwrap();
        }
        let services: Api<Service> = Api::namespaced(lab.client(), "default");
        let external = json!({"spec": {"externalIPs": ["192.0.2.50"], "externalTrafficPolicy": "Local"}});
        services.patch("narrowed", &PatchParams::default(), &Patch::Merge(external)).await.unwrap();
        scenario
    }

    pub(crate) async fn cluster_ip(&self, service: &str) -> String {
        let services: Api<Service> = Api::namespaced(self.lab.client(), "default");
        services.get(service).await.unwrap().spec.unwrap().cluster_ip.unwrap()
    }

    /// Returns the node's rules in the kernel.
    pub(crate) async fn rules(&self) -> String {
        let command: &[&str] = match self.mode {
            ProxyMode::Nftables => &["nft", "list", "ruleset"],
            ProxyMode::Iptables => &["iptables-save"],
        };
        self.lab.exec(&Place::Node(NODE.to_owned()), command).await.unwrap().stdout
    }

    /// Returns the rules in a normalized form, for comparison.
    pub(crate) async fn normalised_rules(&self) -> BTreeSet<String> {
        match self.mode {
            ProxyMode::Nftables => {
                let place = Place::Node(NODE.to_owned());
                let listed = self.lab.exec(&place, &["nft", "-j", "list", "ruleset"]).await.unwrap();
                rules::of_nftables(&listed.stdout)
            }
            ProxyMode::Iptables => rules::of_iptables(&self.rules().await),
        }
    }

    /// Returns the rules of a kube-proxy that sees everything, once they are complete and stable.
    pub(crate) async fn settled_rules(&self) -> BTreeSet<String> {
        let addresses =
            [self.cluster_ip("narrowed").await, self.cluster_ip("hidden").await, "192.0.2.50".to_owned()];
        until("kube-proxy serves both", async || {
            let rules = self.rules().await;
            addresses.iter().all(|address| rules.contains(address))
        })
        .await;
        self.still_rules().await
    }

    /// Returns the rules, once they are stable.
    pub(crate) async fn still_rules(&self) -> BTreeSet<String> {
        let mut before = self.normalised_rules().await;
        until("the rules are stable", async || {
            tokio::time::sleep(Duration::from_secs(3)).await;
            let now = self.normalised_rules().await;
            let changed = rules::difference(&now, &before);
            if std::mem::replace(&mut before, now.clone()) == now { Ok(now) } else { Err(changed) }
        })
        .await
    }

    /// Waits until the rules are these; otherwise prints the differences.
    pub(crate) async fn expect_rules(&self, what: &str, wanted: &BTreeSet<String>) {
        until(what, async || {
            let rules = self.normalised_rules().await;
            if rules == *wanted { Ok(()) } else { Err(rules::difference(&rules, wanted)) }
        })
        .await;
    }

    /// Removes the cluster's own kube-proxy from the node; its rules stay.
    pub(crate) async fn take_kube_proxy_away(&self) {
        self.lab.kubectl(["label", "node", NODE, "sourcepreserve.io/agent-pool=default"]).await.unwrap();
        let affinity = json!({"spec": {"template": {"spec": {"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "sourcepreserve.io/agent-pool", "operator": "DoesNotExist"},
            ]}]},
        }}}}}});
        let patch = affinity.to_string();
        self.lab
            .kubectl(["-n", "kube-system", "patch", "daemonset", "kube-proxy", "-p", &patch])
            .await
            .unwrap();
        let pods: Api<Pod> = Api::namespaced(self.lab.client(), "kube-system");
        let here =
            ListParams::default().labels("k8s-app=kube-proxy").fields(&format!("spec.nodeName={NODE}"));
        until("kube-proxy leaves", async || pods.list(&here).await.unwrap().items.is_empty()).await;
    }

    pub(crate) async fn preserve(&self, service: &str, elsewhere: &str) {
        preserve::preserve(&self.lab, service, elsewhere).await;
    }

    pub(crate) async fn forget(&self) {
        for service in ["narrowed", "hidden"] {
            preserve::forget(&self.lab, service).await;
        }
    }

    pub(crate) async fn ready(&self) -> bool {
        let nodes: Api<IngressSourceNode> = Api::all(self.lab.client());
        let status = nodes.get_opt(NODE).await.unwrap().and_then(|node| node.status);
        status.is_some_and(|status| {
            status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
        })
    }

    /// Checks that traffic from the node to the address enters through the ingress node, like
    /// everyone's.
    pub(crate) async fn external_address_reaches_the_ingress_node(&self, node: &Place, address: &str) {
        let external: IpAddr = address.parse().unwrap();
        self.lab.route(external, &["edge-1"]).await.unwrap();
        let own = IpAddr::from(self.lab.topology().node(NODE).unwrap().address());
        let target = format!("{address}:80");
        let what = "the external address is reached by the router";
        answers::until(&self.lab, what, node, (Protocol::Http, &target), |answer| answer.peer() == Some(own))
            .await;
    }

    /// Runs the agents of a pool as a DaemonSet that is derived from the cluster's own.
    pub(crate) async fn run_pool(&self, pool: &str) {
        let program = Path::new(env!("CARGO_BIN_EXE_proxy-agent"));
        let archive = isp_lab::pack(AGENT_IMAGE, program, "65532:65532").unwrap();
        self.lab.load_image(&archive).await.unwrap();
        let sets: Api<DaemonSet> = Api::namespaced(self.lab.client(), "kube-system");
        let kube_proxy = sets.get("kube-proxy").await.unwrap();
        let agent = Agent { image: AGENT_IMAGE, pool, kubeconfig: "/var/lib/kube-proxy/kubeconfig.conf" };
        let set = filter_daemon_set(&kube_proxy, agent).unwrap();
        sets.create(&PostParams::default(), &set).await.unwrap();
    }

    async fn agent_pod(&self) -> Option<Pod> {
        let pods: Api<Pod> = Api::namespaced(self.lab.client(), "kube-system");
        let agents = ListParams::default().labels("app.kubernetes.io/name=proxy-agent");
        pods.list(&agents).await.unwrap().items.pop()
    }

    pub(crate) async fn agent_restarts(&self) -> i32 {
        let status = self.agent_pod().await.and_then(|pod| pod.status).unwrap_or_default();
        status.init_container_statuses.iter().flatten().map(|container| container.restart_count).sum()
    }

    /// Kills the agent's process, as the node's OOM killer would.
    pub(crate) async fn kill_agent_container(&self) {
        // All nodes of the lab share one pid namespace, and this is the only agent in it.
        let found = ["pgrep", "-f", "^/usr/local/bin/proxy-agent filter"];
        let found = self.lab.exec(&Place::ControlPlane, &found).await.unwrap().stdout;
        let ids: Vec<&str> = found.split_whitespace().collect();
        assert_eq!(ids.len(), 1, "{found}");
        assert!(self.lab.exec(&Place::ControlPlane, &["kill", "-KILL", ids[0]]).await.unwrap().success);
    }

    /// Returns the path of the log of a new process.
    pub(crate) fn new_log(&self, name: &str) -> PathBuf {
        self.file(&format!("{name}-{}.log", self.logs.fetch_add(1, Ordering::Relaxed)))
    }

    /// Returns the path of a file of this scenario.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.file(name).display().to_string()
    }
}
