//! The requests that the agent refuses, against a real API server and with kube-proxy's valid
//! token: those that kube-proxy does not send, and those that are too large or too slow.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

use isp_lab::ControlPlane;
use isp_testkit::agent::{Agent, AgentToken};
use serde_json::{Value, json};

async fn start(token: AgentToken) -> Agent {
    let agent = Agent::of(env!("CARGO_BIN_EXE_proxy-agent")).token(token);
    agent.start(ControlPlane::shared().await.unwrap()).await
}

#[tokio::test]
async fn what_kube_proxy_does_not_ask_is_refused_with_its_own_valid_token() {
    let agent = start(AgentToken::Agent).await;
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
    // With kube-proxy's token it may not read the objects that define the view.
    let agent = start(AgentToken::KubeProxy).await;
    let (code, body) = agent.ask(&["/api/v1/services"]);
    assert_eq!(code, 503, "{body}");
    assert!(body.contains("does not know this node's view yet"), "{body}");
    assert_eq!(agent.ask(&["/apis/discovery.k8s.io/v1/endpointslices"]).0, 200);
}

#[tokio::test]
async fn nobody_becomes_someone_else_on_the_way() {
    let agent = start(AgentToken::Agent).await;
    agent.wait_for_services();
    // The API server would refuse the impersonation. The agent drops these headers, so the request
    // is kube-proxy's own.
    for header in ["Impersonate-User: system:admin", "X-Remote-User: system:admin"] {
        assert_eq!(agent.ask(&["-H", header, "/api/v1/services"]).0, 200, "{header}");
    }
    // The agent does not lend its token to a client without one.
    assert_eq!(agent.ask_without_token("/api/v1/services"), 403, "anonymous may not list Services");
}

#[tokio::test]
async fn too_much_and_too_slow_is_refused_within_bounds_and_others_are_served_meanwhile() {
    let agent = start(AgentToken::Agent).await;
    let large = agent.file("headers");
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

    // Clients that never complete their handshake are disconnected, and do not keep others out.
    let mut silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(agent.address).unwrap()).collect();
    assert_eq!(agent.ask(&["/version"]).0, 200);
    for stream in &mut silent {
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        assert!(matches!(stream.read(&mut [0; 16]), Ok(0)), "it is closed");
    }
    assert_eq!(agent.ask(&["/version"]).0, 200);
}
