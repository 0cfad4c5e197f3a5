//! `proxy-agent filter`: puts the parts together.

mod kube_proxy_files;
pub(crate) mod listen;
pub(crate) mod metrics;
pub(crate) mod progress;
pub(crate) mod proxy;
pub(crate) mod readers;
pub(crate) mod request;
pub(crate) mod serving;
pub(crate) mod session;
pub(crate) mod wire;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use isp_runtime::admin::{Admin, AdminError};
use isp_runtime::listen::listen as open_listener;
use isp_runtime::program::{Program, ProgramError};
use isp_runtime::shutdown::Shutdown;
use prometheus_client::registry::Registry;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::filter::kube_proxy_files::Files;
use crate::filter::listen::Server;
use crate::filter::metrics::Metrics;
use crate::filter::proxy::Proxy;
use crate::filter::serving::{Identity, Mirrored, ServingError};
use crate::node::report;
use crate::node::upstream::{self, ClientCertificate, Place, Upstream, UpstreamError};
use crate::node::view::State;
use crate::node::view_source;

const GRACE: Duration = Duration::from_secs(5);
/// How often an address for the metrics that cannot be had is tried.
const METRICS_AGAIN: Duration = Duration::from_secs(10);
/// The agent of a pod that ends has the node's ports until it has ended.
const PORT_PATIENCE: Duration = Duration::from_mins(1);
/// Each of the tasks that are never to rest turns many times within this.
const PULSE: Duration = Duration::from_mins(1);

/// What the filter is told.
#[derive(Debug, Args)]
pub struct FilterArgs {
    /// The node that this agent serves.
    #[arg(long, env = "NODE_NAME")]
    node_name: String,
    /// The pool that the node belongs to.
    #[arg(long, env = "AGENT_POOL", default_value = isp_api::names::DEFAULT_POOL)]
    pool: String,
    /// The revision of the pool's DaemonSet that started this agent.
    #[arg(long, env = "AGENT_REVISION", default_value = "")]
    revision: String,
    /// kube-proxy's own kubeconfig, as the cluster has it: it says where the API server is.
    #[arg(long, default_value = "/var/lib/kube-proxy/kubeconfig.conf")]
    kube_proxy_kubeconfig: PathBuf,
    /// The directory that kube-proxy sees in the place of its own: its files, with a kubeconfig that leads here.
    #[arg(long, default_value = "/run/proxy-agent")]
    serving_directory: PathBuf,
    /// Put only the kubeconfig there: the other files of its directory stay as kube-proxy has them.
    #[arg(long)]
    only_kubeconfig: bool,
    /// Where kube-proxy is served; a loopback address.
    #[arg(long, default_value = "127.0.0.1:10260")]
    listen: SocketAddr,
    /// Where /healthz, /readyz and /metrics are served.
    #[arg(long, default_value = "127.0.0.1:10261")]
    admin: SocketAddr,
    /// The node's address, where /metrics alone is served to the network; without it, nowhere else.
    #[arg(long, env = "METRICS_HOST")]
    metrics_host: Option<IpAddr>,
    /// The port there.
    #[arg(long, default_value_t = 10261)]
    metrics_port: u16,
    /// The token with which the agent itself asks the API server.
    #[arg(long, default_value = "/var/run/secrets/kubernetes.io/serviceaccount/token")]
    token_file: PathBuf,
    /// Where kube-proxy serves its own metrics; there the agent looks whether the kernel has followed. Of the loopback, both families
    /// are tried.
    #[arg(long, default_value = "127.0.0.1:10249")]
    kube_proxy_metrics: SocketAddr,
}

/// Why the filter cannot run.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FilterError {
    #[error(
        "--listen {0} is no loopback address: every process that can reach it can use kube-proxy's way to the API server"
    )]
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

