//! Invalid options are rejected with a reason, before any request to an API server.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::process::Command;

fn refusal(arguments: &[&str]) -> String {
    let mut operator = Command::new(env!("CARGO_BIN_EXE_operator"));
    operator.env("KUBECONFIG", "/nowhere/kubeconfig").env_remove("AGENT_IMAGE");
    let output = operator.args(arguments).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn the_image_of_the_agents_has_no_default() {
    assert!(refusal(&["run"]).contains("--agent-image"));
}

#[test]
fn a_lease_that_ends_before_its_holder_gives_up_is_refused() {
    let text = refusal(&["run", "--agent-image=a", "--lease-duration=10s", "--renew-deadline=10s"]);
    assert!(text.contains("--renew-deadline, and that shorter than --lease-duration"), "{text}");
    let text = refusal(&["run", "--agent-image=a", "--lease-duration=10500ms"]);
    assert!(text.contains("not in whole seconds"), "{text}");
    let text = refusal(&["cleanup", "--timeout=soon"]);
    assert!(text.contains("such as 15s"), "{text}");
}

#[test]
fn a_kubeconfig_that_is_not_there_is_named() {
    let text = refusal(&["run", "--agent-image=a", "--admin=127.0.0.1:0"]);
    assert!(text.contains("/nowhere/kubeconfig") && text.contains("set KUBECONFIG"), "{text}");
}
