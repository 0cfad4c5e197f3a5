//! `doctor` against a real API server: the same from the cluster as from a dump of it, and what it
//! does without a right.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod mesh;

use std::path::{Path, PathBuf};

use isp_lab::ControlPlane;
use isp_testkit::accounts;
use isp_testkit::control_plane::{apply, kubectl};
use isp_testkit::plugin::{cluster, command, end, set_status};
use serde_json::{Value, json};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-isp");

/// The codes and subjects, in their order.
fn told(found: &Value) -> Vec<(String, String)> {
    let word = |finding: &Value, field: &str| finding[field].as_str().unwrap().to_owned();
    found
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| (word(finding, "code"), word(finding, "subject")))
        .collect()
}

async fn doctor(config: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    let arguments = [&["doctor", "-o", "json"], arguments].concat();
    let ended = end(command(PROGRAM, config, &arguments)).await;
    assert_eq!(ended.stderr, "", "{arguments:?}");
    let mut examination: Value = serde_json::from_str(&ended.stdout).unwrap();
    isp_testkit::schema::assert_output("doctor", &examination);
    (ended.code, examination["findings"].take())
}

/// As the manual says.
async fn take_dump(control_plane: &ControlPlane) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let core = "isp,isn,services,endpointslices,nodes,namespaces,pods,daemonsets,deployments,networkpolicies,ingresses";
    for (name, arguments) in [
        ("core.yaml", &["get", core, "-A", "-o", "yaml"][..]),
        ("kube-proxy.json", &["get", "configmap", "-n", "kube-system", "kube-proxy", "-o", "json"]),
        (
            "webhooks.yaml",
            &["get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o", "yaml"],
        ),
    ] {
        std::fs::write(directory.path().join(name), kubectl(control_plane, arguments).await).unwrap();
    }
    directory
}

fn object() -> Value {
    json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve", "metadata": {"name": "web"},
        "spec": {
            "ingressNodes": {"selector": {"matchLabels": {"node-role.kubernetes.io/ingress": ""}}},
            "services": [{"namespace": "web", "name": "frontend"}, {"namespace": "web", "name": "elsewhere"}],
        },
    })
}

/// A kubeconfig of an account of namespace web.
async fn account(control_plane: &ControlPlane, name: &str, directory: &Path) -> PathBuf {
    let path = directory.join(name);
    control_plane.write_kubeconfig_of("web", name, &path).await.unwrap();
    path
}

/// Allows an account of namespace web to list these in the whole cluster.
async fn grant(control_plane: &ControlPlane, account: &str, rules: Value) {
    accounts::grant(control_plane, ("web", account), &rules).await;
}

/// Services lose the address by default; while nothing decides by it, that is worth a note.
async fn counts_services_before_anything_is_preserved(control_plane: &ControlPlane) {
    let (code, found) = doctor(&control_plane.kubeconfig(), &[]).await;
    assert_eq!(
        (code, told(&found)),
        (Some(0), vec![("ISP315".to_owned(), "Cluster".to_owned())]),
        "{found:#}"
    );
    assert_eq!(
        found[0]["line"],
        "2 of 2 exposed Services lose the client's source IP: web/elsewhere, web/frontend"
    );
    let (code, found) = doctor(&control_plane.kubeconfig(), &["--service", "web/frontend"]).await;
    assert_eq!(code, Some(2));
    assert_eq!(told(&found)[0], ("ISP307".to_owned(), "Service web/frontend".to_owned()));
}

async fn says_the_same_about_a_dump(control_plane: &ControlPlane) {
    let config = control_plane.kubeconfig();
    let dump = take_dump(control_plane).await;
    let path = dump.path().to_str().unwrap();
    for arguments in [&[][..], &["--service", "web/frontend"], &["--service", "default/kubernetes"]] {
        let live = doctor(&config, arguments).await;
        assert_eq!(
            live,
            doctor(&config, &[arguments, &["--from-dir", path]].concat()).await,
            "{arguments:?}"
        );
    }
}

/// An operator has looked, and says that all is well; much is missing, and the cause comes first.
async fn says_what_is_wrong(control_plane: &ControlPlane) {
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "Because", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let status = json!({"observedGeneration": 1, "phase": "Ready", "conditions": [condition]});
    set_status(control_plane, "isp", "web", &status).await;
    let (code, found) = doctor(&control_plane.kubeconfig(), &[]).await;
    assert_eq!(code, Some(2), "{found:#}");
    let told = told(&found);
    let expected = [
        ("ISP101", "Deployment sourcepreserve-operator"),
        ("ISP405", "Node work-1"),
        ("ISP405", "Node work-2"),
        ("ISP303", "Service web/elsewhere"),
        ("ISP304", "Service web/elsewhere"),
        ("ISP304", "Service web/frontend"),
        ("ISP305", "Service web/elsewhere"),
        ("ISP305", "Service web/frontend"),
    ]
    .map(|(code, subject)| (code.to_owned(), subject.to_owned()));
    assert_eq!(told[..expected.len()], expected, "{found:#}");
}

