//! `operator cleanup`: reverts all changes to the cluster and exits. Used to uninstall, also when
//! the operator is already gone.

use std::sync::Arc;
use std::time::Duration;

use isp_api::IngressSourcePreserve;
use isp_client::{ClientError, plain};
use isp_plan::own::OwnKind;
use isp_plan::ownership::Owner;
use isp_plan::{Cluster, Settings, observe};
use isp_runtime::readiness::Readiness;
use isp_runtime::shutdown::{Shutdown, SignalError};
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Client};
use thiserror::Error;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::debug;

use crate::cli::{CleanupArgs, LeaseArgsError};
use crate::client::connect;
use crate::events::Notices;
use crate::lease::{Keeper, Leadership};
use crate::metrics::Metrics;
use crate::observer::Observer;
use crate::reconcile::{Parts, Reconciler, Turn};

/// Margin after the Lease duration. The Lease of a killed operator has expired by then; if it is
/// still held, its holder is alive.
const AFTER_LEASE: Duration = Duration::from_secs(5);
/// The cleanup is complete when there has been nothing left to do for this long.
const CALM: Duration = Duration::from_secs(2);
/// Interval between attempts to delete objects.
const AGAIN: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_secs(3);

/// Why the cleanup is incomplete.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum CleanupError {
    #[error(transparent)]
    Lease(#[from] LeaseArgsError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Signal(#[from] SignalError),
    #[error(
        "the operator is still running: another process holds the Lease {namespace}/sourcepreserve-operator. Scale the operator down \
         first: `kubectl -n {namespace} scale deployment sourcepreserve-operator --replicas=0`"
    )]
    StillRunning { namespace: String },
    #[error("not everything was restored after {timeout:?}; these remain:\n{}", left.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"))]
    Left { timeout: Duration, left: Vec<String> },
    #[error("interrupted before everything was restored; run it again to continue")]
    Interrupted,
}

/// Deletes all objects and restores the cluster.
pub async fn cleanup(arguments: CleanupArgs) -> Result<(), CleanupError> {
    let shutdown = Shutdown::on_signals()?;
    let timing = arguments.lease.timing()?;
    // Inside the pod of a running operator, the pod's own name would match the holder of the Lease.
    let identity = format!("cleanup-{}", arguments.lease.identity()?);
    let metrics = Arc::new(Metrics::default());
    let client = connect(metrics.clone()).await?;
    let namespace = arguments.lease.namespace;
    let keeper = Keeper::new(client.clone(), &namespace, identity.clone(), timing, metrics.clone());
    let leadership = keeper.leadership();
    let (idle, is_idle) = oneshot::channel::<()>();
    let lease = tokio::spawn(keeper.run(async { drop(is_idle.await) }));
    let (notices, publisher) = Notices::new(client.clone(), identity, metrics.clone());
    tokio::spawn(publisher.run(std::future::pending()));
    let reconciler = Reconciler::new(Parts {
        observer: Observer::new(client.clone(), &Readiness::default()),
        leadership: leadership.clone(),
        settings: Settings {
            agent_image: String::new(),
            agent_pull_secrets: Vec::new(),
            namespace: namespace.clone(),
            cleanup: true,
        },
        client: client.clone(),
        notices,
        metrics,
    });
    let mut work = Work { client, reconciler };
    let patience = timing.lease + AFTER_LEASE;
    let result = tokio::select! {
        result = work.run(leadership, namespace, patience, arguments.timeout) => result,
        () = shutdown.requested() => Err(CleanupError::Interrupted),
    };
    work.reconciler.wind_down(GRACE).await;
    drop(idle);
    timeout(GRACE, lease).await.ok();
    result
}

struct Work {
    client: Client,
    reconciler: Reconciler,
}

impl Work {
    async fn run(
        &mut self,
        mut leadership: Leadership,
        namespace: String,
        patience: Duration,
        limit: Duration,
    ) -> Result<(), CleanupError> {
        let wait = async {
            while !leadership.leads() {
                leadership.changed().await;
            }
        };
        if timeout(patience, wait).await.is_err() {
            return Err(CleanupError::StillRunning { namespace });
        }
        match timeout(limit, self.put_back()).await {
            Ok(()) => Ok(()),
            Err(_) => Err(CleanupError::Left { timeout: limit, left: self.left() }),
        }
    }

