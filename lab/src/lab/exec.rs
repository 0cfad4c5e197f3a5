//! Runs programs in the network namespace of a place: a node, a client, the router or a pod.

use std::fmt;
use std::process::{Command, Stdio};
use std::str::FromStr;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use thiserror::Error;
use tokio::io::AsyncWriteExt;

use super::{Lab, LabError};
use crate::command::{self, CommandError, Output};

/// The place to run a program in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The control plane's network namespace.
    ControlPlane,
    /// The first client.
    Client,
    /// The second client, in another IP range.
    Client2,
    /// The router between the clients and the nodes.
    Router,
    /// A node.
    Node(String),
    /// A pod, by namespace and name.
    Pod(String, String),
}

/// An error about a place.
#[derive(Debug, Error)]
pub enum PlaceError {
    /// The text is not a valid place.
    #[error(
        "unknown place {0:?}: use a node's name, client, client-2, router, control-plane or pod/<namespace>/<name>"
    )]
    Syntax(String),
    /// The lab has no such node.
    #[error("this lab has no node {0}")]
    Unknown(String),
    /// The pod does not exist or is not running.
    #[error("pod {namespace}/{name} is not running on any node")]
    Pod {
        /// The pod's namespace.
        namespace: String,
        /// The pod's name.
        name: String,
    },
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let parts: Vec<&str> = text.split('/').collect();
        match parts[..] {
            ["client"] => Ok(Self::Client),
            ["client-2"] => Ok(Self::Client2),
            ["router"] => Ok(Self::Router),
            ["control-plane"] => Ok(Self::ControlPlane),
            ["pod", namespace, name] if !namespace.is_empty() && !name.is_empty() => {
                Ok(Self::Pod(namespace.to_owned(), name.to_owned()))
            }
            [node] if !node.is_empty() => Ok(Self::Node(node.to_owned())),
            _ => Err(PlaceError::Syntax(text.to_owned())),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ControlPlane => f.write_str("control-plane"),
            Self::Client => f.write_str("client"),
            Self::Client2 => f.write_str("client-2"),
            Self::Router => f.write_str("router"),
            Self::Node(name) => f.write_str(name),
            Self::Pod(namespace, name) => write!(f, "pod/{namespace}/{name}"),
        }
    }
}

/// Init's network namespace.
const CONTROL_PLANE: &str = "--net=/proc/1/ns/net";

/// Runs a command to its end with `input` on standard input, and returns its output whatever the
/// exit code. Dropping the future kills it.
pub(super) async fn output(command: Command, input: &str) -> Result<Output, LabError> {
    let described = command::describe(&command);
    let mut command = tokio::process::Command::from(command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let finished = async {
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        let write = async {
            if let Some(mut stdin) = stdin {
                // Ignores write errors: if the program stops reading early, its exit code explains
                // it.
                let _ = stdin.write_all(input.as_bytes()).await;
            }
        };
        // Writes and reads concurrently, to avoid a deadlock on full pipes.
        let ((), output) = tokio::join!(write, child.wait_with_output());
        output
    };
    Ok(finished.await.map_err(|source| CommandError::Start { command: described, source })?.into())
}

impl Lab {
    /// Runs a program in the network namespace of a place, and returns its output whatever the exit
    /// code. The program is killed when the lab stops or the future is dropped.
    pub async fn exec<S: AsRef<str>>(&self, place: &Place, arguments: &[S]) -> Result<Output, LabError> {
        output(self.command_in(place, arguments).await?, "").await
    }

    /// Runs `curl` in a place and returns its output. Times out after 5 s.
    pub async fn curl(&self, place: &Place, arguments: &[&str]) -> Result<Output, LabError> {
        let all: Vec<&str> = ["curl", "-sS", "--max-time", "5"].iter().chain(arguments).copied().collect();
        self.exec(place, &all).await
    }

    /// The command that [`exec`](Self::exec) runs.
    pub async fn command_in<S: AsRef<str>>(
        &self,
        place: &Place,
        arguments: &[S],
    ) -> Result<Command, LabError> {
        let network = match place {
            Place::ControlPlane => CONTROL_PLANE.to_owned(),
            Place::Client | Place::Client2 | Place::Router => format!("--net=/run/netns/{place}"),
            Place::Node(name) => {
                let node = self.topology().node(name).ok_or_else(|| PlaceError::Unknown(name.clone()))?;
                format!("--net=/run/netns/{}", node.name)
            }
            Place::Pod(namespace, name) => self.pod_network(namespace, name).await?,
        };
        Ok(self.enter(&network, arguments))
    }

    /// Enters the lab's pid and mount namespaces first, so that the program dies with the lab; then
    /// the network namespace.
    fn enter<S: AsRef<str>>(&self, network: &str, arguments: &[S]) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={}", self.pid)).args(["--pid", "--mount", "--"]);
        command.args(["setpriv", "--pdeathsig", "KILL", "--", "nsenter", network, "--"]);
        command.args(arguments.iter().map(AsRef::as_ref));
        command
    }

    async fn pod_network(&self, namespace: &str, name: &str) -> Result<String, LabError> {
        let gone = || PlaceError::Pod { namespace: namespace.to_owned(), name: name.to_owned() };
        let pod = Api::<Pod>::namespaced(self.client(), namespace).get_opt(name).await?.ok_or_else(gone)?;
        let uid = pod.metadata.uid.unwrap_or_default();
        let spec = pod.spec.unwrap_or_default();
        let node = spec.node_name.ok_or_else(gone)?;
        if spec.host_network == Some(true) {
            return Ok(format!("--net=/run/netns/{node}"));
        }
        let process = self.sandbox_process(&node, &uid).await?.ok_or_else(gone)?;
        Ok(format!("--net=/proc/{process}/ns/net"))
    }

    /// The process id of a pod's sandbox, from the node's containerd.
    async fn sandbox_process(&self, node: &str, uid: &str) -> Result<Option<u32>, LabError> {
        let filter =
            format!("labels.\"io.kubernetes.pod.uid\"=={uid},labels.\"io.cri-containerd.kind\"==sandbox");
        let containers = self.ctr_lines(node, &["containers", "list", "--quiet", &filter]).await?;
        let tasks = self.ctr_lines(node, &["tasks", "list"]).await?;
        // `tasks list` prints the columns id, process id, state.
        Ok(tasks.iter().find_map(|line| {
            let mut columns = line.split_whitespace();
            let (id, process, state) = (columns.next()?, columns.next()?, columns.next()?);
            let ours = state == "RUNNING" && containers.iter().any(|container| container == id);
            ours.then(|| process.parse().ok())?
        }))
    }

    async fn ctr_lines(&self, node: &str, arguments: &[&str]) -> Result<Vec<String>, LabError> {
        let mut all = self.ctr(node);
        all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        let output = command::check(&all.join(" "), output(self.enter(CONTROL_PLANE, &all), "").await?)?;
        Ok(output.stdout.lines().map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        for text in ["client", "client-2", "router", "control-plane", "edge-1", "pod/default/echo-1"] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        for bad in ["", "pod/default", "pod//x", "pod/a/b/c", "a/b"] {
            assert!(bad.parse::<Place>().unwrap_err().to_string().contains("unknown place"), "{bad}");
        }
    }
}
