use serde_json::{Value, json};

use super::*;

/// As installed by kubeadm.
fn kube_proxy(affinity: &Value) -> DaemonSet {
    serde_json::from_value(json!({
        "metadata": {"name": "kube-proxy", "namespace": "kube-system", "labels": {"k8s-app": "kube-proxy"}},
        "spec": {
            "selector": {"matchLabels": {"k8s-app": "kube-proxy"}},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {
                "metadata": {"labels": {"k8s-app": "kube-proxy"}},
                "spec": {
                    "affinity": affinity,
                    "serviceAccountName": "kube-proxy",
                    "hostNetwork": true,
                    "tolerations": [{"operator": "Exists"}],
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "containers": [{
                        "name": "kube-proxy",
                        "image": "registry.k8s.io/kube-proxy:v1.37.0",
                        "command": ["/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf"],
                        "securityContext": {"privileged": true},
                        "volumeMounts": [{"name": "kube-proxy", "mountPath": "/var/lib/kube-proxy"}],
                    }],
                    "volumes": [{"name": "kube-proxy", "configMap": {"name": "kube-proxy"}}],
                },
            },
        },
    }))
    .unwrap()
}

fn rendered(affinity: &Value) -> Value {
    let agent =
        Agent { image: "agent:1", pool: "workers", kubeconfig: "/var/lib/kube-proxy/kubeconfig.conf" };
    serde_json::to_value(filter_daemon_set(&kube_proxy(affinity), agent).unwrap()).unwrap()
}

#[test]
fn kube_proxy_stays_as_it_is_but_for_its_kubeconfig() {
    let pod = &rendered(&json!({}))["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["image"], "registry.k8s.io/kube-proxy:v1.37.0");
    assert_eq!(container["command"][1], "--config=/var/lib/kube-proxy/config.conf");
    assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
    assert_eq!(
        pod["nodeSelector"],
        json!({"kubernetes.io/os": "linux", "sourcepreserve.io/agent-pool": "workers"})
    );
    // The agent's volume replaces kube-proxy's directory.
    let mounts = json!([{"name": "proxy-agent", "mountPath": "/var/lib/kube-proxy", "readOnly": true}]);
    assert_eq!(container["volumeMounts"], mounts);
}

#[test]
fn the_agent_starts_first_and_has_no_rights_on_the_node() {
    let pod = &rendered(&json!({}))["spec"]["template"]["spec"];
    let agent = &pod["initContainers"][0];
    assert_eq!((&agent["name"], &agent["restartPolicy"]), (&json!("proxy-agent"), &json!("Always")));
    assert_eq!(agent["securityContext"]["capabilities"], json!({"drop": ["ALL"]}));
    assert_eq!(agent["securityContext"]["runAsNonRoot"], true);
    assert_eq!(
        agent["volumeMounts"][0],
        json!({"name": "kube-proxy", "mountPath": "/var/lib/kube-proxy", "readOnly": true})
    );
    assert_eq!(pod["serviceAccountName"], "proxy-agent");
}

#[test]
fn an_agent_that_no_longer_turns_is_started_again_and_its_metrics_can_be_scraped() {
    let pod = &rendered(&json!({}))["spec"]["template"]["spec"];
    let agent = &pod["initContainers"][0];
    let liveness = &agent["livenessProbe"];
    assert_eq!(
        (&liveness["httpGet"]["path"], &liveness["httpGet"]["host"]),
        (&json!("/healthz"), &json!("127.0.0.1"))
    );
    let minute = liveness["periodSeconds"].as_i64().unwrap() * liveness["failureThreshold"].as_i64().unwrap();
    assert_eq!(minute, 60, "a busy node is no reason");
    let metrics = json!([{"name": "metrics", "containerPort": 10261, "hostPort": 10261, "protocol": "TCP"}]);
    assert_eq!(agent["ports"], metrics);
    let host = agent["env"].as_array().unwrap().iter().find(|entry| entry["name"] == "METRICS_HOST").unwrap();
    assert_eq!(host["valueFrom"]["fieldRef"]["fieldPath"], "status.hostIP");
}

#[test]
fn its_pods_are_nobody_elses() {
    let set = rendered(&json!({}));
    let labels = json!({"app.kubernetes.io/name": "proxy-agent", "sourcepreserve.io/agent-pool": "workers"});
    assert_eq!(set["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(set["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(set["metadata"]["name"], "proxy-agent-workers");
}

#[test]
fn what_keeps_kube_proxy_off_the_nodes_does_not_keep_the_agent_off() {
    let ours = json!({"key": "sourcepreserve.io/agent-pool", "operator": "DoesNotExist"});
    let theirs = json!({"key": "disk", "operator": "In", "values": ["ssd"]});
    let affinity = |expressions: Value| {
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": expressions}],
        }}})
    };
    let of =
        |expressions: Value| rendered(&affinity(expressions))["spec"]["template"]["spec"]["affinity"].clone();
    assert_eq!(of(json!([ours])), Value::Null, "as if there had never been one");
    assert_eq!(of(json!([ours, theirs])), affinity(json!([theirs])));
}

#[test]
fn a_daemon_set_that_is_something_else_is_refused_by_name() {
    let mut other = kube_proxy(&json!({}));
    let container = &mut other.spec.template.spec.as_mut().unwrap().containers[0];
    container.name = "cilium-agent".to_owned();
    container.command = Some(vec!["cilium-agent".to_owned()]);
    let agent = Agent { image: "agent:1", pool: "workers", kubeconfig: "/k" };
    let error = filter_daemon_set(&other, agent).unwrap_err().to_string();
    assert!(error.contains("kube-system/kube-proxy") && error.contains("spec.kubeProxy"), "{error}");
}

/// The example is generated from kubeadm's kube-proxy. `UPDATE_EXAMPLES=1` regenerates it.
#[test]
fn the_example_in_the_manifests_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../manifests/examples/filter-pool.yaml");
    let agent = Agent {
        image: "sourcepreserve.io/proxy-agent:0.1.0",
        pool: "default",
        kubeconfig: "/var/lib/kube-proxy/kubeconfig.conf",
    };
    let set = of_revision(filter_daemon_set(&kube_proxy(&json!({})), agent).unwrap(), "0123456789");
    let yaml = serde_yaml::to_string(&set).unwrap();
    let text = format!(
        "# The DaemonSet that the operator derives from kubeadm's kube-proxy for the pool `default`. An example for reading.\n{yaml}"
    );
    if std::env::var_os("UPDATE_EXAMPLES").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), text);
}
