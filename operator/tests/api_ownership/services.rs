//! Services, created and owned in every way. All nodes are ingress nodes here, so nothing waits for
//! agents.

use futures_util::future::join_all;
use isp_testkit::simulated::Cluster;
use isp_testkit::until;
use serde_json::{Value, json};

use crate::PROGRAM;

const POLICY: &str = "externalTrafficPolicy";
const LABEL: &str = "sourcepreserve.io/preserve";

/// How a Service is created.
#[derive(Clone, Copy, Debug)]
enum Made {
    Create,
    KubectlApply,
    ServerSideApply,
    Helm,
}

/// The expected result.
#[derive(Clone, Copy, Debug)]
enum Ends {
    /// Preserved. After the deletion everything is restored, including field ownership.
    Preserved,
    /// Preserved. After the deletion the values are restored, but a manager that declared one by
    /// server-side apply no longer owns it.
    PreservedByForce,
    /// Untouched, with a conflict whose message contains these parts.
    Conflict(&'static [&'static str]),
}

struct Case {
    name: &'static str,
    made: Made,
    policy: Option<&'static str>,
    label: Option<&'static str>,
    force: bool,
    ends: Ends,
}

const fn case(name: &'static str, made: Made, policy: Option<&'static str>, ends: Ends) -> Case {
    Case { name, made, policy, label: None, force: false, ends }
}

const CASES: &[Case] = &[
    case("created", Made::Create, None, Ends::Preserved),
    case("applied", Made::KubectlApply, None, Ends::Preserved),
    case("server-side-applied", Made::ServerSideApply, None, Ends::Preserved),
    case("by-helm", Made::Helm, None, Ends::Preserved),
    // An update cannot distinguish an explicit value from a default, so it counts as undeclared.
    case("created-as-cluster", Made::Create, Some("Cluster"), Ends::Preserved),
    case(
        "applied-as-cluster",
        Made::KubectlApply,
        Some("Cluster"),
        Ends::Conflict(&["kubectl apply", "spec.externalTrafficPolicy", "Cluster", "conflictPolicy: Force"]),
    ),
    case(
        "server-side-applied-as-cluster",
        Made::ServerSideApply,
        Some("Cluster"),
        Ends::Conflict(&["gitops", "spec.externalTrafficPolicy", "Cluster", "conflictPolicy: Force"]),
    ),
    case("created-as-local", Made::Create, Some("Local"), Ends::Preserved),
    case("applied-as-local", Made::KubectlApply, Some("Local"), Ends::Preserved),
    case("server-side-applied-as-local", Made::ServerSideApply, Some("Local"), Ends::Preserved),
    Case {
        force: true,
        ..case("applied-as-cluster-by-force", Made::KubectlApply, Some("Cluster"), Ends::Preserved)
    },
    Case {
        force: true,
        ..case(
            "server-side-applied-as-cluster-by-force",
            Made::ServerSideApply,
            Some("Cluster"),
            Ends::PreservedByForce,
        )
    },
    Case { label: Some("same"), ..case("labelled-alike", Made::ServerSideApply, None, Ends::Preserved) },
    Case {
        label: Some("mine"),
        ..case("labelled-otherwise", Made::Create, None, Ends::Conflict(&["kubectl-create", LABEL, "mine"]))
    },
    Case {
        label: Some("mine"),
        ..case("applied-with-another-label", Made::KubectlApply, None, Ends::Conflict(&[LABEL, "mine"]))
    },
    Case {
        label: Some("mine"),
        force: true,
        ..case("labelled-by-force", Made::Create, None, Ends::Preserved)
    },
];

fn service(namespace: &str, policy: Option<&str>, label: Option<&str>) -> Value {
    let mut service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]},
    });
    if let Some(policy) = policy {
        service["spec"][POLICY] = json!(policy);
    }
    if let Some(label) = label {
        let value = if label == "same" { namespace } else { label };
        service["metadata"]["labels"] = json!({LABEL: value});
    }
    service
}

fn spec(namespace: &str, force: bool) -> Value {
    json!({
        "ingressNodes": {"selector": {"matchLabels": {"ingress": ""}}},
        "services": [{"namespace": namespace, "name": "web"}],
        "conflictPolicy": if force { "Force" } else { "Report" },
    })
}

/// One ready endpoint on the ingress node.
async fn endpoint(cluster: &Cluster, namespace: &str) {
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "web-1", "namespace": namespace, "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.2.3"], "nodeName": "edge", "conditions": {"ready": true}}],
    });
    cluster.create(&slice, "endpoints").await;
}

pub(crate) async fn make(cluster: &Cluster, namespace: &str) -> Value {
    cluster.namespace(namespace).await;
    endpoint(cluster, namespace).await;
    let service = service(namespace, None, None);
    cluster.create(&service, "kubectl-create").await;
    service
}

