//! A release on an API server without nodes: what an upgrade changes and keeps, and what an
//! uninstall leaves behind.

use std::fs;
use std::path::Path;

use isp_lab::docs::{Block, Terminal};
use isp_lab::{ControlPlane, Output, provision};
use isp_testkit::control_plane::SYSTEM;
use isp_testkit::{repository, until};
use serde_json::{Value, json};

use crate::helm::{chart, helm, say};
use crate::rendered::{RELEASE, objects, render};

const DEFINITION: &str = "ingresssourcenodes.sourcepreserve.io";
const CONFIGURATION: &str = "sourcepreserve.io";

/// The last step uses a command from the docs.
pub(crate) async fn comes_and_goes(cluster: &ControlPlane, take_over: &Block) {
    install(cluster, &chart());
    let (installed, kept) = names();
    assert_eq!(kept.len(), 2);
    for name in installed.iter().chain(&kept) {
        assert!(get(cluster, name).await.is_some(), "{name:?} is not there");
    }
    an_upgrade_brings_definitions_and_leaves_what_the_webhook_wrote(cluster).await;
    an_uninstallation_leaves_definitions_and_objects(cluster, &installed, &kept).await;
    // The leftovers belong to the next release of that name.
    install(cluster, &chart());
    uninstall(cluster);
    another_release_is_taken_over_when_asked(cluster);
    an_installation_by_kustomize_is_taken_over_when_asked(cluster, take_over).await;
}

fn install(cluster: &ControlPlane, chart: &str) {
    let arguments = ["install", RELEASE, chart, "--namespace", SYSTEM, "--create-namespace"];
    let notes = helm(&cluster.kubeconfig(), &arguments).unwrap();
    assert!(notes.contains(&format!("helm uninstall {RELEASE} --namespace {SYSTEM}")), "{notes}");
}

fn uninstall(cluster: &ControlPlane) {
    let said = helm(&cluster.kubeconfig(), &["uninstall", RELEASE, "--namespace", SYSTEM]).unwrap();
    assert!(said.contains(DEFINITION), "it says what it leaves: {said}");
}

/// kubectl arguments for each object: those that an uninstall deletes, and those that it keeps.
fn names() -> (Vec<[String; 3]>, Vec<[String; 3]>) {
    let names = objects(&render(&[]).unwrap()).into_iter().map(|object| {
        let kind = object["kind"].as_str().unwrap();
        let group = object["apiVersion"].as_str().unwrap().split_once('/').map(|(group, _)| group);
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
        [
            group.map_or_else(|| kind.to_owned(), |group| format!("{kind}.{group}")),
            object["metadata"]["name"].as_str().unwrap().to_owned(),
            format!("--namespace={namespace}"),
        ]
    });
    names.partition(|[kind, ..]| !kind.starts_with("CustomResourceDefinition"))
}

async fn get(cluster: &ControlPlane, [kind, name, namespace]: &[String; 3]) -> Option<Value> {
    let get = ["get", kind, name, namespace, "--output=json", "--ignore-not-found"];
    let printed = succeed(cluster.kubectl(&get).await.unwrap());
    (!printed.is_empty()).then(|| serde_json::from_str(&printed).unwrap())
}

fn succeed(output: Output) -> String {
    assert!(output.success, "{output:?}");
    output.stdout
}

async fn an_upgrade_brings_definitions_and_leaves_what_the_webhook_wrote(cluster: &ControlPlane) {
    let kubeconfig: Value = serde_json::from_str(&fs::read_to_string(cluster.kubeconfig()).unwrap()).unwrap();
    let bundle = &kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"];
    let trusted = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": CONFIGURATION},
        "webhooks": [{"name": "objects.sourcepreserve.io", "clientConfig": {"caBundle": bundle}}],
    });
    let apply = ["apply", "--server-side", "--field-manager=sourcepreserve-webhook", "-f", "-"];
    succeed(cluster.kubectl_with_input(&apply, &trusted.to_string()).await.unwrap());

    let written = fill_the_secret(cluster).await;
    let next = tempfile::tempdir().unwrap();
    copy(&repository::file("manifests/chart"), next.path());
    let template = next.path().join("templates/crds-ingresssourcenodes.yaml");
    let text = fs::read_to_string(&template).unwrap();
    fs::write(&template, text.replace("\n    - isn\n", "\n    - isn\n    - isnode\n")).unwrap();
    let arguments = ["upgrade", RELEASE, next.path().to_str().unwrap(), "--namespace", SYSTEM];
    helm(&cluster.kubeconfig(), &arguments).unwrap();

    let everywhere = "--namespace=default".to_owned();
    let name = [
        "CustomResourceDefinition.apiextensions.k8s.io".to_owned(),
        DEFINITION.to_owned(),
        everywhere.clone(),
    ];
    let definition = get(cluster, &name).await.unwrap();
    assert_eq!(definition["spec"]["names"]["shortNames"], json!(["isn", "isnode"]));
    let name = [
        "ValidatingWebhookConfiguration.admissionregistration.k8s.io".to_owned(),
        CONFIGURATION.to_owned(),
        everywhere,
    ];
    let configuration = get(cluster, &name).await.unwrap();
    assert_eq!(configuration["webhooks"][0]["clientConfig"]["caBundle"], *bundle);
    assert_eq!(secret(cluster).await, written);
}

