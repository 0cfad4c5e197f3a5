//! Invalid options are rejected with a reason, before any request to an API server.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::process::Command;

fn refusal(arguments: &[&str]) -> String {
    let mut webhook = Command::new(env!("CARGO_BIN_EXE_webhook"));
    webhook.env("KUBECONFIG", "/nowhere/kubeconfig").env_remove("POD_NAMESPACE");
    let output = webhook.args(arguments).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn lifetimes_that_do_not_fit_together_are_refused_with_a_way_out() {
    let text = refusal(&["run", "--ca-lifetime=1h", "--overlap=15m"]);
    assert!(text.contains("--overlap 900s is more than a sixth of --ca-lifetime 3600s"), "{text}");
    assert!(text.contains("at most 600s"), "{text}");
    let text = refusal(&["run", "--ca-lifetime=1d"]);
    assert!(text.contains("--leaf-lifetime 604800s is longer than --ca-lifetime 86400s"), "{text}");
    let text = refusal(&["run", "--leaf-lifetime=soon"]);
    assert!(text.contains("--leaf-lifetime") && text.contains("such as 15s or 7d"), "{text}");
}

#[test]
fn files_that_are_not_there_are_named() {
    let text = refusal(&["run", "--client-ca=/nowhere/ca.crt"]);
    assert!(text.contains("--client-ca /nowhere/ca.crt"), "{text}");
    let text = refusal(&["run", "--client-name=kube-apiserver"]);
    assert!(text.contains("--client-ca"), "a name without an authority is anybody's: {text}");
    let text = refusal(&["run", "--listen=127.0.0.1:0", "--admin=127.0.0.1:0"]);
    assert!(text.contains("/nowhere/kubeconfig") && text.contains("set KUBECONFIG"), "{text}");
}