async fn check(cluster: &Cluster, case: &Case) {
    let name = case.name;
    cluster.namespace(name).await;
    endpoint(cluster, name).await;
    let service = service(name, case.policy, case.label);
    match case.made {
        Made::Create => cluster.create(&service, "kubectl-create").await,
        Made::KubectlApply => drop(cluster.kubectl_apply(&service).await),
        Made::ServerSideApply => cluster.server_side_apply(&service, "gitops").await,
        Made::Helm => cluster.create(&service, "helm").await,
    }
    let before = cluster.state(&service).await;
    cluster.preserve(name, spec(name, case.force)).await;
    if let Ends::Conflict(parts) = case.ends {
        let message = cluster.wait_for(name, "Conflict", "True").await;
        for part in parts {
            assert!(message.contains(part), "{name}: {part} is not in {message}");
        }
        assert_eq!(cluster.state(&service).await, before, "{name}: nothing is written");
        cluster.delete(name).await;
        assert_eq!(cluster.state(&service).await, before, "{name}");
        return;
    }
    cluster.wait_for(name, "Ready", "True").await;
    let preserved = cluster.state(&service).await;
    assert_eq!(preserved["spec"][POLICY], "Local", "{name}");
    assert_eq!(preserved["metadata"]["labels"][LABEL], name, "{name}");
    if matches!(case.made, Made::KubectlApply) && !case.force {
        assert!(cluster.kubectl_apply(&service).await.contains("unchanged"), "{name}");
    }
    cluster.delete(name).await;
    let mut after = cluster.state(&service).await;
    let mut before = before;
    if matches!(case.ends, Ends::PreservedByForce) {
        for state in [&mut before, &mut after] {
            state["metadata"].as_object_mut().unwrap().remove("managedFields");
        }
    }
    assert_eq!(after, before, "{name}: everything is as it was");
}

async fn cluster() -> Cluster {
    Cluster::start(PROGRAM, &[("edge", json!({"ingress": ""}))]).await
}

#[tokio::test]
async fn each_service_ends_as_its_making_demands() {
    let cluster = cluster().await;
    join_all(CASES.iter().map(|case| check(&cluster, case))).await;
    println!("{} ways of making a Service", CASES.len());
}

#[tokio::test]
async fn who_keeps_putting_a_field_back_is_reported_and_not_fought() {
    let cluster = cluster().await;
    for (name, undo) in [
        ("policy", json!({"spec": {POLICY: "Cluster"}})),
        ("label", json!({"metadata": {"labels": {LABEL: null}}})),
    ] {
        let service = make(&cluster, name).await;
        cluster.preserve(name, spec(name, false)).await;
        let mut puts = 0;
        let message = loop {
            // Either the value is back, or the operator has reported a conflict.
            let conflict = until("either", async || {
                let state = cluster.state(&service).await;
                let object: Value = cluster.object(name).await;
                let conflict = object["status"]["conditions"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .find(|said| said["type"] == "Conflict" && said["status"] == "True");
                let there = state["spec"][POLICY] == "Local" && state["metadata"]["labels"][LABEL] == name;
                match conflict {
                    Some(conflict) => Ok(Some(conflict["message"].as_str().unwrap().to_owned())),
                    None if there => Ok(None),
                    None => Err(state.to_string()),
                }
            })
            .await;
            if let Some(message) = conflict {
                break message;
            }
            assert!(puts < 10, "{name}: it is fought");
            cluster.merge(&service, "fighter", undo.clone()).await;
            puts += 1;
        };
        assert_eq!(puts, 2, "{name}: {message}");
        let who = if name == "policy" { "\"fighter\" keeps reverting" } else { "keeps reverting" };
        assert!(message.contains(who), "{message}");
        cluster.delete(name).await;
        let after = cluster.state(&service).await;
        assert_eq!(after["spec"][POLICY], "Cluster", "{name}");
        assert!(
            after["metadata"]["annotations"].is_null() && after["metadata"]["labels"].is_null(),
            "{after}"
        );
    }
}

/// Anyone who can edit a Service can clear its managedFields. Then nothing shows which fields the
/// operator owns, neither right away nor after someone has applied it again.
#[tokio::test]
async fn a_service_whose_managed_fields_were_emptied_is_put_back_all_the_same() {
    let cluster = cluster().await;
    for (name, again) in [("emptied", false), ("emptied-and-applied", true)] {
        let service = make(&cluster, name).await;
        cluster.preserve(name, spec(name, false)).await;
        cluster.wait_for(name, "Ready", "True").await;
        cluster.merge(&service, "editor", json!({"metadata": {"managedFields": [{}]}})).await;
        let managed = cluster.state(&service).await["metadata"]["managedFields"].clone();
        assert!(managed.is_null(), "{managed}");
        if again {
            let other = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": name, "labels": {"a": "b"}}});
            cluster.server_side_apply(&other, "gitops").await;
        }
        cluster.delete(name).await;
        let after = cluster.state(&service).await;
        assert_eq!(after["spec"][POLICY], "Cluster", "{name}");
        let left = (&after["metadata"]["annotations"], &after["metadata"]["labels"][LABEL]);
        assert_eq!(left, (&Value::Null, &Value::Null), "{name}: {after}");
    }
}

#[tokio::test]
async fn applying_the_same_object_again_changes_nothing() {
    let cluster = cluster().await;
    let service = make(&cluster, "again").await;
    let object = json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve",
        "metadata": {"name": "again"}, "spec": spec("again", false),
    });
    cluster.kubectl_apply(&object).await;
    cluster.wait_for("again", "Ready", "True").await;
    // The last writes may still be in flight.
    let versions = async || (cluster.version(&object).await, cluster.version(&service).await);
    let mut before = versions().await;
    until("both come to rest", async || {
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        std::mem::replace(&mut before, versions().await) == before
    })
    .await;
    assert!(cluster.kubectl_apply(&object).await.contains("unchanged"));
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert_eq!(versions().await, before);
}
