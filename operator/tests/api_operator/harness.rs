//! The operator as a process, and a cluster for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use isp_lab::{ControlPlane, free_address};
use isp_testkit::Program;
use isp_testkit::control_plane::{self, SYSTEM, apply};
use nix::sys::signal::Signal;
use serde_json::json;

/// Installs everything as a user would. Returns a kubeconfig of the operator's ServiceAccount.
pub(crate) async fn install(cluster: &ControlPlane, directory: &Path) -> PathBuf {
    control_plane::install(cluster).await;
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
        Self::start_with_lease(kubeconfig, namespace, identity, 10)
    }

    /// Starts it with a lease duration of this many seconds.
    pub(crate) fn start_with_lease(kubeconfig: &Path, namespace: &str, identity: &str, seconds: u64) -> Self {
        let admin = free_address().unwrap();
        let mut command = command(kubeconfig, namespace, identity);
        command.args(["run", "--agent-image=agent:1", &format!("--admin={admin}")]).args([
            &format!("--lease-duration={seconds}s"),
            &format!("--renew-deadline={}s", seconds * 6 / 10),
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
