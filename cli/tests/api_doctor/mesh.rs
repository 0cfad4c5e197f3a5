//! With Istio's definitions on the API server, a gateway and a policy: nobody has asked for
//! anything, and the bypass is found.

use isp_lab::ControlPlane;
use isp_testkit::control_plane::{apply, kubectl, kubectl_with_input};
use isp_testkit::until;
use serde_json::{Value, json};

use super::{account, doctor, grant, list, told};

/// As Istio's own, without the schema of its fields.
fn definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "authorizationpolicies.security.istio.io"},
        "spec": {
            "group": "security.istio.io", "scope": "Namespaced",
            "names": {"kind": "AuthorizationPolicy", "plural": "authorizationpolicies", "singular": "authorizationpolicy"},
            "versions": [{"name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

fn objects() -> Vec<Value> {
    let labels = json!({"istio": "ingressgateway"});
    let source = json!({"ipBlocks": ["203.0.113.0/24"]});
    vec![
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "gateway", "namespace": "web"},
            "spec": {"type": "NodePort", "selector": labels, "ports": [{"port": 80}]},
        }),
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gateway", "namespace": "web", "labels": labels},
            "spec": {"nodeName": "work-1", "containers": [{"name": "istio-proxy", "image": "a:1", "args": ["proxy", "router"]}]},
        }),
        json!({
            "apiVersion": "security.istio.io/v1beta1", "kind": "AuthorizationPolicy",
            "metadata": {"name": "deny", "namespace": "web"},
            "spec": {"selector": {"matchLabels": labels}, "action": "DENY", "rules": [{"from": [{"source": source}]}]},
        }),
    ]
}

pub(super) async fn a_bypass_is_found_without_being_asked_about(control_plane: &ControlPlane) {
    kubectl(control_plane, &["delete", "isp", "--all", "--wait=false"]).await;
    apply(control_plane, &definition()).await;
    kubectl(
        control_plane,
        &[
            "wait",
            "--for=condition=Established",
            "--timeout=60s",
            "crd/authorizationpolicies.security.istio.io",
        ],
    )
    .await;
    // Established comes a moment before the API server serves the kind.
    until("the kind is served", async || {
        let output =
            control_plane.kubectl(&["get", "authorizationpolicies.security.istio.io"]).await.unwrap();
        if output.success { Ok(()) } else { Err(output.stderr) }
    })
    .await;
    for object in objects() {
        apply(control_plane, &object).await;
    }
    let (code, found) = doctor(&control_plane.kubeconfig(), &[]).await;
    assert_eq!(code, Some(2), "{found:#}");
    let bypass = found.as_array().unwrap().iter().find(|finding| finding["code"] == "ISP701").unwrap();
    assert_eq!(bypass["severity"], "error");
    assert_eq!(bypass["subject"], "AuthorizationPolicy web/deny");
    assert_eq!(bypass["path"].as_array().unwrap().len(), 3, "{bypass:#}");
    // The API server takes the object of the remedy as it is.
    let mut steps = bypass["remedy"].as_array().unwrap().iter().filter_map(Value::as_str);
    let object = steps.find_map(|step| step.strip_prefix("echo '")?.split_once("' > ")).unwrap().0;
    apply(control_plane, &serde_json::from_str(object).unwrap()).await;
    let services =
        kubectl(control_plane, &["get", "isp", "gateway", "-o", "jsonpath={.spec.services}"]).await;
    assert_eq!(services, r#"[{"name":"gateway","namespace":"web"}]"#);
    kubectl(control_plane, &["delete", "isp", "gateway"]).await;
}

pub(super) async fn a_policy_that_may_not_be_listed_is_a_warning(control_plane: &ControlPlane) {
    let rules = json!([
        list("sourcepreserve.io", &["ingresssourcepreserves", "ingresssourcenodes"]),
        list("", &["services", "nodes", "namespaces", "pods", "configmaps"]),
        list("apps", &["daemonsets", "deployments"]),
        list("discovery.k8s.io", &["endpointslices"]),
        list("networking.k8s.io", &["networkpolicies", "ingresses"]),
        list(
            "admissionregistration.k8s.io",
            &["validatingwebhookconfigurations", "mutatingwebhookconfigurations"]
        ),
    ]);
    grant(control_plane, "reader", rules).await;
    let directory = tempfile::tempdir().unwrap();
    let reader = account(control_plane, "reader", directory.path()).await;
    let (code, found) = doctor(&reader, &[]).await;
    assert_eq!(code, Some(2), "{found:#}");
    let left_out = ("ISP901".to_owned(), "Kind AuthorizationPolicy".to_owned());
    assert!(told(&found).contains(&left_out), "{found:#}");
    // Other kinds of the same group are not there, so that no right is missed.
    assert_eq!(told(&found).iter().filter(|(code, _)| code == "ISP901").count(), 1, "{found:#}");
}

/// More Services than an answer of the API server has.
pub(super) async fn lists_are_read_to_their_end(control_plane: &ControlPlane) {
    let service = |number: usize| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": format!("many-{number}"), "namespace": "web"},
            "spec": {"externalIPs": ["192.0.2.7"], "ports": [{"port": 10000 + number}]},
        })
    };
    let services: Vec<Value> = (0..300).map(service).collect();
    let services = json!({"apiVersion": "v1", "kind": "List", "items": services});
    kubectl_with_input(control_plane, &["create", "-f", "-"], &services).await;
    let (_, found) = doctor(&control_plane.kubeconfig(), &[]).await;
    let counted = found.as_array().unwrap().iter().find(|finding| finding["code"] == "ISP315").unwrap();
    let line = counted["line"].as_str().unwrap();
    assert!(
        line.starts_with("303 of 303 exposed Services lose ") && line.ends_with(", and 298 more"),
        "{line}"
    );
}
