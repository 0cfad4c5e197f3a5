//! The operator as a process of the test, with the permissions of its own ServiceAccount only.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use super::{OPERATOR, WebLab};
use crate::control_plane::SYSTEM;
use crate::process::Process;

/// A kubeconfig with the ServiceAccount's token.
pub async fn kubeconfig(web: &WebLab) -> PathBuf {
    let create = ["-n", SYSTEM, "create", "token", OPERATOR, "--duration=8h"];
    let token = web.lab.kubectl(create).await.unwrap().stdout;
    let text = fs::read_to_string(web.lab.kubeconfig()).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["users"][0]["user"] = json!({"token": token.trim()});
    let path = web.file("kubeconfig");
    fs::write(&path, config.to_string()).unwrap();
    path
}

/// A client with the same permissions.
pub async fn client(web: &WebLab) -> Client {
    let config = Kubeconfig::read_from(kubeconfig(web).await).unwrap();
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn command(web: &WebLab, kubeconfig: &Path) -> Command {
    let mut command = Command::new(&web.operator);
    command.env("KUBECONFIG", kubeconfig).env("POD_NAMESPACE", SYSTEM);
    // Always the same identity, so that a new process need not wait for the Lease of a killed one
    // to expire.
    command.env("POD_NAME", "process").arg("--log-format=text");
    command
}

/// Starts `operator run`.
pub fn run(web: &WebLab, kubeconfig: &Path, agent_image: &str, log: &str) -> Process {
    let mut command = command(web, kubeconfig);
    command.args(["run", "--admin=127.0.0.1:0", "--agent-image", agent_image]);
    Process::start(command, &web.file(log))
}

/// Runs `operator cleanup`, which must succeed, and returns its output.
pub async fn clean_up(web: &WebLab, kubeconfig: &Path) -> String {
    let mut command = command(web, kubeconfig);
    command.args(["cleanup", "--timeout=2m"]);
    let mut process = Process::start(command, &web.file("cleanup.log"));
    let status = process.end().await;
    assert!(status.success(), "{}{}", process.printed(), process.complained());
    process.printed()
}
