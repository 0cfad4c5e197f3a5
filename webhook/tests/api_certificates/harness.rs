//! A cluster with the webhook's rights and its configuration, and replicas as processes. The benchmark starts a cluster so, too.

#![allow(dead_code, reason = "each program uses a part of it")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use isp_lab::ControlPlane;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// What is meant to happen within moments may take this long on a busy machine.
const DEADLINE: Duration = Duration::from_mins(1);
const OFTEN: Duration = Duration::from_millis(50);

/// Where the webhook is installed.
pub(crate) const SYSTEM: &str = "sourcepreserve-system";
pub(crate) const SECRET: &str = "sourcepreserve-webhook-ca";
/// How API servers call it.
pub(crate) const SERVER: &str = "sourcepreserve-webhook.sourcepreserve-system.svc";
pub(crate) const CONFIGURATION: &str = "sourcepreserve.io";

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !is_so().await {
        assert!(started.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        tokio::time::sleep(OFTEN).await;
    }
}

pub(crate) struct Cluster {
    pub(crate) control_plane: ControlPlane,
    pub(crate) client: Client,
    directory: tempfile::TempDir,
}

impl Cluster {
    /// A control plane with everything installed that a webhook needs.
    pub(crate) async fn start() -> Self {
        let control_plane = ControlPlane::start().await.unwrap();
        let client = control_plane.client().unwrap();
        let this = Self { control_plane, client, directory: tempfile::tempdir().unwrap() };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for part in ["manifests/base/namespace.yaml", "crds"] {
            let path = root.join(part).display().to_string();
            this.kubectl(&["apply", "--server-side", "-f", &path]).await;
        }
        this.install().await;
        this.write_kubeconfig().await;
        this
    }

    /// What users do, also to have again what they have deleted.
    pub(crate) async fn install(&self) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("manifests/webhook");
        self.kubectl(&["apply", "--server-side", "-k", &path.display().to_string()]).await;
    }

    /// Runs kubectl, which must succeed, and gives what it printed.
    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.control_plane.kubectl(arguments).await.unwrap();
        assert!(output.success, "{output:?}");
        output.stdout
    }

    /// Runs kubectl, which must fail, and gives what it said.
    pub(crate) async fn kubectl_error(&self, arguments: &[&str]) -> String {
        let output = self.control_plane.kubectl(arguments).await.unwrap();
        assert!(!output.success, "{output:?}");
        output.stderr
    }

    /// What the overlay for cert-manager does.
    pub(crate) async fn allow_secret(&self, name: &str) {
        let role = format!("--resource-name={name}");
        let rights = ["-n", SYSTEM, "create", "role", "cert-manager-secret", "--resource=secrets", &role];
        self.kubectl(&[&rights[..], &["--verb=get,list,watch"]].concat()).await;
        let account = format!("--serviceaccount={SYSTEM}:sourcepreserve-webhook");
        let binding =
            ["-n", SYSTEM, "create", "rolebinding", "cert-manager-secret", "--role=cert-manager-secret"];
        self.kubectl(&[&binding[..], &[&account]].concat()).await;
    }

    /// With just the webhook's own rights.
    async fn write_kubeconfig(&self) {
        let token = self.kubectl(&["-n", SYSTEM, "create", "token", "sourcepreserve-webhook"]).await;
        let admin = fs::read_to_string(self.control_plane.kubeconfig()).unwrap();
        let admin: Value = serde_json::from_str(&admin).unwrap();
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": admin["clusters"],
            "users": [{"name": "webhook", "user": {"token": token.trim()}}],
            "contexts": [{"name": "default", "context": {"cluster": admin["clusters"][0]["name"], "user": "webhook"}}],
            "current-context": "default",
        });
        fs::write(self.kubeconfig(), kubeconfig.to_string()).unwrap();
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    pub(crate) fn configurations(&self) -> Api<ValidatingWebhookConfiguration> {
        Api::all(self.client.clone())
    }

    /// The bundle in the configuration; empty where there is none.
    pub(crate) async fn bundle(&self) -> Vec<u8> {
        let configuration = self.configurations().get_opt(CONFIGURATION).await.unwrap();
        let bundle = configuration.and_then(|found| found.webhooks?.pop()?.client_config.ca_bundle);
        bundle.map(|bytes| bytes.0).unwrap_or_default()
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), SYSTEM)
    }

    /// One key of the Secret, as text; empty where there is none.
    pub(crate) async fn stored(&self, key: &str) -> String {
        let secret = self.secrets().get_opt(SECRET).await.unwrap();
        let bytes = secret.and_then(|secret| secret.data?.remove(key)).map(|bytes| bytes.0);
        String::from_utf8(bytes.unwrap_or_default()).unwrap()
    }
}

/// A replica of the webhook.
pub(crate) struct Replica {
    process: Child,
    pub(crate) address: SocketAddr,
    admin: SocketAddr,
    log: PathBuf,
    _directory: tempfile::TempDir,
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!("the log of a replica:\n{}", self.log());
        }
    }
}

/// Another process may take the port between its choice and its use; then the start fails and says so.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

impl Replica {
    pub(crate) fn start(cluster: &Cluster, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let (address, admin) = (free_address(), free_address());
        let process = Command::new(env!("CARGO_BIN_EXE_webhook"))
            .env("KUBECONFIG", cluster.kubeconfig())
            .env("POD_NAMESPACE", SYSTEM)
            .args(["--log-format=text", "--log-level=info,isp_webhook=debug", "run"])
            .args([format!("--listen={address}"), format!("--admin={admin}")])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Self { process, address, admin, log, _directory: directory }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// What it serves at a path, if it answers.
    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.admin).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: webhook\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.starts_with("HTTP/1.1 200").then(|| body.to_owned())
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.get("/readyz").is_some()
    }

    /// The value of a metric.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        let text = self.get("/metrics")?;
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }

    /// Ends it in an orderly way; whether it said that all was well.
    pub(crate) fn end(&mut self) -> bool {
        kill(Pid::from_raw(self.process.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
        self.process.wait().unwrap().success()
    }

    pub(crate) async fn wait_ready(&self) {
        until("the replica is ready", async || self.is_ready()).await;
    }
}
