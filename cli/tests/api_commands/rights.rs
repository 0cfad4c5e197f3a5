//! The rights that commands need.

use isp_testkit::accounts::grant;
use isp_testkit::plugin::{self, command, end, file};
use isp_testkit::repository;
use serde_json::{Value, json};

use super::{PROGRAM, kubeconfig_of};

#[tokio::test]
async fn a_right_that_is_missing_is_named() {
    let ((control_plane, _), directory) = (plugin::cluster(PROGRAM).await, tempfile::tempdir().unwrap());
    let path = kubeconfig_of(control_plane, "web", "nobody", &directory).await;
    let told = end(command(PROGRAM, &path, &["status"])).await;
    assert_eq!(told.code, Some(1));
    for part in ["the right to list ingresssourcepreserves.sourcepreserve.io", "kubectl auth can-i list"] {
        assert!(told.stderr.contains(part), "{part}: {}", told.stderr);
    }
    // Nothing is created to find out.
    let told = end(command(PROGRAM, &path, &["rules", "web/absent"])).await;
    assert_eq!(told.code, Some(1));
    for part in ["the right to create pods in namespace kube-system", "kubectl auth can-i create pods -n"] {
        assert!(told.stderr.contains(part), "{part}: {}", told.stderr);
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["users"][0]["user"]["token"] = json!("nobody's");
    let told =
        end(command(PROGRAM, &file(&directory, &config.to_string()), &["explain-node", "work-1"])).await;
    assert!(told.stderr.contains("rejects your credentials: log in again"), "{}", told.stderr);
}

/// What the manual says under "Rights".
fn rights() -> Value {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let policies = [
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    ];
    let own_node = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"];
    let named = |group: &str, resources: &[&str], names: &[&str]| json!({"apiGroups": [group], "resources": resources, "resourceNames": names, "verbs": ["list"]});
    let agents = ["sourcepreserve-proxy-agent", "sourcepreserve-node-proxier"];
    json!([
        rule("sourcepreserve.io", &["ingresssourcepreserves"], &["list"]),
        rule("sourcepreserve.io", &["ingresssourcenodes"], &["list", "get"]),
        rule("", &["services", "pods", "namespaces"], &["list"]),
        rule("", &["nodes"], &["list", "get"]),
        rule("", &["configmaps"], &["get"]),
        rule("apps", &["daemonsets"], &["list"]),
        rule("discovery.k8s.io", &["endpointslices"], &["list"]),
        rule("admissionregistration.k8s.io", &policies, &["list"]),
        json!({
            "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"],
            "resourceNames": ["sourcepreserve-operator"],
        }),
        named("", &["serviceaccounts"], &["proxy-agent"]),
        named("rbac.authorization.k8s.io", &["clusterroles"], &agents[..1]),
        named("rbac.authorization.k8s.io", &["clusterrolebindings"], &agents),
        named("admissionregistration.k8s.io", &own_node, &["sourcepreserve-agent-own-node"]),
    ])
}

#[tokio::test]
async fn the_rights_that_the_manual_names_suffice() {
    let ((control_plane, _), directory) = (plugin::cluster(PROGRAM).await, tempfile::tempdir().unwrap());
    grant(control_plane, ("web", "reader"), &rights()).await;
    let path = kubeconfig_of(control_plane, "web", "reader", &directory).await;
    let sample = repository::path("manifests/samples/istio-gateway.yaml");
    for (arguments, code) in [
        (&["status", "-o", "wide"][..], None),
        (&["explain-node", "edge-1"], Some(0)),
        (&["plan", "-f", &sample], Some(2)),
    ] {
        let told = end(command(PROGRAM, &path, arguments)).await;
        assert_eq!(told.stderr, "", "{arguments:?}");
        assert_ne!(told.code, Some(1), "{arguments:?}");
        assert!(!told.stdout.contains("the right to"), "{arguments:?}: {told:?}");
        assert!(code.is_none() || told.code == code, "{arguments:?}: {told:?}");
    }
}
