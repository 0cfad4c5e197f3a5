//! What the agent refuses, against a real API server and with kube-proxy's own valid token: everything that kube-proxy
//! does not ask, and everything that is too much.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use isp_lab::ControlPlane;
use serde_json::{Value, json};

const NODE: &str = "work-1";

/// An agent on loopback, as a process, and a directory with its files.
struct Agent {
    process: Child,
    address: SocketAddr,
    directory: tempfile::TempDir,
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

impl Agent {
    async fn start() -> Self {
        Self::start_as("proxy-agent").await
    }

    /// An agent whose own identity is the token in that file.
    async fn start_as(own_token: &str) -> Self {
        let cluster = ControlPlane::shared().await.unwrap();
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

        let directory = tempfile::tempdir().unwrap();
        for account in ["kube-proxy", "proxy-agent"] {
            let token = cluster.kubectl(&["-n", "kube-system", "create", "token", account]).await.unwrap();
            assert!(token.success, "{token:?}");
            fs::write(directory.path().join(account), token.stdout.trim()).unwrap();
        }
        let admin: Value = serde_json::from_str(&fs::read_to_string(cluster.kubeconfig()).unwrap()).unwrap();
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": admin["clusters"],
            "users": [{"name": "default", "user": {"tokenFile": directory.path().join("kube-proxy")}}],
            "contexts": [{"name": "default", "context": {"cluster": "lab", "user": "default"}}],
            "current-context": "default",
        });
        fs::create_dir(directory.path().join("original")).unwrap();
        let original = directory.path().join("original/kubeconfig.conf");
        fs::write(&original, kubeconfig.to_string()).unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let process = Command::new(env!("CARGO_BIN_EXE_proxy-agent"))
            .args(["filter", "--node-name", NODE])
            .args(["--listen", &address.to_string()])
            .args(["--admin", &format!("127.0.0.1:{}", free_port())])
            .arg("--kube-proxy-kubeconfig")
            .arg(&original)
            .arg("--serving-directory")
            .arg(directory.path())
            .arg("--token-file")
            .arg(directory.path().join(own_token))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let agent = Self { process, address, directory };
        let started = Instant::now();
        while agent.ask(&["/version"]).0 != 200 {
            assert!(started.elapsed() < Duration::from_secs(20), "the agent does not serve");
            std::thread::sleep(Duration::from_millis(100));
        }
        agent
    }

    /// The view is known a moment after the agent serves.
    fn wait_for_services(&self) {
        let started = Instant::now();
        while self.ask(&["/api/v1/services"]).0 != 200 {
            assert!(started.elapsed() < Duration::from_secs(20), "the agent does not know its view");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Asks with kube-proxy's token; the last argument is the path. Gives the status code and the body.
    fn ask(&self, arguments: &[&str]) -> (u16, String) {
        let (path, flags) = arguments.split_last().unwrap();
        let token = fs::read_to_string(self.directory.path().join("kube-proxy")).unwrap();
        let output = Command::new("curl")
            .args(["-sS", "--max-time", "20", "--path-as-is", "-w", "\n%{http_code}"])
            .arg("--cacert")
            .arg(self.directory.path().join("ca.crt"))
            .args(["-H", &format!("Authorization: Bearer {token}")])
            .args(flags)
            .arg(format!("https://{}{path}", self.address))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (body, code) = text.rsplit_once('\n').unwrap_or(("", "0"));
        (code.parse().unwrap_or(0), body.to_owned())
    }
}

#[tokio::test]
async fn what_kube_proxy_does_not_ask_is_refused_with_its_own_valid_token() {
    let agent = Agent::start().await;
    agent.wait_for_services();
    for arguments in [
        &["/api/v1/secrets"][..],
        &["/api/v1/pods"],
        &["/api/v1/nodes"],
        &["/api/v1/nodes/edge-1"],
        &["/api/v1/namespaces/kube-system/serviceaccounts/kube-proxy/token"],
        &["/api/v1/../v1/secrets"],
        &["-XPOST", "-HContent-Type: application/json", "-d{}", "/api/v1/namespaces/default/services"],
        &["-XDELETE", "/api/v1/services"],
        &["-XGET", "-d{\"a\":1}", "/api/v1/services"],
    ] {
        let (code, body) = agent.ask(arguments);
        assert_eq!(code, 403, "{arguments:?}: {body}");
        let status: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((&status["kind"], &status["reason"]), (&json!("Status"), &json!("Forbidden")));
        assert!(status["message"].as_str().is_some_and(|message| message.len() > 20), "{body}");
    }
}

#[tokio::test]
async fn an_agent_that_cannot_know_the_view_shows_no_service_and_lets_the_rest_pass() {
    // With kube-proxy's token it may not read the objects that the view follows from.
    let agent = Agent::start_as("kube-proxy").await;
    let (code, body) = agent.ask(&["/api/v1/services"]);
    assert_eq!(code, 503, "{body}");
    assert!(body.contains("does not know yet what this node may see"), "{body}");
    assert_eq!(agent.ask(&["/apis/discovery.k8s.io/v1/endpointslices"]).0, 200);
}

#[tokio::test]
async fn nobody_becomes_someone_else_on_the_way() {
    let agent = Agent::start().await;
    agent.wait_for_services();
    // The API server would refuse the impersonation; the agent does not even pass it on, so the request is kube-proxy's own.
    for header in ["Impersonate-User: system:admin", "X-Remote-User: system:admin"] {
        assert_eq!(agent.ask(&["-H", header, "/api/v1/services"]).0, 200, "{header}");
    }
    // And without a token of its own the agent lends it none.
    let output = Command::new("curl")
        .args(["-sS", "-o", "/dev/null", "-w", "%{http_code}", "--cacert"])
        .arg(agent.directory.path().join("ca.crt"))
        .arg(format!("https://{}/api/v1/services", agent.address))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "403", "anonymous may not list Services");
}

#[tokio::test]
async fn too_much_and_too_slow_is_refused_within_bounds_and_others_are_served_meanwhile() {
    let agent = Agent::start().await;
    let large = agent.directory.path().join("headers");
    fs::write(&large, format!("X-Large: {}\n", "a".repeat(10 << 20))).unwrap();
    let header = format!("@{}", large.display());
    for version in ["--http1.1", "--http2"] {
        let (code, _) = agent.ask(&[version, "-H", &header, "/version"]);
        assert_ne!(code, 200, "{version}");
    }
    assert_eq!(
        agent.ask(&["--http1.1", "-HConnection: Upgrade", "-HUpgrade: websocket", "/api/v1/services"]).0,
        400
    );

    // Callers that never finish their handshake are cut, and do not keep others out.
    let mut silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(agent.address).unwrap()).collect();
    assert_eq!(agent.ask(&["/version"]).0, 200);
    for stream in &mut silent {
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        assert!(matches!(stream.read(&mut [0; 16]), Ok(0)), "it is closed");
    }
    assert_eq!(agent.ask(&["/version"]).0, 200);
}
