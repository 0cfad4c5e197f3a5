//! `proxy-agent filter`: puts the parts together.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use isp_runtime::program::{Program, ProgramError};
use isp_runtime::shutdown::Shutdown;
use prometheus_client::registry::Registry;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::listen;
use crate::metrics::Metrics;
use crate::proxy::Proxy;
use crate::report;
use crate::serving::{Files, Identity, ServingError, mirror};
use crate::state::State;
use crate::upstream::{self, Place, Upstream, UpstreamError};
use crate::view_source;

const GRACE: Duration = Duration::from_secs(5);
/// How often kube-proxy's own files are looked at; a kubelet updates them about once a minute.
const FOLLOW: Duration = Duration::from_secs(10);

/// What the filter is told.
#[derive(Debug, Args)]
pub struct FilterArgs {
    /// The node that this agent serves.
    #[arg(long, env = "NODE_NAME")]
    node_name: String,
    /// The pool that the node belongs to.
    #[arg(long, env = "AGENT_POOL", default_value = isp_api::names::DEFAULT_POOL)]
    pool: String,
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
    Listen { address: SocketAddr, source: std::io::Error },
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

    let kubeconfig = &arguments.kube_proxy_kubeconfig;
    let place = Place::read(kubeconfig)?;
    let upstream = Upstream::new(&place, kubeconfig)?;
    // With a connection of its own, so that the view is known whatever is not read on the other.
    let client = upstream::client(Upstream::new(&place, kubeconfig)?, &arguments.token_file);
    let listener = TcpListener::bind(arguments.listen)
        .await
        .map_err(|source| FilterError::Listen { address: arguments.listen, source })?;
    let address = listener.local_addr().unwrap_or(arguments.listen);
    let identity = Identity::at(&arguments.serving_directory, address)?;
    // Written when the agent listens: kube-proxy starts when it finds it.
    let files = if arguments.only_kubeconfig { Files::Kubeconfig } else { Files::All };
    mirror(kubeconfig, address, &arguments.serving_directory, files)?;
    info!(%address, server = %place.server, "serving kube-proxy");

    let state = State::new();
    let proxy = Proxy::new(arguments.node_name.clone(), state.clone(), upstream, metrics.clone());
    program.serve_admin(arguments.admin, registry).await?;
    program.spawn("listener", listen::serve(listener, identity.tls, Arc::new(proxy), program.shutdown()));
    let view = view_source::follow(client.clone(), arguments.node_name.clone(), state.clone(), metrics);
    program.spawn_endless("view", view);
    let follow = keep_mirrored(
        arguments.kube_proxy_kubeconfig,
        address,
        arguments.serving_directory,
        files,
        place,
        program.shutdown(),
    );
    program.spawn_endless("files", follow);
    let reporter = report::Reporter {
        client,
        node: arguments.node_name,
        pool: arguments.pool,
        kube_proxy_metrics: arguments.kube_proxy_metrics,
        state: state.clone(),
    };
    program.spawn_endless("report", reporter.run());
    program.spawn_endless("readiness", become_ready(state, view_known, proxy_connected));
    Ok(program.finish(GRACE).await?)
}

/// Follows the cluster's own configuration of kube-proxy. One that names another API server or authority is taken by a new start:
/// the kubelet sees to it, and the rules stay meanwhile.
async fn keep_mirrored(
    kubeconfig: PathBuf,
    address: SocketAddr,
    directory: PathBuf,
    files: Files,
    place: Place,
    shutdown: Shutdown,
) {
    loop {
        sleep(FOLLOW).await;
        match Place::read(&kubeconfig) {
            Ok(now) if now != place => {
                warn!(
                    "kube-proxy's kubeconfig names another API server or authority: the agent ends, to be started with it"
                );
                shutdown.request();
            }
            Ok(_) => {}
            Err(error) => warn!(%error, "kube-proxy's kubeconfig cannot be read; it is tried again"),
        }
        if let Err(error) = mirror(&kubeconfig, address, &directory, files) {
            warn!(%error, "kube-proxy's configuration cannot be followed; it is tried again");
        }
    }
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
        state.reading().session.has(epoch)
    };
    let _ = readings.wait_for(|_| connected()).await;
    drop(proxy_connected);
    std::future::pending::<()>().await;
}
