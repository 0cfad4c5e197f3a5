//! An operator as a process, and a cluster for it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use isp_lab::ControlPlane;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// What is meant to happen within moments may take this long on a busy machine.
const DEADLINE: Duration = Duration::from_mins(1);
/// Where the operator is installed.
pub(crate) const SYSTEM: &str = "sourcepreserve-system";
const OFTEN: Duration = Duration::from_millis(50);

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl AsyncFnMut() -> bool) {
    until_within(DEADLINE, what, is_so).await;
}

pub(crate) async fn until_within(deadline: Duration, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !is_so().await {
        assert!(started.elapsed() < deadline, "{what}: not within {deadline:?}");
        tokio::time::sleep(OFTEN).await;
    }
}

/// Runs kubectl, which must succeed, and gives what it printed.
pub(crate) async fn kubectl<S: AsRef<str>>(cluster: &ControlPlane, arguments: &[S]) -> String {
    let output = cluster.kubectl(arguments).await.unwrap();
    assert!(output.success, "{output:?}");
    output.stdout
}

pub(crate) async fn apply(cluster: &ControlPlane, objects: &Value) {
    let output = cluster.kubectl_with_input(&["apply", "-f", "-"], &objects.to_string()).await.unwrap();
    assert!(output.success, "{output:?}");
}

/// The definitions, so that the operator can read everything.
pub(crate) async fn install_definitions(cluster: &ControlPlane) {
    let crds = root().join("crds").display().to_string();
    kubectl(cluster, &["apply", "--server-side", "-f", &crds]).await;
    kubectl(cluster, &["wait", "--for=condition=Established", "--timeout=30s", "-f", &crds]).await;
}

/// Installs everything as a user would, and gives a kubeconfig with just the operator's own rights.
pub(crate) async fn install(cluster: &ControlPlane, directory: &Path) -> PathBuf {
    let overlay = root().join("manifests/overlays/default").display().to_string();
    kubectl(cluster, &["apply", "--server-side", "-k", &overlay]).await;
    install_definitions(cluster).await;
    let token = ["-n", SYSTEM, "create", "token", "sourcepreserve-operator"];
    let token = kubectl(cluster, &token).await;
    let admin: Value = serde_json::from_str(&fs::read_to_string(cluster.kubeconfig()).unwrap()).unwrap();
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": admin["clusters"],
        "users": [{"name": "operator", "user": {"token": token.trim()}}],
        "contexts": [{"name": "default", "context": {"cluster": admin["clusters"][0]["name"], "user": "operator"}}],
        "current-context": "default",
    });
    let path = directory.join("kubeconfig");
    fs::write(&path, kubeconfig.to_string()).unwrap();
    path
}

pub(crate) async fn make_namespace(cluster: &ControlPlane, name: &str) {
    apply(cluster, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
}

/// An operator.
pub(crate) struct Operator {
    process: Child,
    admin: SocketAddr,
    log: PathBuf,
    _directory: tempfile::TempDir,
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!("the log of an operator:\n{}", fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}

/// How an operator is told to run.
pub(crate) fn command(kubeconfig: &Path, namespace: &str, identity: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_operator"));
    command.env_remove("POD_NAME").env_remove("POD_NAMESPACE").env_remove("AGENT_IMAGE");
    command.env("KUBECONFIG", kubeconfig).args(["--log-format=text", "--log-level=info,isp_operator=debug"]);
    command.env("POD_NAME", identity).env("POD_NAMESPACE", namespace).stdin(Stdio::null());
    command
}

impl Operator {
    /// Starts it with a lease of ten seconds.
    pub(crate) fn start(kubeconfig: &Path, namespace: &str, identity: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        // Another process may take the port between its choice and its use; then the start fails and says so.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let process = command(kubeconfig, namespace, identity)
            .args(["run", "--agent-image=agent:1", &format!("--admin={admin}")])
            .args(["--lease-duration=10s", "--renew-deadline=6s", "--renew-interval=1s"])
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Self { process, admin, log, _directory: directory }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id().try_into().unwrap()), signal).unwrap();
    }

    /// Ends it in an orderly way; whether it said that all was well.
    pub(crate) fn end(&mut self) -> bool {
        self.signal(Signal::SIGTERM);
        self.process.wait().unwrap().success()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// What it serves at a path, if it answers.
    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.admin).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: operator\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.starts_with("HTTP/1.1 200").then(|| body.to_owned())
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.get("/readyz").is_some()
    }

    /// Its metrics, a line each.
    pub(crate) fn metrics(&self) -> Vec<String> {
        let text = self.get("/metrics").unwrap_or_default();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    pub(crate) fn leads(&self) -> bool {
        self.metrics().iter().any(|line| line == "isp_operator_leader 1")
    }
}
