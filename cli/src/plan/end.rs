//! The cluster after the operator's last step, in memory. `kubectl isp report` compares it with the
//! present one.

use isp_api::IngressSourcePreserve;
use isp_plan::simulate::Simulation;
use isp_plan::{Cluster, Settings};
use k8s_openapi::jiff::Timestamp;

use super::{forecast, image, merge, snapshot};
use crate::connection::Connection;
use crate::error::CommandError;

/// The simulated end of a plan.
pub(crate) struct Planned {
    pub(crate) cluster: Cluster,
    /// Objects of the file that do not become `Ready`: name and message.
    pub(crate) unready: Vec<(String, String)>,
}

/// Simulates the operator until nothing is left to do.
pub(crate) async fn end(
    connection: &Connection,
    wanted: Vec<IngressSourcePreserve>,
    namespace: &str,
) -> Result<Planned, CommandError> {
    let now = Timestamp::now();
    let (objects, changes) = merge::merge(snapshot::objects(connection).await?, wanted, now);
    let cluster = snapshot::read(connection, objects).await?;
    let settings = Settings {
        agent_image: image::find(connection, namespace, &cluster).await,
        agent_pull_secrets: Vec::new(),
        namespace: namespace.to_owned(),
        cleanup: false,
    };
    let mut simulation = Simulation::new(cluster, settings, now);
    simulation.keep_trouble();
    let settled = simulation.settle(|_, _, _| {});
    let cluster = simulation.cluster;
    let mut unready: Vec<(String, String)> = changes
        .into_iter()
        .filter_map(|(name, _)| {
            let (ready, _, message) = forecast::verdict(&cluster, &name);
            (!ready).then_some((name, message))
        })
        .collect();
    unready.extend(settled.err().map(|unsettled| ("the plan".to_owned(), unsettled.to_string())));
    Ok(Planned { cluster, unready })
}
