//! Mode Filter: an HTTPS server on the loopback address that the node's stock kube-proxy uses as
//! its API server. It forwards kube-proxy's requests and narrows the Services in the responses.
//!
//! Four modules decide and do no I/O: `request` (which requests pass, and how they are narrowed),
//! `session` (which reads of a client belong to the current view), `readers` (which reads count as
//! kube-proxy's) and `wire` (removes addresses from a stream). `serving` has the certificates with
//! which agent and kube-proxy authenticate each other, and `kube_proxy_files` hands them over.
//! `listen` accepts connections, `proxy` forwards requests, `connections` records the reads of each
//! client, and `progress` tells the report.

pub(crate) mod progress;

mod connections;
mod kube_proxy_files;
mod listen;
mod metrics;
mod proxy;
mod readers;
mod request;
mod serving;
mod session;
mod upstream;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use isp_runtime::admin::{Admin, AdminError};
use isp_runtime::program::{Program, ProgramError};
use isp_runtime::readiness::Pending;
use prometheus_client::registry::Registry;
use thiserror::Error;
use tokio::net::TcpListener;
use tracing::info;

use self::connections::ClientConnections;
use self::kube_proxy_files::KubeProxyFiles;
use self::listen::Server;
use self::metrics::FilterMetrics;
use self::progress::FilterProgress;
use self::proxy::Proxy;
use self::serving::{Identity, MirrorScope, ServingError};
use self::upstream::{ApiServer, ClientCertificate, Upstream, UpstreamError, agent_client};
use crate::node::view::ViewStore;
use crate::node::{Node, NodeArgs, PORT_TIMEOUT, PULSE_TIMEOUT, SHUTDOWN_GRACE};

/// The settings of mode Filter.
#[derive(Debug, Args)]
pub struct FilterArgs {
    #[command(flatten)]
    node: NodeArgs,
    /// kube-proxy's kubeconfig as the cluster has it. It names the API server.
    #[arg(long, default_value = "/var/lib/kube-proxy/kubeconfig.conf")]
    kube_proxy_kubeconfig: PathBuf,
    /// Token that the agent uses for its own requests to the API server.
    #[arg(long, default_value = "/var/run/secrets/kubernetes.io/serviceaccount/token")]
    token_file: PathBuf,
    /// Directory that kube-proxy sees in place of its own. The agent fills it with kube-proxy's
    /// files and a kubeconfig that leads to the agent.
    #[arg(long, default_value = "/run/proxy-agent")]
    serving_directory: PathBuf,
    /// Write only the kubeconfig there, because kube-proxy still sees its other files.
    #[arg(long)]
    only_kubeconfig: bool,
    /// Loopback address that serves kube-proxy.
    #[arg(long, default_value = "127.0.0.1:10260")]
    listen: SocketAddr,
    /// Address of kube-proxy's metrics, which tell whether its rules are in the kernel. For a
    /// loopback address, the agent tries both IP families.
    #[arg(long, default_value = "127.0.0.1:10249")]
    kube_proxy_metrics: SocketAddr,
}

/// Why mode Filter cannot run.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum FilterError {
    #[error("--listen {0} is not a loopback address: the agent serves processes of its own node only")]
    NotLoopback(SocketAddr),
    #[error("cannot listen on {address}: {source}; choose another address with --listen")]
    Listen { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    #[error(transparent)]
    Serving(#[from] ServingError),
    #[error(transparent)]
    Program(#[from] ProgramError),
}

/// Runs until a signal arrives.
pub(crate) async fn run(arguments: FilterArgs) -> Result<(), FilterError> {
    let mut program = Program::start()?;
    if !arguments.listen.ip().is_loopback() {
        return Err(FilterError::NotLoopback(arguments.listen));
    }
    let kubeconfig = arguments.kube_proxy_kubeconfig.clone();
    let api_server = ApiServer::read(&kubeconfig)?;
    // The agent's own requests have a connection of their own: the view stays known even if nobody
    // reads the responses on kube-proxy's, and no kube-proxy certificate is presented.
    let client = agent_client(Upstream::new(&api_server, &kubeconfig)?, &arguments.token_file);
    let mut registry = Registry::default();
    let node = Node::new(arguments.node, client, &program, &mut registry);
    let kube_proxy_synced = program.readiness().register("kube-proxy");
    let metrics = Arc::new(FilterMetrics::default());
    metrics.register(&mut registry);

    let certificate = ClientCertificate::read(&kubeconfig)?;
    let upstream = Upstream::new(&api_server, &kubeconfig)?;
    upstream.present(certificate.as_ref())?;
    let shutdown = program.shutdown();
    let (listener, admin) = tokio::select! {
        sockets = open_sockets(arguments.listen, &node) => sockets?,
        () = shutdown.requested() => return Ok(program.finish(SHUTDOWN_GRACE).await?),
    };
    let address = listener.local_addr().unwrap_or(arguments.listen);
    let identity = Identity::at(&arguments.serving_directory, address.ip())?;
    let (name, tls) = (identity.name.clone(), identity.tls()?);
    let files = KubeProxyFiles {
        kubeconfig,
        directory: arguments.serving_directory,
        address,
        identity,
        scope: if arguments.only_kubeconfig { MirrorScope::Kubeconfig } else { MirrorScope::AllFiles },
        api_server: api_server.clone(),
        certificate,
        upstream: upstream.clone(),
    };
    // kube-proxy starts when it finds these files, so the agent listens before it writes them.
    files.mirror()?;
    info!(%address, server = %api_server.address, "serving kube-proxy");

    let (view, connections) = (node.view.clone(), Arc::<ClientConnections>::default());
    let proxy =
        Proxy::new(node.name().to_owned(), view.clone(), connections.clone(), upstream, metrics.clone());
    let server = Server { name, tls, proxy: Arc::new(proxy), metrics };
    let pulse = |name| program.health().register(name, PULSE_TIMEOUT);
    let (listening, following) = (pulse("listener"), pulse("files"));
    program.spawn("listener", listen::serve(listener, server, listening, shutdown.clone()));
    program.spawn_endless("files", files.follow(following, shutdown));
    program.spawn_endless("kube-proxy readiness", become_ready(view, connections.clone(), kube_proxy_synced));
    let progress = FilterProgress::new(connections, arguments.kube_proxy_metrics);
    node.spawn(&mut program, admin, registry, progress);
    Ok(program.finish(SHUTDOWN_GRACE).await?)
}

async fn open_sockets(address: SocketAddr, node: &Node) -> Result<(TcpListener, Admin), FilterError> {
    let listener = isp_runtime::listen::listen(address, PORT_TIMEOUT).await;
    let listener = listener.map_err(|source| FilterError::Listen { address, source })?;
    Ok((listener, node.open_admin().await?))
}

/// Marks the agent as ready once kube-proxy has read the current view. It never becomes unready
/// again: a node whose agent restarts keeps its rules.
async fn become_ready(view: Arc<ViewStore>, connections: Arc<ClientConnections>, kube_proxy_synced: Pending) {
    let synced =
        || view.current().is_some_and(|current| connections.kube_proxy(current.epoch).synced_at.is_some());
    let _ = connections.changes().wait_for(|_| synced()).await;
    drop(kube_proxy_synced);
    std::future::pending::<()>().await;
}
