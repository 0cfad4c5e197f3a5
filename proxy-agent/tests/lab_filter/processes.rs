//! Runs the agent and kube-proxy as plain processes in the node's network, so that a test can kill
//! them.

use std::fs;
use std::time::Duration;

use isp_api::IngressSourceNode;
use isp_lab::Place;
use isp_lab::provision::{self, KubernetesVersion};
use isp_testkit::{Process, until};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::harness::{NODE, Scenario};

/// Starts a program on the node.
async fn start(scenario: &Scenario, arguments: &[&str], name: &str) -> Process {
    let command = scenario.lab.command_in(&Place::Node(NODE.to_owned()), arguments).await.unwrap();
    Process::start_in_place(command, &scenario.new_log(name))
}

/// A kube-proxy that connects to the API server directly.
pub(crate) struct Direct {
    _process: Process,
}

impl Direct {
    pub(crate) async fn start(scenario: &Scenario, version: KubernetesVersion) -> Self {
        write_files(scenario).await;
        Self { _process: start_kube_proxy(scenario, version, "direct.conf").await }
    }
}

/// An agent and the kube-proxy behind it.
pub(crate) struct Behind<'a> {
    scenario: &'a Scenario,
    version: KubernetesVersion,
    agent: Process,
    kube_proxy: Process,
}

impl<'a> Behind<'a> {
    /// Starts both. Only the rules of earlier ones remain.
    pub(crate) async fn start(scenario: &'a Scenario, version: KubernetesVersion) -> Self {
        write_files(scenario).await;
        forget_acknowledgement(scenario).await;
        let agent = start_agent(scenario).await;
        until("the agent fills a directory", async || scenario.file("serving/kubeconfig.conf").is_file())
            .await;
        let kube_proxy = start_kube_proxy(scenario, version, "serving/config.conf").await;
        Self { scenario, version, agent, kube_proxy }
    }

    /// Kills the agent, and starts another one, which reports the view itself.
    pub(crate) async fn replace_agent(&mut self, pause: Duration) {
        self.agent.kill();
        tokio::time::sleep(pause).await;
        self.agent = start_agent(self.scenario).await;
    }

    /// Kills kube-proxy, and starts another one.
    pub(crate) async fn replace_kube_proxy(&mut self, pause: Duration) {
        self.kube_proxy.kill();
        tokio::time::sleep(pause).await;
        self.kube_proxy = start_kube_proxy(self.scenario, self.version, "serving/config.conf").await;
    }

    /// Restarts kube-proxy if it exited by itself, as the kubelet would. The agent never exits by
    /// itself.
    pub(crate) async fn revive(&mut self) -> bool {
        assert!(self.agent.ended().is_none(), "the agent ended by itself");
        let ended = self.kube_proxy.ended().is_some();
        if ended {
            self.kube_proxy = start_kube_proxy(self.scenario, self.version, "serving/config.conf").await;
        }
        ended
    }

    /// Returns the value of one of the agent's counters.
    pub(crate) async fn count(&self, counter: &str) -> u64 {
        let page = self.metrics("http://127.0.0.1:10261/metrics").await;
        let name = format!("isp_agent_{counter}_total ");
        page.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse().unwrap()
    }

    /// Says whether kube-proxy is of the expected release.
    pub(crate) async fn is_of_its_release(&self) -> bool {
        let page = self.metrics("http://127.0.0.1:10249/metrics").await;
        page.contains(&format!("git_version=\"v{}\"", self.version))
    }

    async fn metrics(&self, address: &str) -> String {
        self.scenario.lab.curl(&Place::Node(NODE.to_owned()), &[address]).await.unwrap().stdout
    }
}

/// Deletes the report of an earlier agent, which proves nothing about a later one.
pub(crate) async fn forget_acknowledgement(scenario: &Scenario) {
    let nodes: Api<IngressSourceNode> = Api::all(scenario.lab.client());
    if nodes.get_opt(NODE).await.unwrap().is_some() {
        nodes.delete(NODE, &DeleteParams::default()).await.unwrap();
    }
}

/// Removes the rules of a kube-proxy.
pub(crate) async fn clean_up(scenario: &Scenario, version: KubernetesVersion) {
    let place = Place::Node(NODE.to_owned());
    let output = scenario.lab.exec(&place, &[&kube_proxy(version), "--cleanup"]).await.unwrap();
    assert!(output.success, "{}", output.stderr);
}

fn kube_proxy(version: KubernetesVersion) -> String {
    provision::program_of(version, "kube-proxy", |line| eprintln!("{line}")).unwrap().display().to_string()
}

async fn start_kube_proxy(scenario: &Scenario, version: KubernetesVersion, configuration: &str) -> Process {
    let flag = format!("--config={}", scenario.path(configuration));
    start(scenario, &[&kube_proxy(version), &flag], "kube-proxy").await
}

async fn start_agent(scenario: &Scenario) -> Process {
    let original = format!("--kube-proxy-kubeconfig={}", scenario.path("original/kubeconfig.conf"));
    let serving = format!("--serving-directory={}", scenario.path("serving"));
    let token = format!("--token-file={}", scenario.path("proxy-agent"));
    let node = format!("--node-name={NODE}");
    let arguments = [env!("CARGO_BIN_EXE_proxy-agent"), "filter", &node, &original, &serving, &token];
    start(scenario, &arguments, "agent").await
}

/// Writes tokens, and configurations of a kube-proxy with and without an agent.
async fn write_files(scenario: &Scenario) {
    // Bound to the node, as the kubelet's tokens are.
    let bound = ["--bound-object-kind=Node", "--bound-object-name", NODE];
    for account in ["kube-proxy", "proxy-agent"] {
        let create =
            ["-n", "kube-system", "create", "token", account, "--duration=4h", bound[0], bound[1], bound[2]];
        let token = scenario.lab.kubectl(create).await.unwrap();
        fs::write(scenario.file(account), token.stdout.trim()).unwrap();
    }
    let _ = fs::remove_dir_all(scenario.file("serving"));
    for directory in ["original", "serving"] {
        fs::create_dir_all(scenario.file(directory)).unwrap();
    }
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default", "cluster": {
            "server": scenario.lab.server(),
            "certificate-authority": scenario.lab.authority(),
        }}],
        "users": [{"name": "default", "user": {"tokenFile": scenario.path("kube-proxy")}}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "current-context": "default",
    });
    fs::write(scenario.file("original/kubeconfig.conf"), kubeconfig.to_string()).unwrap();
    for (file, kubeconfig) in
        [("original/config.conf", "serving/kubeconfig.conf"), ("direct.conf", "original/kubeconfig.conf")]
    {
        fs::write(scenario.file(file), configuration(scenario, kubeconfig).to_string()).unwrap();
    }
}

fn configuration(scenario: &Scenario, kubeconfig: &str) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": scenario.mode.to_string(),
        "clusterCIDR": "10.244.0.0/16",
        "hostnameOverride": NODE,
        "clientConnection": {"kubeconfig": scenario.path(kubeconfig)},
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    })
}
