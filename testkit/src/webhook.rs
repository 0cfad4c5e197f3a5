//! A cluster with the webhook's RBAC and configuration, and replicas as processes, for tests and
//! the benchmark.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use isp_lab::{ControlPlane, free_address};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use crate::control_plane::{self, SYSTEM, install_crds};
use crate::program::Program;
use crate::repository;
use crate::wait::until;

/// The Secret with the webhook's CA.
pub const SECRET: &str = "sourcepreserve-webhook-ca";
/// The DNS name that API servers use.
pub const SERVER: &str = "sourcepreserve-webhook.sourcepreserve-system.svc";
/// The webhook configuration for objects.
pub const CONFIGURATION: &str = "sourcepreserve.io";

/// A control plane with everything that a webhook needs.
pub struct Cluster {
    /// The control plane.
    pub control_plane: ControlPlane,
    /// A client with all permissions.
    pub client: Client,
    program: PathBuf,
    directory: tempfile::TempDir,
}

impl Cluster {
    /// A control plane for webhooks of this program.
    pub async fn start(webhook: &str) -> Self {
        Self::start_on(webhook, ControlPlane::start().await.unwrap()).await
    }

    /// Like [`Self::start`], on an existing control plane.
    pub async fn start_on(webhook: &str, control_plane: ControlPlane) -> Self {
        let client = control_plane.client().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let this = Self { control_plane, client, program: webhook.into(), directory };
        let namespace = repository::path("manifests/base/namespace.yaml");
        this.kubectl(&["apply", "--server-side", "-f", &namespace]).await;
        install_crds(&this.control_plane).await;
        this.install().await;
        let account = "sourcepreserve-webhook";
        this.control_plane.write_kubeconfig_of(SYSTEM, account, &this.kubeconfig()).await.unwrap();
        this
    }

    /// Applies the manifests, as users do; also restores deleted objects.
    pub async fn install(&self) {
        self.kubectl(&["apply", "--server-side", "-k", &repository::path("manifests/webhook")]).await;
    }

    /// Runs kubectl, which must succeed, and returns its stdout.
    pub async fn kubectl(&self, arguments: &[&str]) -> String {
        control_plane::kubectl(&self.control_plane, arguments).await
    }

    /// Runs kubectl, which must fail, and returns its stderr.
    pub async fn kubectl_error(&self, arguments: &[&str]) -> String {
        let output = self.control_plane.kubectl(arguments).await.unwrap();
        assert!(!output.success, "{output:?}");
        output.stderr
    }

    /// Grants access to the Secret, as the overlay for cert-manager does.
    pub async fn allow_secret(&self, name: &str) {
        let role = format!("--resource-name={name}");
        let rights = ["-n", SYSTEM, "create", "role", "cert-manager-secret", "--resource=secrets", &role];
        self.kubectl(&[&rights[..], &["--verb=get,list,watch"]].concat()).await;
        let account = format!("--serviceaccount={SYSTEM}:sourcepreserve-webhook");
        let binding =
            ["-n", SYSTEM, "create", "rolebinding", "cert-manager-secret", "--role=cert-manager-secret"];
        self.kubectl(&[&binding[..], &[&account]].concat()).await;
    }

    /// A kubeconfig of the webhook's ServiceAccount.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// The API of webhook configurations.
    pub fn configurations(&self) -> Api<ValidatingWebhookConfiguration> {
        Api::all(self.client.clone())
    }

    /// The bundle in the configuration, empty if there is none.
    pub async fn bundle(&self) -> Vec<u8> {
        let configuration = self.configurations().get_opt(CONFIGURATION).await.unwrap();
        let bundle = configuration.and_then(|found| found.webhooks?.pop()?.client_config.ca_bundle);
        bundle.map(|bytes| bytes.0).unwrap_or_default()
    }

    /// The API of Secrets in the webhook's namespace.
    pub fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), SYSTEM)
    }

    /// One key of the Secret as text, empty if there is none.
    pub async fn stored(&self, key: &str) -> String {
        let secret = self.secrets().get_opt(SECRET).await.unwrap();
        let bytes = secret.and_then(|secret| secret.data?.remove(key)).map(|bytes| bytes.0);
        String::from_utf8(bytes.unwrap_or_default()).unwrap()
    }
}

/// A replica of the webhook.
pub struct Replica {
    program: Program,
    /// Where it answers API servers.
    pub address: SocketAddr,
}

impl Replica {
    /// Starts a replica with more arguments.
    pub fn start(cluster: &Cluster, arguments: &[&str]) -> Self {
        Self::start_at(cluster, free_address().unwrap(), arguments)
    }

    /// Starts a replica at this address.
    pub fn start_at(cluster: &Cluster, address: SocketAddr, arguments: &[&str]) -> Self {
        let admin = free_address().unwrap();
        let mut command = Command::new(&cluster.program);
        command
            .env("KUBECONFIG", cluster.kubeconfig())
            .env("POD_NAMESPACE", SYSTEM)
            .args(["--log-format=text", "--log-level=info,isp_webhook=debug", "run"])
            .args([format!("--listen={address}"), format!("--admin={admin}")])
            .args(arguments);
        Self { program: Program::start("webhook", command, admin).unwrap(), address }
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        self.program.log()
    }

    /// Whether it is ready.
    pub fn is_ready(&self) -> bool {
        self.program.is_ready()
    }

    /// The value of a metric.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.program.metric(name)
    }

    /// Shuts it down gracefully. Returns whether it exited successfully.
    pub fn end(&mut self) -> bool {
        self.program.end().unwrap()
    }

    /// Waits until it is ready.
    pub async fn wait_ready(&self) {
        until("the replica is ready", async || self.is_ready()).await;
    }
}
