#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};

use super::*;

fn agents(command: &Value) -> DaemonSet {
    serde_json::from_value(json!({
        "metadata": {"name": "proxy-agent-workers", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/name": "proxy-agent"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": {"app.kubernetes.io/name": "proxy-agent"}},
                "spec": {
                    "nodeSelector": {"sourcepreserve.io/agent-pool": "workers"},
                    "tolerations": [{"operator": "Exists"}],
                    "initContainers": [{"name": "proxy-agent", "image": "agent:1", "imagePullPolicy": "IfNotPresent"}],
                    "containers": [{"name": "kube-proxy", "image": "kube-proxy:1", "command": command}],
                },
            },
        },
    }))
    .unwrap()
}

#[test]
fn a_revision_runs_where_both_labels_are_and_is_never_replaced_in_place() {
    let set = of_revision(agents(&json!(["kube-proxy"])), "0123456789");
    let set = serde_json::to_value(set).unwrap();
    assert_eq!(set["metadata"]["name"], "proxy-agent-workers-0123456789");
    assert_eq!(
        set["spec"]["updateStrategy"],
        json!({"type": "OnDelete"}),
        "a surge would find the agent's port taken"
    );
    let selector =
        json!({"sourcepreserve.io/agent-pool": "workers", "sourcepreserve.io/agent-revision": "0123456789"});
    assert_eq!(set["spec"]["template"]["spec"]["nodeSelector"], selector);
    let labels = &set["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&set["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(labels["sourcepreserve.io/agent-revision"], "0123456789");
    let environment = &set["spec"]["template"]["spec"]["initContainers"][0]["env"];
    assert_eq!(environment, &json!([{"name": "AGENT_REVISION", "value": "0123456789"}]));
}

#[test]
fn images_are_pulled_by_pods_that_do_nothing() {
    for (command, expected) in [
        (json!(["/usr/local/bin/kube-proxy", "--config=/x"]), Some(json!(["/usr/local/bin/kube-proxy"]))),
        (json!(null), Some(json!(null))),
        (json!(["/bin/sh", "-c", "exec kube-proxy"]), None),
    ] {
        let set = images_of(&agents(&command), "workers", "0123456789");
        let set = serde_json::to_value(set).unwrap();
        let pod = &set["spec"]["template"]["spec"];
        assert_eq!(pod["nodeSelector"], json!({"sourcepreserve.io/agent-images": "0123456789"}));
        assert_eq!(pod["automountServiceAccountToken"], json!(false));
        assert_eq!(pod["containers"][0]["image"], "agent:1");
        assert_eq!(pod["containers"][0]["args"], json!(["hold"]));
        assert_eq!(pod["containers"][0]["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
        match expected {
            Some(command) => {
                assert_eq!(pod["initContainers"][0]["image"], "kube-proxy:1");
                assert_eq!(pod["initContainers"][0]["command"], command);
                assert_eq!(pod["initContainers"][0]["args"], json!(["--version"]));
            }
            None => assert_eq!(pod["initContainers"], json!(null)),
        }
    }
}
