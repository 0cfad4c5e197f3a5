//! A control plane without nodes: etcd, API server and controller-manager on loopback, running as
//! the current user. For tests that need the real API but no traffic. kwok can simulate thousands
//! of nodes and pods.

mod etcd;
mod processes;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use thiserror::Error;
use tokio::sync::OnceCell;

pub use self::etcd::StoredObject;
use self::processes::Processes;
use crate::audit;
use crate::command::{self, CommandError, Output};
use crate::components::{self, Component, ControlPlaneSettings};
use crate::credentials::Credentials;
use crate::dirs::{self, DirsError};
use crate::pki::PkiError;
use crate::ports::free_address;
use crate::provision::{self, KubernetesVersion, Programs, ProvisionError, Purpose};
use crate::topology::Families;

const DEADLINE: Duration = Duration::from_secs(90);
/// A reserved port can still be lost, if a program takes longer than a minute to bind it.
const ATTEMPTS: usize = 3;

static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();

/// Why a control plane could not be started or used.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum ControlPlaneError {
    #[error(transparent)]
    Dirs(#[from] DirsError),
    #[error(transparent)]
    Provision(#[from] ProvisionError),
    #[error(transparent)]
    Pki(#[from] PkiError),
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error("cannot access {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("{component} exited while the control plane was starting; the end of its log:\n{log}")]
    Ended { component: String, log: String },
    #[error("the API server was not ready after {} s: {detail}", DEADLINE.as_secs())]
    NotReady { detail: String },
    #[error("the API server did not answer: {0}")]
    Kube(#[from] Box<kube::Error>),
    #[error("cannot use the kubeconfig: {0}")]
    Kubeconfig(#[from] Box<kube::config::KubeconfigError>),
    #[error("a thread of this program panicked")]
    Lost,
}

/// A running control plane. Its processes are killed when the process that started them ends, even
/// if that one is killed.
pub struct ControlPlane {
    directory: PathBuf,
    programs: Programs,
    config: Config,
    /// The URL of etcd.
    etcd: String,
    processes: Processes,
    kwok: OnceCell<()>,
}

impl ControlPlane {
    /// The shared control plane of this test binary, started by the first test that needs it. Tests
    /// isolate themselves with their own namespaces or name prefixes.
    pub async fn shared() -> Result<&'static Self, ControlPlaneError> {
        SHARED.get_or_try_init(Self::start).await
    }

    /// Starts a separate control plane.
    pub async fn start() -> Result<Self, ControlPlaneError> {
        Self::start_version(KubernetesVersion::default()).await
    }

    /// Starts a separate control plane of another release.
    pub async fn start_version(version: KubernetesVersion) -> Result<Self, ControlPlaneError> {
        Self::start_as(version, Families::Ipv4, None).await
    }

    /// Starts a separate control plane whose Services can have addresses of both families.
    pub async fn start_dual_stack() -> Result<Self, ControlPlaneError> {
        Self::start_as(KubernetesVersion::default(), Families::Dual, None).await
    }

    /// Starts a separate control plane with an `AdmissionConfiguration`, which can set the API
    /// server's credentials for webhooks.
    pub async fn start_with_admission(configuration: &Path) -> Result<Self, ControlPlaneError> {
        Self::start_as(KubernetesVersion::default(), Families::Ipv4, Some(configuration)).await
    }

    async fn start_as(
        version: KubernetesVersion,
        families: Families,
        admission: Option<&Path>,
    ) -> Result<Self, ControlPlaneError> {
        let provision = move || provision::provision(Purpose::Api, version, say);
        let programs =
            tokio::task::spawn_blocking(provision).await.map_err(|_| ControlPlaneError::Lost)??;
        let mut attempt = 1;
        loop {
            match Self::try_start(&programs, families, admission).await {
                Err(ControlPlaneError::Ended { log, .. })
                    if attempt < ATTEMPTS && log.contains("address already in use") =>
                {
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    async fn try_start(
        programs: &Programs,
        families: Families,
        admission: Option<&Path>,
    ) -> Result<Self, ControlPlaneError> {
        let directory = new_directory()?;
        let [api, etcd, peers] = free_ports().map_err(|source| file(&directory, source))?;
        let server = format!("https://127.0.0.1:{api}");
        let names = ["localhost", "127.0.0.1", "kubernetes.default.svc"].map(str::to_owned).into();
        let credentials = Credentials::create(directory.join("pki"), names, &server)?.finish();
        let settings = ControlPlaneSettings {
            bind: "127.0.0.1".to_owned(),
            advertise: None,
            api_port: api,
            etcd_ports: (etcd, peers),
            data: directory.join("etcd"),
            families,
            audit: audit_log(&directory),
            admission: admission.map(Path::to_owned),
            manager_port: None,
        };
        let processes = Processes::new(&directory);
        let (later, first): (Vec<_>, Vec<_>) = components::control_plane(programs, &credentials, &settings)?
            .into_iter()
            .partition(|component| component.after_api);
        first.into_iter().try_for_each(|component| processes.start(component))?;
        let kubeconfig = Kubeconfig::read_from(credentials.kubeconfig_path("admin")).map_err(Box::new)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(Box::new)?;
        let (programs, etcd) = (programs.clone(), format!("https://127.0.0.1:{etcd}"));
        let this = Self { directory, programs, config, etcd, processes, kwok: OnceCell::const_new() };
        this.wait_ready().await?;
        later.into_iter().try_for_each(|component| this.processes.start(component))?;
        Ok(this)
    }

    /// A client with cluster-admin rights. It is bound to the current runtime, so each test needs
    /// its own.
    pub fn client(&self) -> Result<Client, ControlPlaneError> {
        Ok(Client::try_from(self.config.clone()).map_err(Box::new)?)
    }

    /// The path of a kubeconfig with cluster-admin rights.
    pub fn kubeconfig(&self) -> PathBuf {
        self.credentials().kubeconfig_path("admin")
    }

    /// Writes a kubeconfig with the rights of a ServiceAccount.
    pub async fn write_kubeconfig_of(
        &self,
        namespace: &str,
        account: &str,
        to: &Path,
    ) -> Result<(), ControlPlaneError> {
        let create = ["-n", namespace, "create", "token", account];
        let output = command::check(&format!("kubectl {}", create.join(" ")), self.kubectl(&create).await?)?;
        Ok(self.credentials().with_token("admin", output.stdout.trim(), to)?)
    }

    fn credentials(&self) -> Credentials {
        Credentials::at(self.directory.join("pki"))
    }

    /// The path of a program that it was built from, such as `kubectl`.
    pub fn program(&self, name: &str) -> Result<PathBuf, ControlPlaneError> {
        Ok(self.programs.path(name)?.to_owned())
    }

    /// Runs `kubectl` and returns its output, whatever the exit code.
    pub async fn kubectl<S: AsRef<str>>(&self, arguments: &[S]) -> Result<Output, ControlPlaneError> {
        self.kubectl_with_input(arguments, "").await
    }

    /// Like [`kubectl`](Self::kubectl), with `input` on standard input.
    pub async fn kubectl_with_input<S: AsRef<str>>(
        &self,
        arguments: &[S],
        input: &str,
    ) -> Result<Output, ControlPlaneError> {
        let mut kubectl = Command::new(self.programs.path("kubectl")?);
        kubectl.args(arguments.iter().map(AsRef::as_ref)).env("KUBECONFIG", self.kubeconfig());
        // Keeps kubectl's caches out of the user's home directory.
        kubectl.env("HOME", &self.directory);
        let input = input.to_owned();
        let run = move || command::output(&mut kubectl, &input);
        Ok(tokio::task::spawn_blocking(run).await.map_err(|_| ControlPlaneError::Lost)??)
    }

    /// Starts kwok: nodes annotated `kwok.x-k8s.io/node: fake` become ready, and pods bound to them
    /// run.
    pub async fn simulate_nodes(&self) -> Result<(), ControlPlaneError> {
        let start = async || {
            self.processes.start(Component {
                name: "kwok".to_owned(),
                node: None,
                program: self.programs.path("kwok")?.to_owned(),
                arguments: vec![
                    format!("--kubeconfig={}", self.kubeconfig().display()),
                    "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake".to_owned(),
                    "--node-lease-duration-seconds=40".to_owned(),
                    format!(
                        "--config={}",
                        Path::new(env!("CARGO_MANIFEST_DIR")).join("kwok/stages.yaml").display()
                    ),
                ],
                after_api: true,
            })
        };
        self.kwok.get_or_try_init(start).await.copied()
    }

    /// The requests that the project's own programs have sent to the API server so far.
    pub fn audit(&self) -> Result<Vec<audit::Request>, ControlPlaneError> {
        let log = audit_log(&self.directory);
        audit::read(&log).map_err(|source| file(&log, source))
    }

    async fn wait_ready(&self) -> Result<(), ControlPlaneError> {
        let (client, started) = (self.client()?, Instant::now());
        loop {
            let request = http::Request::get("/readyz")
                .body(Vec::new())
                .map_err(|error| Box::new(kube::Error::HttpError(error)))?;
            let Err(problem) = client.request_text(request).await else { return Ok(()) };
            self.processes.check()?;
            if started.elapsed() > DEADLINE {
                return Err(ControlPlaneError::NotReady { detail: problem.to_string() });
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.processes.end();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn audit_log(directory: &Path) -> PathBuf {
    directory.join("audit.log")
}

fn say(line: &str) {
    eprintln!("{line}");
}

fn file(path: &Path, source: std::io::Error) -> ControlPlaneError {
    ControlPlaneError::File { path: path.to_owned(), source }
}

/// Creates a directory named after this process id, and removes those of dead processes: a shared
/// control plane dies with its process and cannot clean up.
fn new_directory() -> Result<PathBuf, ControlPlaneError> {
    let all = dirs::cache()?.join("control-planes");
    fs::create_dir_all(&all).map_err(|source| file(&all, source))?;
    for entry in fs::read_dir(&all).map_err(|source| file(&all, source))?.flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.split('-').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let prefix = format!("{}-", std::process::id());
    let directory = tempfile::Builder::new()
        .prefix(&prefix)
        .tempdir_in(&all)
        .map_err(|source| file(&all, source))?
        .keep();
    Ok(directory)
}

fn free_ports() -> std::io::Result<[u16; 3]> {
    Ok([free_address()?.port(), free_address()?.port(), free_address()?.port()])
}
