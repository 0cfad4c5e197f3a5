//! A cluster with everything installed, and kubectl with the token of one ServiceAccount.

use std::path::PathBuf;

use isp_lab::{ControlPlane, Output};
use isp_testkit::control_plane::{SYSTEM, kubectl};
use isp_testkit::repository;
use serde_json::Value;

pub(crate) const OPERATOR: (&str, &str) = (SYSTEM, "sourcepreserve-operator");
pub(crate) const WEBHOOK: (&str, &str) = (SYSTEM, "sourcepreserve-webhook");
pub(crate) const AGENT: (&str, &str) = ("kube-system", "proxy-agent");

/// Installs everything as users do, and the agents' ServiceAccount, which the operator normally
/// creates.
pub(crate) async fn install(cluster: &ControlPlane) {
    for part in ["manifests/overlays/default", "manifests/agent"] {
        kubectl(cluster, &["apply", "--server-side", "-k", &repository::path(part)]).await;
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
