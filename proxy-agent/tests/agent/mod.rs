//! A real API server on loopback and an agent in front of it, as a process of its own. Tests and the benchmark start it so.

#![allow(dead_code, reason = "each program uses a part of it")]

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use isp_lab::{ControlPlane, Program, free_address};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

pub(crate) const NODE: &str = "work-1";
/// Machines of tests are busy.
const DEADLINE: Duration = Duration::from_secs(40);

/// Whose token an agent has as itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    /// The agents' account, bound to the node, as a kubelet's tokens are.
    Agent,
    /// kube-proxy's account, which may not read the objects that the view follows from.
    KubeProxy,
}

/// An agent on loopback, as a process, and a directory with its files.
pub(crate) struct Agent {
    pub(crate) program: Program,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    arguments: Vec<OsString>,
    memory: Option<u64>,
    directory: tempfile::TempDir,
}

/// Starts the program, with that much memory if it is limited.
fn start(arguments: &[OsString], admin: SocketAddr, memory: Option<u64>) -> Program {
    let mut command = match memory {
        None => Command::new(program()),
        Some(bytes) => {
            let mut limited = Command::new("prlimit");
            limited.arg(format!("--data={bytes}")).arg("--").arg(program());
            limited
        }
    };
    command.arg("filter").args(arguments);
    Program::start("agent", command, admin).unwrap()
}

/// What an agent and a kube-proxy need on the cluster.
pub(crate) async fn install(cluster: &ControlPlane) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let rights = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "kube-proxy", "namespace": "kube-system"}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "kubeadm:node-proxier"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-proxier"},
            "subjects": [{"kind": "ServiceAccount", "name": "kube-proxy", "namespace": "kube-system"}],
        },
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}},
    ]});
    let apply = ["apply", "--server-side", "--force-conflicts", "-f"];
    for part in ["crds", "manifests/agent"] {
        let path = root.join(part).display().to_string();
        let output = cluster.kubectl(&[&apply[..], &[&path]].concat()).await.unwrap();
        assert!(output.success, "{output:?}");
    }
    let output =
        cluster.kubectl_with_input(&[&apply[..], &["-"]].concat(), &rights.to_string()).await.unwrap();
    assert!(output.success, "{output:?}");
}

/// A token of an account in `kube-system`, with these flags of `kubectl create token`.
pub(crate) async fn token(cluster: &ControlPlane, account: &str, flags: &[&str]) -> String {
    let command = ["-n", "kube-system", "create", "token", account];
    let output = cluster.kubectl(&[&command[..], flags].concat()).await.unwrap();
    assert!(output.success, "{output:?}");
    output.stdout.trim().to_owned()
}

/// The one cluster in the administrator's kubeconfig: where the API server is, and by which authority it is known.
pub(crate) fn place(cluster: &ControlPlane) -> Value {
    let admin: Value = serde_json::from_str(&fs::read_to_string(cluster.kubeconfig()).unwrap()).unwrap();
    admin["clusters"][0]["cluster"].clone()
}

/// The one that cargo built beside the tests; what a bench measures is the one that images have.
fn program() -> PathBuf {
    std::env::var_os("ISP_BENCH_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_proxy-agent").into()).into()
}

impl Agent {
    pub(crate) async fn start(cluster: &ControlPlane, own: Own) -> Self {
        Self::start_at(cluster, place(cluster), own).await
    }

    /// An agent whose kube-proxy finds the API server in another place.
    pub(crate) async fn start_at(cluster: &ControlPlane, place: Value, own: Own) -> Self {
        Self::start_as(cluster, place, own, None, &[]).await
    }

    /// An agent with so much memory for its data and no more, as in its container.
    pub(crate) async fn start_limited(cluster: &ControlPlane, memory: u64) -> Self {
        Self::start_with(cluster, place(cluster), Own::Agent, None, &[], Some(memory)).await
    }

    /// An agent with more arguments, whose kube-proxy may be another user than the one with the token.
    pub(crate) async fn start_as(
        cluster: &ControlPlane,
        place: Value,
        own: Own,
        user: Option<Value>,
        more: &[&str],
    ) -> Self {
        Self::start_with(cluster, place, own, user, more, None).await
    }