fn list(group: &str, resources: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": ["list"]})
}

/// What the manual says under "Rights". There is no Istio here, and rights to its kinds are not
/// missed.
async fn the_rights_of_the_manual_suffice(control_plane: &ControlPlane) {
    let core = ["services", "nodes", "namespaces", "pods", "configmaps"];
    let webhooks = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"];
    let rules = json!([
        list("sourcepreserve.io", &["ingresssourcepreserves", "ingresssourcenodes"]),
        list("", &core),
        list("apps", &["daemonsets", "deployments"]),
        list("discovery.k8s.io", &["endpointslices"]),
        list("networking.k8s.io", &["networkpolicies", "ingresses"]),
        list("admissionregistration.k8s.io", &webhooks),
    ]);
    grant(control_plane, "reader", rules).await;
    let directory = tempfile::tempdir().unwrap();
    let reader = account(control_plane, "reader", directory.path()).await;
    assert_eq!(doctor(&reader, &[]).await, doctor(&control_plane.kubeconfig(), &[]).await);
}

async fn says_what_it_may_not_look_at(control_plane: &ControlPlane) {
    let directory = tempfile::tempdir().unwrap();
    let nobody = account(control_plane, "nobody", directory.path()).await;
    let ended = end(command(PROGRAM, &nobody, &["doctor"])).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(
        ended.stderr.contains("the right to list ingresssourcepreserves.sourcepreserve.io"),
        "{}",
        ended.stderr
    );

    let rules = json!([
        list("sourcepreserve.io", &["ingresssourcepreserves"]),
        list("", &["services"]),
        list("discovery.k8s.io", &["endpointslices"]),
    ]);
    grant(control_plane, "reader", rules).await;
    let reader = account(control_plane, "reader", directory.path()).await;
    let (code, found) = doctor(&reader, &[]).await;
    assert_eq!(code, Some(2), "{found:#}");
    let told = told(&found);
    // Without nodes and Deployments nothing is said about them, but that.
    assert!(
        !told.iter().any(|(code, _)| ["ISP101", "ISP204", "ISP405"].contains(&code.as_str())),
        "{found:#}"
    );
    let left_out: Vec<&str> =
        told.iter().filter(|(code, _)| code == "ISP901").map(|(_, subject)| subject.as_str()).collect();
    for kind in ["Kind Node", "Kind Pod", "Kind Deployment", "Kind IngressSourceNode", "Kind ConfigMap"] {
        assert!(left_out.contains(&kind), "{kind}: {found:#}");
    }
    assert!(!left_out.contains(&"Kind Service"), "{found:#}");
}

#[tokio::test]
async fn live_and_from_a_dump_it_says_the_same() {
    let (control_plane, _) = cluster(PROGRAM).await;
    counts_services_before_anything_is_preserved(control_plane).await;
    // What every cluster has some of, so that a dump without it is one that was taken without it.
    let filler = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "filler", "namespace": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "filler"}}, "template": {
            "metadata": {"labels": {"app": "filler"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]},
        }},
    });
    apply(control_plane, &filler).await;
    // The controller-manager makes it a moment after the namespace, and without it no pod is taken.
    kubectl(control_plane, &["wait", "--for=create", "serviceaccount/default", "-n", "web", "--timeout=60s"])
        .await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "filler", "namespace": "web"},
        "spec": {"nodeName": "work-1", "containers": [{"name": "a", "image": "a:1"}]},
    });
    apply(control_plane, &pod).await;
    apply(control_plane, &object()).await;
    says_the_same_about_a_dump(control_plane).await;
    says_what_is_wrong(control_plane).await;
    says_the_same_about_a_dump(control_plane).await;
    says_what_it_may_not_look_at(control_plane).await;
    the_rights_of_the_manual_suffice(control_plane).await;
    mesh::a_bypass_is_found_without_being_asked_about(control_plane).await;
    mesh::a_policy_that_may_not_be_listed_is_a_warning(control_plane).await;
    mesh::lists_are_read_to_their_end(control_plane).await;
}
