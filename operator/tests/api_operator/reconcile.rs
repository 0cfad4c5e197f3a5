//! The reconcile loop on a real API server: an object is applied, maintained and reverted, and at
//! rest the operator sends no requests.

use std::path::PathBuf;
use std::time::Duration;

use isp_lab::ControlPlane;
use isp_testkit::control_plane::{SYSTEM, apply, kubectl};
use isp_testkit::{Patience, until};
use serde_json::{Value, json};

use crate::harness::{Operator, install};
use crate::way::Way;

/// A cluster with everything installed, and the operator's own kubeconfig.
pub(crate) struct World {
    pub(crate) cluster: ControlPlane,
    pub(crate) kubeconfig: PathBuf,
    _directory: tempfile::TempDir,
}

/// A world with one node, an ingress node, and a Service with an endpoint on it.
pub(crate) async fn world() -> World {
    let cluster = ControlPlane::start().await.unwrap();
    cluster.simulate_nodes().await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = install(&cluster, directory.path()).await;
    let service = json!({"namespace": "default", "name": "gateway"});
    apply(
        &cluster,
        &json!({"apiVersion": "v1", "kind": "List", "items": [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": "edge-1",
                    "labels": {"role": "ingress"},
                    "annotations": {"kwok.x-k8s.io/node": "fake"},
                },
            },
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": service,
                "spec": {"type": "NodePort", "ports": [{"port": 80}]},
            },
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {
                    "namespace": "default",
                    "name": "gateway-1",
                    "labels": {"kubernetes.io/service-name": "gateway"},
                },
                "addressType": "IPv4",
                "endpoints": [{"addresses": ["10.0.0.1"], "nodeName": "edge-1", "conditions": {"ready": true}}],
                "ports": [{"port": 80}],
            },
        ]}),
    )
    .await;
    World { cluster, kubeconfig, _directory: directory }
}

pub(crate) fn object(name: &str) -> Value {
    json!({
        "apiVersion": "sourcepreserve.io/v1alpha1",
        "kind": "IngressSourcePreserve",
        "metadata": {"name": name},
        "spec": {
            "ingressNodes": {"selector": {"matchLabels": {"role": "ingress"}}},
            "services": [{"namespace": "default", "name": "gateway"}],
        },
    })
}

async fn json(cluster: &ControlPlane, what: &[&str]) -> Value {
    let arguments = [what, &["-o", "json"]].concat();
    serde_json::from_str(&kubectl(cluster, &arguments).await).unwrap()
}

pub(crate) async fn service(cluster: &ControlPlane) -> Value {
    json(cluster, &["get", "service", "gateway"]).await
}

pub(crate) fn is_preserved(service: &Value) -> bool {
    service["spec"]["externalTrafficPolicy"] == "Local"
        && service["metadata"]["labels"]["sourcepreserve.io/preserve"] == "one"
}

pub(crate) fn is_as_it_was(service: &Value) -> bool {
    service["spec"]["externalTrafficPolicy"] == "Cluster"
        && service["metadata"]["labels"].is_null()
        && service["metadata"]["annotations"]["sourcepreserve.io/original"].is_null()
}

/// Requests other than watches and those for the Lease, which continue at rest.
fn requests(operator: &Operator) -> Vec<String> {
    let counted = operator.metrics().into_iter().filter(|line| line.starts_with("isp_operator_api_calls"));
    counted.filter(|line| !line.contains("Lease") && !line.contains("Watch")).collect()
}

