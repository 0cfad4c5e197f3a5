//! The manifests, validated by the API server.

use isp_lab::ControlPlane;
use isp_testkit::control_plane::{SYSTEM, apply, kubectl};
use isp_testkit::repository;
use serde_json::{Value, json};

/// The objects of a kustomization, after a server-side dry run without warnings.
async fn try_out(cluster: &ControlPlane, kustomization: &str) -> Vec<Value> {
    let path = repository::path(kustomization);
    let built = kubectl(cluster, &["kustomize", &path]).await;
    let objects: Vec<Value> = serde_yaml::Deserializer::from_str(&built)
        .map(|document| serde::Deserialize::deserialize(document).unwrap())
        .collect();
    // A dry run does not create the namespace that the other objects need.
    if let Some(namespace) = objects.iter().find(|object| object["kind"] == "Namespace") {
        let arguments = ["apply", "--server-side", "-f", "-"];
        assert!(cluster.kubectl_with_input(&arguments, &namespace.to_string()).await.unwrap().success);
    }
    let output = cluster.kubectl(&["apply", "--server-side", "--dry-run=server", "-k", &path]).await.unwrap();
    assert!(output.success && output.stderr.is_empty(), "{output:?}");
    assert_eq!(output.stdout.lines().count(), objects.len(), "{output:?}");
    objects
}

#[tokio::test]
async fn the_api_server_takes_everything_and_the_pods_are_restricted_enough() {
    let cluster = ControlPlane::shared().await.unwrap();
    let installed = try_out(cluster, "manifests/overlays/default").await;
    let cleanup = try_out(cluster, "manifests/cleanup").await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": SYSTEM}});
    apply(cluster, &account).await;

    // For Deployments and Jobs the API server only warns; it would reject their pods.
    let with_pods: Vec<_> =
        installed.iter().chain(&cleanup).filter(|object| object["spec"]["template"].is_object()).collect();
    assert_eq!(with_pods.len(), 3);
    for object in with_pods {
        let mut spec = object["spec"]["template"]["spec"].clone();
        // The ServiceAccount does not exist after a dry run.
        spec["serviceAccountName"] = json!("default");
        let create = async |spec: &Value| {
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod", "namespace": SYSTEM}, "spec": spec});
            cluster
                .kubectl_with_input(&["create", "--dry-run=server", "-f", "-"], &pod.to_string())
                .await
                .unwrap()
        };
        let output = create(&spec).await;
        assert!(output.success, "{output:?}");
        spec["containers"][0]["securityContext"] = json!({});
        let output = create(&spec).await;
        assert!(
            !output.success && output.stderr.contains("violates PodSecurity"),
            "the check works: {output:?}"
        );
    }
}
