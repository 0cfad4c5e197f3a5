//! A running lab: the API for commands and tests.

mod builder;
mod cgroups;
mod containerd;
mod echo;
mod exec;
mod failure;
mod limits;
mod owner;
mod project;
mod shipped;
mod up;

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use kube::Client;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use thiserror::Error;

pub use self::builder::{Builder, ProxyMode};
pub use self::echo::{Answer, EchoApp, Protocol, Seen};
pub use self::exec::{Place, PlaceError};
pub use self::shipped::Shipped;
pub(crate) use self::up::wait_until;
use crate::audit;
use crate::command::{self, CommandError, Output};
use crate::credentials::Credentials;
use crate::dirs::{self, DirsError};
use crate::image::Error as ImageError;
use crate::init::{self, ControlError, Request};
use crate::network;
use crate::pki::PkiError;
use crate::provision::ProvisionError;
use crate::spec::{LabDir, Spec, SpecError};
use crate::topology::{self, Topology, TopologyError};

/// Errors of a lab's operations.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum LabError {
    #[error(transparent)]
    Topology(#[from] TopologyError),
    #[error(transparent)]
    Dirs(#[from] DirsError),
    #[error(transparent)]
    Provision(#[from] ProvisionError),
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error(transparent)]
    Pki(#[from] PkiError),
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error(
        "lab name {0:?} is not a DNS label of at most 20 characters: use lower-case letters, digits and '-'"
    )]
    Name(String),
    #[error("lab {0} is already running: use it, stop it with `down`, or choose another name with --name")]
    Running(String),
    #[error("lab {0} does not exist: start it with `up`")]
    NotRunning(String),
    #[error(
        "a lab needs root, because it creates network, mount and pid namespaces: run it as root (`cargo xtask test unit api kernel` runs the tests that do not need root)"
    )]
    NotRoot,
    #[error("cannot access {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("program {0} of this workspace has not been built: run `cargo build --workspace`")]
    NotBuilt(PathBuf),
    #[error("{} is not a released program; these are operator, webhook, proxy-agent, pod-redirect and probe", .0.display())]
    NotReleased(PathBuf),
    #[error("the lab's init exited: {0}")]
    InitEnded(String),
    #[error("timed out after {} s waiting for {what}: {detail}", seconds.as_secs())]
    Timeout { what: &'static str, seconds: Duration, detail: String },
    #[error("the API server did not answer: {0}")]
    Kube(#[from] Box<kube::Error>),
    #[error("cannot use the kubeconfig: {0}")]
    Kubeconfig(#[from] Box<kube::config::KubeconfigError>),
    #[error("{error}\nlogs of all components: {}", logs.display())]
    Failed { error: Box<LabError>, logs: PathBuf },
    #[error("no address is left for a virtual machine: use fewer nodes")]
    Full,
    #[error("interrupted; removing the lab")]
    Interrupted,
    #[error("a thread of this program panicked")]
    Lost,
}

impl From<kube::Error> for LabError {
    fn from(error: kube::Error) -> Self {
        Self::Kube(Box::new(error))
    }
}

/// A running lab.
pub struct Lab {
    directory: LabDir,
    spec: Spec,
    pid: Pid,
    client: Client,
    /// Whether dropping this handle stops the lab.
    owned: bool,
}

impl Lab {
    /// Starts the description of a new lab.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Attaches to a running lab. The lab keeps running when the handle is dropped.
    pub async fn attach(name: &str) -> Result<Self, LabError> {
        let directory = directory(name)?;
        let pid = init_pid(&directory).ok_or_else(|| LabError::NotRunning(name.to_owned()))?;
        let spec = directory.spec()?;
        let client = up::client(&directory).await?;
        Ok(Self { directory, spec, pid, client, owned: false })
    }

    /// The lab's name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// A client with cluster-admin rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The nodes and their addresses.
    pub fn topology(&self) -> &Topology {
        &self.spec.topology
    }

    /// The lab's directory on the host.
    pub(crate) fn directory(&self) -> &LabDir {
        &self.directory
    }

    /// The path of a kubeconfig with cluster-admin rights that works from the host.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.kubeconfig()
    }

    /// The path of a kubeconfig with the same rights that works in every place of the lab.
    pub fn kubeconfig_inside(&self) -> PathBuf {
        Credentials::at(self.directory.credentials()).kubeconfig_path("admin")
    }

    /// The path of the API server's CA certificate, in PEM.
    pub fn authority(&self) -> PathBuf {
        self.directory.credentials().join("ca.crt")
    }

    /// The API server's URL for clients inside the lab.
    pub fn server(&self) -> String {
        topology::server(self.spec.topology.families, self.spec.api_port)
    }

    /// The requests that the project's own programs have sent to the API server so far.
    pub fn audit(&self) -> Result<Vec<audit::Request>, LabError> {
        let path = self.directory.log(audit::LOG);
        audit::read(&path).map_err(|source| LabError::File { path, source })
    }

    /// The path of a program that the lab was built from, such as `kube-proxy`.
    pub fn program(&self, name: &str) -> Result<PathBuf, LabError> {
        let kubectl = &self.spec.kubectl;
        let path = kubectl.with_file_name(name);
        if path.is_file() { Ok(path) } else { Err(ProvisionError::NotProvisioned(name.to_owned()).into()) }
    }

    /// Leaves the lab running when this handle is dropped.
    #[must_use]
    pub fn keep(mut self) -> Self {
        self.owned = false;
        owner::forget(&self.directory);
        self
    }

    /// A `kubectl` command that uses this lab's kubeconfig.
    pub fn kubectl_command(&self) -> Command {
        let mut command = Command::new(&self.spec.kubectl);
        command.env("KUBECONFIG", self.kubeconfig());
        command
    }

    /// Runs `kubectl` and fails unless it exits with 0. Dropping the future kills it.
    pub async fn kubectl<const N: usize>(&self, arguments: [&str; N]) -> Result<Output, LabError> {
        self.kubectl_with_input(arguments, "").await
    }

    /// Like [`kubectl`](Self::kubectl), with `input` on standard input.
    pub async fn kubectl_with_input<const N: usize>(
        &self,
        arguments: [&str; N],
        input: &str,
    ) -> Result<Output, LabError> {
        let mut command = self.kubectl_command();
        command.args(arguments);
        let described = command::describe(&command);
        Ok(command::check(&described, exec::output(command, input).await?)?)
    }

    /// Applies YAML objects with server-side apply and `--force-conflicts`.
    pub async fn apply(&self, yaml: &str) -> Result<(), LabError> {
        self.kubectl_with_input(["apply", "--server-side", "--force-conflicts", "-f", "-"], yaml).await?;
        Ok(())
    }

    /// Makes the router send an external IP to these nodes. Without nodes, the address is
    /// unreachable.
    pub async fn route(&self, address: IpAddr, nodes: &[&str]) -> Result<(), LabError> {
        let families = self.spec.topology.families;
        let mut via = Vec::new();
        for name in nodes {
            let node = self.topology().node(name).ok_or_else(|| PlaceError::Unknown((*name).to_owned()))?;
            let same_family = |node_address: &IpAddr| node_address.is_ipv4() == address.is_ipv4();
            via.extend(node.addresses(families).into_iter().find(same_family));
        }
        let mut arguments = vec!["ip".to_owned()];
        arguments.extend(network::external_route(address, &via));
        let output = self.exec(&Place::Router, &arguments).await?;
        command::check(&arguments.join(" "), output)?;
        Ok(())
    }

    /// Kills a component such as `kube-apiserver` or `edge-1/kubelet`. Init restarts it a second
    /// later.
    pub async fn kill_component(&self, name: &str) -> Result<(), LabError> {
        self.tell_init(Request::Kill(name.to_owned())).await
    }

    /// Stops a component until [`start_component`](Self::start_component).
    pub async fn stop_component(&self, name: &str) -> Result<(), LabError> {
        self.tell_init(Request::Stop(name.to_owned())).await
    }

    /// Starts a stopped component.
    pub async fn start_component(&self, name: &str) -> Result<(), LabError> {
        self.tell_init(Request::Start(name.to_owned())).await
    }

    /// One line per component: name, process id, number of restarts and last exit.
    pub async fn status(&self) -> Result<Vec<String>, LabError> {
        let all = init::ask(&self.directory.control_socket(), &Request::Status).await?;
        let line = |status: &init::Status| {
            let state = status.pid.map_or_else(|| "stopped".to_owned(), |pid| format!("pid {pid}"));
            let end = status.last_end.as_ref().map(|end| format!(", last exit: {end}")).unwrap_or_default();
            format!("{:<28} {state}, {} restarts{end}", status.name, status.restarts)
        };
        Ok(all.iter().map(line).collect())
    }

    async fn tell_init(&self, request: Request) -> Result<(), LabError> {
        init::ask(&self.directory.control_socket(), &request).await?;
        Ok(())
    }

    /// Stops the lab and removes everything it created.
    pub fn down(mut self) -> Result<(), LabError> {
        self.owned = false;
        down(&self.spec.name)
    }

    /// Copies the logs of all components and pods to a new directory and returns its path.
    pub fn save_logs(&self) -> Result<PathBuf, LabError> {
        failure::save(&self.directory, &self.spec.name)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        if thread::panicking() {
            match self.save_logs() {
                Ok(path) => eprintln!("logs of lab {}: {}", self.spec.name, path.display()),
                Err(error) => eprintln!("cannot keep the logs of lab {}: {error}", self.spec.name),
            }
        }
        if let Err(error) = down(&self.spec.name) {
            eprintln!("cannot stop lab {}: {error}", self.spec.name);
        }
    }
}

/// The path of a component's log.
pub fn log_path(lab: &str, component: &str) -> Result<PathBuf, LabError> {
    Ok(directory(lab)?.log(component))
}

/// The names of all labs that have a directory, and whether each is running.
pub fn list() -> Result<Vec<(String, bool)>, LabError> {
    let path = dirs::labs()?;
    let Ok(entries) = fs::read_dir(&path) else { return Ok(Vec::new()) };
    let mut labs: Vec<_> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .map(|name| (name.clone(), init_pid(&LabDir::new(path.join(name))).is_some()))
        .collect();
    labs.sort();
    Ok(labs)
}

/// Stops a lab, or cleans up after a killed one, and removes everything it created. Does nothing if
/// there is no such lab.
pub fn down(name: &str) -> Result<(), LabError> {
    let directory = directory(name)?;
    if let Some(pid) = init_pid(&directory) {
        kill(pid, Signal::SIGKILL)
            .or_else(ignore_gone)
            .map_err(|errno| LabError::InitEnded(errno.to_string()))?;
        wait_gone(pid)?;
    }
    cgroups::remove(name);
    match fs::remove_dir_all(directory.path()) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(LabError::File { path: directory.path().to_owned(), source })
        }
        _ => Ok(()),
    }
}