/// Writes to the Secret as the webhook does, which may update but not create it. Returns the
/// Secret.
async fn fill_the_secret(cluster: &ControlPlane) -> Value {
    let mut filled = secret(cluster).await;
    assert_eq!((&filled["type"], &filled["data"]), (&json!("Opaque"), &Value::Null));
    filled["data"] = json!({"ca.crt": "YQ==", "ca.key": "Yg=="});
    filled["metadata"]["annotations"]["sourcepreserve.io/next-since"] = json!("2026-01-01T00:00:00Z");
    let replace = ["replace", "--field-manager=webhook", "-f", "-"];
    succeed(cluster.kubectl_with_input(&replace, &filled.to_string()).await.unwrap());
    secret(cluster).await
}

/// The webhook's Secret, without fields that change with every write.
async fn secret(cluster: &ControlPlane) -> Value {
    let name = ["Secret", "sourcepreserve-webhook-ca", &format!("--namespace={SYSTEM}")].map(str::to_owned);
    let mut secret = get(cluster, &name).await.unwrap();
    let metadata = secret["metadata"].as_object_mut().unwrap();
    metadata.remove("resourceVersion");
    metadata.remove("managedFields");
    secret
}

async fn an_uninstallation_leaves_definitions_and_objects(
    cluster: &ControlPlane,
    installed: &[[String; 3]],
    kept: &[[String; 3]],
) {
    let sample = repository::path("manifests/samples/minimal.yaml");
    succeed(cluster.kubectl(&["apply", "-f", &sample]).await.unwrap());
    uninstall(cluster);
    for name in installed {
        until(&format!("{name:?} is gone"), async || match get(cluster, name).await {
            None => Ok(()),
            Some(object) => Err(object),
        })
        .await;
    }
    for name in kept {
        assert!(get(cluster, name).await.is_some(), "{name:?} is gone");
    }
    let left = succeed(cluster.kubectl(&["delete", "-f", &sample]).await.unwrap());
    assert!(left.contains("deleted"), "{left}");
}

fn another_release_is_taken_over_when_asked(cluster: &ControlPlane) {
    let (kubeconfig, chart) = (cluster.kubeconfig(), chart());
    let another = ["install", "another", &chart, "--namespace", SYSTEM];
    let refused = helm(&kubeconfig, &another).unwrap_err();
    assert!(refused.contains(DEFINITION) && refused.contains("invalid ownership metadata"), "{refused}");
    helm(&kubeconfig, &[&another[..], &["--take-ownership"]].concat()).unwrap();
    helm(&kubeconfig, &["uninstall", "another", "--namespace", SYSTEM]).unwrap();
}

async fn an_installation_by_kustomize_is_taken_over_when_asked(cluster: &ControlPlane, take_over: &Block) {
    let overlay = repository::path("manifests/overlays/default");
    succeed(cluster.kubectl(&["apply", "--server-side", "-k", &overlay]).await.unwrap());
    let deployment = ["Deployment.apps", "sourcepreserve-operator", &format!("--namespace={SYSTEM}")];
    let deployment = deployment.map(str::to_owned);
    let spec = async || get(cluster, &deployment).await.unwrap()["spec"].clone();
    let before = spec().await;
    let written = fill_the_secret(cluster).await;
    for side in ["--server-side=true", "--server-side=false"] {
        succeed(cluster.kubectl(&["apply", side, "-k", &overlay]).await.unwrap());
        assert_eq!(secret(cluster).await["data"], written["data"], "{side}");
    }
    let terminal = Terminal::open(&cluster.kubeconfig(), &[&provision::helm(say).unwrap()]).unwrap();
    terminal.run(take_over).await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(spec().await, before, "nothing is restarted");
    assert_eq!(secret(cluster).await["data"], written["data"]);
    uninstall(cluster);
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&to).unwrap();
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).unwrap();
        }
    }
}
