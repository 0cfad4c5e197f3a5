//! The command line: parses arguments, calls the library, returns an exit code.

use std::fs;
use std::io::{self, IsTerminal};
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use isp_lab::provision::{self, KubernetesVersion, Purpose};
use isp_lab::topology::{FamilyFlags, KubeProxyOn};
use isp_lab::{Lab, LabError, Place, ProxyMode, init, release, run_guest};

/// A real Kubernetes cluster on this machine, without Docker.
#[derive(Debug, Parser)]
#[command(name = "lab", version, arg_required_else_help = true)]
struct Cli {
    /// The lab's name. Labs with different names run side by side.
    #[arg(long, global = true, default_value = "default")]
    name: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build missing parts and start a cluster.
    Up(Up),
    /// Stop a lab and remove everything it created.
    Down,
    /// List the labs and the components of this one.
    Status,
    /// Print the path of a kubeconfig that works from the host.
    Kubeconfig,
    /// Run kubectl.
    Kubectl {
        /// Arguments for kubectl.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run a program in the network namespace of a place.
    Exec {
        /// A node's name, client, client-2, router, control-plane or pod/<namespace>/<name>.
        place: Place,
        /// The program and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
    /// Make the router send an external IP (192.0.2.0/24) to nodes; without nodes, to none.
    Route {
        /// The external IP.
        address: IpAddr,
        /// The nodes, separated by commas.
        #[arg(value_delimiter = ',')]
        nodes: Vec<String>,
    },
    /// Print the log of a component, such as kube-apiserver or edge-1/kubelet; `status` lists them.
    Logs {
        /// The component.
        component: String,
    },
    /// Load an OCI archive on every node.
    LoadImage {
        /// The archive.
        archive: PathBuf,
    },
    /// Pack programs of this workspace as their release images, in one OCI archive.
    Pack {
        /// The programs, from a release build. For several architectures, name each program once
        /// for each, one after the other.
        #[arg(required = true)]
        programs: Vec<PathBuf>,
        /// The registry in the names of the images.
        #[arg(long, default_value = release::REGISTRY)]
        registry: String,
        /// The archive.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Print the path of a pinned program, kubectl or helm. Builds it if it is missing.
    Program {
        /// The program.
        name: String,
    },
    /// Build or install everything that a kind of test needs.
    Provision {
        /// The kind of test.
        #[arg(long = "for", value_enum)]
        purpose: Purpose,
        /// The Kubernetes release.
        #[arg(long, default_value_t)]
        kubernetes: KubernetesVersion,
    },
    /// Check whether a kind of test can run on this machine; if not, print the reason and exit with
    /// 1.
    CanRun {
        /// The kind of test.
        #[arg(value_enum)]
        purpose: Purpose,
    },
    #[command(hide = true)]
    Launch { directory: PathBuf },
    #[command(hide = true)]
    Init { directory: PathBuf },
    #[command(hide = true)]
    Guest,
}

#[derive(Debug, Args)]
struct Up {
    /// The nodes, separated by commas; those named edge… are ingress nodes.
    #[arg(long, value_delimiter = ',', default_value = "edge-1,work-1,work-2")]
    nodes: Vec<String>,
    /// The ingress nodes, if not those named edge….
    #[arg(long, value_delimiter = ',')]
    ingress_nodes: Option<Vec<String>>,
    /// kube-proxy's mode.
    #[arg(long, value_enum, default_value_t)]
    proxy_mode: ProxyMode,
    /// Nodes that do not run the pod of kube-proxy's DaemonSet: NODE=process, as k3s does, or
    /// NODE=none; separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "NODE=HOW")]
    kube_proxy: Vec<KubeProxyOn>,
    /// The Kubernetes release.
    #[arg(long, default_value_t)]
    kubernetes: KubernetesVersion,
    /// Install Istio, with an ingress gateway on the ingress nodes.
    #[arg(long)]
    istio: bool,
    #[command(flatten)]
    families: FamilyFlags,
    /// The port on the host's loopback that forwards to the API server; 0 selects any free port.
    #[arg(long, default_value_t = 0)]
    api_port: u16,
}

pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Launch { directory } => return report(init::launch(&directory)),
        Command::Init { directory } => return report(init::run(&directory)),
        Command::Guest => return report(run_guest().map(drop)),
        command => run(&cli.name, command),
    };
    match result {
        Ok(code) => code,
        Err(error) => report(Err(error)),
    }
}

fn report<E: std::fmt::Display>(result: Result<(), E>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(name: &str, command: Command) -> Result<ExitCode, LabError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|source| LabError::File { path: "the runtime".into(), source })?;
    let ended = runtime.block_on(act(name, command));
    if matches!(ended, Err(LabError::Interrupted)) {
        // Waits for blocking tasks first: they may still write to the lab's directory.
        drop(runtime);
        isp_lab::down(name)?;
    }
    ended
}

