//! The settings of an agent, and its start.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use isp_lab::{ControlPlane, free_address};
use serde_json::{Value, json};

use super::{Agent, NODE, api_server, install, token};
use crate::program::Program;

/// The account whose token the agent uses for its own requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentToken {
    /// The agents' account, with a token bound to the node, as the kubelet's are.
    Agent,
    /// kube-proxy's account, which may not read the objects that define the view.
    KubeProxy,
}

/// The settings of an agent before its start.
pub struct Builder {
    program: OsString,
    token: AgentToken,
    api_server: Option<Value>,
    user: Option<Value>,
    arguments: Vec<OsString>,
    memory: Option<u64>,
}

impl Builder {
    pub(super) fn new(program: OsString) -> Self {
        Self {
            program,
            token: AgentToken::Agent,
            api_server: None,
            user: None,
            arguments: Vec::new(),
            memory: None,
        }
    }

    /// The token for the agent's own requests; by default its own.
    #[must_use]
    pub fn token(mut self, token: AgentToken) -> Self {
        self.token = token;
        self
    }

    /// The API server in kube-proxy's kubeconfig; by default the cluster's.
    #[must_use]
    pub fn api_server(mut self, api_server: Value) -> Self {
        self.api_server = Some(api_server);
        self
    }

    /// The user in kube-proxy's kubeconfig; by default the one with its token.
    #[must_use]
    pub fn user(mut self, user: Value) -> Self {
        self.user = Some(user);
        self
    }

    /// More arguments of the agent.
    #[must_use]
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(OsString::from));
        self
    }

    /// The memory limit of its container, in bytes.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Installs what an agent needs, starts it, and waits until it serves.
    pub async fn start(self, cluster: &ControlPlane) -> Agent {
        install(cluster).await;
        let directory = tempfile::tempdir().unwrap();
        let bound = ["--bound-object-kind", "Node", "--bound-object-name", NODE];
        for (account, flags) in [("kube-proxy", &[][..]), ("proxy-agent", &bound)] {
            fs::write(directory.path().join(account), token(cluster, account, flags).await).unwrap();
        }
        let own_token = || json!({"tokenFile": directory.path().join("kube-proxy")});
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "default", "cluster": self.api_server.unwrap_or_else(|| api_server(cluster))}],
            "users": [{"name": "default", "user": self.user.unwrap_or_else(own_token)}],
            "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
            "current-context": "default",
        });
        fs::create_dir(directory.path().join("original")).unwrap();
        let original = directory.path().join("original/kubeconfig.conf");
        fs::write(&original, kubeconfig.to_string()).unwrap();
        let (address, admin) = (free_address().unwrap(), free_address().unwrap());
        let token_file = match self.token {
            AgentToken::Agent => "proxy-agent",
            AgentToken::KubeProxy => "kube-proxy",
        };
        let serving = directory.path().join("serving");
        fs::create_dir(&serving).unwrap();
        let arguments = [
            ("--node-name", NODE.into()),
            ("--listen", address.to_string().into()),
            ("--admin", admin.to_string().into()),
            ("--kube-proxy-kubeconfig", original.into()),
            ("--serving-directory", serving.into()),
            ("--token-file", directory.path().join(token_file).into()),
        ];
        let arguments = arguments.into_iter().flat_map(|(flag, value)| [flag.into(), value]);
        let command = CommandLine {
            program: self.program,
            arguments: arguments.chain(self.arguments).collect(),
            memory: self.memory,
        };
        let agent = Agent { program: command.start(admin), address, admin, command, directory };
        agent.wait("mirrors kube-proxy's files", |agent| agent.mirrored().is_file());
        agent.unpack();
        agent.wait("serves", |agent| agent.ask(&["/version"]).0 == 200);
        agent
    }
}

/// How an agent is started, and started again.
pub(super) struct CommandLine {
    program: OsString,
    arguments: Vec<OsString>,
    memory: Option<u64>,
}

impl CommandLine {
    pub(super) fn start(&self, admin: SocketAddr) -> Program {
        let mut command = match self.memory {
            None => Command::new(&self.program),
            Some(bytes) => {
                let mut limited = Command::new("prlimit");
                limited.arg(format!("--data={bytes}")).arg("--").arg(&self.program);
                limited
            }
        };
        command.arg("filter").args(&self.arguments);
        Program::start("agent", command, admin).unwrap()
    }
}
