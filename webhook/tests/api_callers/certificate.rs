//! API servers with a client certificate, configured as in the docs, and a webhook that accepts no
//! other caller.

use isp_testkit::control_plane::SYSTEM;
use isp_testkit::until;
use isp_testkit::webhook::{CONFIGURATION, Cluster, Replica, SERVER};
use std::fs;
use std::path::Path;

use isp_lab::{ControlPlane, free_address};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::PROGRAM;
use crate::caller::{Caller, Identity, OBJECTS, authority, object};

/// The name of kubeadm's API servers in their client certificate for kubelets.
const API_SERVER: &str = "kube-apiserver-kubelet-client";

/// Writes the files of the docs as on a control plane node. A port other than 443 becomes part of
/// the name.
fn configure(directory: &Path, port: u16, identity: &Identity) -> std::path::PathBuf {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/webhook");
    let here = format!("{}/", directory.display());
    for file in ["admission.yaml", "webhooks.yaml"] {
        let text = fs::read_to_string(docs.join(file)).unwrap();
        let text = text.replace("/etc/kubernetes/admission/", &here).replace("/etc/kubernetes/pki/", &here);
        let text = text.replace(&format!("name: {SERVER}\n"), &format!("name: {SERVER}:{port}\n"));
        fs::write(directory.join(file), text).unwrap();
    }
    fs::write(directory.join("apiserver-kubelet-client.crt"), &identity.certificate).unwrap();
    fs::write(directory.join("apiserver-kubelet-client.key"), &identity.key).unwrap();
    directory.join("admission.yaml")
}

/// Redirects the Service to the loopback, since there are no nodes.
async fn lead_to(cluster: &Cluster, port: u16) {
    let elsewhere = json!({"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": null, "clusterIPs": null}});
    let service = ["-n", SYSTEM, "patch", "service", "sourcepreserve-webhook", "--type=merge", "-p"];
    cluster.kubectl(&[&service[..], &[&elsewhere.to_string()]].concat()).await;
    let port = json!([{"op": "replace", "path": "/webhooks/0/clientConfig/service/port", "value": port}]);
    let patch = Patch::Json::<()>(serde_json::from_value(port).unwrap());
    cluster.configurations().patch(CONFIGURATION, &PatchParams::default(), &patch).await.unwrap();
}

/// Whether the API server calls the webhook for an object: the webhook warns about the selector.
async fn is_checked(cluster: &Cluster) -> bool {
    let object = object("checked", &["default".to_owned()]).to_string();
    let apply = ["apply", "--server-side", "--dry-run=server", "-f", "-"];
    let output = cluster.control_plane.kubectl_with_input(&apply, &object).await.unwrap();
    assert!(output.success, "{output:?}");
    output.stderr.contains("spec.ingressNodes.selector matches no node")
}

#[tokio::test]
async fn an_api_server_with_a_certificate_is_answered_and_nobody_else() {
    let (known, unknown) = (authority(), authority());
    let identity = Identity::new(&known, API_SERVER);
    let directory = tempfile::tempdir().unwrap();
    let address = free_address().unwrap();
    let configuration = configure(directory.path(), address.port(), &identity);
    let cluster =
        Cluster::start_on(PROGRAM, ControlPlane::start_with_admission(&configuration).await.unwrap()).await;
    lead_to(&cluster, address.port()).await;

    let ca = directory.path().join("ca.crt");
    fs::write(&ca, known.pem()).unwrap();
    let ca = format!("--client-ca={}", ca.display());
    let replica = Replica::start_at(&cluster, address, &[&ca, &format!("--client-name={API_SERVER}")]);
    replica.wait_ready().await;
    until("the API server has an object checked", async || is_checked(&cluster).await).await;

    let bundle = cluster.bundle().await;
    let reviewed = || {
        let outcomes = ["Allowed", "Warned", "Denied", "Unchecked", "Malformed"].into_iter();
        let counted = outcomes.filter_map(|outcome| {
            let labels = format!("{{about=\"Objects\",outcome=\"{outcome}\"}}");
            replica.metric(&format!("isp_webhook_reviews_total{labels}"))
        });
        counted.sum::<f64>()
    };
    let review = json!({"uid": "1", "operation": "CREATE", "object": object("own", &[])});
    let before = reviewed();
    for stranger in [
        None,
        Some(Identity::new(&unknown, API_SERVER)),
        // The cluster's CA signs kubelet certificates, too.
        Some(Identity::new(&known, "system:node:work-1")),
    ] {
        let answer = Caller::new(address, &bundle, stranger.as_ref()).ask(OBJECTS, &review).await;
        assert!(answer.is_err(), "{answer:?}");
    }
    assert_eq!(reviewed().to_bits(), before.to_bits(), "not even looked at");
    let answer = Caller::new(address, &bundle, Some(&identity)).ask(OBJECTS, &review).await.unwrap();
    assert_eq!((&answer["uid"], &answer["allowed"]), (&json!("1"), &json!(true)));
    assert!(is_checked(&cluster).await);
}
