//! Foreign objects that look like ours, and nodes that the operator must ignore.

use std::time::Duration;

use isp_lab::ECHO_IMAGE;
use isp_testkit::web_lab::{ELSEWHERE, OBJECT, WebLab};
use isp_testkit::{Process, until};
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::Api;
use serde_json::{Value, json};

use crate::A_WHILE;

/// A DaemonSet with our labels in kube-system, one with our labels in a tenant's namespace, and one
/// there that runs a "kube-proxy".
const SETS: [(&str, &str, &str); 3] = [
    ("kube-system", "observability", "agent"),
    ("tenant", "proxy-agent-default-0123456789", "agent"),
    ("tenant", "kube-proxy", "kube-proxy"),
];

fn daemon_set(namespace: &str, name: &str, container: &str) -> Value {
    let labels = json!({
        "app.kubernetes.io/name": "proxy-agent",
        "sourcepreserve.io/agent-pool": "default",
        "sourcepreserve.io/agent-revision": "0123456789",
    });
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name, "app.kubernetes.io/name": "proxy-agent"}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": container, "image": ECHO_IMAGE, "imagePullPolicy": "Never"}],
                },
            },
        },
    })
}

/// A simulated node with another operating system.
fn windows() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "windows-1", "labels": {"kubernetes.io/os": "windows"}},
        "spec": {"taints": [{"key": "os", "value": "windows", "effect": "NoSchedule"}]},
    })
}

pub(crate) async fn objects_are_left_alone(scenario: &WebLab) {
    let lab = &scenario.lab;
    lab.kubectl(["create", "namespace", "tenant"]).await.unwrap();
    let sets = SETS.map(|(namespace, name, container)| daemon_set(namespace, name, container));
    for set in &sets {
        lab.apply(&set.to_string()).await.unwrap();
    }
    // Forged as if the operator itself had created it.
    let forged = sets[1].to_string();
    let apply =
        ["apply", "--server-side", "--force-conflicts", "--field-manager=sourcepreserve-operator", "-f", "-"];
    lab.kubectl_with_input(apply, &forged).await.unwrap();
    lab.apply(&windows().to_string()).await.unwrap();
    until("the other node is left out", async || {
        let status = scenario.objects().get(OBJECT).await.unwrap().status.unwrap_or_default();
        status.left_out.is_some_and(|left_out| left_out.nodes == ["windows-1"])
    })
    .await;
    scenario.wait_until_ready().await;
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(scenario.condition("Ready").await.unwrap().status, "True");
    are_still_there(scenario).await;
}

pub(crate) async fn are_still_there(scenario: &WebLab) {
    for (namespace, name, _) in SETS {
        let sets: Api<DaemonSet> = Api::namespaced(scenario.lab.client(), namespace);
        let set = sets.get_opt(name).await.unwrap();
        assert!(
            set.is_some_and(|set| set.metadata.deletion_timestamp.is_none()),
            "{namespace}/{name} was deleted"
        );
    }
}

/// A timestamp on a node that overflows any addition.
pub(crate) async fn an_annotation_ends_nothing(scenario: &WebLab, operator: &mut Process) {
    let forged = json!({"pool": "default", "started": "9999-12-30T22:00:00.999999999Z"});
    for manager in ["kubelet", "sourcepreserve-operator"] {
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": ELSEWHERE[1], "annotations": {"sourcepreserve.io/handover": forged.to_string()}},
        });
        // Fields that the operator owns stay as they are; only the annotation is overwritten.
        let patch = json!({"metadata": node["metadata"]}).to_string();
        let arguments = [
            "patch",
            "node",
            ELSEWHERE[1],
            "--type=merge",
            "-p",
            &patch,
            &format!("--field-manager={manager}"),
        ];
        scenario.lab.kubectl(arguments).await.unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(operator.ended().is_none(), "{}", operator.complained());
        scenario.wait_until_ready().await;
    }
    let remove = "sourcepreserve.io/handover-";
    scenario.lab.kubectl(["annotate", "node", ELSEWHERE[1], remove]).await.unwrap();
    scenario.wait_until_ready().await;
}
