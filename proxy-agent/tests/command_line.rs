//! The agent refuses invalid settings with the reason, before it serves.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::process::Command;

fn refusal(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_proxy-agent")).args(arguments).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn an_address_that_others_can_reach_is_no_place_for_the_agent() {
    let text = refusal(&["filter", "--node-name=a", "--listen=0.0.0.0:10260"]);
    assert!(text.contains("--listen 0.0.0.0:10260 is not a loopback address"), "{text}");
}

#[test]
fn a_kubeconfig_that_is_not_there_is_named() {
    let text = refusal(&["filter", "--node-name=a", "--kube-proxy-kubeconfig=/nowhere/kubeconfig.conf"]);
    assert!(
        text.contains("/nowhere/kubeconfig.conf") && text.contains("is its volume mounted there?"),
        "{text}"
    );
}

#[test]
fn a_kubeconfig_without_an_authority_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kubeconfig.conf");
    let cluster = r#"{"clusters":[{"name":"c","cluster":{"server":"https://10.0.0.1"}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}"#;
    std::fs::write(&path, cluster).unwrap();
    let text = refusal(&["filter", "--node-name=a", &format!("--kube-proxy-kubeconfig={}", path.display())]);
    assert!(text.contains("it names none"), "{text}");

    std::fs::write(&path, cluster.replace("https://", "http://")).unwrap();
    let text = refusal(&["filter", "--node-name=a", &format!("--kube-proxy-kubeconfig={}", path.display())]);
    assert!(text.contains("no cluster with an https server"), "{text}");
}

#[test]
fn an_authority_that_is_not_beside_the_kubeconfig_is_refused_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kubeconfig");
    let config = serde_json::json!({
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1", "certificate-authority": "ca.crt"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"tokenFile": "/token"}}],
        "current-context": "x",
    });
    std::fs::write(&path, config.to_string()).unwrap();
    let text = refusal(&["filter", "--node-name=a", &format!("--kube-proxy-kubeconfig={}", path.display())]);
    assert!(text.contains("ca.crt") && text.contains("certificate-authority-data"), "{text}");
}
