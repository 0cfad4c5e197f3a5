//! `operator run`: wires the parts together.

use std::sync::Arc;
use std::time::Duration;

use isp_client::ClientError;
use isp_plan::Settings;
use isp_runtime::program::{Program, ProgramError};
use isp_runtime::shutdown::Shutdown;
use prometheus_client::registry::Registry;
use thiserror::Error;
use tokio::sync::oneshot;
use tracing::info;

use crate::cli::{LeaseArgsError, RunArgs};
use crate::client::connect;
use crate::events::Notices;
use crate::lease::Keeper;
use crate::metrics::Metrics;
use crate::observer::Observer;
use crate::reconcile::{Parts, Reconciler};

/// Time limit for the shutdown: in-flight requests finish first, then the Lease is released.
const GRACE: Duration = Duration::from_secs(8);
const WIND_DOWN: Duration = Duration::from_secs(3);

/// Why the operator cannot run.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum RunError {
    #[error(transparent)]
    Lease(#[from] LeaseArgsError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Program(#[from] ProgramError),
}

/// Runs until a signal requests the shutdown.
pub async fn run(arguments: RunArgs) -> Result<(), RunError> {
    let mut program = Program::start()?;
    let (timing, identity) = (arguments.lease.timing()?, arguments.lease.identity()?);
    let (metrics, mut registry) = (Arc::new(Metrics::default()), Registry::default());
    metrics.register(&mut registry);
    let client = connect(metrics.clone()).await?;
    let keeper =
        Keeper::new(client.clone(), &arguments.lease.namespace, identity.clone(), timing, metrics.clone());
    let (notices, publisher) = Notices::new(client.clone(), identity.clone(), metrics.clone());
    let reconciler = Reconciler::new(Parts {
        observer: Observer::new(client.clone(), program.readiness()),
        leadership: keeper.leadership(),
        settings: Settings {
            agent_image: arguments.agent_image,
            agent_pull_secrets: arguments.agent_pull_secrets,
            namespace: arguments.lease.namespace.clone(),
            cleanup: false,
        },
        client,
        notices,
        metrics,
    });
    program.serve_admin(arguments.admin, registry).await?;
    info!(identity, namespace = arguments.lease.namespace, "started");

    let (idle, is_idle) = oneshot::channel::<()>();
    let end = program.shutdown();
    program.spawn("events", publisher.run(async move { end.requested().await }));
    program.spawn("reconcile", reconcile(reconciler, program.shutdown(), idle));
    // Release the Lease only after all in-flight requests have finished.
    program.spawn("lease", keeper.run(async { drop(is_idle.await) }));
    Ok(program.finish(GRACE).await?)
}

/// Reconciles until the shutdown is requested. Dropping `idle` signals that no request is in
/// flight.
async fn reconcile(mut reconciler: Reconciler, shutdown: Shutdown, idle: oneshot::Sender<()>) {
    loop {
        tokio::select! {
            _ = reconciler.turn() => {}
            () = shutdown.requested() => break,
        }
    }
    reconciler.wind_down(WIND_DOWN).await;
    drop(idle);
}
