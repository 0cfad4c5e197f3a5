//! The facts of the cluster that paths depend on.

use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_paths::Cluster;
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;

use super::kube_proxy;
use crate::connection::Connection;
use crate::error::CommandError;
use crate::read::each;

/// Reads the facts. `clients` are the pods that have asked: they have ended, but they had these
/// addresses. What could not be read is noted.
pub(crate) async fn read(
    connection: &Connection,
    clients: Vec<Pod>,
    notes: &mut Vec<String>,
) -> Result<Cluster, CommandError> {
    let mut cluster = Cluster::default();
    let all = ListParams::default;
    let client = || connection.client.clone();
    each(connection, Api::all(client()), all(), |service: Service| cluster.take_service(&service)).await?;
    each(connection, Api::all(client()), all(), |slice: EndpointSlice| cluster.take_endpoint_slice(&slice))
        .await?;
    each(connection, Api::all(client()), all(), |node: Node| cluster.take_node(&node)).await?;
    each(connection, Api::all(client()), all(), |pod: Pod| cluster.take_pod(&pod)).await?;
    let objects = each(connection, Api::all(client()), all(), |object: IngressSourcePreserve| {
        cluster.take_object(object);
    });
    let installed = match objects.await {
        Ok(()) => true,
        Err(CommandError::NotInstalled) => false,
        Err(error) => return Err(error),
    };
    if installed {
        each(connection, Api::all(client()), all(), |report: IngressSourceNode| cluster.take_report(report))
            .await?;
    }
    for mut pod in clients {
        if let Some(status) = &mut pod.status {
            status.phase = Some("Running".to_owned());
        }
        cluster.take_pod(&pod);
    }
    match kube_proxy::read(connection).await {
        Some(settings) => cluster.set_kube_proxy(settings),
        None => notes.push(
            "kube-proxy's settings cannot be read from ConfigMap kube-system/kube-proxy, so its defaults are assumed".to_owned(),
        ),
    }
    Ok(cluster)
}
