//! `webhook run`: puts the parts together.

use std::sync::Arc;
use std::time::Duration;

use isp_client::{ClientError, connect};
use isp_runtime::admin::{Admin, AdminError};
use isp_runtime::readiness::Readiness;
use isp_runtime::shutdown::{Shutdown, SignalError, Tasks, TasksError};
use prometheus_client::registry::Registry;
use thiserror::Error;
use tracing::info;

use crate::admission::{Admission, Cache, router};
use crate::bundle::BundleKeeper;
use crate::certs::{Desk, IssuedKeeper, LifetimesError, OwnKeeper};
use crate::cli::{RunArgs, Source};
use crate::metrics::Metrics;
use crate::serve::{ServeError, Server, tls};

/// How long the end may take: a moment in which calls still come, then those under way.
const GRACE: Duration = Duration::from_secs(8);

/// Why the webhook cannot run.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RunError {
    #[error(transparent)]
    Lifetimes(#[from] LifetimesError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error(transparent)]
    Signal(#[from] SignalError),
    #[error(transparent)]
    Tasks(#[from] TasksError),
}

/// Runs until a signal ends it.
pub async fn run(arguments: RunArgs) -> Result<(), RunError> {
    let shutdown = Shutdown::on_signals()?;
    let certificates = arguments.certificates;
    let lifetimes = certificates.lifetimes()?;
    let readiness = Readiness::default();
    let (metrics, mut registry) = (Arc::new(Metrics::default()), Registry::default());
    metrics.register(&mut registry);
    let desk = Desk::new(lifetimes.overlap, metrics.clone(), readiness.register("certificate"));
    let trust = desk.trusted();
    let tls = tls(desk.serving(), arguments.client_ca.as_deref()).map_err(ServeError::from)?;
    let client = connect().await?;
    let cache = Arc::new(Cache::new(certificates.namespace.clone()));
    let admission = Admission { cache: cache.clone(), client: client.clone(), metrics: metrics.clone() };
    let router = router(Arc::new(admission));
    let server = Server::bind(arguments.listen, tls, router, metrics.clone()).await?;
    let admin = Admin::bind(arguments.admin).await?;
    info!(address = %arguments.listen, name = certificates.server(), "started");

    let mut tasks = Tasks::new(shutdown.clone());
    tasks.spawn("cache", until(shutdown.clone(), cache.run(client.clone(), &readiness)));
    tasks.spawn("admin", admin.serve(Arc::new(registry), readiness, shutdown.clone()));
    tasks.spawn("server", server.run(shutdown.clone()));
    let place = (certificates.namespace.as_str(), certificates.secret.as_str());
    let name = certificates.server();
    match certificates.source {
        Source::Own => {
            let names = vec![format!("{name}.cluster.local"), name];
            let keeper = OwnKeeper::new(client.clone(), place, lifetimes, names, desk);
            tasks.spawn("certificates", until(shutdown.clone(), keeper.run()));
        }
        Source::Secret => {
            let keeper = IssuedKeeper::new(client.clone(), place, name, desk);
            tasks.spawn("certificates", until(shutdown.clone(), keeper.run()));
        }
    }
    let bundle = BundleKeeper::new(client, trust, lifetimes.overlap, metrics);
    tasks.spawn("bundle", until(shutdown, bundle.run()));
    Ok(tasks.finish(GRACE).await?)
}

/// A task that has no end of its own.
async fn until(shutdown: Shutdown, task: impl Future<Output = ()>) {
    tokio::select! {
        () = task => {}
        () = shutdown.requested() => {}
    }
}
