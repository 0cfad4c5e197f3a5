//! An API server without nodes, and kubectl on it.

use isp_lab::ControlPlane;
use isp_lab::provision::KubernetesVersion;
use serde_json::Value;

use crate::repository;
use crate::wait::until;

/// The project's namespace.
pub const SYSTEM: &str = "sourcepreserve-system";

/// The API servers to test with: the newest supported one, and in the campaign the oldest one, too,
/// which takes minutes to build.
pub fn api_server_versions() -> Vec<KubernetesVersion> {
    let is_campaign = std::env::var_os("ISP_SOAK_API_SERVERS").is_some();
    let oldest = is_campaign.then_some(KubernetesVersion::V1_33);
    [KubernetesVersion::V1_37].into_iter().chain(oldest).collect()
}

/// Runs kubectl, which must succeed, and returns its stdout.
pub async fn kubectl<S: AsRef<str>>(cluster: &ControlPlane, arguments: &[S]) -> String {
    let output = cluster.kubectl(arguments).await.unwrap();
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    assert!(output.success, "{arguments:?}: {output:?}");
    output.stdout
}

/// Runs kubectl with this input, which must succeed, and returns its stdout.
pub async fn kubectl_with_input(cluster: &ControlPlane, arguments: &[&str], input: &Value) -> String {
    let output = cluster.kubectl_with_input(arguments, &input.to_string()).await.unwrap();
    assert!(output.success, "{arguments:?}: {output:?}");
    output.stdout
}

/// Runs `kubectl apply`, and returns its stdout.
pub async fn apply(cluster: &ControlPlane, object: &Value) -> String {
    kubectl_with_input(cluster, &["apply", "-f", "-"], object).await
}

/// Installs the CRDs, and waits until the API server serves them.
pub async fn install_crds(cluster: &ControlPlane) {
    let crds = repository::path("crds");
    kubectl(cluster, &["apply", "--server-side", "-f", &crds]).await;
    kubectl(cluster, &["wait", "--for=condition=Established", "--timeout=60s", "-f", &crds]).await;
    // Established comes a moment before the API server serves the kinds.
    until("the kinds are served", async || {
        let output = cluster.kubectl(&["get", "isp,isn"]).await.unwrap();
        if output.success { Ok(()) } else { Err(output.stderr) }
    })
    .await;
}

/// Installs everything as users do, with the overlay `default`.
pub async fn install(cluster: &ControlPlane) {
    kubectl(cluster, &["apply", "--server-side", "-k", &repository::path("manifests/overlays/default")])
        .await;
    install_crds(cluster).await;
}
