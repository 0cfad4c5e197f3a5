//! The parts of the agent that every mode has: the connection to the API server, the view of this
//! node, the report to its IngressSourceNode, health and metrics. No module in here knows a mode.
//! A mode gets a [`Node`], reads [`Node::view`], and reports through
//! [`progress::Progress`].

pub(crate) mod metrics;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod view;
mod view_source;

use std::net::{IpAddr, SocketAddr};
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
use self::progress::{Acknowledgement, Progress};
use self::report::{ObservedStatus, Reporter, ReportingAgent};
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
}

/// The node that this agent serves, before its tasks run.
pub(crate) struct Node {
    pub(crate) view: Arc<ViewStore>,
    pub(crate) client: kube::Client,
    arguments: NodeArgs,
    metrics: Arc<NodeMetrics>,
    view_known: Pending,
}

impl Node {
    /// Registers metrics and readiness. The client sends the agent's own requests.
    pub(crate) fn new(
        arguments: NodeArgs,
        client: kube::Client,
        program: &Program,
        registry: &mut Registry,
    ) -> Self {
        let view_known = program.readiness().register("view");
        let metrics = Arc::new(NodeMetrics::default());
        metrics.register(registry);
        Self { view: Arc::default(), client, arguments, metrics, view_known }
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
    pub(crate) fn spawn<P: Progress>(
        self,
        program: &mut Program,
        admin: Admin,
        registry: Registry,
        progress: P,
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
        let own_object = P::Acknowledgement::MODE.report_name(&node);
        program.spawn_endless("own object", report::follow(self.client.clone(), own_object, observing));
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
