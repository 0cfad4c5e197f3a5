//! The operator as a process of the test, with the permissions of its own ServiceAccount only.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use super::harness::{OPERATOR, SYSTEM, Scenario};
use super::process::Process;

/// A kubeconfig with the ServiceAccount's token.
pub(crate) async fn kubeconfig(scenario: &Scenario) -> PathBuf {
    let create = ["-n", SYSTEM, "create", "token", OPERATOR, "--duration=8h"];
    let token = scenario.lab.kubectl(create).await.unwrap().stdout;
    let text = fs::read_to_string(scenario.lab.kubeconfig()).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["users"][0]["user"] = json!({"token": token.trim()});
    let path = scenario.file("kubeconfig");
    fs::write(&path, config.to_string()).unwrap();
    path
}

/// A client with the same permissions.
pub(crate) async fn client(scenario: &Scenario) -> Client {
    let config = Kubeconfig::read_from(kubeconfig(scenario).await).unwrap();
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn command(kubeconfig: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_operator"));
    command.env("KUBECONFIG", kubeconfig).env("POD_NAMESPACE", SYSTEM);
    // Always the same identity, so that a new process need not wait for the Lease of a killed one
    // to expire.
    command.env("POD_NAME", "process").arg("--log-format=text");
    command
}

/// Starts `operator run`.
pub(crate) fn run(scenario: &Scenario, kubeconfig: &Path, agent_image: &str, log: &str) -> Process {
    let mut command = command(kubeconfig);
    command.args(["run", "--admin=127.0.0.1:0", "--agent-image", agent_image]);
    Process::start(command, &scenario.file(log))
}

/// Runs `operator cleanup`, which must succeed, and returns its output.
pub(crate) async fn clean_up(scenario: &Scenario, kubeconfig: &Path) -> String {
    let mut command = command(kubeconfig);
    command.args(["cleanup", "--timeout=2m"]);
    let mut process = Process::start(command, &scenario.file("cleanup.log"));
    let status = process.end().await;
    assert!(status.success(), "{}{}", process.printed(), process.complained());
    process.printed()
}
