//! A cluster of two nodes with Istio, and one pod of each kind.

use std::path::Path;
use std::process::Command;

use isp_lab::provision::{self, KubernetesVersion};
use isp_lab::{Lab, Place};
use isp_testkit::plugin::{self, Ended};
use isp_testkit::until;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::pods;

const PLUGIN: &str = env!("CARGO_BIN_EXE_kubectl-isp");
const NODES: [&str; 2] = ["edge-1", "work-1"];
/// The name under which the lab has the program of the helper.
pub(crate) const IMAGE: &str = "lab.local/pod-redirect:1";
/// Where helpers run.
const HELPERS: &str = "kube-system";
const LABEL: &str = "app.kubernetes.io/name=isp-rules";

pub(crate) struct World {
    pub(crate) lab: Lab,
}

impl World {
    pub(crate) async fn up(name: &str) -> Self {
        let lab = Lab::builder().name(name).nodes(NODES).istio(true).up().await.unwrap();
        lab.load_program(&Path::new(PLUGIN).with_file_name("pod-redirect")).await.unwrap();
        let world = Self { lab };
        let items = json!({"apiVersion": "v1", "kind": "List", "items": pods::all(NODES[1])});
        world.lab.apply(&items.to_string()).await.unwrap();
        for namespace in ["shop", "plain"] {
            let ready = ["-n", namespace, "wait", "--for=condition=Ready", "pod", "--all", "--timeout=180s"];
            world.lab.kubectl(ready).await.unwrap();
        }
        world.write_rules_as_the_cni_plugin_does().await;
        world
    }

    /// Istio's CNI plugin runs this program of Istio's in the pod's network, from the node.
    async fn write_rules_as_the_cni_plugin_does(&self) {
        let provided =
            || provision::program_of(KubernetesVersion::default(), "pilot-agent", |line| eprintln!("{line}"));
        let agent = tokio::task::spawn_blocking(provided).await.unwrap().unwrap();
        let agent = agent.to_str().unwrap();
        let arguments = ["-p", "15001", "-z", "15006", "-u", "1337", "-m", "REDIRECT", "-i", "*", "-b", "*"];
        let exclude = ["-d", "15090,15021,15020"];
        let command = [&[agent, "istio-iptables"], &arguments[..], &exclude[..]].concat();
        self.exec("plain/cni", &command).await;
    }

    /// Runs a program in the network of a pod.
    pub(crate) async fn exec(&self, pod: &str, command: &[&str]) -> String {
        let place = Self::place(pod);
        let output = self.lab.exec(&place, command).await.unwrap();
        assert!(output.success, "{command:?}: {}{}", output.stdout, output.stderr);
        output.stdout
    }

    pub(crate) fn place(pod: &str) -> Place {
        let (namespace, name) = pod.split_once('/').unwrap();
        Place::Pod(namespace.to_owned(), name.to_owned())
    }

    /// The plugin's command.
    pub(crate) fn command(&self, pod: &str, arguments: &[&str]) -> Command {
        let image: &[&str] = if arguments.contains(&"--image") { &[] } else { &["--image", IMAGE] };
        let all = [&["rules", pod], image, arguments].concat();
        plugin::command(PLUGIN, &self.lab.kubeconfig(), &all)
    }

    pub(crate) async fn run(&self, pod: &str, arguments: &[&str]) -> Ended {
        plugin::end(self.command(pod, arguments)).await
    }

    /// What is said about a pod. The exit code fits.
    pub(crate) async fn rules(&self, pod: &str, arguments: &[&str]) -> Value {
        let ended = self.run(pod, &[arguments, &["-o", "json"]].concat()).await;
        let told: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
        isp_testkit::schema::assert_output("rules", &told);
        let code = if Self::codes(&told).is_empty() { 0 } else { 2 };
        assert_eq!(ended.code, Some(code), "{ended:?}");
        told
    }

    /// The pods whose rules `doctor --rules` finds fault with.
    pub(crate) async fn doctor(&self) -> Vec<String> {
        let arguments = ["doctor", "--rules", "--image", IMAGE, "-o", "json"];
        let ended = plugin::end(plugin::command(PLUGIN, &self.lab.kubeconfig(), &arguments)).await;
        let told: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
        isp_testkit::schema::assert_output("doctor", &told);
        let all = told["findings"].as_array().unwrap().iter();
        let of_rules = all.filter(|finding| finding["code"] == "ISP606");
        of_rules.map(|finding| finding["subject"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn codes(told: &Value) -> Vec<&str> {
        told["findings"].as_array().unwrap().iter().map(|finding| finding["code"].as_str().unwrap()).collect()
    }

    /// Waits until no helper is left. The API server deletes them at once.
    pub(crate) async fn expect_no_helper(&self) {
        let pods: Api<Pod> = Api::namespaced(self.lab.client(), HELPERS);
        until("no helper is left", async || {
            let found = pods.list(&ListParams::default().labels(LABEL)).await.unwrap();
            let names: Vec<_> = found.items.into_iter().filter_map(|pod| pod.metadata.name).collect();
            if names.is_empty() { Ok(()) } else { Err(names) }
        })
        .await;
    }

    /// Pods whose rules cannot be read, namespaces that do not admit the helper, and a user without
    /// rights.
    pub(crate) async fn refuses(&self) {
        for (pod, arguments, words) in [
            ("plain/absent", &[][..], "there is no pod plain/absent"),
            ("plain/host", &[], "uses the network of its node"),
            ("plain/none", &["--helper-namespace", "restricted"], "does not admit the helper pod"),
            ("plain/none", &["--image", "lab.local/absent:1"], "did not start"),
            ("plain/none", &["--packet", "icmp -> :1"], "begins with tcp or udp"),
        ] {
            let ended = self.run(pod, arguments).await;
            assert_eq!(ended.code, Some(1), "{ended:?}");
            assert!(ended.stderr.contains(words), "{ended:?}");
        }
        self.expect_no_helper().await;
    }
}