/// Runs until a signal ends it.
pub async fn run(arguments: FilterArgs) -> Result<(), FilterError> {
    let mut program = Program::start()?;
    if !arguments.listen.ip().is_loopback() {
        return Err(FilterError::NotLoopback(arguments.listen));
    }
    let view_known = program.readiness().register("view");
    let proxy_connected = program.readiness().register("kube-proxy");
    let (metrics, mut registry) = (Arc::new(Metrics::default()), Registry::default());
    metrics.register(&mut registry);

    let registry = Arc::new(registry);

    let kubeconfig = &arguments.kube_proxy_kubeconfig;
    let place = Place::read(kubeconfig)?;
    let certificate = ClientCertificate::read(kubeconfig)?;
    let upstream = Upstream::new(&place, kubeconfig)?;
    upstream.present(certificate.as_ref())?;
    // With a connection of its own, so that the view is known whatever is not read on the other, and without kube-proxy's certificate.
    let client = upstream::client(Upstream::new(&place, kubeconfig)?, &arguments.token_file);
    let shutdown = program.shutdown();
    let sockets = tokio::select! {
        sockets = open(&arguments) => sockets?,
        () = shutdown.requested() => return Ok(program.finish(GRACE).await?),
    };
    let address = sockets.proxy.local_addr().unwrap_or(arguments.listen);
    let identity = Identity::at(&arguments.serving_directory, address.ip())?;
    let (name, tls) = (identity.name.clone(), identity.tls()?);
    let files = Files {
        kubeconfig: kubeconfig.clone(),
        directory: arguments.serving_directory.clone(),
        address,
        identity,
        mirrored: if arguments.only_kubeconfig { Mirrored::Kubeconfig } else { Mirrored::All },
    };
    // Written when the agent listens: kube-proxy starts when it finds it.
    files.mirror()?;
    info!(%address, server = %place.server, "serving kube-proxy");

    let state = State::new();
    let proxy = Proxy::new(arguments.node_name.clone(), state.clone(), upstream.clone(), metrics.clone());
    program.serve_admin_on(sockets.admin, registry.clone());
    if let Some(host) = arguments.metrics_host {
        let metrics =
            serve_metrics(SocketAddr::new(host, arguments.metrics_port), registry, shutdown.clone());
        program.spawn_endless("metrics", metrics);
    }
    let pulse = |name| program.health().register(name, PULSE);
    let (listening, mirroring, reporting) = (pulse("listener"), pulse("files"), pulse("report"));
    let server = Server { name, tls, proxy: Arc::new(proxy), state: state.clone(), metrics: metrics.clone() };
    program.spawn("listener", listen::serve(sockets.proxy, server, listening, shutdown.clone()));
    let view =
        view_source::follow(client.clone(), arguments.node_name.clone(), state.clone(), metrics.clone());
    program.spawn_endless("view", view);
    program.spawn_endless("files", files.keep(place, certificate, upstream, mirroring, shutdown));
    let (observing, observed) = watch::channel(report::Observed::default());
    program
        .spawn_endless("own object", report::follow(client.clone(), arguments.node_name.clone(), observing));
    let reporter = report::Reporter {
        client,
        node: arguments.node_name,
        pool: arguments.pool,
        revision: arguments.revision,
        kube_proxy_metrics: arguments.kube_proxy_metrics,
        state: state.clone(),
        observed,
        metrics,
        pulse: reporting,
    };
    program.spawn_endless("report", reporter.run());
    program.spawn_endless("readiness", become_ready(state, view_known, proxy_connected));
    Ok(program.finish(GRACE).await?)
}

/// Does nothing until a signal ends it.
pub async fn hold() -> Result<(), FilterError> {
    let program = Program::start()?;
    program.shutdown().requested().await;
    Ok(program.finish(GRACE).await?)
}

/// The sockets without which there is no agent.
struct Sockets {
    proxy: TcpListener,
    admin: Admin,
}

async fn open(arguments: &FilterArgs) -> Result<Sockets, FilterError> {
    let address = arguments.listen;
    let proxy = open_listener(address, PORT_PATIENCE).await;
    let proxy = proxy.map_err(|source| FilterError::Listen { address, source })?;
    let failed = |source| AdminError::new(arguments.admin, source);
    let admin =
        Admin::on(open_listener(arguments.admin, PORT_PATIENCE).await.map_err(failed)?).map_err(failed)?;
    Ok(Sockets { proxy, admin })
}

/// Serves the metrics to the network. An address that cannot be had is no reason for an agent not to work.
async fn serve_metrics(address: SocketAddr, registry: Arc<Registry>, shutdown: Shutdown) {
    let mut said = false;
    let admin = loop {
        match Admin::bind(address).await {
            Ok(admin) => break admin,
            Err(error) if !said => {
                warn!(%error, "the network does not get the metrics yet; it is tried again");
                said = true;
            }
            Err(_) => {}
        }
        sleep(METRICS_AGAIN).await;
    };
    admin.serve_metrics(registry, shutdown).await;
}

/// Ready once the view is known and kube-proxy has read it; never unready again: a node whose agent restarts keeps its rules.
async fn become_ready(
    state: Arc<State>,
    view_known: isp_runtime::readiness::Pending,
    proxy_connected: isp_runtime::readiness::Pending,
) {
    let mut views = state.views();
    let _ = views.wait_for(Option::is_some).await;
    drop(view_known);
    let mut readings = state.readings();
    let connected = || {
        let epoch = state.current().map_or(0, |current| current.epoch);
        state.reading(epoch).had_since.is_some()
    };
    let _ = readings.wait_for(|_| connected()).await;
    drop(proxy_connected);
    std::future::pending::<()>().await;
}
