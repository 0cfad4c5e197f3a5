//! Starts an agent as a process in front of a real API server on the loopback address, for tests
//! and the benchmark.

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
/// Generous, because test machines are busy.
const DEADLINE: Duration = Duration::from_secs(40);

/// The account whose token the agent uses for its own requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentToken {
    /// The agents' account, with a token bound to the node, as the kubelet's are.
    Agent,
    /// kube-proxy's account, which may not read the objects that define the view.
    KubeProxy,
}

/// A running agent, and a directory with its files.
pub(crate) struct Agent {
    pub(crate) program: Program,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    arguments: Vec<OsString>,
    memory: Option<u64>,
    directory: tempfile::TempDir,
}

/// Starts the program, with a memory limit if there is one.
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

/// Installs the objects that an agent and a kube-proxy need.
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

/// Creates a token of an account in `kube-system`, with these flags of `kubectl create token`.
pub(crate) async fn token(cluster: &ControlPlane, account: &str, flags: &[&str]) -> String {
    let command = ["-n", "kube-system", "create", "token", account];
    let output = cluster.kubectl(&[&command[..], flags].concat()).await.unwrap();
    assert!(output.success, "{output:?}");
    output.stdout.trim().to_owned()
}

/// Returns the cluster in the administrator's kubeconfig: the API server's address and CA.
pub(crate) fn api_server(cluster: &ControlPlane) -> Value {
    let admin: Value = serde_json::from_str(&fs::read_to_string(cluster.kubeconfig()).unwrap()).unwrap();
    admin["clusters"][0]["cluster"].clone()
}

/// Returns the program that cargo built with the tests, or the one that a benchmark measures.
fn program() -> PathBuf {
    std::env::var_os("ISP_BENCH_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_proxy-agent").into()).into()
}

impl Agent {
    pub(crate) async fn start(cluster: &ControlPlane, agent_token: AgentToken) -> Self {
        Self::start_at(cluster, api_server(cluster), agent_token).await
    }

    /// Starts an agent whose kube-proxy has another address for the API server.
    pub(crate) async fn start_at(cluster: &ControlPlane, api_server: Value, agent_token: AgentToken) -> Self {
        Self::start_as(cluster, api_server, agent_token, None, &[]).await
    }

    /// Starts an agent with the memory limit of its container.
    pub(crate) async fn start_limited(cluster: &ControlPlane, memory: u64) -> Self {
        Self::start_with(cluster, api_server(cluster), AgentToken::Agent, None, &[], Some(memory)).await
    }

    /// Starts an agent with more arguments. Its kube-proxy may be another user than the one with
    /// the token.
    pub(crate) async fn start_as(
        cluster: &ControlPlane,
        api_server: Value,
        agent_token: AgentToken,
        user: Option<Value>,
        more: &[&str],
    ) -> Self {
        Self::start_with(cluster, api_server, agent_token, user, more, None).await
    }

    async fn start_with(
        cluster: &ControlPlane,
        api_server: Value,
        agent_token: AgentToken,
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
            "clusters": [{"name": "default", "cluster": api_server}],
            "users": [{"name": "default", "user": user.unwrap_or_else(|| json!({"tokenFile": directory.path().join("kube-proxy")}))}],
            "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
            "current-context": "default",
        });
        fs::create_dir(directory.path().join("original")).unwrap();
        let original = directory.path().join("original/kubeconfig.conf");
        fs::write(&original, kubeconfig.to_string()).unwrap();
        let (address, admin) = (free_address().unwrap(), free_address().unwrap());
        let token_file = match agent_token {
            AgentToken::Agent => "proxy-agent",
            AgentToken::KubeProxy => "kube-proxy",
        };
        let serving = directory.path().join("serving");
        fs::create_dir(&serving).unwrap();
        let arguments: Vec<OsString> = [
            ("--node-name", NODE.into()),
            ("--listen", address.to_string().into()),
            ("--admin", admin.to_string().into()),
            ("--kube-proxy-kubeconfig", original.into()),
            ("--serving-directory", serving.into()),
            ("--token-file", directory.path().join(token_file).into()),
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

    /// Kills the agent and restarts it, as the kubelet does in the same pod.
    pub(crate) fn restart(&mut self) {
        self.program.signal(Signal::SIGKILL).unwrap();
        self.start_again();
        self.wait("serves again", |agent| agent.ask(&["/version"]).0 == 200);
    }

    /// Restarts an agent that has ended.
    pub(crate) fn start_again(&mut self) {
        self.program = start(&self.arguments, self.admin, self.memory);
    }

    /// Sends a request with kube-proxy's certificate alone, and returns the status code.
    pub(crate) fn ask_without_token(&self, path: &str) -> u16 {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "40"]);
        curl.args(self.certificates()).args(self.url(path));
        String::from_utf8_lossy(&curl.output().unwrap().stdout).parse().unwrap_or(0)
    }

    /// Returns curl's arguments for the certificates of agent and kube-proxy.
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

    /// Writes the certificates in the kubeconfig to files, for programs that read no kubeconfig.
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

    /// Returns the server name that kube-proxy asks for.
    pub(crate) fn name(&self) -> String {
        fs::read_to_string(self.file("name")).unwrap()
    }

    /// Returns curl's arguments for a path on the agent.
    pub(crate) fn url(&self, path: &str) -> [String; 3] {
        let (name, port) = (self.name(), self.address.port());
        let resolve = format!("{name}:{port}:{}", self.address.ip());
        ["--resolve".to_owned(), resolve, format!("https://{name}:{port}{path}")]
    }

    /// Waits until the view is known, a moment after the agent serves.
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

    /// Prepares a request with kube-proxy's token. The last argument is the path.
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

    /// Returns the status code and the body of a response, or 0 and the error.
    pub(crate) fn ask(&self, arguments: &[&str]) -> (u16, String) {
        let flags = ["--max-time", "40", "-w", "\n%{http_code}"];
        let output = self.curl(&[&flags, arguments].concat()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match text.rsplit_once('\n') {
            Some((body, code)) if output.status.success() => (code.parse().unwrap_or(0), body.to_owned()),
            _ => (0, String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Returns the lines of a response while they arrive.
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

/// A response in progress.
pub(crate) struct Lines {
    process: Child,
    lines: mpsc::Receiver<String>,
}

impl Lines {
    /// Returns the next line, or `None` at the end.
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
