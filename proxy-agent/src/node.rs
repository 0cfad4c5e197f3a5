//! The parts of the agent that every mode has: the connection to the API server, the view of this
//! node, the report to its IngressSourceNode, health and metrics. No module in here knows a mode.
//! A mode gets a [`Node`], reads [`Node::view`], and reports through
//! [`progress::Progress`].

pub(crate) mod metrics;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod upstream;
pub(crate) mod view;
mod view_source;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use isp_runtime::admin::{Admin, AdminError};
use isp_runtime::listen::listen;
use isp_runtime::program::Program;
use isp_runtime::readiness::Pending;
use isp_runtime::shutdown::Shutdown;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::warn;

use self::metrics::NodeMetrics;
use self::progress::Progress;
use self::report::{ObservedStatus, Reporter, ReportingAgent};
use self::upstream::{ApiServer, Upstream, UpstreamError};
use self::view::ViewStore;

/// How long tasks may take to end after a signal.
pub(crate) const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
/// How long to wait for a port of the node. The agent of a terminating pod holds its ports until
/// it has exited.
pub(crate) const PORT_TIMEOUT: Duration = Duration::from_mins(1);
/// The liveness probe fails if a task with a pulse does not beat for this long. Each beats many
/// times within it.
pub(crate) const PULSE_TIMEOUT: Duration = Duration::from_mins(1);
/// How often the agent tries to bind the address for metrics.
const METRICS_RETRY: Duration = Duration::from_secs(10);

/// The settings of every mode.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// Name of the node that this agent serves.
    #[arg(long, env = "NODE_NAME")]
    node_name: String,
    /// Pool that the node belongs to.
    #[arg(long, env = "AGENT_POOL", default_value = isp_api::names::DEFAULT_POOL)]
    pool: String,
    /// Revision of the pool's DaemonSet that started this agent.
    #[arg(long, env = "AGENT_REVISION", default_value = "")]
    revision: String,
    /// kube-proxy's kubeconfig as the cluster has it. It names the API server.
    #[arg(long, default_value = "/var/lib/kube-proxy/kubeconfig.conf")]
    pub(crate) kube_proxy_kubeconfig: PathBuf,
    /// Address that serves /healthz, /readyz and /metrics.
    #[arg(long, default_value = "127.0.0.1:10261")]
    admin: SocketAddr,
    /// The node's IP address. The agent serves /metrics there as well, for the network. Without
    /// it, the network gets no metrics.
    #[arg(long, env = "METRICS_HOST")]
    metrics_host: Option<IpAddr>,
    /// Port for /metrics on that address.
    #[arg(long, default_value_t = 10261)]
    metrics_port: u16,
    /// Token that the agent uses for its own requests to the API server.
    #[arg(long, default_value = "/var/run/secrets/kubernetes.io/serviceaccount/token")]
    token_file: PathBuf,
}

/// The node that this agent serves, before its tasks run.
pub(crate) struct Node {
    pub(crate) view: Arc<ViewStore>,
    pub(crate) api_server: ApiServer,
    arguments: NodeArgs,
    client: kube::Client,
    metrics: Arc<NodeMetrics>,
    view_known: Pending,
}

impl Node {
    /// Reads where the API server is, and registers metrics and readiness.
    pub(crate) fn new(
        arguments: NodeArgs,
        program: &Program,
        registry: &mut Registry,
    ) -> Result<Self, UpstreamError> {
        let view_known = program.readiness().register("view");
        let metrics = Arc::new(NodeMetrics::default());
        metrics.register(registry);
        let kubeconfig = &arguments.kube_proxy_kubeconfig;
        let api_server = ApiServer::read(kubeconfig)?;
        // The agent's own requests have a connection of their own: the view stays known even if
        // nobody reads the responses on kube-proxy's, and no kube-proxy certificate is presented.
        let client = upstream::agent_client(Upstream::new(&api_server, kubeconfig)?, &arguments.token_file);
        Ok(Self { view: Arc::default(), api_server, arguments, client, metrics, view_known })
    }

    pub(crate) fn name(&self) -> &str {
        &self.arguments.node_name
    }

    /// Opens the port for health and metrics.
    pub(crate) async fn open_admin(&self) -> Result<Admin, AdminError> {
        let failed = |source| AdminError::new(self.arguments.admin, source);
        let listener = listen(self.arguments.admin, PORT_TIMEOUT).await.map_err(failed)?;
        Admin::on(listener).map_err(failed)
    }

    /// Starts the tasks of every mode. The mode registers its own readiness and metrics before.
    pub(crate) fn spawn(
        self,
        program: &mut Program,
        admin: Admin,
        registry: Registry,
        progress: impl Progress,
    ) {
        let registry = Arc::new(registry);
        program.serve_admin_on(admin, registry.clone());
        let NodeArgs { node_name: node, pool, revision, metrics_host, metrics_port, .. } = self.arguments;
        if let Some(host) = metrics_host {
            let serving = serve_metrics(SocketAddr::new(host, metrics_port), registry, program.shutdown());
            program.spawn_endless("metrics", serving);
        }
        let follow =
            view_source::follow(self.client.clone(), node.clone(), self.view.clone(), self.metrics.clone());
        program.spawn_endless("view", follow);
        program.spawn_endless("view readiness", become_ready(self.view.clone(), self.view_known));
        let (observing, observed) = watch::channel(ObservedStatus::default());
        program.spawn_endless("own object", report::follow(self.client.clone(), node.clone(), observing));
        let reporter = Reporter {
            client: self.client,
            agent: ReportingAgent { node, pool, revision },
            view: self.view,
            progress,
            observed,
            metrics: self.metrics,
            pulse: program.health().register("report", PULSE_TIMEOUT),
        };
        program.spawn_endless("report", reporter.run());
    }
}

/// Serves the metrics to the network. The agent also works if it cannot bind that address.
async fn serve_metrics(address: SocketAddr, registry: Arc<Registry>, shutdown: Shutdown) {
    let mut logged = false;
    let admin = loop {
        match Admin::bind(address).await {
            Ok(admin) => break admin,
            Err(error) if !logged => {
                warn!(%error, "cannot serve metrics to the network yet; retrying");
                logged = true;
            }
            Err(_) => {}
        }
        sleep(METRICS_RETRY).await;
    };
    admin.serve_metrics(registry, shutdown).await;
}

/// Marks the view as ready once it is known. It never becomes unready again.
async fn become_ready(view: Arc<ViewStore>, view_known: Pending) {
    let _ = view.subscribe().wait_for(Option::is_some).await;
    drop(view_known);
    std::future::pending::<()>().await;
}