async fn act(name: &str, command: Command) -> Result<ExitCode, LabError> {
    match command {
        Command::Up(arguments) => up(name, arguments).await?,
        Command::Down => isp_lab::down(name)?,
        Command::Status => return status(name).await,
        Command::Kubeconfig => println!("{}", Lab::attach(name).await?.kubeconfig().display()),
        Command::Kubectl { arguments } => {
            let mut kubectl = Lab::attach(name).await?.kubectl_command();
            return replace(kubectl.args(arguments));
        }
        Command::Exec { place, mut command } => {
            // The program starts in the lab's root directory, so a relative path must be made
            // absolute.
            if command[0].contains('/') {
                let path = fs::canonicalize(&command[0])
                    .map_err(|source| LabError::File { path: (&command[0]).into(), source })?;
                command[0] = path.display().to_string();
            }
            return replace(&mut Lab::attach(name).await?.command_in(&place, &command).await?);
        }
        Command::Route { address, nodes } => {
            let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
            Lab::attach(name).await?.route(address, &nodes).await?;
        }
        Command::Logs { component } => {
            let path = isp_lab::log_path(name, &component)?;
            let mut file =
                fs::File::open(&path).map_err(|source| LabError::File { path: path.clone(), source })?;
            io::copy(&mut file, &mut io::stdout()).map_err(|source| LabError::File { path, source })?;
        }
        Command::LoadImage { archive } => Lab::attach(name).await?.load_image(&archive).await?,
        Command::Pack { programs, registry, out } => {
            release::write(&programs, &registry, &out)?;
            println!("{}", out.display());
        }
        Command::Program { name } => {
            let program = match name.as_str() {
                "helm" => provision::helm(say)?,
                other => provision::program_of(KubernetesVersion::default(), other, say)?,
            };
            println!("{}", program.display());
        }
        Command::Provision { purpose, kubernetes } => {
            provision::provision(purpose, kubernetes, say)?;
        }
        Command::CanRun { purpose } => {
            if let Err(reason) = provision::can_run(purpose) {
                println!("{reason}");
                return Ok(ExitCode::FAILURE);
            }
        }
        Command::Launch { .. } | Command::Init { .. } | Command::Guest => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Replaces this process with another program, so that signals, terminal and exit code are that
/// program's.
fn replace(command: &mut std::process::Command) -> Result<ExitCode, LabError> {
    let source = command.exec();
    Err(LabError::File { path: command.get_program().into(), source })
}

async fn up(name: &str, arguments: Up) -> Result<(), LabError> {
    let mut builder = Lab::builder()
        .name(name)
        .nodes(arguments.nodes)
        .proxy_mode(arguments.proxy_mode)
        .kube_proxy(arguments.kube_proxy)
        .kubernetes(arguments.kubernetes)
        .istio(arguments.istio)
        .families(arguments.families.families())
        .api_port(arguments.api_port)
        .progress(say);
    if let Some(nodes) = arguments.ingress_nodes {
        builder = builder.ingress_nodes(nodes);
    }
    // Ctrl-C during the start removes the lab.
    let lab = tokio::select! {
        lab = builder.up() => lab?,
        _ = tokio::signal::ctrl_c() => return Err(LabError::Interrupted),
    };
    let lab = lab.keep();
    println!("export KUBECONFIG={}", lab.kubeconfig().display());
    if io::stdout().is_terminal() {
        println!("try: cargo xtask lab kubectl -- get nodes -o wide");
    }
    Ok(())
}

async fn status(name: &str) -> Result<ExitCode, LabError> {
    for (lab, running) in isp_lab::list()? {
        println!("lab {lab}: {}", if running { "running" } else { "killed; `down` removes what is left" });
    }
    match Lab::attach(name).await {
        Ok(lab) => {
            lab.status().await?.iter().for_each(|line| println!("{line}"));
            Ok(ExitCode::SUCCESS)
        }
        Err(LabError::NotRunning(name)) => {
            println!("lab {name}: not running");
            Ok(ExitCode::FAILURE)
        }
        Err(error) => Err(error),
    }
}

fn say(line: &str) {
    eprintln!("{line}");
}