fn ignore_gone(errno: Errno) -> Result<(), Errno> {
    if errno == Errno::ESRCH { Ok(()) } else { Err(errno) }
}

/// Whether init is dead. The kernel kills everything in its pid namespace first, so a zombie counts
/// as dead: it does not matter whether its parent has reaped it.
fn is_dead(pid: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let state = status.lines().find_map(|line| line.strip_prefix("State:"));
    state.is_none_or(|state| state.trim_start().starts_with(['Z', 'X']))
}

fn wait_gone(pid: Pid) -> Result<(), LabError> {
    let (started, limit) = (Instant::now(), Duration::from_secs(20));
    while !is_dead(pid) {
        if started.elapsed() > limit {
            let detail = format!("process {pid} is still running after SIGKILL");
            return Err(LabError::Timeout { what: "the lab's init to exit", seconds: limit, detail });
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn directory(name: &str) -> Result<LabDir, LabError> {
    builder::check_name(name)?;
    Ok(LabDir::new(dirs::labs()?.join(name)))
}

/// The process id of the lab's init, if the process with that id is still this lab's init.
fn init_pid(directory: &LabDir) -> Option<Pid> {
    let pid: i32 = fs::read_to_string(directory.pid_file()).ok()?.trim().parse().ok()?;
    let path = directory.path().as_os_str().as_encoded_bytes();
    for _ in 0..20 {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        if !line.is_empty() {
            let ours = line.split(|byte| *byte == 0).any(|argument| argument == path);
            return ours.then_some(Pid::from_raw(pid));
        }
        // A process has an empty command line during exec and after its death.
        thread::sleep(Duration::from_millis(5));
    }
    None
}

/// Runs a blocking job off the async threads.
pub(crate) async fn blocking<T: Send + 'static>(
    job: impl FnOnce() -> Result<T, LabError> + Send + 'static,
) -> Result<T, LabError> {
    tokio::task::spawn_blocking(job).await.map_err(|_| LabError::Lost)?
}
