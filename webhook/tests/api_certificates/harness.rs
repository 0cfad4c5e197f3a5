//! A cluster with the webhook's RBAC and configuration, and replicas as processes. The benchmark
//! uses it, too.

#![allow(dead_code, reason = "each program uses a part of it")]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use isp_lab::{ControlPlane, Program, free_address};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

/// Generous timeout for things that should happen at once, for busy machines.
const DEADLINE: Duration = Duration::from_mins(1);

/// The namespace of the webhook.
pub(crate) const SYSTEM: &str = "sourcepreserve-system";
pub(crate) const SECRET: &str = "sourcepreserve-webhook-ca";
/// The DNS name that API servers use.
pub(crate) const SERVER: &str = "sourcepreserve-webhook.sourcepreserve-system.svc";
pub(crate) const CONFIGURATION: &str = "sourcepreserve.io";

/// Waits until the condition holds.
pub(crate) async fn until(what: &str, is_so: impl AsyncFnMut() -> bool) {
    isp_lab::until(DEADLINE, what, is_so).await;
}

pub(crate) struct Cluster {
    pub(crate) control_plane: ControlPlane,
    pub(crate) client: Client,
    directory: tempfile::TempDir,
}

impl Cluster {
    /// A control plane with everything that a webhook needs.
    pub(crate) async fn start() -> Self {
        Self::start_on(ControlPlane::start().await.unwrap()).await
    }

    /// Like [`Self::start`], on an existing control plane.
    pub(crate) async fn start_on(control_plane: ControlPlane) -> Self {
        let client = control_plane.client().unwrap();
        let this = Self { control_plane, client, directory: tempfile::tempdir().unwrap() };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for part in ["manifests/base/namespace.yaml", "crds"] {
            let path = root.join(part).display().to_string();
            this.kubectl(&["apply", "--server-side", "-f", &path]).await;
        }
        this.install().await;
        let account = "sourcepreserve-webhook";
        this.control_plane.write_kubeconfig_of(SYSTEM, account, &this.kubeconfig()).await.unwrap();
        this
    }

    /// Applies the manifests, as users do; also restores deleted objects.
    pub(crate) async fn install(&self) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("manifests/webhook");
        self.kubectl(&["apply", "--server-side", "-k", &path.display().to_string()]).await;
    }

    /// Runs kubectl, which must succeed, and returns its stdout.
    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.control_plane.kubectl(arguments).await.unwrap();
        assert!(output.success, "{output:?}");
        output.stdout
    }

    /// Runs kubectl, which must fail, and returns its stderr.
    pub(crate) async fn kubectl_error(&self, arguments: &[&str]) -> String {
        let output = self.control_plane.kubectl(arguments).await.unwrap();
        assert!(!output.success, "{output:?}");
        output.stderr
    }

    /// Grants access to the Secret, as the overlay for cert-manager does.
    pub(crate) async fn allow_secret(&self, name: &str) {
        let role = format!("--resource-name={name}");
        let rights = ["-n", SYSTEM, "create", "role", "cert-manager-secret", "--resource=secrets", &role];
        self.kubectl(&[&rights[..], &["--verb=get,list,watch"]].concat()).await;
        let account = format!("--serviceaccount={SYSTEM}:sourcepreserve-webhook");
        let binding =
            ["-n", SYSTEM, "create", "rolebinding", "cert-manager-secret", "--role=cert-manager-secret"];
        self.kubectl(&[&binding[..], &[&account]].concat()).await;
    }

    /// A kubeconfig of the webhook's ServiceAccount.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    pub(crate) fn configurations(&self) -> Api<ValidatingWebhookConfiguration> {
        Api::all(self.client.clone())
    }

    /// The bundle in the configuration, empty if there is none.
    pub(crate) async fn bundle(&self) -> Vec<u8> {
        let configuration = self.configurations().get_opt(CONFIGURATION).await.unwrap();
        let bundle = configuration.and_then(|found| found.webhooks?.pop()?.client_config.ca_bundle);
        bundle.map(|bytes| bytes.0).unwrap_or_default()
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), SYSTEM)
    }

    /// One key of the Secret as text, empty if there is none.
    pub(crate) async fn stored(&self, key: &str) -> String {
        let secret = self.secrets().get_opt(SECRET).await.unwrap();
        let bytes = secret.and_then(|secret| secret.data?.remove(key)).map(|bytes| bytes.0);
        String::from_utf8(bytes.unwrap_or_default()).unwrap()
    }
}

/// A replica of the webhook.
pub(crate) struct Replica {
    program: Program,
    pub(crate) address: SocketAddr,
}

impl Replica {
    pub(crate) fn start(cluster: &Cluster, arguments: &[&str]) -> Self {
        Self::start_at(cluster, free_address().unwrap(), arguments)
    }

    pub(crate) fn start_at(cluster: &Cluster, address: SocketAddr, arguments: &[&str]) -> Self {
        let admin = free_address().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_webhook"));
        command
            .env("KUBECONFIG", cluster.kubeconfig())
            .env("POD_NAMESPACE", SYSTEM)
            .args(["--log-format=text", "--log-level=info,isp_webhook=debug", "run"])
            .args([format!("--listen={address}"), format!("--admin={admin}")])
            .args(arguments);
        Self { program: Program::start("webhook", command, admin).unwrap(), address }
    }

    pub(crate) fn log(&self) -> String {
        self.program.log()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.program.is_ready()
    }

    /// The value of a metric.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        self.program.metric(name)
    }

    /// Shuts it down gracefully. Returns whether it exited successfully.
    pub(crate) fn end(&mut self) -> bool {
        self.program.end().unwrap()
    }

    pub(crate) async fn wait_ready(&self) {
        until("the replica is ready", async || self.is_ready()).await;
    }
}
