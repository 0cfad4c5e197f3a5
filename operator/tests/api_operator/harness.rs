//! The operator as a process, and a cluster for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use isp_lab::{ControlPlane, Program, free_address};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// Generous timeout for things that should happen at once, for busy machines.
const DEADLINE: Duration = Duration::from_mins(1);
/// The namespace of the operator.
pub(crate) const SYSTEM: &str = "sourcepreserve-system";

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Waits until the condition holds.
pub(crate) async fn until(what: &str, is_so: impl AsyncFnMut() -> bool) {
    isp_lab::until(DEADLINE, what, is_so).await;
}

/// Runs kubectl, which must succeed, and returns its output.
pub(crate) async fn kubectl<S: AsRef<str>>(cluster: &ControlPlane, arguments: &[S]) -> String {
    let output = cluster.kubectl(arguments).await.unwrap();
    assert!(output.success, "{output:?}");
    output.stdout
}

pub(crate) async fn apply(cluster: &ControlPlane, objects: &Value) {
    let output = cluster.kubectl_with_input(&["apply", "-f", "-"], &objects.to_string()).await.unwrap();
    assert!(output.success, "{output:?}");
}

/// Installs the CRDs, so that the operator can list every kind.
pub(crate) async fn install_definitions(cluster: &ControlPlane) {
    let crds = root().join("crds").display().to_string();
    kubectl(cluster, &["apply", "--server-side", "-f", &crds]).await;
    kubectl(cluster, &["wait", "--for=condition=Established", "--timeout=30s", "-f", &crds]).await;
}

/// Installs everything as a user would. Returns a kubeconfig of the operator's ServiceAccount.
pub(crate) async fn install(cluster: &ControlPlane, directory: &Path) -> PathBuf {
    let overlay = root().join("manifests/overlays/default").display().to_string();
    kubectl(cluster, &["apply", "--server-side", "-k", &overlay]).await;
    install_definitions(cluster).await;
    let path = directory.join("kubeconfig");
    cluster.write_kubeconfig_of(SYSTEM, "sourcepreserve-operator", &path).await.unwrap();
    path
}

pub(crate) async fn make_namespace(cluster: &ControlPlane, name: &str) {
    apply(cluster, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
}

/// The operator's command line and environment.
pub(crate) fn command(kubeconfig: &Path, namespace: &str, identity: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_operator"));
    command.env_remove("POD_NAME").env_remove("POD_NAMESPACE").env_remove("AGENT_IMAGE");
    command.env("KUBECONFIG", kubeconfig).args(["--log-format=text", "--log-level=info,isp_operator=debug"]);
    command.env("POD_NAME", identity).env("POD_NAMESPACE", namespace).stdin(Stdio::null());
    command
}

/// An operator process.
pub(crate) struct Operator(Program);

impl Operator {
    /// Starts it with a lease duration of ten seconds.
    pub(crate) fn start(kubeconfig: &Path, namespace: &str, identity: &str) -> Self {
        let admin = free_address().unwrap();
        let mut command = command(kubeconfig, namespace, identity);
        command.args(["run", "--agent-image=agent:1", &format!("--admin={admin}")]).args([
            "--lease-duration=10s",
            "--renew-deadline=6s",
            "--renew-interval=1s",
        ]);
        Self(Program::start("operator", command, admin).unwrap())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.0.signal(signal).unwrap();
    }

    /// Shuts it down gracefully. Returns whether it exited successfully.
    pub(crate) fn end(&mut self) -> bool {
        self.0.end().unwrap()
    }

    pub(crate) fn log(&self) -> String {
        self.0.log()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.0.is_ready()
    }

    /// Its metrics, one per line.
    pub(crate) fn metrics(&self) -> Vec<String> {
        self.0.metrics()
    }

    pub(crate) fn leads(&self) -> bool {
        self.metrics().iter().any(|line| line == "isp_operator_leader 1")
    }
}