    /// Runs until nothing has been left to do for [`CALM`].
    async fn put_back(&mut self) {
        let mut calm: Option<Instant> = None;
        let mut next_attempt: Option<Instant> = None;
        loop {
            let wake = calm.map_or_else(|| Instant::now() + AGAIN, |since| since + CALM);
            tokio::select! {
                turn = self.reconciler.turn() => match turn {
                    Turn::Did(action) => println!("{action}"),
                    Turn::Failed(action, failure) => debug!(%action, reason = failure.reason, "failed"),
                    Turn::Went | Turn::Planned => {}
                },
                () = sleep_until(wake) => {}
            }
            let Some(cluster) = self.reconciler.cluster() else { continue };
            let now = Instant::now();
            calm =
                (self.reconciler.is_at_rest() && leftovers(cluster).is_empty()).then(|| calm.unwrap_or(now));
            if calm.is_some_and(|since| now >= since + CALM) {
                return;
            }
            if next_attempt.is_none_or(|time| now >= time) {
                self.delete_objects().await;
                next_attempt = Some(Instant::now() + AGAIN);
            }
        }
    }

    /// Deletes every object that is not being deleted yet.
    async fn delete_objects(&self) {
        let api: Api<IngressSourcePreserve> = Api::all(self.client.clone());
        let objects = self.reconciler.cluster().into_iter().flat_map(|cluster| cluster.objects.values());
        for object in objects.filter(|object| object.metadata.deletion_timestamp.is_none()) {
            let name = object.metadata.name.clone().unwrap_or_default();
            let preconditions =
                Some(Preconditions { uid: object.metadata.uid.clone(), resource_version: None });
            let parameters = DeleteParams { preconditions, ..DeleteParams::default() };
            match timeout(GRACE, api.delete(&name, &parameters)).await {
                Ok(Ok(_)) => println!("delete-object ingresssourcepreserve/{name}"),
                Ok(Err(error)) => debug!(name, error = plain(&error), "cannot delete an object"),
                Err(_) => debug!(name, "timed out deleting an object"),
            }
        }
    }

    /// Leftovers, failed actions and unread kinds, one line each.
    fn left(&self) -> Vec<String> {
        let left = self.reconciler.cluster().map(leftovers).unwrap_or_default();
        let failed = self.reconciler.failures().map(|(action, reason)| format!("{action}: {reason}"));
        let missing = self.reconciler.missing().into_iter().map(|kind| format!("cannot read {kind}"));
        left.into_iter().chain(failed).chain(missing).collect()
    }
}

/// Objects that still carry a change by the operator, one line each.
fn leftovers(cluster: &Cluster) -> Vec<String> {
    let objects = cluster.objects.keys().map(|name| format!("ingresssourcepreserve/{name}"));
    let services = cluster.services.iter().filter(|(_, service)| service.owners.iter().any(Owner::is_us));
    let nodes = cluster.nodes.iter().filter(|(_, node)| node.pool.is_some() || node.handover.is_some());
    let sets = observe::made(cluster).map(|(key, _)| key).chain(observe::changed(cluster));
    let own = OwnKind::ALL.into_iter().flat_map(|kind| {
        let ours = cluster.own(kind).filter(|(_, written)| written.ours);
        ours.map(move |(key, _)| format!("{}/{}", kind.kind().to_lowercase(), key.name))
    });
    objects
        .chain(services.map(|(key, _)| format!("service/{key}")))
        .chain(nodes.map(|(name, _)| format!("node/{name}")))
        .chain(sets.map(|key| format!("daemonset/{key}")))
        .chain(cluster.reports.keys().map(|name| format!("ingresssourcenode/{name}")))
        .chain(own)
        .collect()
}

#[cfg(test)]
mod tests;
