#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};

use super::*;
use crate::cluster::Node;
use crate::placement::{admits, tolerates};

fn rendered() -> Value {
    serde_json::to_value(beside_daemon_set("kube-system", "agent:1", MaxUnavailable::Percent(10))).unwrap()
}

#[test]
fn the_agent_may_change_packet_rules_and_nothing_else() {
    let set = rendered();
    let pod = &set["spec"]["template"]["spec"];
    let [agent] = &pod["containers"].as_array().unwrap()[..] else { panic!("one container") };
    assert_eq!(
        agent["securityContext"],
        json!({
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsUser": 0, "runAsGroup": 0,
            "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
        })
    );
    assert_eq!(pod["hostNetwork"], true);
    for forbidden in ["volumes", "hostPID", "hostIPC", "initContainers"] {
        assert_eq!(pod[forbidden], Value::Null, "{forbidden}");
    }
    assert_eq!(agent["volumeMounts"], Value::Null);
}

#[test]
fn it_shares_no_port_and_no_pod_label_with_the_agents_of_mode_filter() {
    let set = rendered();
    let agent = &set["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(agent["args"], json!(["beside", "--admin=127.0.0.1:10262", "--metrics-port=10262"]));
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        assert_eq!(agent[probe]["httpGet"]["port"], 10262, "{probe}");
    }
    assert_eq!(agent["ports"][0]["hostPort"], 10262);
    let labels = json!({"app.kubernetes.io/name": "proxy-agent", "sourcepreserve.io/agent-mode": "beside"});
    assert_eq!(set["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(set["spec"]["template"]["metadata"]["labels"], labels);
}

#[test]
fn it_runs_on_every_node_that_has_a_network_of_its_own() {
    let set = beside_daemon_set("kube-system", "agent:1", MaxUnavailable::Count(1));
    let pod = set.spec.template.spec.unwrap();
    for (key, value, runs) in [
        ("kubernetes.io/os", "linux", true),
        ("own", "label", true),
        ("kubernetes.io/os", "windows", false),
        ("type", "virtual-kubelet", false),
        ("eks.amazonaws.com/compute-type", "fargate", false),
    ] {
        let labels = [(key.to_owned(), value.to_owned())].into();
        let node = Node { labels, ..Node::default() };
        assert_eq!(admits(&pod, "n", &node) && tolerates(&pod, &node), runs, "{key}={value}");
    }
}

#[test]
fn agents_are_replaced_at_the_pace_of_the_rollout() {
    let strategy = &rendered()["spec"]["updateStrategy"];
    let rolling = json!({"maxUnavailable": "10%", "maxSurge": 0});
    assert_eq!(strategy, &json!({"type": "RollingUpdate", "rollingUpdate": rolling}));
}

/// `UPDATE_EXAMPLES=1` regenerates it.
#[test]
fn the_example_in_the_manifests_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../manifests/examples/beside.yaml");
    let set =
        beside_daemon_set("kube-system", "sourcepreserve.io/proxy-agent:0.1.0", MaxUnavailable::Percent(10));
    let yaml = serde_yaml::to_string(&set).unwrap();
    let text = format!("# The DaemonSet of the agents in mode Beside. An example for reading.\n{yaml}");
    if std::env::var_os("UPDATE_EXAMPLES").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), text);
}