    async fn start_with(
        cluster: &ControlPlane,
        place: Value,
        own: Own,
        user: Option<Value>,
        more: &[&str],
        memory: Option<u64>,
    ) -> Self {
        install(cluster).await;
        let directory = tempfile::tempdir().unwrap();
        let bound = ["--bound-object-kind", "Node", "--bound-object-name", NODE];
        for (account, flags) in [("kube-proxy", &[][..]), ("proxy-agent", &bound)] {
            fs::write(directory.path().join(account), token(cluster, account, flags).await).unwrap();
        }
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "default", "cluster": place}],
            "users": [{"name": "default", "user": user.unwrap_or_else(|| json!({"tokenFile": directory.path().join("kube-proxy")}))}],
            "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
            "current-context": "default",
        });
        fs::create_dir(directory.path().join("original")).unwrap();
        let original = directory.path().join("original/kubeconfig.conf");
        fs::write(&original, kubeconfig.to_string()).unwrap();
        let (address, admin) = (free_address().unwrap(), free_address().unwrap());
        let own_token = match own {
            Own::Agent => "proxy-agent",
            Own::KubeProxy => "kube-proxy",
        };
        let serving = directory.path().join("serving");
        fs::create_dir(&serving).unwrap();
        let arguments: Vec<OsString> = [
            ("--node-name", NODE.into()),
            ("--listen", address.to_string().into()),
            ("--admin", admin.to_string().into()),
            ("--kube-proxy-kubeconfig", original.into()),
            ("--serving-directory", serving.into()),
            ("--token-file", directory.path().join(own_token).into()),
        ]
        .into_iter()
        .flat_map(|(flag, value)| [flag.into(), value])
        .chain(more.iter().map(OsString::from))
        .collect();
        let program = start(&arguments, admin, memory);
        let agent = Self { program, address, admin, arguments, memory, directory };
        agent.wait("mirrors kube-proxy's files", |agent| agent.mirrored().is_file());
        agent.unpack();
        agent.wait("serves", |agent| agent.ask(&["/version"]).0 == 200);
        agent
    }

    /// Kills the agent and starts it again, as a kubelet does in the same pod.
    pub(crate) fn restart(&mut self) {
        self.program.signal(Signal::SIGKILL).unwrap();
        self.start_again();
        self.wait("serves again", |agent| agent.ask(&["/version"]).0 == 200);
    }

    /// Starts it again after its end.
    pub(crate) fn start_again(&mut self) {
        self.program = start(&self.arguments, self.admin, self.memory);
    }

    /// The status code of an answer to kube-proxy's certificate alone.
    pub(crate) fn ask_without_token(&self, path: &str) -> u16 {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "40"]);
        curl.args(self.certificates()).args(self.url(path));
        String::from_utf8_lossy(&curl.output().unwrap().stdout).parse().unwrap_or(0)
    }

    /// curl's arguments by which agent and kube-proxy know each other.
    fn certificates(&self) -> Vec<OsString> {
        [("--cacert", "ca.crt"), ("--cert", "client.crt"), ("--key", "client.key")]
            .into_iter()
            .flat_map(|(flag, file)| [flag.into(), self.file(file).into()])
            .collect()
    }

    /// The kubeconfig that kube-proxy would read.
    pub(crate) fn mirrored(&self) -> PathBuf {
        self.file("serving/kubeconfig.conf")
    }

    /// Writes what kube-proxy finds in its kubeconfig to files, for programs that take no kubeconfig.
    fn unpack(&self) {
        let config: Value = serde_json::from_str(&fs::read_to_string(self.mirrored()).unwrap()).unwrap();
        let (cluster, user) = (&config["clusters"][0]["cluster"], &config["users"][0]["user"]);
        for (file, data) in [
            ("ca.crt", &cluster["certificate-authority-data"]),
            ("client.crt", &user["client-certificate-data"]),
            ("client.key", &user["client-key-data"]),
        ] {
            let bytes: k8s_openapi::ByteString = serde_json::from_value(data.clone()).unwrap();
            fs::write(self.file(file), bytes.0).unwrap();
        }
        fs::write(self.file("name"), cluster["tls-server-name"].as_str().unwrap()).unwrap();
    }

    /// The name that kube-proxy calls.
    pub(crate) fn name(&self) -> String {
        fs::read_to_string(self.file("name")).unwrap()
    }

    /// A path of the agent's, and how curl finds it.
    pub(crate) fn url(&self, path: &str) -> [String; 3] {
        let (name, port) = (self.name(), self.address.port());
        let resolve = format!("{name}:{port}:{}", self.address.ip());
        ["--resolve".to_owned(), resolve, format!("https://{name}:{port}{path}")]
    }

    /// The view is known a moment after the agent serves.
    pub(crate) fn wait_for_services(&self) {
        self.wait("knows its view", |agent| agent.ask(&["/api/v1/services?limit=1"]).0 == 200);
    }

    pub(crate) fn wait(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let started = Instant::now();
        while !done(self) {
            let last = || self.ask(&["/version"]);
            assert!(started.elapsed() < DEADLINE, "not within {DEADLINE:?}: the agent {what}: {:?}", last());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(crate) fn process(&self) -> u32 {
        self.program.id()
    }

    pub(crate) fn metrics(&self) -> Vec<String> {
        self.program.metrics()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn kube_proxy_token(&self) -> String {
        fs::read_to_string(self.file("kube-proxy")).unwrap()
    }

    /// A request with kube-proxy's token; the last argument is the path.
    fn curl(&self, arguments: &[&str]) -> Command {
        let (path, flags) = arguments.split_last().unwrap();
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--path-as-is"])
            .args(self.certificates())
            .args(["-H", &format!("Authorization: Bearer {}", self.kube_proxy_token())])
            .args(flags)
            .args(self.url(path));
        curl
    }

    /// The status code and the body of an answer; 0 and what went wrong when there is none.
    pub(crate) fn ask(&self, arguments: &[&str]) -> (u16, String) {
        let flags = ["--max-time", "40", "-w", "\n%{http_code}"];
        let output = self.curl(&[&flags, arguments].concat()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match text.rsplit_once('\n') {
            Some((body, code)) if output.status.success() => (code.parse().unwrap_or(0), body.to_owned()),
            _ => (0, String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// The lines of an answer, as they come.
    pub(crate) fn follow(&self, arguments: &[&str]) -> Lines {
        let flags = ["--no-buffer", "--max-time", "120"];
        let mut curl = self.curl(&[&flags, arguments].concat());
        let mut process = curl.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Lines { process, lines }
    }
}

/// An answer that is being read.
pub(crate) struct Lines {
    process: Child,
    lines: mpsc::Receiver<String>,
}

impl Lines {
    /// The next line; none when the answer has ended.
    pub(crate) fn next(&self) -> Option<String> {
        match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => Some(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("no line within {DEADLINE:?}"),
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
