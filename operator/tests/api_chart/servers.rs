//! Supported API servers accept all manifests, from the chart and from kustomize.

use isp_lab::provision::KubernetesVersion;
use isp_lab::{ControlPlane, docs};
use isp_testkit::control_plane::{SYSTEM, api_server_versions};
use serde_json::Value;

use crate::release;
use crate::rendered::{kustomized, object, objects, render};

/// Dry runs of these texts, with server-side and client-side apply. Warnings count as failures.
async fn try_out(cluster: &ControlPlane, namespace: &str, texts: [&str; 2]) {
    for side in ["--server-side=true", "--server-side=false"] {
        // A dry run does not create the namespace that the other objects need. The namespace's Pod
        // Security labels make the API server warn about pods that are not restricted.
        let apply = ["apply", side, "-f", "-"];
        assert!(cluster.kubectl_with_input(&apply, namespace).await.unwrap().success);
        for yaml in texts {
            let arguments = ["apply", side, "--dry-run=server", "-f", "-"];
            let output = cluster.kubectl_with_input(&arguments, yaml).await.unwrap();
            assert!(output.success && output.stderr.is_empty(), "{side}: {}", output.stderr);
            assert_eq!(output.stdout.lines().count(), objects(yaml).len(), "{side}: {output:?}");
        }
    }
}

async fn takes_everything(version: KubernetesVersion) {
    let cluster = ControlPlane::start_version(version).await.unwrap();
    let said = cluster.kubectl(&["version", "--output=json"]).await.unwrap().stdout;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["serverVersion"]["gitVersion"], format!("v{version}"));

    let (by_kustomize, by_chart) = (kustomized("default"), render(&[]).unwrap());
    let namespace = object(&objects(&by_kustomize), "Namespace", SYSTEM).to_string();
    try_out(&cluster, &namespace, [&by_kustomize, &by_chart]).await;
    let [take_over] = docs::commands(
        "docs/install.md",
        "an_api_server_takes_kustomize_and_chart_and_a_release_comes_and_goes",
    )
    .unwrap();
    release::comes_and_goes(&cluster, &take_over).await;
}

#[tokio::test]
async fn an_api_server_takes_kustomize_and_chart_and_a_release_comes_and_goes() {
    for version in api_server_versions() {
        takes_everything(version).await;
    }
}
