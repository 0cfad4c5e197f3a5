//! Authentication on the loopback address, against a real API server: only a client with the
//! certificate in kube-proxy's kubeconfig gets in.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use isp_lab::ControlPlane;
use isp_testkit::agent::Agent;
use isp_testkit::until;
use serde_json::Value;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_proxy-agent");

/// Returns the value of a counter of connections.
fn calls(agent: &Agent, outcome: &str) -> u64 {
    let name = format!("isp_agent_calls_total{{outcome=\"{outcome}\"}} ");
    agent.metrics().iter().find_map(|line| line.strip_prefix(&name)?.parse().ok()).unwrap_or(0)
}

/// Runs curl without kube-proxy's certificate, and says whether it got a response.
fn without_certificate(agent: &Agent, arguments: &[&str]) -> bool {
    let mut curl = Command::new("curl");
    curl.args(["-sS", "-o", "/dev/null", "--max-time", "20", "--cacert"]).arg(agent.file("ca.crt"));
    curl.args(["-H", &format!("Authorization: Bearer {}", agent.kube_proxy_token())]).args(arguments);
    curl.args(agent.url("/api/v1/services")).output().unwrap().status.success()
}

#[tokio::test]
async fn a_caller_without_the_certificate_gets_no_answer_even_with_kube_proxys_token() {
    let agent = Agent::of(PROGRAM).start(ControlPlane::shared().await.unwrap()).await;
    agent.wait_for_services();
    let own = rcgen::generate_simple_self_signed(["kube-proxy".to_owned()]).unwrap();
    fs::write(agent.file("other.crt"), own.cert.pem()).unwrap();
    fs::write(agent.file("other.key"), own.signing_key.serialize_pem()).unwrap();
    let (certificate, key) = (agent.file("other.crt"), agent.file("other.key"));
    let other = ["--cert", certificate.to_str().unwrap(), "--key", key.to_str().unwrap()];
    let before = calls(&agent, "Unknown");
    for arguments in [&[][..], &["--tls-max", "1.2"], &["--http1.1"], &other] {
        assert!(!without_certificate(&agent, arguments), "{arguments:?}");
    }
    // A client with the certificate that does not know the server name does not get in, either.
    let mut nameless = Command::new("curl");
    nameless.args(["-sS", "-k", "--cert"]).arg(agent.file("client.crt"));
    nameless.arg("--key").arg(agent.file("client.key")).arg(format!("https://{}/version", agent.address));
    assert!(!nameless.output().unwrap().status.success());
    assert_eq!(calls(&agent, "Unknown") - before, 5);
    assert_eq!(agent.ask(&["/api/v1/services"]).0, 200, "kube-proxy is served");
}

#[tokio::test]
async fn clients_of_kubernetes_send_the_certificate_and_the_token_of_one_kubeconfig() {
    let cluster = ControlPlane::shared().await.unwrap();
    let agent = Agent::of(PROGRAM).start(cluster).await;
    agent.wait_for_services();
    // kubectl reads a kubeconfig with the same code as kube-proxy.
    let mirrored = agent.mirrored().display().to_string();
    let get = ["--kubeconfig", &mirrored, "get", "--raw", "/api/v1/services"];
    let output = cluster.kubectl(&get).await.unwrap();
    assert!(output.success, "{output:?}");
    let list: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(list["kind"], "ServiceList");
    // The token decides: the API server does not know the certificate.
    fs::write(agent.file("kube-proxy"), "no-token").unwrap();
    let output = cluster.kubectl(&get).await.unwrap();
    assert!(!output.success && output.stderr.contains("Unauthorized"), "{output:?}");
}

#[tokio::test]
async fn an_agent_that_is_started_again_in_its_pod_knows_kube_proxy_still() {
    let mut agent = Agent::of(PROGRAM).start(ControlPlane::shared().await.unwrap()).await;
    let mirrored = fs::read(agent.mirrored()).unwrap();
    agent.restart();
    // kube-proxy reads its kubeconfig only once, so the test uses the files of the first start.
    assert_eq!(agent.ask(&["/version"]).0, 200);
    assert_eq!(fs::read(agent.mirrored()).unwrap(), mirrored);
}

#[tokio::test]
async fn a_kube_proxy_that_is_known_by_a_certificate_of_its_own_is_so_behind_the_agent() {
    let cluster = ControlPlane::shared().await.unwrap();
    let admin: Value = serde_json::from_str(&fs::read_to_string(cluster.kubeconfig()).unwrap()).unwrap();
    let user = admin["users"][0]["user"].clone();
    assert!(user.get("client-certificate-data").or(user.get("client-certificate")).is_some(), "{user}");
    let agent = Agent::of(PROGRAM).user(user).start(cluster).await;
    agent.wait("knows its view", |agent| agent.ask_without_token("/api/v1/services") == 200);
    assert!(!without_certificate(&agent, &[]), "it is presented for nobody else");
}

#[tokio::test]
async fn a_port_that_an_earlier_agent_still_has_is_waited_for() {
    let cluster = ControlPlane::shared().await.unwrap();
    let mut agent = Agent::of(PROGRAM).start(cluster).await;
    agent.program.end().unwrap();
    let held = TcpListener::bind(agent.address).unwrap();
    agent.start_again();
    until("it says why it waits", async || {
        let log = agent.program.log();
        if log.contains("another process listens on this address") { Ok(()) } else { Err(log) }
    })
    .await;
    drop(held);
    agent.wait("serves", |agent| agent.ask(&["/version"]).0 == 200);
}
