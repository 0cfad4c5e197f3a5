//! What the project changes on a cluster, so that before and after can be compared.

use std::time::{Duration, Instant};

use isp_lab::Lab;
use isp_lab::istio::{GATEWAY, NAMESPACE};
use serde_json::{Value, json};

/// What is meant to take seconds may take this long on a busy machine.
const DEADLINE: Duration = Duration::from_mins(1);

pub(crate) struct Before(Value);

impl Before {
    pub(crate) async fn take(lab: &Lab) -> Self {
        let service = get(lab, ["service", "-n", NAMESPACE, GATEWAY]).await;
        let proxy = get(lab, ["daemonset", "-n", "kube-system", "kube-proxy"]).await;
        let nodes = get(lab, ["nodes"]).await;
        let nodes: Vec<Value> = nodes["items"].as_array().unwrap().iter().map(declared).collect();
        // Which DaemonSets there are and where each is ready; and who is asked about pods.
        let sets = get(lab, ["daemonsets", "-n", "kube-system"]).await;
        let ready = |set: &Value| json!([set["metadata"]["name"], set["status"]["numberReady"]]);
        let sets: Vec<Value> = sets["items"].as_array().unwrap().iter().map(ready).collect();
        let webhooks = get(lab, ["mutatingwebhookconfigurations"]).await;
        let name = |configuration: &Value| configuration["metadata"]["name"].clone();
        let webhooks: Vec<Value> = webhooks["items"].as_array().unwrap().iter().map(name).collect();
        Self(json!({
            "service": declared(&service), "kube-proxy": declared(&proxy), "nodes": nodes,
            "daemonsets": sets, "webhooks": webhooks,
        }))
    }

    /// Everything is as it was; controllers may have a last word.
    pub(crate) async fn expect_again(&self, lab: &Lab) {
        let started = Instant::now();
        loop {
            let Self(now) = Self::take(lab).await;
            if now == self.0 {
                return;
            }
            assert!(started.elapsed() < DEADLINE, "it was\n{:#}\nand is\n{now:#}", self.0);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

async fn get<const N: usize>(lab: &Lab, what: [&str; N]) -> Value {
    let mut command = lab.kubectl_command();
    command.arg("get").args(what).arg("--output=json");
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{what:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What somebody has said about an object, without what is counted. How often its template was
/// changed a DaemonSet counts in an annotation.
fn declared(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let mut annotations = metadata["annotations"].clone();
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.remove("deprecated.daemonset.template.generation");
    }
    json!({"name": metadata["name"], "labels": metadata["labels"], "annotations": annotations, "spec": object["spec"]})
}
