//! A cluster with everything installed, and kubectl with the token of one ServiceAccount.

use std::path::{Path, PathBuf};

use isp_lab::{ControlPlane, Output};
use serde_json::Value;

/// The namespace of the operator and the webhook.
pub(crate) const SYSTEM: &str = "sourcepreserve-system";
pub(crate) const OPERATOR: (&str, &str) = (SYSTEM, "sourcepreserve-operator");
pub(crate) const WEBHOOK: (&str, &str) = (SYSTEM, "sourcepreserve-webhook");
pub(crate) const AGENT: (&str, &str) = ("kube-system", "proxy-agent");

/// Installs everything as users do, and the agents' ServiceAccount, which the operator normally
/// creates.
pub(crate) async fn install(cluster: &ControlPlane) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for part in ["overlays/default", "agent"] {
        let part = root.join("manifests").join(part).display().to_string();
        let output = cluster.kubectl(&["apply", "--server-side", "-k", &part]).await.unwrap();
        assert!(output.success, "{output:?}");
    }
}

/// An attacker with the token of one ServiceAccount.
pub(crate) struct Thief<'a> {
    cluster: &'a ControlPlane,
    kubeconfig: PathBuf,
    _directory: tempfile::TempDir,
}

impl<'a> Thief<'a> {
    pub(crate) async fn of(cluster: &'a ControlPlane, (namespace, account): (&str, &str)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let kubeconfig = directory.path().join("kubeconfig");
        cluster.write_kubeconfig_of(namespace, account, &kubeconfig).await.unwrap();
        Self { cluster, kubeconfig, _directory: directory }
    }

    pub(crate) async fn kubectl(&self, arguments: &[&str], input: &Value) -> Output {
        let own = format!("--kubeconfig={}", self.kubeconfig.display());
        let arguments: Vec<&str> = arguments.iter().copied().chain([own.as_str()]).collect();
        self.cluster.kubectl_with_input(&arguments, &input.to_string()).await.unwrap()
    }

    pub(crate) async fn succeeds(&self, arguments: &[&str], input: &Value) -> String {
        let output = self.kubectl(arguments, input).await;
        assert!(output.success, "{arguments:?}: {output:?}");
        output.stdout
    }

    /// The API server must reject this with a message that contains `words`.
    pub(crate) async fn is_refused(&self, arguments: &[&str], input: &Value, words: &str) {
        let output = self.kubectl(arguments, input).await;
        assert!(!output.success && output.stderr.contains(words), "{arguments:?}: {output:?}");
    }
}
