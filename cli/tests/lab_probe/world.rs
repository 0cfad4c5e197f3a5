//! The lab with the application of `web_lab`, and the image of the probe's pods on every node.

use std::path::{Path, PathBuf};
use std::process::Command;

use isp_testkit::plugin::{self, Ended};
use isp_testkit::schema::assert_output;
use isp_testkit::until;
use isp_testkit::web_lab::{EXTERNAL, OBJECT, WebLab};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

const PLUGIN: &str = env!("CARGO_BIN_EXE_kubectl-isp");
const IMAGE: &str = "lab.local/probe:1";
const LABEL: &str = "app.kubernetes.io/name=isp-probe";
pub(crate) const SERVICE: [&str; 3] = ["--service", "web/frontend", "--yes"];

pub(crate) struct World {
    pub(crate) web: WebLab,
}

impl World {
    pub(crate) async fn up(name: &str) -> Self {
        let operator = Path::new(PLUGIN).with_file_name("operator");
        let web = WebLab::up(name, operator.to_str().unwrap()).await;
        web.lab.load_program(&Path::new(PLUGIN).with_file_name("probe")).await.unwrap();
        // Only the address that leads somewhere, and a label for objects that select by one.
        let patch = json!({"metadata": {"labels": {"tier": "edge"}}, "spec": {"externalIPs": [EXTERNAL]}});
        let patch = patch.to_string();
        web.lab.kubectl(["-n", "web", "patch", "service", "frontend", "-p", &patch]).await.unwrap();
        let restricted = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "restricted", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
        });
        web.lab.apply(&restricted.to_string()).await.unwrap();
        Self { web }
    }

    /// Applies an object for the Service and waits until it is ready.
    pub(crate) async fn apply(&self, mode: &str, target: Value) {
        let mut target = target;
        target["namespace"] = json!("web");
        let object = json!({
            "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve",
            "metadata": {"name": OBJECT},
            "spec": {
                "mode": mode, "services": [target],
                "ingressNodes": {"selector": {"matchLabels": {"node-role.kubernetes.io/ingress": ""}}},
            },
        });
        self.web.lab.apply(&object.to_string()).await.unwrap();
        self.web.wait_until_ready().await;
    }

    pub(crate) async fn delete(&self) {
        self.web.lab.kubectl(["delete", "isp", OBJECT, "--timeout=120s"]).await.unwrap();
    }

    /// The plugin's command.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let all = [&["probe", "--image", IMAGE, "--from-here=false"], arguments].concat();
        plugin::command(PLUGIN, &self.web.lab.kubeconfig(), &all)
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Ended {
        let ended = plugin::end(self.command(arguments)).await;
        self.expect_nothing_left().await;
        ended
    }

    /// The table. The exit code fits.
    pub(crate) async fn probe(&self, target: &str) -> Value {
        let ended = self.run(&[&SERVICE[..], &["--target", target, "-o", "json"]].concat()).await;
        let told: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
        assert_output("probe", &told);
        let fine = told["preserved"] == true && told["asExpected"] == true;
        assert_eq!(ended.code, Some(if fine { 0 } else { 2 }), "{ended:?}");
        told
    }

    /// Saves a table.
    pub(crate) async fn save(&self, name: &str) -> PathBuf {
        let path = self.web.file(name);
        let save = ["--target", "own", "--save", path.to_str().unwrap()];
        let ended = self.run(&[&SERVICE[..], &save].concat()).await;
        assert_eq!(ended.code, Some(2), "{ended:?}");
        path
    }

    /// The command ends with an error that has these words.
    pub(crate) async fn refuses(&self, arguments: &[&str], words: &str) {
        let ended = self.run(arguments).await;
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
    }

    /// Waits until no pod and no Service of a probe is left. The API server deletes them at once.
    pub(crate) async fn expect_nothing_left(&self) {
        let ours = ListParams::default().labels(LABEL);
        let pods: Api<Pod> = Api::all(self.web.lab.client());
        let services: Api<Service> = Api::all(self.web.lab.client());
        until("nothing of a probe is left", async || {
            let pods = pods.list(&ours).await.unwrap().items.into_iter().map(|pod| pod.metadata);
            let services = services.list(&ours).await.unwrap().items.into_iter().map(|each| each.metadata);
            let names: Vec<_> = pods.chain(services).filter_map(|metadata| metadata.name).collect();
            if names.is_empty() { Ok(()) } else { Err(names) }
        })
        .await;
    }
}