#[tokio::test]
async fn an_object_is_carried_out_and_put_back_and_at_rest_nothing_is_asked() {
    let World { cluster, kubeconfig, .. } = &world().await;
    let operator = Operator::start(kubeconfig, SYSTEM, "one");
    until("it leads", async || operator.leads()).await;
    apply(cluster, &object("one")).await;
    until("the Service is preserved", async || is_preserved(&service(cluster).await)).await;
    until("the object says so", async || {
        json(cluster, &["get", "isp", "one"]).await["status"]["phase"] == "Ready"
    })
    .await;

    until("users are told", async || {
        let events = json(cluster, &["get", "events.events.k8s.io"]).await;
        let about = |kind: &str| {
            events["items"].as_array().unwrap().iter().any(|event| {
                let regarding = &event["regarding"];
                regarding["kind"] == kind && regarding["uid"].is_string() && event["note"].is_string()
            })
        };
        about("Service") && about("IngressSourcePreserve")
    })
    .await;

    // The last Event may still be in flight.
    let mut before = requests(&operator);
    until("it comes to rest", async || {
        tokio::time::sleep(Duration::from_secs(2)).await;
        std::mem::replace(&mut before, requests(&operator)) == before
    })
    .await;
    assert!(!before.is_empty());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(requests(&operator), before, "{}", operator.log());

    kubectl(cluster, &["label", "service", "gateway", "sourcepreserve.io/preserve-"]).await;
    until("a label that was taken away is back", async || is_preserved(&service(cluster).await)).await;

    kubectl(cluster, &["delete", "isp", "one", "--timeout=60s"]).await;
    let service = service(cluster).await;
    assert!(is_as_it_was(&service), "{service}");
    let actions: Vec<_> =
        operator.metrics().into_iter().filter(|line| line.starts_with("isp_operator_actions")).collect();
    assert!(actions.iter().any(|line| line.contains("localise-service")), "{actions:?}");
    // Two writes to the same object can be in flight at once, so the second may get a conflict.
    let is_fine = |line: &String| line.contains("outcome=\"Done\"") || line.contains("outcome=\"Stale\"");
    assert!(actions.iter().all(is_fine), "{actions:?}");
}

#[tokio::test]
async fn what_is_refused_is_said_and_not_tried_all_the_time() {
    let World { cluster, kubeconfig, .. } = &world().await;
    let policy = json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "refuses"},
            "spec": {
                "matchConstraints": {"resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["services"]},
                ]},
                "validations": [{"expression": "false", "message": "nobody changes a Service here"}],
            },
        },
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "refuses"},
            "spec": {"policyName": "refuses", "validationActions": ["Deny"]},
        },
    ]});
    apply(cluster, &policy).await;
    until("the policy works", async || {
        !cluster.kubectl(&["label", "service", "gateway", "a=b", "--dry-run=server"]).await.unwrap().success
    })
    .await;
    let operator = Operator::start(kubeconfig, SYSTEM, "one");
    apply(cluster, &object("one")).await;
    let refused = || {
        let lines = operator.metrics();
        let line = lines.iter().find(|line| line.contains("label-service") && line.contains("Refused"));
        line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse::<u32>().unwrap())
    };
    until("it is refused", async || refused() > 0).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    // Retried after one, two and four seconds.
    assert!((2..=4).contains(&refused()), "{} times", refused());
    let log = operator.log();
    let complaints: Vec<_> =
        log.lines().filter(|line| line.contains("WARN") && line.contains("an action failed")).collect();
    assert_eq!(complaints.len(), 1, "{log}");
    assert!(complaints[0].contains("nobody changes a Service here"), "{log}");

    kubectl(cluster, &["delete", "validatingadmissionpolicybinding", "refuses"]).await;
    until("the Service is preserved", async || is_preserved(&service(cluster).await)).await;
}

#[tokio::test]
async fn connections_that_die_without_a_word_are_replaced() {
    let World { cluster, .. } = &world().await;
    let way = Way::to(cluster).await;
    let operator = Operator::start(way.kubeconfig(), SYSTEM, "one");
    until("it leads and is ready", async || operator.leads() && operator.is_ready()).await;
    way.replace_connections().await;
    apply(cluster, &object("one")).await;
    // A watch that is silent for 70 seconds is given up.
    let deadline = Duration::from_mins(3);
    Patience::of(deadline)
        .until("the Service is preserved", async || is_preserved(&service(cluster).await))
        .await;
    assert!(operator.leads());
}
